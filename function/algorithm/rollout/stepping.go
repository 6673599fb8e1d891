// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
)

// replaced: another revision runs where the candidate should, because something wrote over what is remembered. Nothing of it is
// known.
func replaced(f Facts, l Ledger) (transition, bool) {
	idle := f.idle(l)
	return leave(f, l, v1alpha1.ReasonStateLost, "another revision runs in the slot of "+l.Candidate), idle.Exists && idle.Revision != l.Candidate
}

// candidateFails those requests that reach it.
func candidateFails(f Facts, l Ledger) (transition, bool) {
	reason, message := f.fault(names.Other(l.Slot))
	if reason == "" || f.stranded(l) {
		return transition{}, false
	}
	return fail(f, l, reason, message), true
}

// apart reports whether the Service sends to one revision, where the number of replicas is to make the share of another one.
func (f Facts) apart() bool { return f.ByReplicas && f.Selects != "" }

// stranded reports whether requests could go back to nothing: only replicas of the candidate serve. One that fails answers some of
// them.
func (f Facts) stranded(l Ledger) bool {
	return l.Shared() && !f.apart() && f.live(l).Available == 0 && f.idle(l).Available > 0
}

// keepsShare reports whether a candidate that ends for no fault of its own keeps its share for a while: the load asks for more
// replicas than the live revision has, so that it cannot take the requests back. It grows at once. Where its replicas find no room
// that ends soon, and otherwise with the deadline. What the route of an experiment matched is not known any more once the spec
// changes: such an experiment ends at once.
func (f Facts) keepsShare(l Ledger) bool {
	live, idle := f.live(l), f.idle(l)
	matched := l.Experiment != nil && (f.ByReplicas || idle.Routed.Chosen || f.drawn(l, l.Weight) != l.Weight)
	switch {
	case !l.Shared(), matched, f.apart(), idle.Available == 0:
		return false
	case f.stranded(l):
		return true
	case f.Scaling == nil, live.Available >= int64(f.fullSize()):
		return false
	case !l.holdsFor(v1alpha1.ReasonStandbyStarting):
		return true
	}
	over, _ := f.due(l.Entered, f.growTime(l))
	return !over
}

// growTime of a live revision that is to take requests back.
func (f Facts) growTime(l Ledger) time.Duration {
	if f.live(l).Trouble != "" {
		return roomTimeout
	}
	return f.Lifecycle.Deadline.Duration
}

// liveGrows before it takes back the requests of a candidate that is not requested any more, which gets no greater share either. What
// fails, or is aborted, waits only for the first replica that serves.
func liveGrows(f Facts, l Ledger) (transition, bool) {
	why, urgent := f.whyItEnds(l)
	if why == "" || !f.keepsShare(l) {
		return transition{}, false
	}
	enough := f.fullSize()
	if urgent || f.Scaling == nil {
		enough = 1
	}
	return growLive(f, l, enough, why), true
}

// whyItEnds is the reason why the candidate gives its share back, or empty, and whether that waits for nothing but a replica that serves.
func (f Facts) whyItEnds(l Ledger) (why string, urgent bool) {
	reason, message := f.fault(names.Other(l.Slot))
	switch {
	case reason != "":
		return message, true
	case f.aborts(l.Candidate):
		return f.abortedBy(l.Candidate), true
	case l.Experiment != nil:
		if t, ends := experimentRemoved(f, l); ends {
			return t.message, false
		}
	case f.Target != "" && f.Target != l.Candidate:
		return fmt.Sprintf("the spec does not ask for revision %s any more", l.Candidate), false
	}
	return "", false
}

// growLive revision to enough replicas before it takes requests back for a reason.
func growLive(f Facts, l Ledger, enough int32, why string) transition {
	t := hold(l, v1alpha1.RolloutStepping, v1alpha1.ReasonStandbyStarting, fmt.Sprintf(
		"requests go back to revision %s once %d of its replicas serve, and %d serve now: %s", l.Revision, enough, f.live(l).Available, why))
	if l.holdsFor(v1alpha1.ReasonStandbyStarting) {
		_, wake := f.due(l.Entered, f.growTime(l))
		t.timers = at(wake)
	}
	return t
}

// grows for a share of requests that the candidate passed for.
func grows(f Facts, l Ledger) (transition, bool) {
	if l.Next == 0 {
		return transition{}, false
	}
	promoted := f.promotes(l.Candidate)
	if l.NextBy == v1alpha1.ReasonPromoted && !promoted {
		return notPromoted(l), true
	}
	evident := l.NextBy == v1alpha1.ReasonPassed || l.NextBy == v1alpha1.ReasonContinued
	if next := f.nextShare(l); evident && next < l.Next && !promoted && l.Experiment == nil {
		return pass(f, l, next, l.NextBy, "the spec asks for this step first"), true
	}
	return grow(f, l, l.Next, l.NextBy, promoted), true
}

