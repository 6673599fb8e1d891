// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/images/demo-algorithm/load"
)

// monitoringNamespace is the namespace of the embedded cluster's Prometheus.
const monitoringNamespace = "monitoring"

// scalePrometheus starts and stops Prometheus.
func scalePrometheus(ctx context.Context, replicas int32) error {
	p := &unstructured.Unstructured{}
	p.SetAPIVersion("monitoring.coreos.com/v1")
	p.SetKind("Prometheus")
	p.SetNamespace(monitoringNamespace)
	p.SetName("prometheus")

	return kube.Patch(ctx, p, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)))
}

// scaleAdapter starts and stops the adapter that serves metrics to autoscalers.
func scaleAdapter(ctx context.Context, replicas int32) error {
	d, err := get(ctx, &appsv1.Deployment{}, monitoringNamespace, "prometheus-adapter")
	if err != nil {
		return err
	}
	d.Spec.Replicas = &replicas

	return kube.Update(ctx, d)
}

// prometheusAnswers fails while Prometheus is unreachable.
func prometheusAnswers(ctx context.Context) error {
	_, err := promQL(ctx, "vector(1)")

	return err
}

// adapterServes fails until the metrics API is available; without it no namespace can be deleted.
func adapterServes(ctx context.Context) error {
	d, err := get(ctx, &appsv1.Deployment{}, monitoringNamespace, "prometheus-adapter")
	if err == nil && d.Status.AvailableReplicas != 1 {
		err = errors.New("the adapter is not ready")
	}

	return err
}

