// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"time"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
)

// targetUnknown: what the target is made of may be known again in a moment.
func targetUnknown(f Facts, _ Ledger) (transition, bool) { return transition{}, f.Target == "" }

// routeKeepsPrevious: the Gateway does not report that it sends no more requests to a revision that they should have left. Its
// pods stay, and nothing else begins.
func routeKeepsPrevious(f Facts, l Ledger) (transition, bool) {
	phase, idle := l.Standing(), f.idle(l)
	if phase != v1alpha1.RolloutDraining && phase != v1alpha1.RolloutRollingBack {
		return transition{}, false
	}
	held := l.holdsFor(v1alpha1.ReasonAwaitingRoute)
	if !idle.Exists || f.drained(names.Other(l.Slot)) {
		return resume(l), held
	}
	begun := l.Since
	if l.Entered.After(begun) {
		begun = l.Entered
	}
	late, wake := f.due(begun.Add(f.Drain), routeTimeout)
	if !late && !held {
		return transition{timers: at(wake)}, false
	}
	return hold(l, phase, v1alpha1.ReasonAwaitingRoute, fmt.Sprintf(
		"%s, and may still be sending requests to revision %s, whose pods stay until then", f.routeRefused(), idle.Revision)), true
}

// stable reports whether requests reach what the spec asks for, and no rollout is under way.
func stable(f Facts, l Ledger) bool {
	return f.Target == l.Revision && l.Standing() == v1alpha1.RolloutStable && l.Phase != v1alpha1.RolloutHolding
}

func requestsFinish(f Facts, l Ledger) (transition, bool) {
	decides := f.Target == l.Revision && f.ends(l) && l.Phase != v1alpha1.RolloutHolding && l.Phase != v1alpha1.RolloutRolledBack
	return stay("the previous revision finishes its requests"), decides
}

func settled(f Facts, l Ledger) (transition, bool) {
	reason := v1alpha1.ReasonDrained
	if !f.idle(l).Exists && l.Phase != v1alpha1.RolloutRollingBack && l.Phase != v1alpha1.RolloutDraining {
		reason = v1alpha1.ReasonEdited
	}
	return transition{
		to: v1alpha1.RolloutStable, reason: reason, message: "clients reach revision " + l.Revision,
		change: func(l Ledger) Ledger {
			l.Candidate, l.Previous = "", ""
			return l
		},
	}, f.Target == l.Revision
}

// staysRolledBack while the spec asks for what was rolled back and may not be tried again yet. A person who requests another
// attempt and its promotion knows the risk.
func staysRolledBack(f Facts, l Ledger) (transition, bool) {
	failed := l.Failure(f.Target)
	if failed == nil {
		return transition{}, false
	}
	retries := f.retries(failed)
	if retries && (!f.Now.Before(failed.RetryAfter.Time) || f.promotes(failed.Revision)) {
		return transition{}, false
	}
	t := stay(remedyOf(failed))
	reason := v1alpha1.ReasonRolledBack
	if retries {
		reason, t.timers = v1alpha1.ReasonCoolingDown, at(failed.RetryAfter.Time)
	}
	// Requests that left it are finished first.
	left := l.Phase != v1alpha1.RolloutRollingBack || !f.ends(l)
	if (l.Phase != v1alpha1.RolloutRolledBack || l.Reason != reason) && left {
		t.to, t.reason = v1alpha1.RolloutRolledBack, reason
		t.change = func(l Ledger) Ledger {
			l.Candidate = failed.Revision
			return l
		}
	}
	return t, true
}

// remedyOf a revision that was rolled back.
func remedyOf(f *v1alpha1.FailedRevision) string {
	return fmt.Sprintf("revision %s was rolled back: %s: %s. Correct the spec, or try it again from %s on with spec.rollout.retry: %q",
		f.Revision, f.Reason, f.Message, f.RetryAfter.UTC().Format(time.RFC3339), fmt.Sprintf("%s#%d", f.Revision, f.Attempts+1))
}

func rolloutBlocked(f Facts, l Ledger) (transition, bool) {
	b := f.mayBegin(l)
	t := hold(l, v1alpha1.RolloutStable, b.Reason, b.Message)
	t.timers = b.timers
	return t, b.Reason != ""
}

// slotNotFree: what is in its place ends first.
func slotNotFree(f Facts, l Ledger) (transition, bool) {
	idle := f.idle(l)
	return stay(fmt.Sprintf("revision %s starts once the one before it is gone", f.Target)), idle.Exists && idle.Revision != f.Target
}

func rolloutBegins(f Facts, l Ledger) (transition, bool) {
	begun := l.testing(f.Target, nil)
	return transition{
		to: v1alpha1.RolloutPreparing, reason: v1alpha1.ReasonEdited, size: f.nextShare(begun),
		message: fmt.Sprintf("replicas of revision %s start, and no request reaches it", f.Target),
		change:  func(l Ledger) Ledger { return l.testing(f.Target, nil) },
	}, true
}