// notPromoted any more.
func notPromoted(l Ledger) transition {
	t := transition{
		to: v1alpha1.RolloutStepping, reason: v1alpha1.ReasonResumed, message: "spec.rollout.promote does not name it any more",
		change: func(l Ledger) Ledger { return l.growing(0, "") }, size: l.Next,
	}
	// No request reaches it yet, as when it was promoted while it got copies of requests.
	if l.Weight == 0 {
		t.to = v1alpha1.RolloutPreparing
		t.change = func(l Ledger) Ledger {
			l.Evidence = 0
			return l.growing(0, "")
		}
	}
	return t
}

// grow for a share of requests, and give it to the candidate once that is large enough.
func grow(f Facts, l Ledger, next int32, why xpv2.ConditionReason, promoted bool) transition {
	b := f.mayGoOn(l, next, true)
	var t transition
	switch sized := f.grown(l, next); {
	case sized && b.Reason != "" && !promoted:
		t = hold(l, v1alpha1.RolloutStepping, b.Reason, b.Message)
	case sized:
		t = weigh(l, next, why, "its replicas serve")
	default:
		message := fmt.Sprintf("replicas of revision %s start for %d %% of requests", l.Candidate, next)
		t = noRoom(f, l, v1alpha1.RolloutStepping, message+f.awaited(l))
		waits := f.idle(l).waitsFor() != ""
		late, wake := f.late(l)
		late = late && l.Next == next // otherwise they only begin to start
		if held, _ := f.due(l.TroubleAt, roomTimeout); l.Phase == v1alpha1.RolloutHolding && (!waits || !held) && !late {
			t.to, t.reason, t.message = v1alpha1.RolloutStepping, why, message
		}
		t.timers = t.with(wake)
		if late {
			t = neverGrown(f, l, next)
		}
	}
	t.size, t.timers = next, t.with(b.timers)
	return t
}

// neverGrown: replicas for a share of requests do not become ready. Where only a few of them do not, they are not the evidence.
func neverGrown(f Facts, l Ledger, next int32) transition {
	s := f.idle(l)
	if n := f.toGrow(l, next); s.Size < n {
		// Others did not make room for them in that time, or nothing reconciled the Algorithm.
		return hold(l, v1alpha1.RolloutStepping, v1alpha1.ReasonNeverReady,
			fmt.Sprintf("%d %% of requests need %d replicas of revision %s, and its Deployment still has %d: the rollout continues by itself once they serve, "+
				"or name the revision in spec.rollout.promote or abort", next, n, l.Candidate, s.Size))
	}
	message := fmt.Sprintf("its replicas for %d %% of requests were not ready in %s: %s", next, f.startTime(), f.bounds())
	if s.Trouble != "" {
		message += fmt.Sprintf(": %s: %s", s.Trouble, s.TroubleMessage)
	}
	if s.TroubleExtent == "" {
		return fail(f, l, v1alpha1.ReasonNeverReady, message)
	}
	return hold(l, v1alpha1.RolloutStepping, v1alpha1.ReasonNeverReady,
		message+fmt.Sprintf("; the rollout continues by itself when they are, or name revision %s in spec.rollout.promote or abort", l.Candidate))
}

func promoted(f Facts, l Ledger) (transition, bool) {
	if !f.promotes(l.Candidate) {
		return transition{}, false
	}
	return pass(f, l, 100, v1alpha1.ReasonPromoted, "spec.rollout.promote names it"), true
}

func stateLost(_ Facts, l Ledger) (transition, bool) {
	return stay(fmt.Sprintf("the progress of revision %s was lost: name it in spec.rollout.promote or abort", l.Candidate)),
		l.holdsFor(v1alpha1.ReasonStateLost)
}

func shareNotInForce(f Facts, l Ledger) (transition, bool) {
	if l.Evidence != 0 || f.inForce(l) {
		return transition{}, false
	}
	if !f.ByReplicas {
		return awaitRoute(f, l, v1alpha1.RolloutStepping), true
	}
	return noRoom(f, l, v1alpha1.RolloutStepping, fmt.Sprintf("replicas of revision %s start for %d %% of requests", l.Candidate, l.Weight)), true
}

// shareInForce: evidence counts from when it is seen to be.
func shareInForce(f Facts, l Ledger) (transition, bool) {
	return transition{
		to: v1alpha1.RolloutStepping, reason: v1alpha1.ReasonSoaking,
		message: fmt.Sprintf("%s may reach revision %s, and evidence is being gathered", f.shareInWords(l, l.Weight), l.Candidate),
		change: func(l Ledger) Ledger {
			if t := l.Experiment; t != nil {
				l.Experiment = &Trial{ID: t.ID, Key: t.Key, Started: l.Entered}
			}
			return l.counting()
		},
	}, l.Evidence == 0
}

