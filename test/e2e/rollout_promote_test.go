// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/images/demo-algorithm/load"
)

// TestCanaryPromotes shifts traffic to a good revision, by steps of 20 and 50 %.
func TestCanaryPromotes(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	host := hostOf(ns, "reco")
	reco := func(v string) *v1alpha1.Algorithm {
		return algorithm(ns, "reco", versioned(v), sized(2), draining(drainSeconds), routed(host), rolling(steps(20, 50)))
	}
	stable(t, reco("v1"))
	w, c := witnessOf(t, ns, "reco"), courseOf(t, ns, "reco")
	calls := callers(t, ns, "reco", host, outsideKept, outsideNew, insideNew)
	since := audit(t)

	began := time.Now()
	edit(t, reco("v2"))
	for _, weight := range []int32{20, 50} {
		within(t, 2*timeout, fmt.Sprintf("%d %% of requests may reach v2", weight), stepping(ns, "reco", weight))
		meets(t, calling(host, uneven), "v2", float64(weight), 10)
	}
	within(t, 2*timeout, "v2 bakes", rollout(ns, "reco", v1alpha1.RolloutBaking, ""))
	baked := time.Now()
	within(t, 2*timeout, "the rollout is over", rollout(ns, "reco", v1alpha1.RolloutStable, ""))
	within(t, timeout, "v2 is live", live(ns, "reco", "v2"))
	eventually(t, "v1 is gone", alone(ns, "reco"))
	t.Logf("promoted %s and done %s after the edit", baked.Sub(began).Round(time.Second), time.Since(began).Round(time.Second))
	requests := of(since(), ns)
	t.Logf("API writes for the rollout: %s", tally(writes(requests), 1))
	t.Log(w.wakings.cost())

	c.took(t, v1alpha1.RolloutStable, v1alpha1.RolloutPreparing, v1alpha1.RolloutStepping, v1alpha1.RolloutPromoting,
		v1alpha1.RolloutBaking, v1alpha1.RolloutDraining, v1alpha1.RolloutStable)
	if got, want := c.routedTo(), []int64{0, 20, 50, 100}; !slices.Equal(got, want) {
		t.Errorf("the HTTPRoute should send %v %% of callers to v2, one after the other, got %v", want, got)
	}
	reports := calls.end(t)
	// The first step has one pod of v2, and a second one starts before half and all of the traffic.
	w.end(t, 4, 1)
	at, _ := w.switched()
	if first := reports[insideNew].Versions["v2"]; first == nil || first.First.Before(at.Add(-time.Second)) {
		t.Errorf("callers of the Service should meet v2 from its switch at %s on, got %v", at.Format(time.RFC3339Nano), first)
	}
	if f := rolloutOf(t.Context(), ns, "reco").Failed; len(f) != 0 {
		t.Errorf("nothing has failed, got %v", f)
	}
}

// TestApproval has a revision wait for an approval.
func TestApproval(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	host := hostOf(ns, "reco")
	reco := func(v string, approve ...string) *v1alpha1.Algorithm {
		a := algorithm(ns, "reco", versioned(v), draining(drainSeconds), routed(host), rolling(canary(50), func(l *v1alpha1.Lifecycle) {
			l.Approval = v1alpha1.ApprovalBeforePromotion
		}))

		return requesting(a, v1alpha1.RolloutRequests{Approve: approve})
	}
	stable(t, reco("v1"))
	c := courseOf(t, ns, "reco")
	calls := callers(t, ns, "reco", host, outsideKept)

	edit(t, reco("v2"))
	held := rollout(ns, "reco", v1alpha1.RolloutHolding, string(v1alpha1.ReasonAwaitingApproval), "spec.rollout.approve")
	within(t, 2*timeout, "it waits for an approval", held)
	candidate := rolloutOf(t.Context(), ns, "reco").Candidate

	// An approval of another revision or for a smaller share does not count.
	edit(t, reco("v2", "0123456789", candidate+":50"))
	eventually(t, "the approvals are looked at", looked(ns, "reco"))
	time.Sleep(2 * evidenceEvery)
	if err := held(t.Context()); err != nil {
		t.Errorf("approvals of another revision and of a smaller share approve nothing: %v", err)
	}

	began := time.Now()
	edit(t, reco("v2", "0123456789", candidate, candidate+":100"))
	eventually(t, "all traffic goes to v2", rollout(ns, "reco", v1alpha1.RolloutBaking, ""))
	t.Logf("promoted %s after two approvals", time.Since(began).Round(10*time.Millisecond))
	within(t, timeout, "v2 is live", live(ns, "reco", "v2"))
	if got, want := c.routedTo(), []int64{0, 50, 100}; !slices.Equal(got, want) {
		t.Errorf("the HTTPRoute should send %v %% of callers to v2, one after the other, got %v", want, got)
	}
	calls.end(t)
}

