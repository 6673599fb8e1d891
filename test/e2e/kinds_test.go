// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// TestKindInstalledLater takes a kind from the cluster and brings it back: an Algorithm that needs it reports so, and continues by
// itself, sooner than Crossplane's next look of a minute.
func TestKindInstalledLater(t *testing.T) {
	ns := namespace(t)
	crd := &unstructured.Unstructured{}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind("CustomResourceDefinition")
	if err := kube.Get(t.Context(), client.ObjectKey{Name: "grpcroutes.gateway.networking.k8s.io"}, crd); err != nil {
		t.Fatal(err)
	}
	back := crd.DeepCopy()
	for _, field := range []string{"resourceVersion", "uid", "generation", "creationTimestamp", "managedFields"} {
		unstructured.RemoveNestedField(back.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(back.Object, "status")
	install := func(ctx context.Context) error {
		if err := kube.Create(ctx, back.DeepCopy()); err != nil && !kerrors.IsAlreadyExists(err) {
			return err
		}

		return nil
	}
	t.Cleanup(func() {
		if err := install(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("cannot install the CRD again: %v", err)
		}
	})
	if err := kube.Delete(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the kind is gone", func(ctx context.Context) error {
		if err := kube.Get(ctx, client.ObjectKeyFromObject(crd), crd.DeepCopy()); !kerrors.IsNotFound(err) {
			return errors.Join(errors.New("the CRD is still there"), err)
		}

		return nil
	})

	create(t, algorithm(ns, "reco", versioned("v1"), routed(hostOf(ns, "reco")), func(a *v1alpha1.Algorithm) {
		a.Spec.Protocol = v1alpha1.ProtocolGRPC
		a.Spec.Probes = &v1alpha1.Probes{Path: "/demo.v1.Predictor"}
	}))
	eventually(t, "the missing kind is reported",
		algorithmCondition(ns, "reco", v1alpha1.TypeRouteAccepted, corev1.ConditionFalse, v1alpha1.ReasonGatewayAPIMissing, "GRPCRoutes"))
	if err := install(t.Context()); err != nil {
		t.Fatal(err)
	}
	installed := time.Now()
	eventually(t, "the route exists", func(ctx context.Context) error {
		route := &unstructured.Unstructured{}
		route.SetAPIVersion("gateway.networking.k8s.io/v1")
		route.SetKind("GRPCRoute")

		return kube.Get(ctx, client.ObjectKey{Namespace: ns, Name: "reco"}, route)
	})
	t.Logf("the route existed %s after its kind", time.Since(installed).Round(100*time.Millisecond))
}