// evidenceMissing: the state of the candidate is unknown, or there is too little evidence after the deadline of the step.
func evidenceMissing(f Facts, l Ledger) (transition, bool) {
	reason, message, silentAt := f.unknown(l)
	known := timers{silentAt: silentAt}
	if reason == "" && !f.Evidence.passing() {
		late, wake := f.due(l.Began, f.Lifecycle.Deadline.Duration)
		known.wake = wake
		if late {
			reason = v1alpha1.ReasonInconclusive
			message = "there is too little evidence after the deadline of the step: send more requests, lower spec.lifecycle.minSamples, " +
				"or name the revision in spec.rollout.promote or abort"
		}
	}
	if reason == "" {
		return transition{timers: known}, false
	}
	t := lack(f, l, reason, message)
	t.timers = t.with(known)
	return t, true
}

// lack of evidence holds a phase, and when that has lasted for the deadline, the spec says what happens.
func lack(f Facts, l Ledger, reason xpv2.ConditionReason, message string) transition {
	late, wake := reason == v1alpha1.ReasonInconclusive, timers{}
	if !late && l.holdsFor(reason) {
		late, wake.wake = f.due(l.Entered, f.Lifecycle.Deadline.Duration)
	}
	t := hold(l, l.Standing(), reason, message)
	if late && (f.Lifecycle.OnNoData == v1alpha1.NoDataContinue || !f.stranded(l)) {
		t = withoutData(f, l, reason, message)
	}
	t.timers = t.with(wake)
	return t
}

// withoutData after the deadline.
func withoutData(f Facts, l Ledger, reason xpv2.ConditionReason, message string) transition {
	phase, onNoData := l.Standing(), f.Lifecycle.OnNoData
	baking, stepping := phase == v1alpha1.RolloutBaking, phase == v1alpha1.RolloutStepping && l.Weight > 0
	switch {
	case onNoData == v1alpha1.NoDataRollback && baking && f.bears(l):
		return goBack(l, reason, message)
	case onNoData == v1alpha1.NoDataRollback && !baking:
		return fail(f, l, reason, message)
	case onNoData == v1alpha1.NoDataContinue && baking:
		return finish(v1alpha1.ReasonContinued, message)
	case onNoData == v1alpha1.NoDataContinue:
		if t, waits := hooksBefore(f, l, f.nextShare(l)); waits {
			return t
		}
		t := grow(f, l, f.nextShare(l), v1alpha1.ReasonContinued, f.promotes(l.Candidate))
		if change, next := t.change, f.nextShare(l); change == nil {
			t.change = func(l Ledger) Ledger { return l.growing(next, v1alpha1.ReasonContinued) }
		}
		return t
	case stepping && reason == v1alpha1.ReasonMetricsUnavailable:
		return withhold(false, "there was no data about the candidate until the deadline, so no request reaches it any more: "+message)
	case stepping && !f.Evidence.known():
		return withhold(true, unmeasured(l))
	default:
		return hold(l, phase, reason, message)
	}
}

// resumes what is held for one of some reasons.
func resumes(reasons ...xpv2.ConditionReason) func(Facts, Ledger) (transition, bool) {
	return func(_ Facts, l Ledger) (transition, bool) { return resume(l), l.holdsFor(reasons...) }
}

// judged candidate: it passes for the next share once it has had its time, unless that may not be now.
func judged(f Facts, l Ledger) (transition, bool) {
	mirrors := l.Standing() == v1alpha1.RolloutMirroring
	report := fmt.Sprintf("%s may reach revision %s, and evidence is being gathered", f.shareInWords(l, l.Weight), l.Candidate)
	if mirrors {
		report = f.copies(l)
	}
	soaked, end := f.due(l.Began, f.Lifecycle.Soak.Duration)
	if !soaked || !f.Evidence.passing() {
		t := stay(report)
		t.soaks = end
		// Without evidence the end of the time changes nothing.
		if f.Evidence.passing() {
			t.timers = at(end)
		}
		return t, true
	}
	next := f.nextShare(l)
	b := f.mayGoOn(l, next, !mirrors || next == 100)
	if b.Reason != "" {
		t := hold(l, l.Standing(), b.Reason, b.Message)
		t.timers = b.timers
		return t, true
	}
	if t, waits := hooksBefore(f, l, next); waits {
		return t, true
	}
	return pass(f, l, next, v1alpha1.ReasonPassed, f.Evidence.summary()), true
}
