// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// podsIn a slot, by their number of restarts.
func podsIn(t *testing.T, ns, name, slot string) map[types.UID]int32 {
	t.Helper()
	list := &corev1.PodList{}
	if err := kube.List(t.Context(), list, client.InNamespace(ns), client.MatchingLabels{"capstan.dev/algorithm": name, "capstan.dev/slot": slot}); err != nil {
		t.Fatal(err)
	}
	out := map[types.UID]int32{}
	for _, p := range list.Items {
		if p.DeletionTimestamp == nil {
			for _, c := range p.Status.ContainerStatuses {
				out[p.UID] += c.RestartCount
			}
		}
	}

	return out
}

// failed returns the status of the revision that was rolled back last. It fails the test unless it has the reason and
// the words.
func failed(t *testing.T, ns, name, reason string, words ...string) v1alpha1.FailedRevision {
	t.Helper()
	r := rolloutOf(t.Context(), ns, name)
	if len(r.Failed) == 0 {
		t.Fatalf("no revision is reported to have failed: %+v", r)
	}
	f := r.Failed[0]
	t.Logf("revision %s failed: %s: %s", f.Revision, f.Reason, f.Message)
	if f.Reason != reason || f.Attempts != 1 || f.Revision != r.Candidate {
		t.Errorf("the candidate %s should have failed once, by %s, got %+v", r.Candidate, reason, f)
	}
	if cool := f.RetryAfter.Sub(f.At.Time); cool != 10*time.Minute {
		t.Errorf("a first failure should cool down for 10m, got %s", cool)
	}
	for _, w := range words {
		if !strings.Contains(f.Message, w) {
			t.Errorf("the message of the failure lacks %q: %s", w, f.Message)
		}
	}

	return f
}

// TestCanaryRollsBack rolls back a revision that fails 5 % of its requests.
func TestCanaryRollsBack(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	host := hostOf(ns, "reco")
	reco := func(v string, modify ...func(*v1alpha1.Algorithm)) *v1alpha1.Algorithm {
		return algorithm(ns, "reco", append(modify, versioned(v), draining(drainSeconds), routed(host))...)
	}
	careful := func(modify ...func(*v1alpha1.Lifecycle)) func(*v1alpha1.Algorithm) {
		return rolling(append(modify, steps(20, 50), asking(0.99))...)
	}
	stable(t, reco("v1", careful()))
	w, c := witnessOf(t, ns, "reco"), courseOf(t, ns, "reco")
	pods := w.podsOf("a")
	calls := callOutside(t, calling(host, 120))

	bad := reco("v2", careful(), variable("ERROR_RATE", "0.05"))
	began := time.Now()
	edit(t, bad)
	within(t, 2*timeout, "v2 is rolled back", rollout(ns, "reco", v1alpha1.RolloutRolledBack, string(v1alpha1.ReasonRolledBack), "spec.rollout.retry"))
	r := calls()

	tried := c.routedAt(20, began)
	back := c.routedAt(0, tried)
	look, check := c.firstFailure()
	t.Logf("20 %% of requests were sent to v2 %s after the edit; the first look that failed, at %s, came %s after that; weight 0 %s after that look, %s after the first caller",
		tried.Sub(began).Round(10*time.Millisecond), check, look.Sub(tried).Round(10*time.Millisecond),
		back.Sub(look).Round(10*time.Millisecond), back.Sub(tried).Round(10*time.Millisecond))
	exposed := float64(r.LastFailure.Sub(r.FirstFailure).Seconds()) * 120
	t.Logf("%d of %d requests failed: %.2f %% of all, %.2f %% of those between the first and the last that did, %s apart",
		r.Lost(), r.Sent, 100*float64(r.Lost())/float64(r.Sent), 100*float64(r.Lost())/exposed, r.LastFailure.Sub(r.FirstFailure).Round(100*time.Millisecond))
	if limit := 2*evidenceEvery + 10*time.Second; look.IsZero() || back.Sub(look) > limit {
		t.Errorf("callers should be back at most %s after the first look that failed", limit)
	}
	if late := r.LastFailure.Sub(back); late > 5*time.Second {
		t.Errorf("requests failed until %s after callers were sent back", late)
	}
	for kind, n := range r.Failed {
		if kind != "status 500" {
			t.Errorf("only v2's own failures should reach callers, got %d times %s", n, kind)
		}
	}
	if got, want := c.routedTo(), []int64{0, 20, 0}; !slices.Equal(got, want) {
		t.Errorf("the HTTPRoute should send %v %% of callers to v2, one after the other, got %v", want, got)
	}
	// On a busy machine a measurement may be late, and the rollout waits for it without a request to v2.
	c.tookBut(t, v1alpha1.RolloutHolding, v1alpha1.RolloutStable, v1alpha1.RolloutPreparing, v1alpha1.RolloutStepping, v1alpha1.RolloutRollingBack,
		v1alpha1.RolloutRolledBack)
	f := failed(t, ns, "reco", string(v1alpha1.ReasonMetricFailed), "success", "0.9", "0.99")
	eventually(t, "it is reported", algorithmCondition(ns, "reco", v1alpha1.TypeUpdated, corev1.ConditionFalse, v1alpha1.ReasonRolledBack, f.Revision))
	eventually(t, "v2 is gone", func(context.Context) error {
		if n := len(w.podsOf("b")); n != 0 {
			return fmt.Errorf("%d pods are left", n)
		}

		return nil
	})
	a, err := get(t.Context(), &v1alpha1.Algorithm{}, ns, "reco")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(bad.Spec.Env, a.Spec.Env); diff != "" {
		t.Errorf("a rollback leaves the spec alone: -want, +got:\n%s", diff)
	}

	// Another attempt is too early, and the corrected spec is another revision.
	edit(t, requesting(reco("v2", careful(), variable("ERROR_RATE", "0.05")), v1alpha1.RolloutRequests{Retry: f.Revision + "#2"}))
	eventually(t, "it cools down", rollout(ns, "reco", v1alpha1.RolloutRolledBack, string(v1alpha1.ReasonCoolingDown)))
	time.Sleep(evidenceEvery)
	if n := len(w.podsOf("b")); n != 0 {
		t.Errorf("nothing should start while it cools down, got %d pods", n)
	}
	edit(t, reco("v3", careful()))
	within(t, 2*timeout, "20 % of requests may reach v3", stepping(ns, "reco", 20))
	meets(t, calling(host, uneven), "v3", 20, 10)
	if !maps.Equal(pods, w.podsOf("a")) {
		t.Errorf("the pods of v1 should be those from before: %v, got %v", pods, w.podsOf("a"))
	}
	w.end(t, 3, 0)
}

