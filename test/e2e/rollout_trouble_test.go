// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// soaking for at least this long.
func soaking(d time.Duration) func(*v1alpha1.Lifecycle) {
	return func(l *v1alpha1.Lifecycle) { l.Soak.Duration = d }
}

// unlessRolledBack waits for a check, and fails the test as soon as a revision was rolled back for a fault.
func unlessRolledBack(t *testing.T, ns, name string, limit time.Duration, what string, check func(context.Context) error) {
	t.Helper()
	within(t, limit, what, func(ctx context.Context) error {
		if len(rolloutOf(ctx, ns, name).Failed) > 0 {
			return nil
		}

		return check(ctx)
	})
	if f := rolloutOf(t.Context(), ns, name).Failed; len(f) > 0 {
		t.Fatalf("%s: a good revision was rolled back: %s: %s", what, f[0].Reason, f[0].Message)
	}
}

// was fails until the course of a rollout went through a phase, for a reason if one is named, with all words in its message.
func (c *course) was(phase v1alpha1.RolloutPhase, reason string, words ...string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.stages {
		if s.Phase != phase || reason != "" && s.Reason != reason {
			continue
		}
		for _, w := range words {
			if !strings.Contains(s.Message, w) {
				return fmt.Errorf("the message of %s lacks %q: %s", phase, w, s.Message)
			}
		}

		return nil
	}

	return fmt.Errorf("it never was %s %s", phase, reason)
}

// TestSlowStartPromotes promotes a revision that takes six minutes to start.
func TestSlowStartPromotes(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	host := hostOf(ns, "reco")
	reco := func(v string, modify ...func(*v1alpha1.Algorithm)) *v1alpha1.Algorithm {
		return algorithm(ns, "reco", append(modify, versioned(v), draining(drainSeconds), routed(host), rolling(canary(50)))...)
	}
	stable(t, reco("v1"))
	w, c := witnessOf(t, ns, "reco"), courseOf(t, ns, "reco")

	began := time.Now()
	edit(t, reco("v2", starting(6*time.Minute)))
	// The provider reports a silent container after a minute. That it starts is no fault.
	unlessRolledBack(t, ns, "reco", 5*timeout, "50 % of callers may reach v2", stepping(ns, "reco", 50))
	t.Logf("v2 was tried %s after the edit", time.Since(began).Round(time.Second))
	calls := callers(t, ns, "reco", host, outsideKept)
	meets(t, calling(host, uneven), "v2", 50, 10)
	unlessRolledBack(t, ns, "reco", 2*timeout, "v2 bakes", rollout(ns, "reco", v1alpha1.RolloutBaking, ""))
	within(t, 2*timeout, "the rollout is over", rollout(ns, "reco", v1alpha1.RolloutStable, ""))
	within(t, timeout, "v2 is live", live(ns, "reco", "v2"))
	calls.end(t)
	c.took(t, v1alpha1.RolloutStable, v1alpha1.RolloutPreparing, v1alpha1.RolloutStepping, v1alpha1.RolloutPromoting,
		v1alpha1.RolloutBaking, v1alpha1.RolloutDraining, v1alpha1.RolloutStable)
	if err := c.was(v1alpha1.RolloutPreparing, "", "NotListening", "startupSeconds"); err != nil {
		t.Errorf("what it waits for, and what bounds the wait, should be reported: %v", err)
	}
	w.end(t, 2, 1)
}

