// SPDX-License-Identifier: Apache-2.0

//go:build integration

package analysis

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	apis "github.com/capstan-dev/capstan/apis/v1alpha1"
	inner "github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/promq"
	"github.com/capstan-dev/capstan/test/outside"
)

// TestCanary tries a revision of which one request in twenty fails, beside one that is well, with a real Prometheus. Both tell
// the same latencies.
func TestCanary(t *testing.T) {
	p := outside.Prometheus(t)
	before, canary := newServer(t), newServer(t)
	p.Scrape(
		outside.Target{Address: before.address, Namespace: "shop", Pod: "reco-a-1", Algorithm: "reco", Slot: "a"},
		outside.Target{Address: canary.address, Namespace: "shop", Pod: "reco-b-1", Algorithm: "reco", Slot: "b"},
	)
	before.serve(t, 200, 0.001)
	canary.serve(t, 100, 0.05)
	before.queue.Set(4)
	canary.queue.Set(6)
	c := clientOf(t, p)
	l := newLooker(func(context.Context, *v1alpha1.Analysis) (promq.Querier, inner.Tenant, error) {
		return c, inner.Tenant{Namespace: "shop"}, nil
	}, time.Now, nil)
	const latencies = "increase(algorithm_request_duration_seconds_bucket[$window])"
	cr := tried(func(m *v1alpha1.MetricsParameters) {
		m.Window = &metav1.Duration{Duration: 20 * time.Second}
		m.Checks = []v1alpha1.Check{{
			Name: "data", Kind: v1alpha1.CheckDrift, Query: latencies, Max: new(0.2), Reference: &metav1.Duration{Duration: 20 * time.Second},
		}}
		m.Canary.Settle = &metav1.Duration{}
		m.Canary.Checks = []v1alpha1.Check{
			{Name: "success", Kind: v1alpha1.CheckSuccessRatio, Min: new(0.99)},
			{Name: "success-against-baseline", Kind: v1alpha1.CheckSuccessRatio, RelativeTo: v1alpha1.RelativeToBaseline},
			{Name: "latency", Kind: v1alpha1.CheckLatency, Percentile: 95, Max: new(150.0)},
			{Name: "latency-against-baseline", Kind: v1alpha1.CheckLatency, Percentile: 95, Max: new(1.5), RelativeTo: v1alpha1.RelativeToBaseline},
			{Name: "drift", Kind: v1alpha1.CheckDrift, Query: latencies, Max: new(0.2), RelativeTo: v1alpha1.RelativeToBaseline},
			{Name: "queue", Kind: v1alpha1.CheckQuery, Query: "queue_length", Max: new(1.2), RelativeTo: v1alpha1.RelativeToBaseline},
			{Name: "never", Kind: v1alpha1.CheckQuery, Query: "never_told", Max: new(1.0)},
			{Name: "wrong", Kind: v1alpha1.CheckQuery, Query: "sum(", Max: new(1.0)},
		}
		m.Canary.Experiment = &v1alpha1.ExperimentParameters{
			Kind: v1alpha1.ExperimentShare, Events: `sum(increase(algorithm_requests_total{code=~"5.."}[$window])) or vector(0)`,
			LowerIsBetter: true, MinEffect: 0.01, MinSamples: 1000, Confidence: 95,
		}
	})
	m := &remembered{}
	look := func() v1alpha1.AnalysisObservation {
		t.Helper()
		now := time.Now()
		m.startEpoch(cr, now)
		k := l.see(t.Context(), cr, m.found, m.settled(cr, now), now)
		m.found = k.found
		m.load = report(cr, m.load, k, nil, now)
		m.seeCanary(cr, k, nil, now)
		// What is known, also what the status does not report because it decides nothing.
		at := *cr.Status.AtProvider.DeepCopy()
		at.Canary = m.canary
		return at
	}
	eventually := func(what, ends string) {
		t.Helper()
		got := v1alpha1.AnalysisObservation{}
		for deadline := time.Now().Add(90 * time.Second); time.Now().Before(deadline); time.Sleep(3 * time.Second) {
			got = look()
			var last strings.Builder
			for _, c := range got.Canary.Checks {
				last.WriteString(c.Verdicts[max(len(c.Verdicts)-1, 0):])
			}
			if last.String() == ends {
				return
			}
		}
		for _, c := range got.Canary.Checks {
			t.Logf("%s: %s %s", c.Name, c.Verdicts, c.Message)
		}
		t.Fatalf("%s did not happen: want letters that end with %s", what, ends)
	}
	eventually("every verdict", "FFPPPFNE")
	got := m.canary
	for _, c := range got.Checks {
		t.Logf("%s: %s %s", c.Name, c.Verdicts, c.Message)
	}
	passed := time.Since(got.StartedAt.Time).Seconds()
	if c := got.Checks[0]; *c.Value < 0.92 || *c.Value > 0.97 || *c.Baseline < 0.99 || float64(*c.Samples) > 110*passed {
		t.Errorf("About one in twenty of a hundred requests a second should have failed since the beginning, got %+v", c)
	}
	if !strings.Contains(got.Checks[0].Message, "at least 99 % asked") || !strings.HasPrefix(got.Checks[5].Message, "1.5 times the 4 of the baseline") {
		t.Errorf("What failed should be told with its numbers, got %q and %q", got.Checks[0].Message, got.Checks[5].Message)
	}

	// An experiment counts by the same queries over all of the time.
	e := got.Experiment
	for deadline := time.Now().Add(90 * time.Second); (e == nil || e.Result == v1alpha1.ExperimentUndecided) && time.Now().Before(deadline); time.Sleep(3 * time.Second) {
		e = look().Canary.Experiment
	}
	if e == nil || e.Result != v1alpha1.ExperimentBaselineBetter || *e.Lower < 0.01 || *e.Upper > 0.09 {
		t.Errorf("Failures are worse in the canary, got %+v", e)
	} else {
		t.Logf("experiment: %g (%g to %g) of %d and %d", *e.Effect, *e.Lower, *e.Upper, e.Canary.Samples, e.Baseline.Samples)
	}

	// What all slots told twenty seconds ago, once that was something.
	data := cr.Status.AtProvider.Metrics[0]
	for deadline := time.Now().Add(time.Minute); data.Verdict != v1alpha1.VerdictPass && time.Now().Before(deadline); time.Sleep(3 * time.Second) {
		data = look().Metrics[0]
	}

	// Scrapes fall into one window or the next, so that the distance of two windows of the same is not quite nothing.
	if data.Verdict != v1alpha1.VerdictPass || *data.Value > 0.1 {
		t.Errorf("The data are as they were, got %s with a distance of %g", data.Verdict, *data.Value)
	}
	p.Stop()
	eventually("an outage", "EEEEEEEE")
	if c := cr.GetCondition(apis.TypeConnected); c.Reason != apis.ReasonUnreachable || cr.Status.AtProvider.Canary.Errors == 0 {
		t.Errorf("Connected: want %s, got %+v with %d errors", apis.ReasonUnreachable, c, cr.Status.AtProvider.Canary.Errors)
	}
	p.Start()
	eventually("every verdict again", "FFPPPFNE")
	if n := cr.Status.AtProvider.Canary.Errors; n != 0 {
		t.Errorf("An answer should end the errors, got %d", n)
	}
}
