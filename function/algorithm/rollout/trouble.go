// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
)

// recoveryTime passes between the loss of all replicas of a candidate and its next request. What ends with its first requests often ends
// again within seconds, and each return of the share takes a dozen changes, so that Crossplane's circuit breaker would open.
const recoveryTime = time.Minute

// Trouble with the pods of a candidate. One blip condemns no revision: what the cluster around it does holds a rollout, and a
// revision is condemned for what waiting does not change, for evidence, or when the time for it is over.

// candidateLost: requests leave a candidate without a replica that serves, until one does.
func candidateLost(f Facts, l Ledger) (transition, bool) {
	reached := l.Weight > 0 || l.Standing() == v1alpha1.RolloutMirroring
	return pause(l, l.Standing(), l.Weight), reached && !l.holdsFor(v1alpha1.ReasonNotServing) && f.lost(names.Other(l.Slot), l.Candidate)
}

// pause a candidate without a replica that serves. Its share of requests waits for it.
func pause(l Ledger, phase v1alpha1.RolloutPhase, share int32) transition {
	return transition{
		to: v1alpha1.RolloutHolding, held: phase, reason: v1alpha1.ReasonNotServing, size: share,
		message: fmt.Sprintf("no replica of revision %s serves, so that no request reaches it until one does", l.Candidate),
		change:  func(l Ledger) Ledger { return l.interrupted(share) },
	}
}

// paused candidate: it gets its share of requests again once its replicas serve.
func paused(f Facts, l Ledger) (transition, bool) {
	if !l.holdsFor(v1alpha1.ReasonNotServing) {
		return transition{}, false
	}
	share, mirrors := l.Next, l.Held == v1alpha1.RolloutMirroring
	if f.promotes(l.Candidate) && l.Experiment == nil {
		share, mirrors = 100, false
	}
	size := share
	if mirrors {
		size = f.usualSize(l)
	}
	t, waits := waiting(f, l, size)
	switch {
	case waits:
	case mirrors:
		t = resume(l)
		t.change = Ledger.uncounted
	case l.Experiment != nil:
		// Both arms are counted all the same, and what was counted stays.
		t = resume(l)
		t.change = func(l Ledger) Ledger {
			l.Weight = share
			return l.growing(0, "")
		}
	default:
		t = weigh(l, share, v1alpha1.ReasonResumed, "its replicas serve again")
	}
	t.size = size
	return t, true
}

// waiting for the replicas of a paused candidate, as long as that takes.
func waiting(f Facts, l Ledger, size int32) (transition, bool) {
	none := fmt.Sprintf("no replica of revision %s serves since %s, and no request reaches it", l.Candidate, l.Entered.UTC().Format(time.RFC3339))
	if !f.readyFor(l, size) {
		if t, blocked := replicasBlocked(f, l); blocked {
			return t, true
		}
		late, wake := f.late(l)
		if late {
			return fail(f, l, v1alpha1.ReasonNotServing, fmt.Sprintf("none of its replicas served for %s: %s", f.startTime(), f.bounds())), true
		}
		end := "; when this is over and they serve, the rollout continues by itself"
		if !l.Excused {
			end = fmt.Sprintf("; when they serve, the rollout continues by itself; if none is ready, it is rolled back at %s: %s",
				l.Started.Add(f.startTime()).UTC().Format(time.RFC3339), f.bounds())
		}
		if s := f.idle(l); s.Trouble != "" {
			none += fmt.Sprintf(": %s: %s", s.Trouble, s.TroubleMessage)
		}
		t := stay(none + end)
		t.timers = wake
		return t, true
	}
	if f.promotes(l.Candidate) && l.Experiment == nil {
		return transition{}, false
	}
	if ok, wake := f.due(l.Entered, recoveryTime); !ok {
		t := stay(fmt.Sprintf("replicas of revision %s serve again, and get their requests at %s: all of them were lost at %s",
			l.Candidate, wake.UTC().Format(time.RFC3339), l.Entered.UTC().Format(time.RFC3339)))
		t.timers = at(wake)
		return t, true
	}
	if len(l.Interrupted) >= interruptions {
		if ok, wake := f.due(l.Interrupted[interruptions-1], interruptionTime); !ok {
			t := stay(fmt.Sprintf("revision %s lost all of its replicas %d times within an hour: the rollout continues at %s, or name the revision in spec.rollout.promote or abort",
				l.Candidate, interruptions, wake.UTC().Format(time.RFC3339)))
			t.timers = at(wake)
			return t, true
		}
	}
	if b := f.mayShift(l); b.Reason != "" && l.Next > 0 {
		t := stay(fmt.Sprintf("replicas of revision %s serve again: %s", l.Candidate, b.Message))
		t.timers = b.timers
		return t, true
	}
	return transition{}, false
}