// TestPreview is blue-green: only clients of its address reach a candidate until it is approved.
func TestPreview(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	host := hostOf(ns, "reco")
	reco := func(v string, approve ...string) *v1alpha1.Algorithm {
		a := algorithm(ns, "reco", versioned(v), draining(drainSeconds), routed(host), rolling(canary(100), func(l *v1alpha1.Lifecycle) {
			l.Approval = v1alpha1.ApprovalBeforePromotion
		}))

		return requesting(a, v1alpha1.RolloutRequests{Approve: approve})
	}
	stable(t, reco("v1"))
	outside := callOutside(t, calling(host, 30))
	inside := func(name, url string) func() *load.Report {
		return callInside(t, ns, name, load.Options{URL: url + "/predict", Concurrency: 2, Rate: 20, Timeout: 10 * time.Second, NoKeepAlive: true})
	}
	only := func(r *load.Report, who, version string) {
		t.Helper()
		lossless(t, who, r)
		if len(r.Versions) != 1 || r.Versions[version] == nil {
			t.Errorf("%s should answer %s, got %v", who, version, slices.Sorted(maps.Keys(r.Versions)))
		}
	}
	service := inside("service", "http://reco")

	edit(t, reco("v2"))
	within(t, 2*timeout, "v2 waits for an approval", rollout(ns, "reco", v1alpha1.RolloutHolding, string(v1alpha1.ReasonAwaitingApproval)))
	r := rolloutOf(t.Context(), ns, "reco")
	if want := "http://reco-slot-b." + ns + ".svc"; r.PreviewURL != want || r.Weight != 0 {
		t.Fatalf("the candidate should be at %s with weight 0, got %q and %d", want, r.PreviewURL, r.Weight)
	}
	preview := inside("preview", r.PreviewURL)
	time.Sleep(2 * evidenceEvery)
	only(preview(), "the preview", "v2")
	only(service(), "the Service", "v1")
	only(outside(), "the Gateway", "v1")

	edit(t, reco("v2", r.Candidate))
	within(t, 2*timeout, "v2 bakes", rollout(ns, "reco", v1alpha1.RolloutBaking, ""))
	within(t, timeout, "v2 is live", live(ns, "reco", "v2"))
	after := inside("service-after", "http://reco")
	time.Sleep(evidenceEvery / 2)
	only(after(), "the Service", "v2")
	eventually(t, "the preview is gone", func(ctx context.Context) error {
		if url := rolloutOf(ctx, ns, "reco").PreviewURL; url != "" {
			return fmt.Errorf("the status still has %s", url)
		}

		return nil
	})
}

// TestPause pauses a rollout at its share of traffic, where a candidate that fails is rolled back all the same, and then one that
// passes: it waits there, and in its bake, until pause is removed.
func TestPause(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	host := hostOf(ns, "reco")
	reco := func(v string, pause bool, modify ...func(*v1alpha1.Algorithm)) *v1alpha1.Algorithm {
		a := algorithm(ns, "reco", append(modify, versioned(v), draining(drainSeconds), routed(host), rolling(canary(50), func(l *v1alpha1.Lifecycle) {
			l.Approval = v1alpha1.ApprovalBeforePromotion
		}))...)

		if !pause {
			return a
		}

		return requesting(a, v1alpha1.RolloutRequests{Pause: true})
	}
	fails := variable("ERROR_RATE", "0.3")
	stable(t, reco("v1", false))
	c := courseOf(t, ns, "reco")
	calls := callers(t, ns, "reco", host, outsideKept)
	paused := rollout(ns, "reco", v1alpha1.RolloutHolding, string(v1alpha1.ReasonRolloutPaused), "spec.rollout.pause", "50 % of requests")

	edit(t, reco("v2", false))
	within(t, 2*timeout, "half of the requests may reach v2", stepping(ns, "reco", 50))
	edit(t, reco("v2", true))
	eventually(t, "the rollout is paused", paused)
	// It would pass and wait for an approval.
	time.Sleep(4 * evidenceEvery)
	if err := paused(t.Context()); err != nil {
		t.Errorf("it should be paused for as long as the spec asks for it: %v", err)
	}
	edit(t, reco("v2", false))
	within(t, 2*timeout, "it continues", rollout(ns, "reco", v1alpha1.RolloutHolding, string(v1alpha1.ReasonAwaitingApproval)))
	if got, want := c.routedTo(), []int64{0, 50}; !slices.Equal(got, want) {
		t.Errorf("the HTTPRoute should send %v %% of callers to v2, one after the other, got %v", want, got)
	}
	calls.end(t)

	edit(t, reco("v3", false, fails))
	bad := callOutside(t, load.Options{URL: gateway + "/predict", Host: host, Concurrency: 4, Rate: 40, Timeout: 10 * time.Second})
	within(t, 2*timeout, "half of the requests may reach v3", stepping(ns, "reco", 50))
	edit(t, reco("v3", true, fails))
	within(t, 2*timeout, "v3 is rolled back although it is paused", rollout(ns, "reco", v1alpha1.RolloutRolledBack, ""))
	failed(t, ns, "reco", string(v1alpha1.ReasonMetricFailed), "success")
	bad()
	edit(t, reco("v4", true))
	eventually(t, "no other rollout begins", rollout(ns, "reco", v1alpha1.RolloutHolding, string(v1alpha1.ReasonRolloutPaused), "spec.rollout.pause"))
}

