// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
)

// withdrawn: the spec does not ask for the candidate any more, or aborts it.
func withdrawn(f Facts, l Ledger) (transition, bool) {
	switch {
	case l.Experiment != nil:
		return experimentWithdrawn(f, l)
	case f.aborts(l.Candidate) && f.stranded(l):
		return transition{}, false
	case f.aborts(l.Candidate):
		return fail(f, l, v1alpha1.ReasonAborted, f.abortedBy(l.Candidate)), true
	case f.Target == "" || f.Target == l.Candidate:
		// What it is made of may be known again in a moment.
		return transition{}, false
	case f.keepsShare(l):
		return transition{}, false
	case f.Target == l.Revision:
		return leave(f, l, v1alpha1.ReasonReverted, fmt.Sprintf("the spec asks for revision %s again", l.Revision)), true
	default:
		return leave(f, l, v1alpha1.ReasonSuperseded, fmt.Sprintf("the spec asks for revision %s instead of %s", f.Target, l.Candidate)), true
	}
}

func slotTaken(f Facts, l Ledger) (transition, bool) {
	idle := f.idle(l)
	if idle.Exists && idle.Revision != l.Candidate && !f.drained(names.Other(l.Slot)) {
		return awaitRoute(f, l, v1alpha1.RolloutPreparing), true
	}
	return stay(fmt.Sprintf("revision %s starts once the revision in its slot is gone", l.Candidate)), idle.Exists && idle.Revision != l.Candidate
}

// trouble that the candidate has now. That a Gateway does not take the route lasts until it does.
func (f Facts) trouble(l Ledger) xpv2.ConditionReason {
	if !l.Testing() {
		return ""
	}
	reason := f.idle(l).Trouble
	if reason == "" && l.Trouble == v1alpha1.ReasonAwaitingRoute && !f.routeTaken() {
		return l.Trouble
	}
	return reason
}

func replicasWithoutRoom(f Facts, l Ledger) (transition, bool) {
	idle := f.idle(l)
	return noRoom(f, l, v1alpha1.RolloutPreparing, idle.TroubleMessage), idle.waitsFor() != "" && !f.readyFor(l, f.first(l).size)
}

// replicasBlocked for too long by what is wrong with the revision itself, and what waiting does not change.
func replicasBlocked(f Facts, l Ledger) (transition, bool) {
	idle := f.idle(l)
	if !idle.blocked() || f.readyFor(l, f.first(l).size) {
		return transition{}, false
	}
	late, wake := f.due(l.TroubleAt, troubleTimeout)
	if !late {
		return transition{timers: at(wake)}, false
	}
	return fail(f, l, idle.Trouble, idle.TroubleMessage), true
}

func neverReady(f Facts, l Ledger) (transition, bool) {
	if f.readyFor(l, f.first(l).size) {
		return transition{}, false
	}
	late, wake := f.late(l)
	if !late {
		return transition{timers: wake}, false
	}
	message := fmt.Sprintf("its replicas were not ready in %s: %s", f.startTime(), f.bounds())
	if s := f.idle(l); s.Trouble != "" {
		message += fmt.Sprintf(": %s: %s", s.Trouble, s.TroubleMessage)
	}
	return fail(f, l, v1alpha1.ReasonNeverReady, message), true
}

func firstMirrorRefused(f Facts, l Ledger) (transition, bool) {
	return leave(f, l, v1alpha1.ReasonMirrorNotOffered, f.MirrorRefused), f.first(l).copied && f.MirrorRefused != ""
}

func replicasStart(f Facts, l Ledger) (transition, bool) {
	report := fmt.Sprintf("replicas of revision %s start, and no request reaches it", l.Candidate) + f.awaited(l)
	t := stay(report)
	if l.holdsFor(v1alpha1.ReasonNoCapacity, v1alpha1.ReasonSourceUnreachable, v1alpha1.ReasonNodeFault) {
		t = resume(l)
		t.report = report
	}
	return t, !f.canBegin(l, f.first(l).size)
}

func firstRouteNotTaken(f Facts, l Ledger) (transition, bool) {
	if f.routeTaken() {
		return transition{}, false
	}
	return awaitRoute(f, l, v1alpha1.RolloutPreparing), true
}