// nodeFault holds a candidate whose pods fail on one node only: the node is at fault.
func nodeFault(f Facts, l Ledger) (transition, bool) {
	s := f.idle(l)
	if s.waitsFor() != v1alpha1.ReasonNodeFault || l.Experiment != nil || f.promotes(l.Candidate) {
		return transition{}, false
	}
	late, wake := f.due(l.TroubleAt, roomTimeout)
	if !late {
		return transition{timers: at(wake)}, false
	}
	return hold(l, l.Standing(), v1alpha1.ReasonNodeFault, onNode(s, l)), true
}

// sharedFault holds a candidate that fails its checks no more than the live revision does.
func sharedFault(f Facts, l Ledger) (transition, bool) {
	c := f.Evidence.shared()
	if c == nil || l.Experiment != nil || f.promotes(l.Candidate) {
		return transition{}, false
	}
	return hold(l, l.Standing(), v1alpha1.ReasonSharedFault, fmt.Sprintf(
		"both revisions fail: %s: the rollout continues by itself, with new evidence, when they pass, or name revision %s in spec.rollout.promote or abort",
		inWords(c), l.Candidate)), true
}

// faultOver: nothing that was measured before counts.
func faultOver(_ Facts, l Ledger) (transition, bool) {
	t := resume(l)
	t.change = func(l Ledger) Ledger { return l.growing(0, "").counting() }
	return t, l.holdsFor(v1alpha1.ReasonSharedFault)
}

// liveLost: requests go back from a candidate without a replica that serves, until one does. It is not condemned.
func liveLost(f Facts, l Ledger) (transition, bool) {
	switch {
	case !f.lost(l.Slot, l.Candidate):
		return transition{}, false
	case f.idle(l).Available == 0:
		return stay(fmt.Sprintf("no replica of revision %s serves, and none of %s can take requests back yet", l.Candidate, l.Previous)), true
	default:
		return pauseLive(l), true
	}
}

// pauseLive is a pause of a candidate that all requests reach: they go back to the revision before it.
func pauseLive(l Ledger) transition {
	t := pause(l, v1alpha1.RolloutStepping, 100)
	t.change = func(l Ledger) Ledger { return l.returned().interrupted(100) }
	return t
}

// compareAgain a candidate that fails a check with all requests: beside the revision before it, which shows whether the candidate
// is the cause. That is possible once, where the spec has a share below all of them.
func compareAgain(f Facts, l Ledger, reason xpv2.ConditionReason, message string) (transition, bool) {
	first := f.nextShare(Ledger{})
	if reason != v1alpha1.ReasonMetricFailed || l.Doubted || first >= 100 || f.capacity(l) != v1alpha1.CapacitySurge {
		return transition{}, false
	}
	return transition{
		to: v1alpha1.RolloutPreparing, reason: v1alpha1.ReasonComparing, size: first,
		message: fmt.Sprintf("revision %s fails with all requests: %s: they go back, and the first step compares it with revision %s once more",
			l.Candidate, message, l.Previous),
		change: func(l Ledger) Ledger {
			l = l.returned().startingAt(l.Entered)
			l.Doubted, l.Began = true, l.Entered
			return l
		},
	}, true
}