// TestCanaryWithoutGateway splits traffic by the number of replicas, and shifts all of it where that is impossible.
func TestCanaryWithoutGateway(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	reco := func(name, v string, n, weight int32) *v1alpha1.Algorithm {
		return algorithm(ns, name, versioned(v), sized(n), draining(drainSeconds), rolling(canary(weight)))
	}
	stable(t, reco("reco", "v1", 4, 20))
	stable(t, reco("small", "v1", 1, 20))
	c, single := courseOf(t, ns, "reco"), courseOf(t, ns, "small")
	calls := callInside(t, ns, "reco-caller", load.Options{
		URL: "http://reco/predict", Concurrency: 8, Rate: 60, Timeout: 10 * time.Second, NoKeepAlive: true,
	})

	// One replica beside one would get half of the traffic: all of it shifts at once, and can go back while it bakes.
	edit(t, reco("small", "v2", 1, 20))
	edit(t, reco("reco", "v2", 4, 20))
	within(t, 2*timeout, "all traffic of a single replica shifts", rollout(ns, "small", v1alpha1.RolloutBaking, ""))
	single.took(t, v1alpha1.RolloutStable, v1alpha1.RolloutPreparing, v1alpha1.RolloutPromoting, v1alpha1.RolloutBaking)

	within(t, 2*timeout, "20 % of requests may reach v2", stepping(ns, "reco", 20))
	eventually(t, "one replica beside four is their share", func(ctx context.Context) error {
		if s := rolloutOf(ctx, ns, "reco").Share; s == nil || *s != 20 {
			return fmt.Errorf("status.rollout.share is %v", s)
		}

		return nil
	})
	if got := len(podsIn(t, ns, "reco", "b")); got != 1 {
		t.Errorf("one replica of v2 should run beside four of v1, got %d", got)
	}
	some := callInside(t, ns, "reco-some", load.Options{
		URL: "http://reco/predict", Concurrency: 8, Rate: 60, Timeout: 10 * time.Second, NoKeepAlive: true,
	})
	time.Sleep(8 * time.Second)
	tried := some()
	lossless(t, "while one of five replicas is v2", tried)
	if v2 := tried.Versions["v2"]; v2 == nil {
		t.Errorf("20 %% of callers should meet v2, got %v", tried.Versions)
	} else {
		// Connections are distributed at random.
		share := 100 * float64(v2.Answered) / float64(tried.Answered)
		t.Logf("of the callers %.1f %% meet v2, 20 %% should", share)
		if math.Abs(share-20) > 10 {
			t.Errorf("20 %% of callers should meet v2, got %.1f %%", share)
		}
	}
	within(t, 2*timeout, "all traffic goes to v2", rollout(ns, "reco", v1alpha1.RolloutBaking, ""))
	within(t, timeout, "v2 is live", live(ns, "reco", "v2"))
	c.took(t, v1alpha1.RolloutStable, v1alpha1.RolloutPreparing, v1alpha1.RolloutStepping, v1alpha1.RolloutPromoting, v1alpha1.RolloutBaking)
	lossless(t, "through the whole rollout", calls())
}
