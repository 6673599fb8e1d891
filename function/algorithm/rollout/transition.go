// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
)

const (
	// roomTimeout of replicas that find no room, and routeTimeout of a Gateway that does not take its route.
	roomTimeout  = 2 * time.Minute
	routeTimeout = 2 * time.Minute

	// troubleTimeout is how long replicas of a candidate may be blocked by what is wrong with the revision itself.
	troubleTimeout = 3 * time.Minute
)

// A transition is what a rule decides: which phase begins, or why the rollout stays in its phase.
type transition struct {
	timers

	// to is the phase that begins, or empty. held is the one that Holding holds.
	to, held v1alpha1.RolloutPhase
	reason   xpv2.ConditionReason

	// message of the decision, or of the phase where none begins. report replaces it in the status.
	message, report string

	// change that the transition makes to the ledger beside the phase.
	change func(Ledger) Ledger

	// size is the share of requests that the candidate is sized for, where that is not the usual one of the phase.
	size int32

	// soaks is until when a share of requests, or the bake, has to last, or zero when it has.
	soaks time.Time

	// suffers is what keeps the candidate waiting that no finding is about.
	suffers xpv2.ConditionReason

	// waits is what a requested experiment waits for.
	waits Waiting
}

// timers are times at which something may change by time alone: wake is the earliest one, silentAt when the state of the
// candidate becomes unknown, unless the provider queries Prometheus before.
type timers struct{ wake, silentAt time.Time }

// with other timers.
func (t timers) with(other timers) timers {
	if t.wake.IsZero() || !other.wake.IsZero() && other.wake.Before(t.wake) {
		t.wake = other.wake
	}
	if !other.silentAt.IsZero() {
		t.silentAt = other.silentAt
	}
	return t
}

// at a time.
func at(t time.Time) timers { return timers{wake: t} }

// apply a transition to a ledger.
func apply(l Ledger, t transition, now time.Time) Ledger {
	if t.suffers != "" {
		l = l.suffering(t.suffers, now)
	}
	if t.to != "" {
		from := l.Phase
		if from == "" {
			from = v1alpha1.RolloutStable
		}
		l.Epoch++
		l.Phase, l.Held, l.Reason, l.Entered = t.to, t.held, t.reason, now
		l.Last = &v1alpha1.RolloutDecision{
			Epoch: l.Epoch, From: from, To: t.to, Reason: string(t.reason), Message: clippedAt(t.message, mostOfLast), At: metav1.NewTime(now),
		}
	}
	if t.change != nil {
		l = t.change(l)
	}
	return l
}

// stay in the phase.
func stay(message string) transition { return transition{message: message} }

// withhold requests from a candidate about which nothing is known. Nothing is known against it either.
func withhold(measurable bool, message string) transition {
	return transition{
		to: v1alpha1.RolloutHolding, held: v1alpha1.RolloutPreparing, reason: v1alpha1.ReasonEvidenceMissing, message: message,
		change: func(l Ledger) Ledger {
			l = l.left()
			l.Unmeasured = measurable
			return l
		},
	}
}

// hold a phase for a reason.
func hold(l Ledger, phase v1alpha1.RolloutPhase, reason xpv2.ConditionReason, message string) transition {
	if l.holdsFor(reason) {
		return stay(message)
	}
	return transition{to: v1alpha1.RolloutHolding, held: phase, reason: reason, message: message}
}

// resume what is held. After a time without metrics everything is counted again, but the arms of an experiment: Prometheus
// counted them all the same.
func resume(l Ledger) transition {
	t := transition{to: l.Held, reason: v1alpha1.ReasonResumed, message: "the cause of the hold is gone"}
	if l.Reason == v1alpha1.ReasonMetricsUnavailable && l.Experiment == nil {
		t.change = Ledger.counting
	}
	return t
}

// weigh the candidate at a share of requests, or promote it.
func weigh(l Ledger, weight int32, reason xpv2.ConditionReason, why string) transition {
	if weight < 100 {
		return transition{
			to: v1alpha1.RolloutStepping, reason: reason, message: fmt.Sprintf("%d %% of requests may reach revision %s: %s", weight, l.Candidate, why),
			change: func(l Ledger) Ledger { return l.weighing(weight) },
		}
	}
	return transition{
		to: v1alpha1.RolloutPromoting, reason: reason, message: fmt.Sprintf("all requests go to revision %s: %s", l.Candidate, why),
		change: Ledger.promoted,
	}
}

