// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

const (
	// bakeMeasured is how much of a bake is measured: fifteen looks at Prometheus.
	bakeMeasured = 15 * evidenceEvery

	// bakePasses is the most passes of Crossplane in that time. A look whose result is that of the one before makes none.
	bakePasses = 13

	// bakeReports is the most writes of the Analysis in that time.
	bakeReports = 9
)

// TestBakeIsQuiet counts the writes while a good revision bakes: looks at Prometheus that change no decision cost none.
func TestBakeIsQuiet(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	host := hostOf(ns, "reco")
	reco := func(v string) *v1alpha1.Algorithm {
		return algorithm(ns, "reco", versioned(v), draining(drainSeconds), routed(host), rolling(canary(50), baking(bakeMeasured+20*time.Second)))
	}
	stable(t, reco("v1"))
	calls := callOutside(t, calling(host, 60))
	whole := audit(t)
	edit(t, reco("v2"))
	within(t, 2*timeout, "v2 bakes", rollout(ns, "reco", v1alpha1.RolloutBaking, ""))
	time.Sleep(2 * time.Second)
	baking := audit(t)
	time.Sleep(bakeMeasured)
	requests := of(baking(), ns)
	if r := rolloutOf(t.Context(), ns, "reco"); r.Phase != v1alpha1.RolloutBaking {
		t.Errorf("it should have baked all the time, got %s: %s", r.Phase, r.Message)
	}
	within(t, 2*timeout, "the rollout is over", rollout(ns, "reco", v1alpha1.RolloutStable, ""))

	passes, reports := 0, 0
	for _, e := range requests {
		switch {
		case e.Verb == "patch" && e.ObjectRef.Resource == "networkpolicies":
			passes++
		case e.Verb == "update" && e.ObjectRef.Resource == "analyses" && e.ObjectRef.Subresource == "status":
			reports++
		}
	}
	t.Logf("%d passes and %d reports in %s of baking; writes: %s", passes, reports, bakeMeasured, tally(writes(requests), 1))
	t.Logf("API writes for the rollout: %s", tally(writes(of(whole(), ns)), 1))
	if passes == 0 || reports == 0 {
		t.Error("nothing was measured: the provider reports at least how long it goes on looking")
	}
	if passes > bakePasses || reports > bakeReports {
		t.Errorf("want at most %d passes and %d reports in %d looks, got %d and %d", bakePasses, bakeReports, bakeMeasured/evidenceEvery, passes, reports)
	}
	lossless(t, "through the whole rollout", calls())
}

