// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
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
			l.Approval, l.RollbackOnDrift = approval, true
			l.Drift = &v1alpha1.Drift{
				Query: "increase(algorithm_prediction_score_bucket[$window])", Reference: &metav1.Duration{Duration: time.Minute},
			}
		}))...)
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

// TestMetricsOutageHolds stops Prometheus in the middle of a step.
func TestMetricsOutageHolds(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	host := hostOf(ns, "reco")
	config := func(url string) {
		t.Helper()
		pc := &v1alpha1.ProviderConfig{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "prometheus"},
			Spec:       v1alpha1.ProviderConfigSpec{Prometheus: &v1alpha1.PrometheusConfig{URL: url}},
		}
		if err := apply(t.Context(), pc); err != nil {
			t.Fatal(err)
		}
	}
	config(prometheusURL)
	reco := func(v string) *v1alpha1.Algorithm {
		return algorithm(ns, "reco", versioned(v), draining(drainSeconds), routed(host), rolling(canary(20)), func(a *v1alpha1.Algorithm) {
			a.Spec.Metrics.ProviderConfigReference = &xpv2.ProviderConfigReference{Kind: "ProviderConfig", Name: "prometheus"}
		})
	}
	stable(t, reco("v1"))
	c := courseOf(t, ns, "reco")
	calls := callers(t, ns, "reco", host, outsideKept, outsideNew)

	edit(t, reco("v2"))
	within(t, 2*timeout, "20 % of requests may reach v2", stepping(ns, "reco", 20))
	within(t, timeout, "a look has passed", func(ctx context.Context) error {
		if e := rolloutOf(ctx, ns, "reco").Evidence; !slices.ContainsFunc(e, func(s v1alpha1.EvidenceStatus) bool { return strings.HasSuffix(s.Verdicts, "P") }) {
			return errors.New(letters(e))
		}

		return nil
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