// pass for the next share of requests, which goes to the candidate once that is large enough.
func pass(f Facts, l Ledger, next int32, reason xpv2.ConditionReason, why string) transition {
	t := transition{
		to: v1alpha1.RolloutStepping, reason: reason,
		message: fmt.Sprintf("replicas of revision %s start for %d %% of requests: %s", l.Candidate, next, why),
		change:  func(l Ledger) Ledger { return l.growing(next, reason) },
	}
	if f.grown(l, next) {
		t = weigh(l, next, reason, why)
	}
	t.size = next
	return t
}

// leave the candidate: no request reaches it any more. An experiment ends by it.
func leave(f Facts, l Ledger, reason xpv2.ConditionReason, message string) transition {
	return conclude(f, l, v1alpha1.WinnerInconclusive, reason, message)
}

// conclude leaves the candidate, and an experiment with a winner.
func conclude(f Facts, l Ledger, winner v1alpha1.ExperimentWinner, reason xpv2.ConditionReason, message string) transition {
	t := transition{to: v1alpha1.RolloutRollingBack, reason: reason, message: message, change: Ledger.left}
	if l.Experiment != nil {
		result := compared(l, f.Evidence.Experiment)
		result.Phase, result.Winner, result.Reason, result.Message = v1alpha1.ExperimentEnded, winner, string(reason), clipped(message)
		result.EndedAt = &metav1.Time{Time: f.clock()}
		t.change = func(l Ledger) Ledger {
			l = l.left().concluded(result)
			l.Candidate = ""
			return l
		}
	}
	return t
}

// fail the candidate before all requests reach it. An arm that fails says nothing against a rollout of the same.
func fail(f Facts, l Ledger, reason xpv2.ConditionReason, message string) transition {
	if l.Experiment != nil {
		if reason == v1alpha1.ReasonMetricFailed {
			reason = v1alpha1.ReasonGuardrailViolated
		}
		return leave(f, l, reason, fmt.Sprintf("experiment %s: arm B, revision %s: %s", l.Experiment.ID, l.Candidate, message))
	}
	t := leave(f, l, reason, fmt.Sprintf("revision %s is rolled back: %s", l.Candidate, message))
	t.change = func(l Ledger) Ledger { return l.left().condemned(l.Candidate, reason, message) }
	return t
}

// goBack with all requests to the revision before the candidate. Without a reason the spec asks for that one.
func goBack(l Ledger, reason xpv2.ConditionReason, message string) transition {
	if reason == "" {
		return transition{
			to: v1alpha1.RolloutRollingBack, reason: v1alpha1.ReasonReverted, change: Ledger.returned,
			message: fmt.Sprintf("the spec asks for revision %s again", l.Previous),
		}
	}
	return transition{
		to: v1alpha1.RolloutRollingBack, reason: reason, message: fmt.Sprintf("revision %s is rolled back: %s", l.Candidate, message),
		change: func(l Ledger) Ledger { return l.returned().condemned(l.Candidate, reason, message) },
	}
}

// finish with the revision before the candidate, which is trusted from now on.
func finish(reason xpv2.ConditionReason, message string) transition {
	return transition{
		to: v1alpha1.RolloutDraining, reason: reason, message: message,
		change: func(l Ledger) Ledger { return l.trusting(l.Candidate) },
	}
}

// awaitRoute waits for a Gateway that has not taken the route.
func awaitRoute(f Facts, l Ledger, phase v1alpha1.RolloutPhase) transition {
	since := f.clock()
	if l.Trouble == v1alpha1.ReasonAwaitingRoute {
		since = l.TroubleAt
	}
	t := stay("the Gateway has not applied the latest change of the route yet")
	late, wake := f.due(since, routeTimeout)
	if late {
		t = hold(l, phase, v1alpha1.ReasonAwaitingRoute, f.routeRefused())
	}
	t.suffers, t.timers = v1alpha1.ReasonAwaitingRoute, at(wake)
	return t
}