// TestLatencyTarget keeps a target under a step of load. It keeps the number of replicas while metrics are missing and
// the load is gone, and removes replicas when metrics are back. It runs alone on the cluster, because it measures
// latency.
func TestLatencyTarget(t *testing.T) {
	const (
		target = 100 // ms, for 95 of 100 requests
		rate   = 160 // requests per second; a replica can do 2 in 40 ms, which is 50 per second
		enough = 4   // replicas
		most   = 6
	)
	ns := namespace(t)
	host := hostOf(ns, "reco")
	create(t, algorithm(ns, "reco", routed(host), draining(drainSeconds), args("--latency-ms=40", "--workers=2"),
		measured(), func(a *v1alpha1.Algorithm) { a.Spec.Objectives = &v1alpha1.Objectives{SuccessRatio: new(0.97)} },
		scaled(v1alpha1.Scaling{MinReplicas: 1, MaxReplicas: most, TargetLatencyMs: new(int32(target)), ScaleDownAfterSeconds: new(int32(30))})))
	eventually(t, "the Gateway serves it", answers(host, "/predict", 200))
	// There are always some requests.
	trickle := callOutside(t, load.Options{URL: gateway + "/predict", Host: host, Concurrency: 2, Rate: 5, Timeout: 10 * time.Second, NoKeepAlive: true})
	condition := func(ct xpv2.ConditionType, status corev1.ConditionStatus, reason xpv2.ConditionReason, words ...string) func(context.Context) error {
		return algorithmCondition(ns, "reco", ct, status, reason, words...)
	}
	within(t, 2*timeout, "all is known", condition(v1alpha1.TypeMetricsAvailable, corev1.ConditionTrue, v1alpha1.ReasonMeasured))
	within(t, 2*timeout, "targets are met", condition(v1alpha1.TypeWithinTargets, corev1.ConditionTrue, v1alpha1.ReasonTargetsMet))

	// The step.
	step := load.Options{URL: gateway + "/predict", Host: host, Concurrency: 24, Rate: rate, Timeout: 10 * time.Second}
	began := time.Now()
	rise := callOutside(t, step)
	within(t, timeout, "the missed target is reported", condition(v1alpha1.TypeWithinTargets, corev1.ConditionFalse, v1alpha1.ReasonTargetMissed,
		"latency p95 in ms", fmt.Sprintf("at most %d", target)))
	within(t, 2*timeout, "there are enough replicas", func(ctx context.Context) error {
		wanted, available, err := size(ctx, ns, "reco")
		if err == nil && available < enough {
			err = fmt.Errorf("%d replicas are wanted, %d serve", wanted, available)
		}

		return err
	})
	t.Logf("%d replicas serve %s after the load began", enough, time.Since(began).Round(100*time.Millisecond))
	within(t, 2*timeout, "targets are met again", condition(v1alpha1.TypeWithinTargets, corev1.ConditionTrue, v1alpha1.ReasonTargetsMet))
	t.Logf("the target was met %s after the load began", time.Since(began).Round(100*time.Millisecond))
	lossless(t, "while replicas were added", rise())

	// Without load, as clients measure it.
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	r, err := load.Run(ctx, step)
	if err != nil {
		t.Fatal(err)
	}
	lossless(t, "at rest", r)
	wanted, _, err := size(t.Context(), ns, "reco")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("at rest %d replicas answer %.0f requests per second, p95 %.1f ms for a target of %d ms: error %+.0f %%",
		wanted, float64(r.Answered)/30, r.P95Ms, target, 100*(r.P95Ms-target)/target)
	// Clients, the Gateway and the replicas share two cores with the whole cluster and other work. Without scaling it
	// would be five times the target.
	if r.P95Ms > 1.5*target {
		t.Errorf("at rest p95 is %.1f ms, want at most %d ms and a half", r.P95Ms, target)
	}
	followsLearned(t, ns, "reco", target)

	// The load ends, and Prometheus stops before the number can shrink.
	t.Cleanup(func() {
		_ = scalePrometheus(context.Background(), 1)
		_ = scaleAdapter(context.Background(), 1)
	})
	if err := scalePrometheus(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	eventually(t, "Prometheus is gone", func(ctx context.Context) error {
		if prometheusAnswers(ctx) == nil {
			return errors.New("it still answers")
		}

		return nil
	})
	before, _, err := size(t.Context(), ns, "reco")
	if err != nil || before < enough {
		t.Fatalf("there are %d replicas when Prometheus goes (%v)", before, err)
	}
	outage := time.Now()
	eventually(t, "the outage is reported", condition(v1alpha1.TypeMetricsAvailable, corev1.ConditionFalse, v1alpha1.ReasonQueryFailed))
	eventually(t, "and by the Analysis", func(ctx context.Context) error {
		o, err := get(ctx, &observev1alpha1.Analysis{}, ns, "reco")
		if err != nil {
			return err
		}
		if c := o.GetCondition(v1alpha1.TypeConnected); c.Status != corev1.ConditionFalse {
			return fmt.Errorf("Connected is %s: %s", c.Status, c.Reason)
		}

		return nil
	})
	eventually(t, "the targets are Unknown", condition(v1alpha1.TypeWithinTargets, corev1.ConditionUnknown, v1alpha1.ReasonTooLittleData))
	stays(t, ns, "reco", 80*time.Second-time.Since(outage), "without Prometheus and load")

	// Prometheus comes back, and the adapter stops.
	if err := errors.Join(scaleAdapter(t.Context(), 0), scalePrometheus(t.Context(), 1)); err != nil {
		t.Fatal(err)
	}
	within(t, 2*timeout, "Prometheus is back", prometheusAnswers)
	within(t, 2*timeout, "the missing adapter is reported", condition(v1alpha1.TypeMetricsAvailable, corev1.ConditionFalse, v1alpha1.ReasonNotScaling,
		"external metrics"))
	stays(t, ns, "reco", max(140*time.Second-time.Since(outage), 20*time.Second), "without the adapter")
	if now, _, err := size(t.Context(), ns, "reco"); err != nil || now != before {
		t.Errorf("%d replicas became %d within %s of an outage (%v)", before, now, time.Since(outage).Round(time.Second), err)
	}
	t.Logf("%d replicas stayed for %s of an outage", before, time.Since(outage).Round(time.Second))
	if err := scaleAdapter(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the adapter is back", adapterServes)

	// Now replicas are removed, at most one a minute.
	least := before - 1
	if os.Getenv("CAPSTAN_LASTING") != "" {
		least = 1
	}
	back := time.Now()
	within(t, time.Duration(before-least+1)*timeout, fmt.Sprintf("%d of %d replicas are left", least, before), func(ctx context.Context) error {
		wanted, available, err := size(ctx, ns, "reco")
		if err == nil && (wanted > least || available > least) {
			err = fmt.Errorf("%d replicas are wanted, %d serve", wanted, available)
		}

		return err
	})
	t.Logf("%d of %d replicas are left %s after metrics were back", least, before, time.Since(back).Round(time.Second))
	eventually(t, "all is known again", condition(v1alpha1.TypeMetricsAvailable, corev1.ConditionTrue, v1alpha1.ReasonMeasured))
	time.Sleep(2 * drainSeconds * time.Second)
	lossless(t, "all the time, through the outage and while replicas were taken away", trickle())
}

func lossless(t *testing.T, when string, r *load.Report) {
	t.Helper()
	t.Logf("%s: %d requests, %d lost; p50 %.1f ms, p95 %.1f ms, p99 %.1f ms", when, r.Sent, r.Lost(), r.P50Ms, r.P95Ms, r.P99Ms)
	if r.Lost() != 0 || r.Answered == 0 {
		t.Errorf("%s: %d of %d requests were lost: %v", when, r.Lost(), r.Sent, r.Failed)
	}
}

// followsLearned expects the autoscaler to follow the learned load, with the latency as guard.
func followsLearned(t *testing.T, ns, name string, target int64) {
	t.Helper()
	eventually(t, "the autoscaler follows the learned load", func(ctx context.Context) error {
		a, err := get(ctx, &v1alpha1.Algorithm{}, ns, name)
		if err != nil {
			return err
		}
		h, err := get(ctx, &autoscalingv2.HorizontalPodAutoscaler{}, ns, name+"-a")
		if err != nil {
			return err
		}
		s := a.Status.Scaling
		if s == nil || s.Signal != "InFlight" || s.PerReplica == nil {
			return fmt.Errorf("status.scaling is %+v", s)
		}
		got := map[string]int64{}
		for _, m := range h.Spec.Metrics {
			if m.External == nil {
				return fmt.Errorf("the autoscaler follows %+v", m)
			}
			q := m.External.Target.Value
			if q == nil {
				q = m.External.Target.AverageValue
			}
			got[m.External.Metric.Name] = q.MilliValue()
		}
		want := map[string]int64{"capstan_inflight": int64(*s.PerReplica*1000 + 0.5), "capstan_latency_guard_ms": target * 1000}
		if len(got) != len(want) || got["capstan_inflight"] != want["capstan_inflight"] || got["capstan_latency_guard_ms"] != want["capstan_latency_guard_ms"] {
			return fmt.Errorf("the autoscaler follows %v, want %v (in thousandths)", got, want)
		}
		t.Logf("a replica is taken to bear %v requests in flight", *s.PerReplica)

		return nil
	})
}
