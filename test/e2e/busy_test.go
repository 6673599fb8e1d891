// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// busy is how many Algorithms are busy and for how long: one for three minutes, and also fifty for five minutes in `make
// nightly`.
func busy(t *testing.T) (int, time.Duration) {
	t.Helper()
	n, d := 1, 3*time.Minute
	var err error
	if text := os.Getenv("CAPSTAN_BUSY"); text != "" {
		if n, err = strconv.Atoi(text); err != nil || n < 1 {
			t.Fatalf("CAPSTAN_BUSY: %q is no number of Algorithms", text)
		}
	}
	if text := os.Getenv("CAPSTAN_BUSY_TIME"); text != "" {
		if d, err = time.ParseDuration(text); err != nil {
			t.Fatalf("CAPSTAN_BUSY_TIME: %v", err)
		}
	}

	return n, d
}

const (
	// busyRequests is the most API requests that a busy Algorithm may cost in an hour.
	busyRequests = 600.0

	// podRequests is the most API requests for a pod that starts or ends: four passes, because Deployment, PodDisruptionBudget
	// and status change with it.
	podRequests = 44.0

	// settled is how long no autoscaler must have scaled before it is measured what their reports cost.
	settled = time.Minute
)

// TestBusyIsNotNoisy counts the requests for Algorithms whose autoscalers report a change every quarter of a minute.
func TestBusyIsNotNoisy(t *testing.T) {
	// Alone: beside other tests the processor is so busy that the autoscaler really scales.
	ns := namespace(t)
	n, d := busy(t)
	responsive := watchResponsive(t, ns)
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("busy-%02d", i)
		edit(t, algorithm(ns, names[i], func(a *v1alpha1.Algorithm) {
			// The node has no room for more than one pod of each of fifty.
			a.Spec.Scaling = &v1alpha1.Scaling{MinReplicas: 1, MaxReplicas: 1}
			if n == 1 {
				a.Spec.Scaling.MaxReplicas = 3
			}
		}))
	}
	within(t, timeout+time.Duration(n)*10*time.Second, "they are Ready", func(ctx context.Context) error {
		for _, name := range names {
			a, err := get(ctx, &v1alpha1.Algorithm{}, ns, name)
			if err != nil {
				return err
			}
			if a.Status.Phase != v1alpha1.PhaseReady {
				return fmt.Errorf("%s is %s", name, a.Status.Phase)
			}
		}

		return nil
	})
	// Bursts of every length, so that every evaluation of the autoscaler finds another load.
	caller(t, ns, "load", fmt.Sprintf(`
		burst() { for n in $(seq $((RANDOM %% 30))); do wget -q -O /dev/null http://$1/predict; done; }
		while :; do for name in %s; do burst $name; done; done`, strings.Join(names, " ")))
	reported := 0
	within(t, 3*timeout, "the autoscalers report a change", func(ctx context.Context) error {
		list := &autoscalingv2.HorizontalPodAutoscalerList{}
		if err := kube.List(ctx, list, client.InNamespace(ns)); err != nil {
			return err
		}
		for _, h := range list.Items {
			for _, m := range h.Status.CurrentMetrics {
				if m.Resource != nil && m.Resource.Current.AverageUtilization != nil && *m.Resource.Current.AverageUtilization > 0 {
					reported++

					return nil
				}
			}
		}

		return fmt.Errorf("none of %d", len(list.Items))
	})

	within(t, 3*timeout, "the load has the replicas that it needs", func(ctx context.Context) error {
		list := &autoscalingv2.HorizontalPodAutoscalerList{}
		if err := kube.List(ctx, list, client.InNamespace(ns)); err != nil {
			return err
		}
		for _, h := range list.Items {
			if last := h.Status.LastScaleTime; last != nil && time.Since(last.Time) < settled {
				return fmt.Errorf("%s scaled at %s", h.Name, last)
			}
		}

		return nil
	})

	var mu sync.Mutex
	pods, comings := map[types.UID]bool{}, 0
	existing := &corev1.PodList{}
	if err := kube.List(t.Context(), existing, client.InNamespace(ns)); err != nil {
		t.Fatal(err)
	}
	for _, p := range existing.Items {
		pods[p.UID] = true
	}
	stop := []func(){watching(t, &corev1.PodList{}, func(e watch.EventType, p *corev1.Pod) {
		mu.Lock()
		defer mu.Unlock()
		if e == watch.Deleted || !pods[p.UID] {
			comings++
		}
		pods[p.UID] = true
	}, client.InNamespace(ns))}

	// Every change of a composed object wakes up Crossplane.
	changes := map[string]int{}
	for _, gvk := range append(slices.Clone(composedKinds), v1alpha1.AlgorithmGroupVersionKind) {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(gvk)
		stop = append(stop, watching(t, list, func(e watch.EventType, _ *metav1.PartialObjectMetadata) {
			mu.Lock()
			defer mu.Unlock()
			if e == watch.Modified {
				changes[gvk.Kind]++
			}
		}, client.InNamespace(ns)))
	}
	since, calls := audit(t), functionCalls(t)
	time.Sleep(d)
	requests, after := of(since(), ns), functionCalls(t)
	for _, end := range stop {
		end()
	}

	minutes := d.Minutes() * float64(n)
	passes := 0
	for _, e := range requests {
		if e.Verb == "patch" && e.ObjectRef.Resource == "networkpolicies" {
			passes++
		}
	}
	total := 0
	for kind, n := range changes {
		// What is not composed wakes up nothing.
		if kind != "HorizontalPodAutoscaler" || composes(t, ns, names[0], kind) {
			total += n
		}
	}
	t.Logf("%d busy for %s, each minute of each: %.1f changes (%v in all), %.1f passes", n, d, float64(total)/minutes, changes, float64(passes)/minutes)
	t.Logf("the function was called %.0f times, with what else there was, and took %.2f ms", after.count-calls.count,
		1000*(after.seconds-calls.seconds)/max(after.count-calls.count, 1))
	t.Logf("API requests each minute of each %s", tally(requests, minutes))
	t.Logf("API requests in a busy hour of each: %.0f; writes: %.0f", 60*float64(len(requests))/minutes, 60*float64(len(writes(requests)))/minutes)
	if most := busyRequests*minutes/60 + podRequests*float64(comings); float64(len(requests)) > most {
		t.Errorf("%d busy for %s cost %d API requests, want at most %.0f: %.0f in an hour of each, and %.0f for each of %d pods that started or ended",
			n, d, len(requests), most, busyRequests, podRequests, comings)
	}
	if passes > 0 {
		// Crossplane makes only two passes an hour for an idle one (see TestIdleIsQuiet).
		t.Logf("API requests of a pass: %.1f; so of an idle hour of each: %.0f", float64(len(requests))/float64(passes), 2*float64(len(requests))/float64(passes))
	}
	if changes["HorizontalPodAutoscaler"] == 0 {
		t.Error("the autoscalers reported nothing new: nothing was measured")
	}
	if broke := responsive(); broke != "" {
		t.Errorf("Crossplane stopped listening: %s", broke)
	}
	// The breaker gets one token per second. Half of them are for other events.
	if spent := breakerCost * float64(total) / minutes; spent > 30 {
		t.Errorf("a busy Algorithm costs %.1f of the 60 tokens that the circuit breaker gets in a minute", spent)
	} else {
		t.Logf("of the 60 tokens that the circuit breaker gets in a minute, %.1f are spent", spent)
	}
	for _, e := range requests {
		if e.ResponseStatus.Code >= 500 {
			t.Errorf("the API server could not answer: %s", e)
		}
	}
}

