// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// TestDrift has scores drift in the candidate, and then in both revisions.
func TestDrift(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	host := hostOf(ns, "reco")
	reco := func(v string, approval v1alpha1.Approval, modify ...func(*v1alpha1.Algorithm)) *v1alpha1.Algorithm {
		return algorithm(ns, "reco", append(modify, versioned(v), draining(drainSeconds), routed(host), rolling(canary(50), func(l *v1alpha1.Lifecycle) {
			l.Approval = approval
			l.Drift = &v1alpha1.Drift{Reference: &metav1.Duration{Duration: time.Minute}}
		}), func(a *v1alpha1.Algorithm) {
			a.Spec.Metrics.Queries = []v1alpha1.MetricQuery{
				{Name: v1alpha1.QueryOutputs, Query: "increase(algorithm_prediction_score_bucket[$window])"},
			}
		})...)
	}
	stable(t, reco("v1", v1alpha1.ApprovalNone))
	c := courseOf(t, ns, "reco")
	calls := callOutside(t, calling(host, 60))

	began := time.Now()
	edit(t, reco("v2", v1alpha1.ApprovalNone, variable("SCORE_SHIFT", "0.3")))
	within(t, 2*timeout, "v2 is rolled back", rollout(ns, "reco", v1alpha1.RolloutRolledBack, ""))
	tried := c.routedAt(50, began)
	look, check := c.firstFailure()
	t.Logf("half of the callers were sent back %s after the first look that failed, at %s, and %s after they met v2",
		c.routedAt(0, tried).Sub(look).Round(10*time.Millisecond), check, c.routedAt(0, tried).Sub(tried).Round(10*time.Millisecond))
	failed(t, ns, "reco", string(v1alpha1.ReasonDrifted), "drift", "PSI to the baseline at most 0.2")

	// The input changes for both: the condition reports it, and neither is rolled back.
	edit(t, reco("v3", v1alpha1.ApprovalBeforePromotion))
	held := rollout(ns, "reco", v1alpha1.RolloutHolding, string(v1alpha1.ReasonAwaitingApproval))
	within(t, 2*timeout, "v3 has passed", held)
	within(t, 2*timeout, "the distribution is the one of before", algorithmCondition(ns, "reco", v1alpha1.TypeDataDrift, corev1.ConditionFalse, v1alpha1.ReasonDistributionKept))
	began = time.Now()
	behave(t, ns, "reco", "scoreShift=0.3")
	within(t, 2*timeout, "the drift of both is reported", algorithmCondition(ns, "reco", v1alpha1.TypeDataDrift, corev1.ConditionTrue, v1alpha1.ReasonDistributionLeft))
	t.Logf("reported %s after scores began to drift", time.Since(began).Round(100*time.Millisecond))
	time.Sleep(2 * evidenceEvery)
	if err := held(t.Context()); err != nil {
		t.Errorf("drift of both should roll nothing back: %v", err)
	}
	if n := len(rolloutOf(t.Context(), ns, "reco").Failed); n != 1 {
		t.Errorf("v2 alone should have failed, got %d revisions", n)
	}
	lossless(t, "all the time", calls())
}

// TestTokens rolls back a language model whose first tokens come late, by the names that vLLM exposes. Its requests take no
// longer as a whole, so that nothing else shows it.
func TestTokens(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	host := hostOf(ns, "chat")
	chat := func(v, first, each string) *v1alpha1.Algorithm {
		return algorithm(ns, "chat", versioned(v), draining(drainSeconds), routed(host), variable("METRICS", "vLLM"),
			variable("LATENCY_MS", first), variable("TOKEN_MS", each), rolling(canary(50)),
			func(a *v1alpha1.Algorithm) {
				a.Spec.Objectives = &v1alpha1.Objectives{TimeToFirstTokenMs: new(int32(500)), TimePerOutputTokenMs: new(int32(200))}
			})
	}
	stable(t, chat("v1", "20", "60"))
	c := courseOf(t, ns, "chat")
	calls := callOutside(t, calling(host, 60))
	within(t, 2*timeout, "the live revision keeps its objectives", func(ctx context.Context) error {
		a, err := get(ctx, &v1alpha1.Algorithm{}, ns, "chat")
		if err != nil {
			return err
		}
		for _, name := range []string{"time-to-first-token", "time-per-output-token", "tokens-per-second", "requests-waiting", "cache-use"} {
			i := slices.IndexFunc(a.Status.Metrics, func(m v1alpha1.MetricStatus) bool { return m.Name == name })
			if i < 0 || a.Status.Metrics[i].Verdict != "Pass" || a.Status.Metrics[i].Value == nil {
				return fmt.Errorf("%s is not measured: %+v", name, a.Status.Metrics)
			}
		}

		return algorithmCondition(ns, "chat", v1alpha1.TypeWithinTargets, corev1.ConditionTrue, v1alpha1.ReasonTargetsMet)(ctx)
	})

	began := time.Now()
	edit(t, chat("v2", "900", "1"))
	within(t, 2*timeout, "v2 is rolled back", rollout(ns, "chat", v1alpha1.RolloutRolledBack, ""))
	tried := c.routedAt(50, began)
	look, check := c.firstFailure()
	t.Logf("callers were sent back %s after the first look that failed, at %s, and %s after they met v2",
		c.routedAt(0, tried).Sub(look).Round(10*time.Millisecond), check, c.routedAt(0, tried).Sub(tried).Round(10*time.Millisecond))
	failed(t, ns, "chat", string(v1alpha1.ReasonMetricFailed), "time-to-first-token", "p95, at most 500 ms")
	lossless(t, "all the time", calls())
}

