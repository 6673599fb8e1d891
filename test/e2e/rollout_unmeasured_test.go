// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// TestUnmeasuredHoldsAtZero has a revision fail every request while its metrics cannot be scraped: no client meets it. Once they
// can, the evidence decides.
func TestUnmeasuredHoldsAtZero(t *testing.T) {
	t.Parallel()
	const nothingListens = 9999
	ns := namespace(t)
	host := hostOf(ns, "reco")
	reco := func(v string, port *int32, modify ...func(*v1alpha1.Algorithm)) *v1alpha1.Algorithm {
		scraped := func(a *v1alpha1.Algorithm) { a.Spec.Metrics.Port = port }
		return algorithm(ns, "reco", append(modify, versioned(v), draining(drainSeconds), routed(host),
			rolling(canary(20), func(l *v1alpha1.Lifecycle) { l.Deadline = &metav1.Duration{Duration: time.Minute} }), scraped)...)
	}
	stable(t, reco("v1", new(int32(nothingListens))))
	c := courseOf(t, ns, "reco")
	calls := callOutside(t, calling(host, 60))

	edit(t, reco("v2", new(int32(nothingListens)), variable("ERROR_RATE", "1")))
	held := rollout(ns, "reco", v1alpha1.RolloutHolding, "EvidenceMissing", "success", "spec.metrics.port")
	within(t, 2*timeout, "it holds before a client meets v2", held)
	time.Sleep(75 * time.Second)
	if err := held(t.Context()); err != nil {
		t.Errorf("after the deadline it should still hold: %v", err)
	}
	if r := rolloutOf(t.Context(), ns, "reco"); r.Weight != 0 || r.Held != v1alpha1.RolloutPreparing || len(r.Failed) != 0 {
		t.Errorf("nobody should meet v2, and nothing is known against it, got %+v", r)
	}
	if got, want := c.routedTo(), []int64{0}; !slices.Equal(got, want) {
		t.Errorf("the HTTPRoute should send %v %% of callers to v2, got %v", want, got)
	}
	lossless(t, "while v2 fails everything", calls())

	// With metrics, the same revision is tried, and found to fail.
	calls = callOutside(t, calling(host, 60))
	edit(t, reco("v2", nil, variable("ERROR_RATE", "1")))
	within(t, 3*timeout, "v2 is rolled back", rollout(ns, "reco", v1alpha1.RolloutRolledBack, string(v1alpha1.ReasonRolledBack), "spec.rollout.retry"))
	calls()
	failed(t, ns, "reco", string(v1alpha1.ReasonMetricFailed), "success")
}
