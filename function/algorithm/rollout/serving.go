// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"time"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

const (
	// DownloadTime is the time for an image and a model to arrive before a replica starts.
	DownloadTime = 10 * time.Minute

	// startMoment is how much of the time of a replica is not worth a change of the ledger.
	startMoment = time.Minute
)

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
	excused := !there || s.waitsFor() != "" || s.Trouble == v1alpha1.ReasonModelFetching || f.unasked(l)
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

// unasked reports whether replicas that the candidate needs were not asked for yet, although nothing has to make room for them: for
// instance, nothing reconciled the Algorithm for a while.
func (f Facts) unasked(l Ledger) bool {
	share := l.Next
	if l.Standing() == v1alpha1.RolloutPreparing {
		share = f.first(l).size
	}
	return share > 0 && f.capacity(l) == v1alpha1.CapacitySurge && f.idle(l).Size < int64(f.sizeFor(share))
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
		return fmt.Sprintf(": %s: %s; another replica has to be ready by %s: it has %s",
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

// bears reports whether the revision before the candidate can take requests back.
func (f Facts) bears(l Ledger) bool {
	return f.capacity(l) == v1alpha1.CapacityRecreate || f.idle(l).Available >= f.enough(l)
}

// enough replicas of the revision before the candidate to take requests back: as many as serve of the candidate, which may be none, or
// all replicas with which it has just served all requests.
func (f Facts) enough(l Ledger) int64 {
	idle, n := f.idle(l), f.live(l).Available
	switch promoting := l.Standing() == v1alpha1.RolloutPromoting; {
	case f.capacity(l) == v1alpha1.CapacityBorrow && promoting:
		// The others follow, as its replicas and requests came.
		n = 1
	case f.capacity(l) == v1alpha1.CapacityBorrow:
		n = min(f.mayMiss(), n)
	case promoting:
		n = min(idle.Size, n)
	}
	return max(n, 1)
}

// lost reports whether no replica of a revision serves in a slot.
func (f Facts) lost(slot, revision string) bool {
	s := f.Slots[slot]
	return !s.Exists || s.Revision == revision && s.Noticed && s.Available == 0
}