// TestMetricsOutageHolds stops Prometheus in the middle of a step.
func TestMetricsOutageHolds(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	host := hostOf(ns, "reco")
	config := func(url string) {
		t.Helper()
		pc := &v1alpha1.ClusterProviderConfig{
			ObjectMeta: metav1.ObjectMeta{Name: "prometheus-" + ns},
			Spec:       v1alpha1.ClusterProviderConfigSpec{Prometheus: &v1alpha1.PrometheusConfig{URL: url}, AllowedNamespaces: []string{ns}},
		}
		if err := apply(t.Context(), pc); err != nil {
			t.Fatal(err)
		}
	}
	config(prometheusURL)
	t.Cleanup(func() {
		_ = kube.Delete(context.Background(), &v1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: "prometheus-" + ns}})
	})
	reco := func(v string) *v1alpha1.Algorithm {
		return algorithm(ns, "reco", versioned(v), draining(drainSeconds), routed(host), rolling(canary(20)), func(a *v1alpha1.Algorithm) {
			a.Spec.Metrics.ProviderConfigReference = &xpv2.ProviderConfigReference{Kind: "ClusterProviderConfig", Name: "prometheus-" + ns}
		})
	}
	stable(t, reco("v1"))
	c := courseOf(t, ns, "reco")
	calls := callers(t, ns, "reco", host, outsideKept, outsideNew)

	edit(t, reco("v2"))
	within(t, 2*timeout, "20 % of requests may reach v2", stepping(ns, "reco", 20))
	// That a look passes changes nothing as long as the step lasts, so that no status says so.
	within(t, timeout, "requests to v2 are measured", func(ctx context.Context) error {
		_, err := promQL(ctx, fmt.Sprintf("sum(capstan:requests_per_second{namespace=%q,algorithm=%q,slot=%q}) > 0", ns, "reco", "b"))

		return err
	})
	config("http://prometheus.monitoring.svc:9099")
	outage := time.Now()
	within(t, 2*timeout, "it holds", rollout(ns, "reco", v1alpha1.RolloutHolding, string(v1alpha1.ReasonMetricsUnavailable), "Prometheus"))
	t.Logf("held %s after Prometheus went", time.Since(outage).Round(100*time.Millisecond))
	time.Sleep(3 * evidenceEvery)
	if r := rolloutOf(t.Context(), ns, "reco"); r.Phase != v1alpha1.RolloutHolding || r.Weight != 20 || r.Held != v1alpha1.RolloutStepping {
		t.Errorf("without metrics it should stay at 20 %%, got %s at %d %%", r.Phase, r.Weight)
	}
	if got, want := c.routedTo(), []int64{0, 20}; !slices.Equal(got, want) {
		t.Errorf("the HTTPRoute should send %v %% of callers to v2, one after the other, got %v", want, got)
	}
	eventually(t, "the Gateway answers all the time", answers(host, "/predict", http.StatusOK))

	config(prometheusURL)
	back := time.Now()
	within(t, 2*timeout, "it goes on", rollout(ns, "reco", v1alpha1.RolloutStepping, ""))
	t.Logf("resumed %s after Prometheus was back", time.Since(back).Round(100*time.Millisecond))
	within(t, 2*timeout, "all traffic goes to v2", rollout(ns, "reco", v1alpha1.RolloutBaking, ""))
	t.Logf("promoted %s after Prometheus was back", time.Since(back).Round(100*time.Millisecond))
	if f := rolloutOf(t.Context(), ns, "reco").Failed; len(f) != 0 {
		t.Errorf("an outage is no failure, got %v", f)
	}
	calls.end(t)
}