// TestRegressionAfterPromotion has a revision fail once it has all traffic.
func TestRegressionAfterPromotion(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	host := hostOf(ns, "reco")
	reco := func(v string, modify ...func(*v1alpha1.Algorithm)) *v1alpha1.Algorithm {
		return algorithm(ns, "reco", append(modify, versioned(v), sized(2), draining(drainSeconds), routed(host), rolling(canary(100), baking(5*time.Minute)))...)
	}
	stable(t, reco("v1"))
	w, c := witnessOf(t, ns, "reco"), courseOf(t, ns, "reco")
	pods := w.podsOf("a")
	calls := callOutside(t, calling(host, 60))

	edit(t, reco("v2", variable("ERROR_RATE", "0.2"), variable("FAIL_AFTER_SECONDS", "45")))
	within(t, 2*timeout, "v2 bakes", rollout(ns, "reco", v1alpha1.RolloutBaking, ""))
	promoted := time.Now()
	within(t, 2*timeout, "v2 is rolled back", rollout(ns, "reco", v1alpha1.RolloutRolledBack, ""))
	r := calls()

	back := c.routedAt(0, promoted)
	look, check := c.firstFailure()
	t.Logf("v2 failed from %s after its promotion on; the first look that failed, at %s, came %s later, and callers were sent back %s after that; the last request failed %s after the first",
		r.FirstFailure.Sub(promoted).Round(time.Second), check, look.Sub(r.FirstFailure).Round(10*time.Millisecond),
		back.Sub(look).Round(10*time.Millisecond), r.LastFailure.Sub(r.FirstFailure).Round(10*time.Millisecond))
	if r.FirstFailure.Before(promoted) {
		t.Errorf("nothing should fail before the promotion at %s, the first failed at %s", promoted, r.FirstFailure)
	}
	if late := r.LastFailure.Sub(back); late > 5*time.Second {
		t.Errorf("requests failed until %s after callers were sent back", late)
	}
	for kind, n := range r.Failed {
		if kind != "status 500" {
			t.Errorf("only v2's own failures should reach callers, got %d times %s", n, kind)
		}
	}
	if !maps.Equal(pods, w.podsOf("a")) {
		t.Errorf("callers should be back at the pods from before: %v, got %v", pods, w.podsOf("a"))
	}
	c.took(t, v1alpha1.RolloutStable, v1alpha1.RolloutPreparing, v1alpha1.RolloutPromoting, v1alpha1.RolloutBaking,
		v1alpha1.RolloutRollingBack, v1alpha1.RolloutRolledBack)
	failed(t, ns, "reco", string(v1alpha1.ReasonMetricFailed), "success", "0.95")
	w.end(t, 4, 2)
}

