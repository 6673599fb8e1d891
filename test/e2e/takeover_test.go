// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// TestTakeover names an Algorithm like the policy that closes its namespace. The policy stays as it is, the Algorithm serves and
// reports it, and takes it over once somebody hands it over.
func TestTakeover(t *testing.T) {
	const name = "default-deny"
	ns := namespace(t)
	deny := &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec:       networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}},
	}
	if err := kube.Create(t.Context(), deny); err != nil {
		t.Fatal(err)
	}
	before := deny.Spec.DeepCopy()
	if err := apply(t.Context(), algorithm(ns, name)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the refusal is reported with its remedy", algorithmCondition(ns, name, v1alpha1.TypeComposed, corev1.ConditionFalse,
		v1alpha1.ReasonRefused, "NetworkPolicy default-deny exists", "capstan.dev/adopt=default-deny"))
	eventually(t, "it serves all the same", func(ctx context.Context) error {
		a, err := get(ctx, &v1alpha1.Algorithm{}, ns, name)
		if err == nil && a.Status.ReadyReplicas != 1 {
			err = fmt.Errorf("%d replicas are ready", a.Status.ReadyReplicas)
		}
		return err
	})
	if err := kube.Get(t.Context(), client.ObjectKeyFromObject(deny), deny); err != nil {
		t.Fatal(err)
	}
	if len(deny.OwnerReferences) > 0 || deny.Spec.PodSelector.String() != before.PodSelector.String() || len(deny.Spec.Ingress) > 0 {
		t.Fatalf("the policy changed: %v %v", deny.OwnerReferences, deny.Spec)
	}

	deny.Annotations = map[string]string{"capstan.dev/adopt": name}
	if err := kube.Update(t.Context(), deny); err != nil {
		t.Fatal(err)
	}
	within(t, 2*timeout, "it takes over what was handed over", ready(ns, name, v1alpha1.PhaseReady, 1))

	// As a restore from a backup does.
	if err := kube.Get(t.Context(), client.ObjectKeyFromObject(deny), deny); err != nil {
		t.Fatal(err)
	}
	deny.OwnerReferences, deny.Annotations["capstan.dev/adopt"] = nil, "nobody"
	if err := kube.Update(t.Context(), deny); err != nil {
		t.Fatal(err)
	}
	eventually(t, "what lost its owner gets it back without consent", func(ctx context.Context) error {
		if err := kube.Get(ctx, client.ObjectKeyFromObject(deny), deny); err != nil {
			return err
		}
		if metav1.GetControllerOf(deny) == nil {
			return fmt.Errorf("it has no controller, and the labels %v", deny.Labels)
		}
		return nil
	})
}
