// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// givesBack: requests go back as the live revision gets its replicas back, and nothing else begins before.
func givesBack(f Facts, l Ledger) (transition, bool) {
	if l.Standing() != v1alpha1.RolloutRollingBack || f.capacity(l) != v1alpha1.CapacityBorrow {
		return transition{}, false
	}
	weight := f.borrowedWeight(l)
	return stay(fmt.Sprintf("%d %% of requests still go to revision %s: they go back to %s as its replicas start", weight, f.idle(l).Revision, l.Revision)), weight > 0
}

// liveStops before the first replica of the candidate starts. What would keep requests from the candidate afterwards is checked
// before.
func liveStops(f Facts, l Ledger) (transition, bool) {
	if f.capacity(l) != v1alpha1.CapacityRecreate || l.Stopped {
		return transition{}, false
	}
	waits := timers{}
	for _, blocked := range []func(Facts, Ledger) (transition, bool){notMeasuredBefore, firstEvidenceMissing, firstRouteNotTaken, firstShareBlocked} {
		t, decides := blocked(f, l)
		if waits = waits.with(t.timers); decides {
			t.timers = waits
			return t, true
		}
	}
	return transition{
		to: v1alpha1.RolloutPreparing, reason: v1alpha1.ReasonRecreating,
		message: fmt.Sprintf("revision %s stops, and then replicas of %s start: until they serve, requests are refused", l.Revision, l.Candidate),
		change: func(l Ledger) Ledger {
			l.Stopped = true
			return l.startingAt(l.Entered)
		},
	}, true
}

// unlessStopped is a rule for as long as the live revision serves.
func unlessStopped(when func(Facts, Ledger) (transition, bool)) func(Facts, Ledger) (transition, bool) {
	return func(f Facts, l Ledger) (transition, bool) {
		if l.Stopped {
			return transition{}, false
		}
		return when(f, l)
	}
}

// released candidate: it starts again after a time, when a person promotes it, or when the spec gives it another room.
func released(f Facts, l Ledger) (transition, bool) {
	if !l.holdsFor(v1alpha1.ReasonCandidateReleased) {
		return transition{}, false
	}
	over, wake := f.due(l.Entered, f.Lifecycle.Deadline.Duration)
	if over || f.promotes(l.Candidate) || l.Last != nil && f.capacity(l) != f.capacity(f.Ledger) {
		t := resume(l)
		t.message = fmt.Sprintf("replicas of revision %s start again", l.Candidate)
		t.change = func(l Ledger) Ledger { return l.suffering("", l.Entered).startingAt(l.Entered) }
		return t, true
	}
	t := stay(releasedWords(f, l, l.Entered))
	t.timers = at(wake)
	return t, true
}