// TestCrashLoopingCandidate has a candidate crash 15 s after its first request, however long it took until then.
func TestCrashLoopingCandidate(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	host := hostOf(ns, "reco")
	reco := func(v string, modify ...func(*v1alpha1.Algorithm)) *v1alpha1.Algorithm {
		return algorithm(ns, "reco", append(modify, versioned(v), draining(drainSeconds), routed(host), rolling(canary(1)))...)
	}
	stable(t, reco("v1"))
	c := courseOf(t, ns, "reco")
	calls := callOutside(t, calling(host, 20))

	began := time.Now()
	edit(t, reco("v2", variable("CRASH_AFTER", "15s")))
	within(t, 2*timeout, "v2 is rolled back", rollout(ns, "reco", v1alpha1.RolloutRolledBack, ""))
	r := calls()
	tried := c.routedAt(1, began)
	t.Logf("callers were sent back %s after the first of them met v2; %d of %d requests failed: %v",
		c.routedAt(0, tried).Sub(tried).Round(10*time.Millisecond), r.Lost(), r.Sent, r.Failed)
	if share := float64(r.Lost()) / float64(r.Sent); share > 0.02 {
		t.Errorf("1 %% of callers should meet v2, but %.1f %% of all requests failed", 100*share)
	}
	if f := rolloutOf(t.Context(), ns, "reco").Failed; len(f) != 1 ||
		f[0].Reason != string(v1alpha1.ReasonCrashLooping) && f[0].Reason != string(v1alpha1.ReasonNotServing) {
		t.Errorf("the revision should have failed by a crash, got %+v", f)
	}
	// A pod that ends pauses the rollout, until it ends again and again.
	c.tookBut(t, v1alpha1.RolloutHolding, v1alpha1.RolloutStable, v1alpha1.RolloutPreparing, v1alpha1.RolloutStepping, v1alpha1.RolloutRollingBack, v1alpha1.RolloutRolledBack)
}

// TestEditMidRollout edits to a third revision in the middle of a step, reverts, and deletes.
func TestEditMidRollout(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	host := hostOf(ns, "reco")
	reco := func(v string) *v1alpha1.Algorithm {
		return algorithm(ns, "reco", versioned(v), draining(drainSeconds), routed(host), rolling(canary(20)))
	}
	stable(t, reco("v1"))
	w, c := witnessOf(t, ns, "reco"), courseOf(t, ns, "reco")
	calls := callers(t, ns, "reco", host, outsideNew)
	tries := func(v string) {
		t.Helper()
		within(t, 2*timeout, "20 % of requests may reach "+v, func(ctx context.Context) error {
			if err := stepping(ns, "reco", 20)(ctx); err != nil {
				return err
			}

			return runs(ctx, ns, "reco-b", v)
		})
		if got := sampled(t, calling(host, 50), 2*time.Second); got[v] == 0 || got[v] > 25 {
			t.Errorf("20 %% of callers should meet %s, got %v", v, got)
		}
	}
	through := func(reason string) {
		t.Helper()
		c.mu.Lock()
		defer c.mu.Unlock()
		if !slices.ContainsFunc(c.stages, func(s stage) bool {
			return s.Phase == v1alpha1.RolloutRollingBack && s.Reason == reason && s.Weight == 0
		}) {
			t.Errorf("it should have rolled back as %s", reason)
		}
	}

	edit(t, reco("v2"))
	tries("v2")
	began := time.Now()
	edit(t, reco("v3"))
	tries("v3")
	t.Logf("v3 is tried %s after it took the place of v2", time.Since(began).Round(100*time.Millisecond))
	through(string(v1alpha1.ReasonSuperseded))

	began = time.Now()
	edit(t, reco("v1"))
	within(t, 2*timeout, "the rollout is stable", rollout(ns, "reco", v1alpha1.RolloutStable, ""))
	back := c.routedAt(0, began)
	t.Logf("callers were sent back %s after the edit, and all is stable after %s", back.Sub(began).Round(10*time.Millisecond), time.Since(began).Round(100*time.Millisecond))
	through(string(v1alpha1.ReasonReverted))
	eventually(t, "v1 is what the spec describes", live(ns, "reco", "v1"))
	if f := rolloutOf(t.Context(), ns, "reco").Failed; len(f) != 0 {
		t.Errorf("what nobody wants any more has not failed, got %v", f)
	}

	edit(t, reco("v4"))
	tries("v4")
	r := calls.end(t)[outsideNew]
	for _, v := range []string{"v1", "v2", "v3"} {
		if r.Versions[v] == nil {
			t.Errorf("%s never answered: %v", v, r.Versions)
		}
	}
	w.end(t, 4, 0)
	for _, stop := range c.stop {
		stop()
	}
	if err := kube.Delete(t.Context(), reco("v4")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "nothing is left", func(ctx context.Context) error {
		if _, err := httpRoute(ctx, ns, "reco"); !kerrors.IsNotFound(err) {
			return errors.New("the HTTPRoute is")
		}

		return nothingIn(ns)(ctx)
	})
}
