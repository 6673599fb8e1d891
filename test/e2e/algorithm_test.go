// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// algorithm is the smallest ready Algorithm, with modifications.
func algorithm(ns, name string, modify ...func(*v1alpha1.Algorithm)) *v1alpha1.Algorithm {
	a := &v1alpha1.Algorithm{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
		Spec: v1alpha1.AlgorithmSpec{
			Image:    image(),
			Replicas: ptr.To[int32](1),
			Resources: &v1alpha1.Resources{
				CPU:    new(resource.MustParse("10m")),
				Memory: new(resource.MustParse("32Mi")),
			},
		},
	}
	for _, m := range modify {
		m(a)
	}

	return a
}

// ready fails until the Algorithm is Ready, in the given phase, with the given number of ready replicas.
func ready(ns, name string, phase v1alpha1.Phase, replicas int32) func(context.Context) error {
	return func(ctx context.Context) error {
		a, err := get(ctx, &v1alpha1.Algorithm{}, ns, name)
		if err != nil {
			return err
		}
		if c := a.Status.GetCondition(xpv2.TypeReady); c.Status != corev1.ConditionTrue {
			return fmt.Errorf("condition Ready is %s: %s", c.Status, c.Message)
		}
		if a.Status.Phase != phase || a.Status.ReadyReplicas != replicas {
			return fmt.Errorf("phase is %s with %d ready replicas", a.Status.Phase, a.Status.ReadyReplicas)
		}

		return nil
	}
}

// algorithmCondition fails until a condition has a status and reason, and its message has all words.
func algorithmCondition(ns, name string, ct xpv2.ConditionType, status corev1.ConditionStatus, reason xpv2.ConditionReason, words ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		a, err := get(ctx, &v1alpha1.Algorithm{}, ns, name)
		if err != nil {
			return err
		}
		c := a.Status.GetCondition(ct)
		if c.Status != status || c.Reason != reason {
			return fmt.Errorf("condition %s is %s, %s: %s", ct, c.Status, c.Reason, c.Message)
		}
		for _, w := range words {
			if !strings.Contains(c.Message, w) {
				return fmt.Errorf("message of condition %s lacks %q: %s", ct, w, c.Message)
			}
		}

		return nil
	}
}

// create applies an Algorithm and waits until it is Ready.
func create(t *testing.T, a *v1alpha1.Algorithm) {
	t.Helper()
	if err := apply(t.Context(), a); err != nil {
		t.Fatalf("cannot apply the Algorithm: %v", err)
	}
	eventually(t, "Algorithm "+a.Name+" is Ready", ready(a.Namespace, a.Name, v1alpha1.PhaseReady, *a.Spec.Replicas))
}

// pods of an Algorithm by UID, with their numbers of container restarts.
func pods(ctx context.Context, t *testing.T, ns, name string) map[types.UID]int32 {
	t.Helper()
	list := &corev1.PodList{}
	if err := kube.List(ctx, list, client.InNamespace(ns), client.MatchingLabels{"capstan.dev/algorithm": name}); err != nil {
		t.Fatalf("cannot list pods: %v", err)
	}
	out := map[types.UID]int32{}
	for _, p := range list.Items {
		out[p.UID] = 0
		for _, c := range p.Status.ContainerStatuses {
			out[p.UID] += c.RestartCount
		}
	}

	return out
}

// composed lists every object of the kinds that an Algorithm composes in a namespace, except those of Kubernetes
// itself.
func composed(ctx context.Context, ns string) ([]string, error) {
	lists := []client.ObjectList{
		&appsv1.DeploymentList{}, &appsv1.ControllerRevisionList{}, &corev1.ServiceList{}, &corev1.ConfigMapList{}, &corev1.ServiceAccountList{},
		&autoscalingv2.HorizontalPodAutoscalerList{}, &policyv1.PodDisruptionBudgetList{}, &networkingv1.NetworkPolicyList{},
		&observev1alpha1.AnalysisList{}, &corev1.PodList{}, &appsv1.ReplicaSetList{}, &corev1.SecretList{},
	}
	var names []string
	for _, l := range lists {
		if err := kube.List(ctx, l, client.InNamespace(ns)); err != nil {
			return nil, err
		}
		items, err := meta.ExtractList(l)
		if err != nil {
			return nil, err
		}
		for _, i := range items {
			o, err := meta.Accessor(i)
			if err != nil {
				return nil, err
			}
			if o.GetName() == "default" || o.GetName() == "kube-root-ca.crt" {
				continue
			}
			names = append(names, fmt.Sprintf("%T %s", i, o.GetName()))
		}
	}

	return names, nil
}