// TestLostPodsPauseRollout evicts and deletes the only pod of a candidate, which costs a pause.
func TestLostPodsPauseRollout(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	host := hostOf(ns, "reco")
	reco := func(v string, modify ...func(*v1alpha1.Algorithm)) *v1alpha1.Algorithm {
		return algorithm(ns, "reco", append(modify, versioned(v), sized(2), draining(drainSeconds), routed(host),
			rolling(canary(20), soaking(30*time.Second), baking(time.Minute)))...)
	}
	stable(t, reco("v1"))
	c := courseOf(t, ns, "reco")
	calls := callOutside(t, calling(host, 60))

	// Without a pod for so long that it is noticed even while Crossplane lets events through only every half minute.
	edit(t, reco("v2", starting(45*time.Second)))
	unlessRolledBack(t, ns, "reco", 2*timeout, "20 % of callers may reach v2", stepping(ns, "reco", 20))
	loses := func(how string, lose func(context.Context, *corev1.Pod) error) {
		t.Helper()
		list := &corev1.PodList{}
		if err := kube.List(t.Context(), list, client.InNamespace(ns),
			client.MatchingLabels{"capstan.dev/algorithm": "reco", "capstan.dev/slot": "b"}); err != nil {
			t.Fatal(err)
		}
		list.Items = slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
		if len(list.Items) != 1 {
			t.Fatalf("v2 should have one pod, got %d", len(list.Items))
		}
		lost := time.Now()
		if err := lose(t.Context(), &list.Items[0]); err != nil {
			t.Fatalf("the pod cannot be %s: %v", how, err)
		}
		unlessRolledBack(t, ns, "reco", timeout, "no caller reaches v2, whose pod was "+how, rollout(ns, "reco", v1alpha1.RolloutHolding,
			string(v1alpha1.ReasonNotServing), "startupSeconds"))
		unlessRolledBack(t, ns, "reco", timeout, "20 % of callers may reach v2 again", stepping(ns, "reco", 20))
		t.Logf("%s: callers left v2 %s later, and were back %s later", how,
			c.routedAt(0, lost).Sub(lost).Round(10*time.Millisecond), c.routedAt(20, lost).Sub(lost).Round(10*time.Millisecond))
	}
	loses("evicted", evict)
	loses("deleted", func(ctx context.Context, p *corev1.Pod) error {
		return client.IgnoreNotFound(kube.Delete(ctx, p, client.GracePeriodSeconds(0)))
	})
	unlessRolledBack(t, ns, "reco", 2*timeout, "v2 bakes", rollout(ns, "reco", v1alpha1.RolloutBaking, ""))
	// One pod of v2 has none, because its node could never be drained. Now there are two of each revision.
	for _, slot := range []string{"a", "b"} {
		eventually(t, "a budget counts the pods of slot "+slot, func(ctx context.Context) error {
			b, err := get(ctx, &policyv1.PodDisruptionBudget{}, ns, "reco-"+slot)
			if err == nil && b.Status.ExpectedPods == 0 {
				err = fmt.Errorf("it counts none: %+v", b.Status)
			}

			return err
		})
	}
	r := calls()
	if share := float64(r.Lost()) / float64(r.Sent); share > 0.05 {
		t.Errorf("requests leave pods that are gone, but %d of %d failed: %v", r.Lost(), r.Sent, r.Failed)
	}
	if got, want := c.routedTo(), []int64{0, 20, 0, 20, 0, 20, 100}; !slices.Equal(got, want) {
		t.Errorf("the HTTPRoute should send %v %% of callers to v2, one after the other, got %v", want, got)
	}
	within(t, 2*timeout, "the rollout is over", rollout(ns, "reco", v1alpha1.RolloutStable, ""))
	within(t, timeout, "v2 is live", live(ns, "reco", "v2"))
	eventually(t, "the budget of slot a counts no pods any more", func(ctx context.Context) error {
		b, err := get(ctx, &policyv1.PodDisruptionBudget{}, ns, "reco-a")
		if err == nil && b.Spec.Selector.MatchLabels["capstan.dev/idle"] == "" {
			err = fmt.Errorf("it selects %v", b.Spec.Selector.MatchLabels)
		}

		return err
	})
}

// TestSharedFaultHolds has both revisions fail every request for half a minute, as when something that both need is down.
func TestSharedFaultHolds(t *testing.T) {
	t.Parallel()
	ns := namespace(t)
	host := hostOf(ns, "reco")
	reco := func(v string) *v1alpha1.Algorithm {
		return algorithm(ns, "reco", versioned(v), sized(2), draining(drainSeconds), routed(host), rolling(canary(50), soaking(time.Minute)))
	}
	stable(t, reco("v1"))
	c := courseOf(t, ns, "reco")
	calls := callOutside(t, calling(host, 60))

	edit(t, reco("v2"))
	unlessRolledBack(t, ns, "reco", 2*timeout, "50 % of callers may reach v2", stepping(ns, "reco", 50))
	list := &corev1.PodList{}
	if err := kube.List(t.Context(), list, client.InNamespace(ns), client.MatchingLabels{"capstan.dev/algorithm": "reco"}); err != nil {
		t.Fatal(err)
	}
	// All of them fail at about the same moment, and one program ends it.
	all := func(rate string) string {
		var command strings.Builder
		for _, p := range list.Items {
			fmt.Fprintf(&command, "until timeout 3 wget -q -O - --post-data '' 'http://%s:8080/admin/behaviour?errorRate=%s'; do sleep 1; done & ", p.Status.PodIP, rate)
		}

		return command.String() + "wait; "
	}
	if p := caller(t, ns, "outage", all("0")+all("1")+"sleep 30; "+all("0")); !ends(t, p) {
		t.Fatal("there was no outage")
	}
	unlessRolledBack(t, ns, "reco", 2*timeout, "it holds for a fault that both share", func(context.Context) error {
		return c.was(v1alpha1.RolloutHolding, string(v1alpha1.ReasonSharedFault), "both", "promote")
	})
	unlessRolledBack(t, ns, "reco", 2*timeout, "evidence is gathered again", stepping(ns, "reco", 50))
	unlessRolledBack(t, ns, "reco", 3*timeout, "v2 bakes", rollout(ns, "reco", v1alpha1.RolloutBaking, ""))
	r := calls()
	t.Logf("%d of %d requests failed, between %s and %s: %v", r.Lost(), r.Sent, r.FirstFailure, r.LastFailure, r.Failed)
	if r.Lost() == 0 {
		t.Error("requests should have failed in the outage")
	}
	if got, want := c.routedTo(), []int64{0, 50, 100}; !slices.Equal(got, want) {
		t.Errorf("the HTTPRoute should send %v %% of callers to v2, one after the other, got %v", want, got)
	}
	within(t, 2*timeout, "the rollout is over", rollout(ns, "reco", v1alpha1.RolloutStable, ""))
	within(t, timeout, "v2 is live", live(ns, "reco", "v2"))
}
