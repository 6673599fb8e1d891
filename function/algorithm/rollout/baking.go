// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// previousGone: the revision before the candidate cannot take requests back any more.
func previousGone(f Facts, l Ledger) (transition, bool) {
	idle := f.idle(l)
	return transition{
		to: v1alpha1.RolloutDraining, reason: v1alpha1.ReasonStateLost,
		message: fmt.Sprintf("revision %s no longer exists, so requests cannot go back to it", l.Previous),
	}, idle.Exists && idle.Revision != l.Previous
}

// regret is why requests should go back from the candidate that all of them reach, or should.
func (f Facts) regret(l Ledger) (reason xpv2.ConditionReason, message string, reverted bool) {
	reason, message = f.fault(l.Slot)
	if f.aborts(l.Candidate) {
		reason, message = v1alpha1.ReasonAborted, f.abortedBy(l.Candidate)
	}
	return reason, message, f.Target == l.Previous && f.Target != ""
}

func superseded(f Facts, l Ledger) (transition, bool) {
	reason, _, reverted := f.regret(l)
	return transition{
		to: v1alpha1.RolloutDraining, reason: v1alpha1.ReasonSuperseded,
		message: fmt.Sprintf("the spec asks for revision %s before %s has baked", f.Target, l.Candidate),
	}, reason == "" && !reverted && f.Target != "" && f.Target != l.Candidate && !f.lost(l.Slot, l.Candidate)
}

func takenBack(f Facts, l Ledger) (transition, bool) {
	reason, message, reverted := f.regret(l)
	switch {
	case reason == "" && !reverted:
		return transition{}, false
	case f.bears(l):
		if t, compares := compareAgain(f, l, reason, message); compares && !reverted {
			return t, true
		}
		return goBack(l, reason, message), true
	}
	if reverted {
		message = "the spec asks for it again"
	}
	// Where requests would go back to must be able to take them. A person who aborts does not wait for that without end.
	wait := fmt.Sprintf("requests go back to revision %s once %d of its replicas serve, and %d serve now: %s",
		l.Previous, f.enough(l), f.idle(l).Available, message)
	if l.Standing() == v1alpha1.RolloutPromoting {
		if f.aborts(l.Candidate) && f.idle(l).Available > 0 {
			return goBack(l, reason, message), true
		}
		return stay(wait), true
	}
	t := hold(l, v1alpha1.RolloutBaking, v1alpha1.ReasonStandbyStarting, wait)
	if f.aborts(l.Candidate) && l.holdsFor(v1alpha1.ReasonStandbyStarting) && f.idle(l).Available > 0 {
		late, wake := f.due(l.Entered, roomTimeout)
		if late {
			return goBack(l, reason, message), true
		}
		t.timers = at(wake)
	}
	return t, true
}

func promotionNotInForce(f Facts, l Ledger) (transition, bool) {
	if f.inForce(l) {
		return transition{}, false
	}
	t := stay(fmt.Sprintf("the change that sends all requests to revision %s is not in force yet", l.Candidate))
	late, wake := f.due(l.Entered, routeTimeout)
	if late || l.holdsFor(v1alpha1.ReasonAwaitingRoute) {
		t = hold(l, v1alpha1.RolloutPromoting, v1alpha1.ReasonAwaitingRoute, fmt.Sprintf(
			"%s, and may be sending requests to either revision: name revision %s in spec.rollout.abort to go back", f.routeRefused(), l.Candidate))
	}
	t.timers = at(wake)
	return t, true
}

func promotionInForce(_ Facts, l Ledger) (transition, bool) {
	return transition{
		to: v1alpha1.RolloutBaking, reason: v1alpha1.ReasonSoaking, change: Ledger.began, message: bakes(l),
	}, true
}

func bakes(l Ledger) string {
	return fmt.Sprintf("all clients reach revision %s, and revision %s stays so that they can go back", l.Candidate, l.Previous)
}

func bakingWithoutMetrics(f Facts, l Ledger) (transition, bool) {
	reason, message, silentAt := f.unknown(l)
	known := timers{silentAt: silentAt}
	if reason == "" || f.Lifecycle.Bake.Duration == 0 || f.promotes(l.Candidate) {
		return transition{timers: known}, false
	}
	t := lack(f, l, reason, message)
	t.timers = t.with(known)
	return t, true
}

// baked, once a look at Prometheus from the end of its time on has shown nothing against it. The provider reports that look, which
// wakes up a pass, so that no report is needed before. A person who promotes it does not wait for it.
func baked(f Facts, l Ledger) (transition, bool) {
	over, wake := f.due(l.Began, f.Lifecycle.Bake.Duration)
	awaited := f.Evidence.Asked && f.Lifecycle.Bake.Duration > 0 && !f.promotes(l.Candidate) &&
		f.Evidence.LookedAt.Before(l.Began.Add(f.Lifecycle.Bake.Duration))
	if over && !awaited {
		return finish(v1alpha1.ReasonBaked, fmt.Sprintf("revision %s has baked: revision %s ends", l.Candidate, l.Previous)), true
	}
	t := stay(bakes(l))
	if t.soaks = wake; !awaited {
		t.timers = at(wake)
	}
	return t, true
}
