// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
)

// Trouble with the pods of a candidate. One blip condemns nobody: what the cluster around it does holds a rollout, and a revision
// is condemned for what waiting does not change, for evidence, or when the time for it is over.

const (
	// DownloadTime is the time for an image and a model to arrive before a replica starts.
	DownloadTime = 10 * time.Minute

	// startMoment is how much of the time of a replica is not worth a change of the ledger.
	startMoment = time.Minute

	// A third loss of all replicas within interruptionTime is one too many to go on at once.
	interruptions    = 3
	interruptionTime = time.Hour
)

// incurable reasons are those that no waiting changes, where the revision itself is their cause.
var incurable = []xpv2.ConditionReason{
	v1alpha1.ReasonImagePullFailed, v1alpha1.ReasonConfigError, v1alpha1.ReasonRunsAsRoot, v1alpha1.ReasonModelNotFound,
	v1alpha1.ReasonModelForbidden, v1alpha1.ReasonModelDigestMismatch, v1alpha1.ReasonModelSizeMismatch, v1alpha1.ReasonModelInvalid,
}

// crashes reports whether the pods of the slot crash again and again, and not only a few of them or those on one node.
func (s Slot) crashes() bool {
	return s.Trouble == v1alpha1.ReasonCrashLooping && s.TroubleExtent == ""
}

// blocked reports whether waiting does not help the pods of the slot.
func (s Slot) blocked() bool {
	ofRevision := s.TroubleCause == observev1alpha1.FindingOfRevision && s.TroubleExtent == ""
	return s.crashes() || ofRevision && slices.Contains(incurable, s.Trouble)
}

// awaits is why the pods of the slot wait for what the revision cannot give: room, a registry or bucket, another node. It is
// empty where they do not.
func (s Slot) awaits() xpv2.ConditionReason {
	switch {
	case outOfRoom(s.Trouble):
		return v1alpha1.ReasonNoCapacity
	case s.TroubleCause == observev1alpha1.FindingOutside:
		return v1alpha1.ReasonSourceUnreachable
	case s.TroubleExtent == observev1alpha1.FindingOnNode:
		return v1alpha1.ReasonNodeFault
	default:
		return ""
	}
}

// starting candidate: since when another of its replicas should become ready. Each has its own time, so that replicas that start
// one after the other, or take the place of evicted ones, do not add up. The time in which they wait for others, or download their
// model, does not count. Each change of the ledger is a write: what a moment changes is not worth one.
func (l Ledger) starting(f Facts) Ledger {
	if !l.Testing() {
		return l.startingAt(time.Time{})
	}
	if l.Standing() != v1alpha1.RolloutPreparing && l.Next == 0 && !l.holdsFor(v1alpha1.ReasonNotServing) {
		return l
	}
	s, ready := f.idle(l), int64(0)
	there := s.Exists && s.Revision == l.Candidate
	if there {
		ready = s.Available
	}
	excused := !there || s.awaits() != "" || s.Trouble == v1alpha1.ReasonModelFetching
	now := f.clock()
	switch over := now.Sub(l.Started) >= startMoment; {
	case l.Started.IsZero(), l.Excused && !excused, ready != l.Serving && over:
		l.Started, l.Serving = now, ready
	case s.TroubleSince.Sub(l.Started) >= startMoment && !s.TroubleSince.After(now):
		l.Started = s.TroubleSince
	}
	l.Excused = excused
	return l
}

// startTime is how long a replica may take until it is ready.
func (f Facts) startTime() time.Duration { return f.Startup + DownloadTime }

// bounds are what ends the wait for a replica, in words.
func (f Facts) bounds() string {
	return fmt.Sprintf("spec.probes.startupSeconds (%.0f) and %.0f minutes for image and model", f.Startup.Seconds(), DownloadTime.Minutes())
}

// late reports whether no other replica became ready in the time it has. Otherwise the timer is when it has had its time.
func (f Facts) late(l Ledger) (bool, timers) {
	if l.Excused {
		return false, timers{}
	}
	late, wake := f.due(l.Started, f.startTime())
	return late, at(wake)
}

// awaited is what replicas wait for and what ends that, in words, or empty where they simply start.
func (f Facts) awaited(l Ledger) string {
	s := f.idle(l)
	switch {
	case s.Trouble == "":
		return ""
	case l.Excused:
		return fmt.Sprintf(": %s: %s", s.Trouble, s.TroubleMessage)
	default:
		return fmt.Sprintf(": %s: %s; another replica has to be ready by %s: %s are the time that it has",
			s.Trouble, s.TroubleMessage, l.Started.Add(f.startTime()).UTC().Format(time.RFC3339), f.bounds())
	}
}