// composes reports whether an Algorithm composes an object of a kind, by what Crossplane remembers of it.
func composes(t *testing.T, ns, name, kind string) bool {
	t.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(v1alpha1.AlgorithmGroupVersionKind)
	if err := kube.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: name}, u); err != nil {
		t.Fatal(err)
	}
	refs, _, err := unstructured.NestedSlice(u.Object, "spec", "crossplane", "resourceRefs")
	if err != nil || len(refs) == 0 {
		t.Fatalf("Algorithm %s refers to no composed object (%v)", name, err)
	}

	return slices.ContainsFunc(refs, func(ref any) bool {
		m, _ := ref.(map[string]any)

		return m["kind"] == kind
	})
}

// calls of the function, and their duration.
type calledFunction struct{ count, seconds float64 }

// functionCalls of Algorithms that its pods have completed.
func functionCalls(t *testing.T) calledFunction {
	t.Helper()
	var total calledFunction
	for _, p := range runtimePods(t, "pkg.crossplane.io/function") {
		rsp, err := http.Get("http://" + p.Status.PodIP + ":8080/metrics")
		if err != nil {
			t.Fatalf("cannot ask pod %s for its metrics: %v", p.Name, err)
		}
		body, err := io.ReadAll(rsp.Body)
		_ = rsp.Body.Close()
		if err != nil || rsp.StatusCode != http.StatusOK {
			t.Fatalf("cannot read the metrics of pod %s: status %d, %v", p.Name, rsp.StatusCode, err)
		}
		for lines := bufio.NewScanner(strings.NewReader(string(body))); lines.Scan(); {
			name, value, _ := strings.Cut(lines.Text(), " ")
			if !strings.Contains(name, `kind="Algorithm"`) {
				continue
			}
			v, _ := strconv.ParseFloat(value, 64)
			switch {
			case strings.HasPrefix(name, "capstan_function_run_seconds_count{"):
				total.count += v
			case strings.HasPrefix(name, "capstan_function_run_seconds_sum{"):
				total.seconds += v
			}
		}
	}
	if total.count == 0 {
		t.Fatal("the function's pods know of no call for an Algorithm")
	}

	return total
}