// notMeasuredBefore: in an earlier step nothing was known of the candidate, and no fact shows that it would be now.
func notMeasuredBefore(f Facts, l Ledger) (transition, bool) {
	if !l.Unmeasured || f.first(l).promoted {
		return transition{}, false
	}
	return hold(l, v1alpha1.RolloutPreparing, v1alpha1.ReasonEvidenceMissing, unmeasured(l)), true
}

func unmeasured(l Ledger) string {
	return fmt.Sprintf("there was no data about revision %s until the deadline of its step, although the live revision can be measured: "+
		"check that its pods serve metrics on spec.metrics.port and path, and correct the spec, or name it in spec.rollout.promote or abort", l.Candidate)
}

// firstEvidenceMissing: the checks of the candidate cannot be measured on the live revision. What is measured by the same queries
// would be unknown of the candidate as well, and requests would reach it unseen.
func firstEvidenceMissing(f Facts, l Ledger) (transition, bool) {
	if f.first(l).promoted {
		return transition{}, false
	}
	held := l.holdsFor(v1alpha1.ReasonEvidenceMissing)
	silent, wake := f.due(l.Entered, silentIntervals*f.Interval)
	message, tried := f.rehearsed(held || silent)
	switch {
	case !tried, message != "" && !held && !silent:
		// What was scraped once, or not yet, is no reason for alarm.
		t := stay(fmt.Sprintf("the checks of revision %s are tried on revision %s, and no request reaches it", l.Candidate, l.Revision))
		if tried {
			t.message += ": " + message
		}
		t.timers = at(wake)
		return t, true
	case message == "":
		return transition{}, false
	}
	late, wake := f.due(l.Entered, f.Lifecycle.Deadline.Duration)
	switch onNoData := f.Lifecycle.OnNoData; {
	case held && late && l.Experiment == nil && onNoData == v1alpha1.NoDataRollback:
		return fail(f, l, v1alpha1.ReasonEvidenceMissing, message), true
	case held && late && l.Experiment == nil && onNoData == v1alpha1.NoDataContinue:
		return transition{}, false
	}
	message += ". Until then no request reaches revision " + l.Candidate
	if l.Experiment == nil {
		message += ", unless spec.rollout.promote names it"
	}
	t := hold(l, v1alpha1.RolloutPreparing, v1alpha1.ReasonEvidenceMissing, message)
	if held {
		t.timers = at(wake)
	}
	return t, true
}

// rehearsed reports whether the checks of a candidate were tried, and what is missing. When nothing has come of them for a while,
// that is what is missing.
func (f Facts) rehearsed(overdue bool) (missing string, tried bool) {
	switch r := f.Rehearsal; {
	case !f.Observes:
		return ProviderMissing, true
	case r.Missing != "" || r.Done:
		return r.Missing, true
	default:
		return "the provider has not queried Prometheus for some time: see the conditions of Analysis " + f.Name, overdue
	}
}

func mirrorBegins(f Facts, l Ledger) (transition, bool) {
	return transition{
		to: v1alpha1.RolloutMirroring, reason: v1alpha1.ReasonApplying,
		message: fmt.Sprintf("replicas of revision %s serve, and get copies of requests", l.Candidate),
		change: func(l Ledger) Ledger {
			l.Began = l.Entered
			return l
		},
	}, f.first(l).copied
}

func firstShareBlocked(f Facts, l Ledger) (transition, bool) {
	first := f.first(l)
	b := f.mayGoOn(l, first.weight, first.weight == 100)
	t := hold(l, v1alpha1.RolloutPreparing, b.Reason, b.Message)
	t.timers = b.timers
	return t, b.Reason != "" && !first.promoted
}

func firstShareBegins(f Facts, l Ledger) (transition, bool) {
	weight, why := f.first(l).weight, fmt.Sprintf("replicas of revision %s serve", l.Candidate)
	if weight == 100 && f.indivisible(1) {
		why += ", and without spec.route a single replica cannot share requests with another"
	}
	if weight == 100 && f.capacity(l) == v1alpha1.CapacityBorrow {
		// The other replicas are exchanged one by one, and requests follow them.
		reason := v1alpha1.ReasonPassed
		if f.first(l).promoted {
			reason = v1alpha1.ReasonPromoted
		}
		return pass(f, l, weight, reason, why), true
	}
	return weigh(l, weight, v1alpha1.ReasonPassed, why), true
}