// readyFor reports whether as many replicas of the candidate serve as a share of requests needs.
func (f Facts) readyFor(l Ledger, share int32) bool {
	enough := int64(max(f.sizeFor(share), 1))
	switch {
	case f.capacity(l) != v1alpha1.CapacitySurge:
		enough = f.toBegin(l, share)
	case share == 100:
		enough = min(enough, max(1, l.scaledUp(f.live(l).Available)))
	}
	return f.idle(l).Runs(l.Candidate) && f.idle(l).Available >= enough
}

// lost reports whether no replica of a revision serves in a slot.
func (f Facts) lost(slot, revision string) bool {
	s := f.Slots[slot]
	return !s.Exists || s.Revision == revision && s.Noticed && s.Available == 0
}

// candidateLost: requests leave a candidate of which no replica serves, until one does.
func candidateLost(f Facts, l Ledger) (transition, bool) {
	reached := l.Weight > 0 || l.Standing() == v1alpha1.RolloutMirroring
	return pause(l, l.Standing(), l.Weight), reached && !l.holdsFor(v1alpha1.ReasonNotServing) && f.lost(names.Other(l.Slot), l.Candidate)
}

// pause a candidate of which no replica serves. Its share of requests waits for it.
func pause(l Ledger, phase v1alpha1.RolloutPhase, share int32) transition {
	return transition{
		to: v1alpha1.RolloutHolding, held: phase, reason: v1alpha1.ReasonNotServing, size: share,
		message: fmt.Sprintf("no replica of revision %s serves, so that no caller reaches it until one does", l.Candidate),
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
	none := fmt.Sprintf("no replica of revision %s serves since %s, and no caller reaches it", l.Candidate, l.Entered.UTC().Format(time.RFC3339))
	if !f.readyFor(l, size) {
		if t, blocked := replicasBlocked(f, l); blocked {
			return t, true
		}
		late, wake := f.late(l)
		if late {
			return fail(f, l, v1alpha1.ReasonNotServing, fmt.Sprintf("none of its replicas served for %s: %s", f.startTime(), f.bounds())), true
		}
		end := "; when this is over, and they serve, it goes on by itself"
		if !l.Excused {
			end = fmt.Sprintf("; when they serve it goes on by itself, and without one it is rolled back at %s: %s",
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
	if len(l.Interrupted) >= interruptions {
		if ok, wake := f.due(l.Interrupted[interruptions-1], interruptionTime); !ok {
			t := stay(fmt.Sprintf("revision %s lost all of its replicas %d times within an hour: it goes on at %s, or name it in spec.lifecycle.promote or abort",
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

// nodeFault holds a candidate of which the pods on one node fail, and no others: the node is at fault.
func nodeFault(f Facts, l Ledger) (transition, bool) {
	s := f.idle(l)
	if s.awaits() != v1alpha1.ReasonNodeFault || l.Experiment != nil || f.promotes(l.Candidate) {
		return transition{}, false
	}
	late, wake := f.due(l.TroubleAt, roomTimeout)
	if !late {
		return transition{timers: at(wake)}, false
	}
	return hold(l, l.Standing(), v1alpha1.ReasonNodeFault, onNode(s, l)), true
}

// onNode is what to do about pods that fail on one node only.
func onNode(s Slot, l Ledger) string {
	return fmt.Sprintf("pods of revision %s fail on one node only: repair or cordon it, and it goes on by itself, or name the revision in "+
		"spec.lifecycle.promote or abort: %s: %s", l.Candidate, s.Trouble, s.TroubleMessage)
}

// sharedFault holds a candidate that fails its checks no more than the live revision does.
func sharedFault(f Facts, l Ledger) (transition, bool) {
	c := f.Evidence.shared()
	if c == nil || l.Experiment != nil || f.promotes(l.Candidate) {
		return transition{}, false
	}
	return hold(l, l.Standing(), v1alpha1.ReasonSharedFault, fmt.Sprintf(
		"both revisions fail: %s: it goes on by itself, with new evidence, when they do not any more, or name revision %s in spec.lifecycle.promote or abort",
		inWords(c), l.Candidate)), true
}

// faultOver: nothing that was measured before counts.
func faultOver(_ Facts, l Ledger) (transition, bool) {
	t := resume(l)
	t.change = func(l Ledger) Ledger { return l.growing(0, "").counting() }
	return t, l.holdsFor(v1alpha1.ReasonSharedFault)
}

// liveLost: requests go back from a candidate of which no replica serves, until one does. It is not condemned.
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
		message: fmt.Sprintf("revision %s fails with all callers: %s: they go back, and its first share of them compares it with revision %s once more",
			l.Candidate, message, l.Previous),
		change: func(l Ledger) Ledger {
			l = l.returned().startingAt(l.Entered)
			l.Doubted, l.Began = true, l.Entered
			return l
		},
	}, true
}