func TestAlgorithmLife(t *testing.T) {
	ns := namespace(t)
	responsive := watchResponsive(t, ns)

	create(t, algorithm(ns, "reco", func(a *v1alpha1.Algorithm) { a.Spec.Replicas = ptr.To[int32](2) }))
	if broke := responsive(); broke != "" {
		t.Errorf("the condition Responsive turned False between create and Ready: %s", broke)
	}

	t.Run("ScaleByEdit", func(t *testing.T) {
		create(t, algorithm(ns, "reco", func(a *v1alpha1.Algorithm) { a.Spec.Replicas = ptr.To[int32](3) }))
	})

	t.Run("ScaleBySubresource", func(t *testing.T) {
		a, err := get(t.Context(), &v1alpha1.Algorithm{}, ns, "reco")
		if err != nil {
			t.Fatal(err)
		}
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":1}}`))
		if err := kube.SubResource("scale").Patch(t.Context(), a, patch); err != nil {
			t.Fatalf("cannot scale by the scale subresource: %v", err)
		}
		eventually(t, "one replica is left", ready(ns, "reco", v1alpha1.PhaseReady, 1))
	})

	t.Run("DeletedByHandComesBack", func(t *testing.T) {
		d, err := get(t.Context(), &appsv1.Deployment{}, ns, "reco-a")
		if err != nil {
			t.Fatal(err)
		}
		uid := d.UID
		if err := kube.Delete(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the Deployment is back", func(ctx context.Context) error {
			d, err := get(ctx, &appsv1.Deployment{}, ns, "reco-a")
			if err != nil {
				return err
			}
			if d.UID == uid || d.Status.AvailableReplicas != 1 {
				return fmt.Errorf("uid %s, %d available", d.UID, d.Status.AvailableReplicas)
			}

			return nil
		})
	})

	t.Run("DeleteLeavesNothing", func(t *testing.T) {
		if err := kube.Delete(t.Context(), algorithm(ns, "reco")); err != nil {
			t.Fatal(err)
		}
		eventually(t, "nothing is left", nothingIn(ns))
	})
}

// nothingIn fails until nothing that an Algorithm composes is left in a namespace.
func nothingIn(ns string) func(context.Context) error {
	return func(ctx context.Context) error {
		left, err := composed(ctx, ns)
		if err != nil {
			return err
		}
		if len(left) > 0 {
			return fmt.Errorf("left: %s", strings.Join(left, ", "))
		}

		return nil
	}
}

func TestBadEditLeavesTheWorkloadUntouched(t *testing.T) {
	ns := namespace(t)
	create(t, algorithm(ns, "reco"))
	before := pods(t.Context(), t, ns, "reco")
	generation := generationOf(t, ns, "reco-a")
	// The schema counts characters and a ConfigMap counts bytes: only the function rejects this text as too large.
	big := v1alpha1.FileContent(strings.Repeat("ü", 250_000))
	bad := algorithm(ns, "reco", func(a *v1alpha1.Algorithm) {
		a.Spec.Replicas = ptr.To[int32](2)
		a.Spec.Image = "registry.example.org/other:1"
		a.Spec.Config = v1alpha1.Config{"a": big, "b": big}
	})
	if err := apply(t.Context(), bad); err != nil {
		t.Fatalf("cannot apply the bad edit: %v", err)
	}
	eventually(t, "the bad edit is reported", algorithmCondition(ns, "reco", v1alpha1.TypeAccepted, corev1.ConditionFalse,
		v1alpha1.ReasonConfigTooLarge, "spec.config:", "1000000", "786432"))
	if after := pods(t.Context(), t, ns, "reco"); !equal(before, after) {
		t.Errorf("pods before %v, after %v", before, after)
	}
	if g := generationOf(t, ns, "reco-a"); g != generation {
		t.Errorf("the Deployment's generation went from %d to %d", generation, g)
	}
	eventually(t, "still Ready", ready(ns, "reco", v1alpha1.PhaseReady, 1))
}