// TestAutoscalerIsTakenOver has an Algorithm that composes its HorizontalPodAutoscaler itself, as those of earlier versions
// do. The provider takes it over, and it is the same one all the time.
func TestAutoscalerIsTakenOver(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	create(t, algorithm(ns, "reco"))
	a, err := get(t.Context(), &v1alpha1.Algorithm{}, ns, "reco")
	if err != nil {
		t.Fatal(err)
	}
	before := &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: ns, Name: "reco-a",
			Labels: map[string]string{
				"app.kubernetes.io/name": "reco", "app.kubernetes.io/managed-by": "capstan",
				"capstan.dev/algorithm": "reco", "capstan.dev/slot": "a", "crossplane.io/composite": "reco",
			},
			Annotations: map[string]string{"crossplane.io/composition-resource-name": "hpa-a"},
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(a, v1alpha1.AlgorithmGroupVersionKind),
			},
		},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "reco-a"},
			MinReplicas:    new(int32(1)), MaxReplicas: 2,
			Metrics: []autoscalingv2.MetricSpec{{
				Type: autoscalingv2.ResourceMetricSourceType,
				Resource: &autoscalingv2.ResourceMetricSource{
					Name:   corev1.ResourceCPU,
					Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(int32(70))},
				},
			}},
		},
	}
	var mu sync.Mutex
	var lost []string
	watching(t, &autoscalingv2.HorizontalPodAutoscalerList{}, func(e watch.EventType, h *autoscalingv2.HorizontalPodAutoscaler) {
		mu.Lock()
		defer mu.Unlock()
		if e == watch.Deleted || h.DeletionTimestamp != nil {
			lost = append(lost, fmt.Sprintf("%s %s", e, h.UID))
		}
	}, client.InNamespace(ns))
	if err := kube.Create(t.Context(), before); err != nil {
		t.Fatal(err)
	}

	// What an earlier version leaves: a reference to it beside the others, and the field that it was composed for.
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(v1alpha1.AlgorithmGroupVersionKind)
	if err := kube.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "reco"}, u); err != nil {
		t.Fatal(err)
	}
	refs, _, err := unstructured.NestedSlice(u.Object, "spec", "crossplane", "resourceRefs")
	if err != nil || len(refs) == 0 {
		t.Fatalf("the Algorithm refers to no composed object (%v)", err)
	}
	refs = append(refs, map[string]any{"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "name": "reco-a"})
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{
		"scaling": map[string]any{"minReplicas": 1, "maxReplicas": 3}, "crossplane": map[string]any{"resourceRefs": refs},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := kube.Patch(t.Context(), u, client.RawPatch(types.MergePatchType, patch)); err != nil {
		t.Fatal(err)
	}

	var uid types.UID
	within(t, 2*timeout, "an Autoscaler controls it", func(ctx context.Context) error {
		h, err := get(ctx, &autoscalingv2.HorizontalPodAutoscaler{}, ns, "reco-a")
		if err != nil {
			return err
		}
		uid = h.UID
		owner := metav1.GetControllerOf(h)
		if owner == nil || owner.Kind != "Autoscaler" || len(h.OwnerReferences) != 1 {
			return fmt.Errorf("its owners are %v", h.OwnerReferences)
		}
		if h.Spec.MaxReplicas != 3 {
			return fmt.Errorf("maxReplicas is %d", h.Spec.MaxReplicas)
		}

		return nil
	})
	within(t, timeout, "Crossplane has dropped it, and is at peace", func(ctx context.Context) error {
		if composes(t, ns, "reco", "HorizontalPodAutoscaler") {
			return errors.New("it is still composed")
		}
		if !composes(t, ns, "reco", "Autoscaler") {
			return errors.New("the Autoscaler is not composed")
		}

		return looked(ns, "reco")(ctx)
	})
	within(t, 2*timeout, "the Autoscaler is Synced and Ready", func(ctx context.Context) error {
		m := &unstructured.Unstructured{}
		m.SetAPIVersion("observe.capstan.dev/v1alpha1")
		m.SetKind("Autoscaler")
		if err := kube.Get(ctx, client.ObjectKey{Namespace: ns, Name: "reco-a"}, m); err != nil {
			return err
		}
		conditions, _, _ := unstructured.NestedSlice(m.Object, "status", "conditions")
		holds := map[any]bool{}
		for _, c := range conditions {
			m, _ := c.(map[string]any)
			holds[m["type"]] = m["status"] == "True"
		}
		if !holds["Synced"] || !holds["Ready"] {
			return fmt.Errorf("its conditions are %v", conditions)
		}

		return nil
	})
	if uid != before.UID {
		t.Errorf("it should be the same autoscaler all the time, before %s, after %s", before.UID, uid)
	}
	mu.Lock()
	if len(lost) > 0 {
		t.Errorf("it should never have been deleted: %s", strings.Join(lost, ", "))
	}
	mu.Unlock()

	// It goes with the field, and the number of replicas stays that of the spec.
	if err := kube.Patch(t.Context(), u, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"scaling":null}}`))); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the autoscaler goes with the field", func(ctx context.Context) error {
		if _, err := get(ctx, &autoscalingv2.HorizontalPodAutoscaler{}, ns, "reco-a"); client.IgnoreNotFound(err) != nil || err == nil {
			return fmt.Errorf("it is still there (%w)", err)
		}
		_, err := get(ctx, &appsv1.Deployment{}, ns, "reco-a")

		return err
	})
}