// routeRefused says that the Gateway has not taken the route, and what to do.
func (f Facts) routeRefused() string {
	return fmt.Sprintf("Gateway %q of namespace %q has not accepted the route: see the condition RouteAccepted, or remove spec.route",
		f.Gateway.Name, f.Gateway.Namespace)
}

// noRoom holds a candidate whose replicas wait too long for room, or for what else the revision cannot give, and otherwise stays.
func noRoom(f Facts, l Ledger, phase v1alpha1.RolloutPhase, report string) transition {
	s := f.Slots[names.Other(l.Slot)]
	t := stay(report)
	reason, message := s.waitsFor(), s.TroubleMessage
	switch reason {
	case "":
		return t
	case v1alpha1.ReasonSourceUnreachable:
		message = fmt.Sprintf("replicas of revision %s cannot get what they need, and the rollout continues by itself when they can: %s: %s",
			l.Candidate, s.Trouble, s.TroubleMessage)
	case v1alpha1.ReasonNodeFault:
		message = onNode(s, l)
	default:
	}
	if reason == v1alpha1.ReasonNoCapacity {
		return withoutRoom(f, l, phase, t)
	}
	late, wake := f.due(l.TroubleAt, roomTimeout)
	if late {
		t = hold(l, phase, reason, message)
	}
	t.timers = at(wake)
	return t
}

// withoutRoom for replicas of a candidate, which otherwise stays. After the deadline it does not wait for room any more: what
// becomes free belongs to what serves.
func withoutRoom(f Facts, l Ledger, phase v1alpha1.RolloutPhase, otherwise transition) transition {
	s, mode, t := f.idle(l), f.capacity(l), otherwise
	timeout := roomTimeout
	if mode != v1alpha1.CapacitySurge {
		// The pods whose place it takes finish their requests.
		timeout += f.Drain
	}
	late, wake := f.due(l.TroubleAt, timeout)
	t.timers = at(wake)
	if !late {
		return t
	}
	if l.Stopped {
		return fail(f, l, v1alpha1.ReasonNoCapacity, fmt.Sprintf("its replicas found no room in the place of revision %s: %s", l.Revision, s.TroubleMessage))
	}
	message := s.TroubleMessage
	if mode == v1alpha1.CapacitySurge && f.promotes(l.Candidate) && l.Experiment == nil {
		message += fmt.Sprintf("; revision %s gets all requests once there is room for its replicas: make room, or set spec.lifecycle.capacity to Borrow", l.Candidate)
		t = hold(l, phase, v1alpha1.ReasonNoCapacity, message)
		return t
	}
	t = hold(l, phase, v1alpha1.ReasonNoCapacity, message)
	if l.holdsFor(v1alpha1.ReasonNoCapacity) {
		over, end := f.due(l.Entered, f.Lifecycle.Deadline.Duration)
		if over {
			return release(f, l)
		}
		t.timers = at(end)
	}
	return t
}

// release the room that replicas of a candidate wait for.
func release(f Facts, l Ledger) transition {
	return transition{
		to: v1alpha1.RolloutHolding, held: v1alpha1.RolloutPreparing, reason: v1alpha1.ReasonCandidateReleased,
		message: releasedWords(f, l, f.clock()) + ": " + f.idle(l).TroubleMessage,
		change: func(l Ledger) Ledger {
			l = l.left()
			if l.Experiment == nil {
				l.Evidence = 0
			}
			return l
		},
	}
}

func releasedWords(f Facts, l Ledger, since time.Time) string {
	remedy := "make room, set spec.lifecycle.capacity to Borrow"
	if f.Lifecycle.Capacity != v1alpha1.CapacitySurge {
		remedy = "make room"
	}
	return fmt.Sprintf("replicas of revision %s found no room for spec.lifecycle.deadline (%s) and are removed: %s, or name it in spec.rollout.promote or abort; they start again at %s",
		l.Candidate, f.Lifecycle.Deadline.Duration, remedy, since.Add(f.Lifecycle.Deadline.Duration).UTC().Format(time.RFC3339))
}
