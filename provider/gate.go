// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/customresourcesgate"

	"github.com/capstan-dev/capstan/provider/optional"
)

// setup adds the controller of a kind to a manager.
type setup func(ctrl.Manager, controller.Options) error

// start the controller of each kind as soon as its CRD exists: Crossplane creates the CRD of a kind when it is activated. A
// provider that may not watch CRDs starts all controllers, and fails when a CRD is missing.
func start(
	ctx context.Context, mgr ctrl.Manager, o controller.Options, all map[schema.GroupVersionKind]setup, fail func(error),
) error {
	for gvk, add := range all {
		o.Gate.Register(func() {
			if err := served(ctx, mgr, gvk); err != nil {
				fail(fmt.Errorf("cannot start the controller of %s: %w", gvk.Kind, err))
				return
			}
			if err := add(mgr, o); err != nil {
				fail(fmt.Errorf("cannot start the controller of %s: %w", gvk.Kind, err))
			}
		}, gvk)
	}
	watch, err := mayWatchCRDs(ctx, mgr)
	if err != nil {
		return err
	}
	if watch {
		if err := customresourcesgate.Setup(mgr, o); err != nil {
			return fmt.Errorf("cannot watch CRDs: %w", err)
		}
		return optional.Setup(mgr, o)
	}
	o.Logger.Info("Not allowed to watch CRDs, so every kind must be active")
	for gvk := range all {
		o.Gate.Set(gvk, true)
	}
	return nil
}

// served waits until the API server serves a kind: a CRD is established a moment before discovery knows it.
func served(ctx context.Context, mgr ctrl.Manager, gvk schema.GroupVersionKind) error {
	var unknown error
	err := wait.PollUntilContextTimeout(ctx, time.Second, time.Minute, true, func(context.Context) (bool, error) {
		_, unknown = mgr.GetRESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
		return unknown == nil, nil
	})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("the API server does not serve it: %w", unknown)
	}
	return err
}

// mayWatchCRDs asks the API server whether the provider may watch CRDs.
func mayWatchCRDs(ctx context.Context, mgr ctrl.Manager) (bool, error) {
	for _, verb := range []string{"get", "list", "watch"} {
		r := &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Group:    apiextensionsv1.GroupName,
					Resource: "customresourcedefinitions",
					Verb:     verb,
				},
			},
		}
		if err := mgr.GetClient().Create(ctx, r); err != nil {
			return false, fmt.Errorf("cannot ask whether CRDs may be watched: %w", err)
		}
		if !r.Status.Allowed {
			return false, nil
		}
	}
	return true, nil
}