func TestConfigChangeReplacesPodsAndCleansUp(t *testing.T) {
	ns := namespace(t)
	for i, slot := range []string{"a", "b"} {
		threshold := fmt.Sprintf("threshold: 0.%d", i+5)
		create(t, algorithm(ns, "reco", draining(1), func(a *v1alpha1.Algorithm) {
			a.Spec.RevisionHistoryLimit = ptr.To[int32](0)
			a.Spec.Config = v1alpha1.Config{"reco.yaml": v1alpha1.FileContent(threshold)}
		}))
		eventually(t, fmt.Sprintf("edit %d has the traffic, and nothing of the previous one is left", i+1), func(ctx context.Context) error {
			maps := &corev1.ConfigMapList{}
			if err := kube.List(ctx, maps, client.InNamespace(ns), client.MatchingLabels{"capstan.dev/algorithm": "reco"}); err != nil {
				return err
			}
			if n := len(maps.Items); n != 1 || maps.Items[0].Data["reco.yaml"] != threshold {
				return fmt.Errorf("there are %d ConfigMaps", n)
			}
			revisions := &appsv1.ControllerRevisionList{}
			if err := kube.List(ctx, revisions, client.InNamespace(ns), client.MatchingLabels{"capstan.dev/algorithm": "reco"}); err != nil {
				return err
			}
			if n := len(revisions.Items); n != 1 {
				return fmt.Errorf("there are %d ControllerRevisions", n)
			}
			s, err := get(ctx, &corev1.Service{}, ns, "reco")
			if err != nil {
				return err
			}
			if got := s.Spec.Selector["capstan.dev/slot"]; got != slot {
				return fmt.Errorf("traffic goes to slot %s", got)
			}

			return alone(ns, "reco")(ctx)
		})
	}
}

func TestAlgorithmScales(t *testing.T) {
	ns := namespace(t)
	create(t, algorithm(ns, "busy", func(a *v1alpha1.Algorithm) {
		a.Spec.Scaling = &v1alpha1.Scaling{MinReplicas: 1, MaxReplicas: 3}
	}))

	// Load raises it above the target. From then on the autoscaler sets the number of replicas: the function must not
	// change it, and when it stops setting the field it must not reset it.
	load := caller(t, ns, "load", "while :; do wget -q -O /dev/null http://busy/predict; done")
	within(t, 3*timeout, "the autoscaler adds replicas", func(ctx context.Context) error {
		d, err := get(ctx, &appsv1.Deployment{}, ns, "busy-a")
		if err != nil {
			return err
		}
		if *d.Spec.Replicas < 2 {
			return fmt.Errorf("the Deployment has %d replicas", *d.Spec.Replicas)
		}

		return nil
	})

	// An edit calls the function again while the autoscaler owns the number.
	edit := algorithm(ns, "busy", func(a *v1alpha1.Algorithm) {
		a.Spec.Scaling = &v1alpha1.Scaling{MinReplicas: 1, MaxReplicas: 4}
	})
	if err := apply(t.Context(), edit); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the autoscaler has the new bound", func(ctx context.Context) error {
		h, err := get(ctx, &autoscalingv2.HorizontalPodAutoscaler{}, ns, "busy-a")
		if err != nil {
			return err
		}
		if h.Spec.MaxReplicas != 4 {
			return fmt.Errorf("maxReplicas is %d", h.Spec.MaxReplicas)
		}

		return nil
	})
	d, err := get(t.Context(), &appsv1.Deployment{}, ns, "busy-a")
	if err != nil {
		t.Fatal(err)
	}
	if *d.Spec.Replicas < 2 {
		t.Errorf("the edit took the Deployment back to %d replicas", *d.Spec.Replicas)
	}
	for _, m := range d.ManagedFields {
		if strings.HasPrefix(m.Manager, "apiextensions.crossplane.io") && strings.Contains(string(m.FieldsV1.GetRawBytes()), `"f:replicas"`) {
			t.Errorf("Crossplane still owns spec.replicas beside the autoscaler: %s", m.FieldsV1.GetRawBytes())
		}
	}
	if err := kube.Delete(t.Context(), load); err != nil {
		t.Fatal(err)
	}

	// Without scaling the number of the spec counts again.
	create(t, algorithm(ns, "busy"))
}

func generationOf(t *testing.T, ns, deployment string) int64 {
	t.Helper()
	d, err := get(t.Context(), &appsv1.Deployment{}, ns, deployment)
	if err != nil {
		t.Fatal(err)
	}

	return d.Generation
}

func equal(a, b map[types.UID]int32) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if b[k] != v {
			return false
		}
	}

	return true
}
