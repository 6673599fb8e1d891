// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/optional"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// system is where Crossplane, the function and the provider run.
const system = "crossplane-system"

// functionName is Crossplane's name for a package that it installs as a dependency: organisation and repository.
const functionName = "capstan-dev-function-capstan"

// TestInstalled checks the result of `crossplane xpkg install configuration`.
func TestInstalled(t *testing.T) {
	for _, p := range []struct{ kind, name string }{
		{"Configuration", "capstan-dev-capstan"},
		{"Function", functionName},
		{"Provider", "capstan-dev-provider-capstan"},
	} {
		t.Run(p.kind, func(t *testing.T) {
			eventually(t, p.name+" is healthy", func(ctx context.Context) error {
				u := &unstructured.Unstructured{}
				u.SetAPIVersion("pkg.crossplane.io/v1")
				u.SetKind(p.kind)
				if err := kube.Get(ctx, client.ObjectKey{Name: p.name}, u); err != nil {
					return err
				}

				return packageHealthy(u)
			})
		})
	}

	// It may watch CRDs from its first second, also where Crossplane grants that later.
	t.Run("ProviderReportsKinds", func(t *testing.T) {
		eventually(t, "the provider reports optional kinds", func(ctx context.Context) error {
			u := &unstructured.Unstructured{}
			u.SetAPIVersion("apiextensions.crossplane.io/v1beta1")
			u.SetKind("EnvironmentConfig")
			if err := kube.Get(ctx, client.ObjectKey{Name: optional.Config}, u); err != nil {
				return err
			}
			kinds, _, err := unstructured.NestedMap(u.Object, "data", "kinds")
			if err == nil && len(kinds) == 0 {
				err = errors.New("it reports none")
			}

			return err
		})
	})

	t.Run("RuntimePodsAreRestricted", func(t *testing.T) {
		ns := namespace(t) // enforces the Pod Security Standard "restricted"
		for label, want := range map[string]int{"pkg.crossplane.io/function": 2, "pkg.crossplane.io/provider": 1} {
			list := runtimePods(t, label)
			if len(list) != want {
				t.Errorf("%d pods carry the label %s, want %d", len(list), label, want)
			}
			for _, p := range list {
				trial := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: p.Name}, Spec: p.Spec}
				trial.Spec.NodeName, trial.Spec.ServiceAccountName, trial.Spec.DeprecatedServiceAccount = "", "default", ""
				if err := kube.Create(t.Context(), trial, client.DryRunAll); err != nil {
					t.Errorf("pod %s would not be admitted: %v", p.Name, err)
				}
				if c := p.Spec.Containers[0]; c.ReadinessProbe == nil || c.LivenessProbe == nil {
					t.Errorf("pod %s lacks a probe", p.Name)
				}
			}
		}
	})

	t.Run("FunctionHasADisruptionBudget", func(t *testing.T) {
		budgets := &policyv1.PodDisruptionBudgetList{}
		if err := kube.List(t.Context(), budgets, client.InNamespace(system)); err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(budgets.Items, func(b policyv1.PodDisruptionBudget) bool {
			return b.Status.ExpectedPods == 2 && b.Status.DisruptionsAllowed == 1
		}) {
			t.Errorf("no budget guards the two pods of the function: %v", budgets.Items)
		}
	})

	t.Run("FunctionHasNoToken", func(t *testing.T) {
		for _, p := range runtimePods(t, "pkg.crossplane.io/function") {
			for _, v := range p.Spec.Volumes {
				if v.Projected != nil && strings.HasPrefix(v.Name, "kube-api-access") {
					t.Errorf("pod %s has a token for the API server", p.Name)
				}
			}
		}
	})
}

// runtimePods that are not being deleted.
func runtimePods(t *testing.T, label string) []corev1.Pod {
	t.Helper()
	list := &corev1.PodList{}
	if err := kube.List(t.Context(), list, client.InNamespace(system), client.HasLabels{label}); err != nil {
		t.Fatal(err)
	}

	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
}

// TestNotAllowedToCompose removes rights from Crossplane. The Algorithm must name what is missing, run without it if it
// can, and recover when the rights are back.
func TestNotAllowedToCompose(t *testing.T) {
	role := &rbacv1.ClusterRole{}
	if err := kube.Get(t.Context(), client.ObjectKey{Name: "capstan:compose"}, role); err != nil {
		t.Fatalf("cannot get the role of package/platform.yaml: %v", err)
	}
	// grant only these verbs on budgets for disruptions, or all previous ones.
	grant := func(ctx context.Context, verbs ...string) error {
		fresh := &rbacv1.ClusterRole{}
		if err := kube.Get(ctx, client.ObjectKeyFromObject(role), fresh); err != nil {
			return err
		}
		fresh.Rules = role.DeepCopy().Rules
		for i, r := range fresh.Rules {
			if slices.Contains(r.Resources, "poddisruptionbudgets") && len(verbs) > 0 {
				fresh.Rules[i].Verbs = verbs
			}
		}

		return kube.Update(ctx, fresh)
	}
	t.Cleanup(func() {
		if err := grant(context.Background()); err != nil {
			t.Errorf("cannot give the rights back: %v", err)
		}
	})

	ns := namespace(t)
	a := algorithm(ns, "reco", func(a *v1alpha1.Algorithm) {
		a.Spec.Scaling = &v1alpha1.Scaling{MinReplicas: 1, MaxReplicas: 3}
	})
	if err := grant(t.Context(), "get", "list", "watch"); err != nil {
		t.Fatal(err)
	}
	if err := apply(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the missing right is reported", algorithmCondition(ns, "reco", v1alpha1.TypeComposed, corev1.ConditionFalse,
		v1alpha1.ReasonNotAllowedToCompose, "PodDisruptionBudget", "platform.yaml"))
	eventually(t, "it serves all the same", func(ctx context.Context) error {
		a, err := get(ctx, &v1alpha1.Algorithm{}, ns, "reco")
		if err != nil {
			return err
		}
		if a.Status.ReadyReplicas != 1 {
			return fmt.Errorf("%d replicas are ready", a.Status.ReadyReplicas)
		}

		return nil
	})
	if err := grant(t.Context()); err != nil {
		t.Fatal(err)
	}
	within(t, 2*timeout, "it recovers by itself", ready(ns, "reco", v1alpha1.PhaseReady, 1))

	// Without the right to read the kind, Crossplane never calls the function: its own condition must report that.
	if err := grant(t.Context(), "deletecollection"); err != nil {
		t.Fatal(err)
	}
	a.Name = "other"
	if err := apply(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the missing right is reported by Crossplane", algorithmCondition(ns, "other", xpv2.TypeSynced, corev1.ConditionFalse,
		xpv2.ReasonReconcileError, "poddisruptionbudgets", "forbidden"))
	if err := grant(t.Context()); err != nil {
		t.Fatal(err)
	}
	within(t, 2*timeout, "it recovers by itself", ready(ns, "other", v1alpha1.PhaseReady, 1))
}
