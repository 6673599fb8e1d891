// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/images/demo-algorithm/load"
)

// gpuDefaults are what replicas with a GPU request here, where no node is as large as one with GPUs.
const gpuDefaults = `{"cpu": "10m", "memory": "32Mi"}`

// withGPUDefaults sets the platform's defaults for replicas with a GPU, until the test ends.
func withGPUDefaults(t *testing.T, values string) {
	t.Helper()
	settings := &unstructured.Unstructured{}
	settings.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v1beta1", Kind: "EnvironmentConfig"})
	settings.SetName("capstan")
	set := func(ctx context.Context, values string) error {
		return kube.Patch(ctx, settings, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"data":{"algorithm":{"gpu":%s}}}`, values)))
	}
	if err := set(t.Context(), values); err != nil {
		t.Fatalf("cannot set the defaults: %v", err)
	}
	t.Cleanup(func() {
		if err := set(context.Background(), "null"); err != nil {
			t.Errorf("cannot take the defaults away: %v", err)
		}
	})
}

// TestGPUCanary applies the manifest of an example as it is written, but for its namespace and image, and rolls a second
// revision out. It has GPUs without a size of CPU and memory, a canary without a Gateway, and drift without a query.
func TestGPUCanary(t *testing.T) {
	t.Parallel()
	const name = "recommendation-engine"
	ns := namespace(t)
	raw, err := os.ReadFile("examples/algorithm/gpu-canary/xr.yaml")
	if err != nil {
		t.Fatal(err)
	}
	manifest := func(env ...any) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(raw, &u.Object); err != nil {
			t.Fatal(err)
		}
		u.SetNamespace(ns)
		fields := u.Object["spec"].(map[string]any)
		if fields["image"] = image(); len(env) > 0 {
			fields["env"] = env
		}

		return u
	}
	if err := kube.Create(t.Context(), manifest(), client.DryRunAll); err != nil {
		t.Fatalf("the API server should accept the manifest: %v", err)
	}
	withGPUDefaults(t, gpuDefaults)
	advertise(t, nil, map[corev1.ResourceName]string{"nvidia.com/gpu": "16"})

	if err := apply(t.Context(), manifest()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is Ready", ready(ns, name, v1alpha1.PhaseReady, 3))
	eventually(t, "it is accepted", algorithmCondition(ns, name, v1alpha1.TypeAccepted, corev1.ConditionTrue, v1alpha1.ReasonValid))
	eventually(t, "its rollout is stable", rollout(ns, name, v1alpha1.RolloutStable, ""))
	pods := &corev1.PodList{}
	if err := kube.List(t.Context(), pods, client.InNamespace(ns), client.MatchingLabels{"capstan.dev/algorithm": name}); err != nil {
		t.Fatal(err)
	}
	for _, p := range pods.Items {
		r := p.Spec.Containers[0].Resources
		if got := r.Requests.Cpu().String(); got != "10m" {
			t.Errorf("a replica with GPUs should request the platform's CPU for them, got %s", got)
		}
		if limit, limited := r.Limits[corev1.ResourceMemory]; limited {
			t.Errorf("a replica with GPUs should have no memory limit without spec.resources.memory, got %s", limit.String())
		}
	}
	calls := callInside(t, ns, "caller", load.Options{
		URL: "http://" + name + "/predict", Concurrency: 8, Rate: 40, Timeout: 10 * time.Second, NoKeepAlive: true,
	})
	within(t, 2*timeout, "Prometheus sees it", func(ctx context.Context) error {
		_, err := promQL(ctx, fmt.Sprintf("sum(algorithm_requests_total{namespace=%q,algorithm=%q,slot=%q})", ns, name, "a"))

		return err
	})
	followsNoCPU(t, ns, name)

	c := courseOf(t, ns, name)
	if err := apply(t.Context(), manifest(map[string]any{"name": "VERSION", "value": "v2"})); err != nil {
		t.Fatal(err)
	}
	within(t, 2*timeout, "20 % of callers may reach v2", stepping(ns, name, 20))
	eventually(t, "the share of one pod is reported", func(ctx context.Context) error {
		live, candidate := len(podsIn(t, ns, name, "a")), len(podsIn(t, ns, name, "b"))
		want := math.Round(1000*float64(candidate)/float64(live+candidate)) / 10
		if s := rolloutOf(ctx, ns, name).Share; candidate != 1 || s == nil || *s != want {
			return fmt.Errorf("there are %d pods of v2 beside %d, and status.rollout.share is %v", candidate, live, s)
		}

		return nil
	})
	within(t, 2*timeout, "everything that the manifest asks is measured", func(ctx context.Context) error {
		var checks []string
		for _, e := range rolloutOf(ctx, ns, name).Evidence {
			checks = append(checks, e.Name)
		}
		for _, want := range []string{"success", "success-against-baseline", "latency", "drift"} {
			if !slices.Contains(checks, want) {
				return fmt.Errorf("there is no evidence of %s, only of %v", want, checks)
			}
		}

		return nil
	})
	within(t, 3*timeout, "all traffic goes to v2", rollout(ns, name, v1alpha1.RolloutBaking, ""))
	within(t, timeout, "v2 is live", live(ns, name, "v2"))
	c.took(t, v1alpha1.RolloutStable, v1alpha1.RolloutPreparing, v1alpha1.RolloutStepping, v1alpha1.RolloutPromoting, v1alpha1.RolloutBaking)
	if f := rolloutOf(t.Context(), ns, name).Failed; len(f) != 0 {
		t.Errorf("nothing has failed, got %v", f)
	}
	lossless(t, "through the whole rollout", calls())
}

// followsNoCPU waits for the autoscaler, and fails the test if it follows the CPU, which says little about a GPU.
func followsNoCPU(t *testing.T, ns, name string) {
	t.Helper()
	h := &autoscalingv2.HorizontalPodAutoscaler{}
	within(t, 2*timeout, "the autoscaler follows the load", func(ctx context.Context) error {
		if err := kube.Get(ctx, client.ObjectKey{Namespace: ns, Name: name + "-a"}, h); err != nil {
			return err
		}
		if len(h.Spec.Metrics) == 0 {
			return errors.New("it follows nothing")
		}

		return nil
	})
	for _, m := range h.Spec.Metrics {
		if m.Type == autoscalingv2.ResourceMetricSourceType {
			t.Errorf("the autoscaler of replicas with GPUs should not follow the CPU, got %s", m.Resource.Name)
		}
	}
}
