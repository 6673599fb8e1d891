// SPDX-License-Identifier: Apache-2.0

// Package optional reports which optional kinds the cluster serves, in an EnvironmentConfig that the function reads.
//
// The function could ask Crossplane for their schemas. Crossplane would then parse the OpenAPI documents of whole API groups on each
// pass of each composite resource, and a kind that comes later would not wake the composite resources that wait for it. Crossplane watches the
// EnvironmentConfig.
package optional

import (
	"context"
	"fmt"
	"maps"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"

	"github.com/capstan-dev/capstan/apis/optional"
)

// Setup adds a controller that watches CRDs to mgr.
func Setup(mgr ctrl.Manager, o controller.Options) error {
	r := &reconciler{kube: mgr.GetClient(), direct: mgr.GetAPIReader(), mapper: mgr.GetRESTMapper(), again: ctrl.Result{RequeueAfter: o.PollInterval}}
	one := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: optional.Config}}}
	})
	err := ctrl.NewControllerManagedBy(mgr).
		Named("optional-kinds").
		WithOptions(o.ForControllerRuntime()).
		Watches(&apiextensionsv1.CustomResourceDefinition{}, one).
		Complete(r)
	if err != nil {
		return fmt.Errorf("cannot watch CRDs: %w", err)
	}
	return nil
}

// A reconciler keeps the EnvironmentConfig. It reads CRDs from the cache, and the EnvironmentConfig, which no controller watches, directly.
type reconciler struct {
	kube   client.Client
	direct client.Reader

	// mapper knows the kinds that are part of Kubernetes, which have no CRD.
	mapper meta.RESTMapper

	// again after a while, because the EnvironmentConfig may have been created or edited.
	again ctrl.Result
}

// Reconcile the EnvironmentConfig with the CRDs. It is part of package/platform.yaml: where it is missing, the function asks
// Crossplane for schemas.
func (r *reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	config := &unstructured.Unstructured{}
	config.SetAPIVersion("apiextensions.crossplane.io/v1beta1")
	config.SetKind("EnvironmentConfig")
	if err := r.direct.Get(ctx, client.ObjectKey{Name: optional.Config}, config); err != nil {
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			return r.again, nil
		}
		return ctrl.Result{}, fmt.Errorf("cannot get EnvironmentConfig %q: %w", optional.Config, err)
	}
	crds := &apiextensionsv1.CustomResourceDefinitionList{}
	if err := r.kube.List(ctx, crds); err != nil {
		return ctrl.Result{}, fmt.Errorf("cannot list CRDs: %w", err)
	}
	kinds := served(crds.Items)
	for _, gvk := range optional.Kinds() {
		if gvk.Group != resourcev1.GroupName {
			continue
		}
		is, err := r.built(gvk)
		if err != nil {
			return ctrl.Result{}, err
		}
		kinds[optional.Key(gvk)] = is
	}
	was, _, err := unstructured.NestedMap(config.Object, "data", "kinds")
	if err == nil && maps.Equal(was, kinds) {
		return r.again, nil
	}
	if err := unstructured.SetNestedMap(config.Object, kinds, "data", "kinds"); err != nil {
		return ctrl.Result{}, fmt.Errorf("cannot set data.kinds of EnvironmentConfig %q: %w", optional.Config, err)
	}
	if err := r.kube.Update(ctx, config); err != nil {
		return ctrl.Result{}, fmt.Errorf("cannot update EnvironmentConfig %q: %w", optional.Config, err)
	}
	return r.again, nil
}

// built reports whether the API server serves a kind that is part of Kubernetes.
func (r *reconciler) built(gvk schema.GroupVersionKind) (bool, error) {
	_, err := r.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("cannot find out whether the cluster serves %s: %w", optional.Key(gvk), err)
	}
	return true, nil
}

// served reports of each optional kind whether one of the CRDs serves it.
func served(crds []apiextensionsv1.CustomResourceDefinition) map[string]any {
	kinds := map[string]any{}
	for _, gvk := range optional.Kinds() {
		kinds[optional.Key(gvk)] = slices.ContainsFunc(crds, func(crd apiextensionsv1.CustomResourceDefinition) bool {
			return crd.Spec.Group == gvk.Group && crd.Spec.Names.Kind == gvk.Kind && established(crd) &&
				slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
					return v.Name == gvk.Version && v.Served
				})
		})
	}
	return kinds
}

// established reports whether the API server serves the kind of a CRD, and will continue to.
func established(crd apiextensionsv1.CustomResourceDefinition) bool {
	return crd.DeletionTimestamp.IsZero() && slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	})
}
