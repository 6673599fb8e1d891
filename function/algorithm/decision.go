// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

// A run is a revision in a slot.
type run struct {
	slot     string
	revision string

	// size is the number of pods, or nil when it is the autoscaler's.
	size *int32
}

// A decision is what happens to the revisions in one pass. Each pass decides
// anew from what is observed, so that a pass that got lost is made up for by the
// next.
type decision struct {
	// live is what callers reach after this pass.
	live run

	// beside it is the revision that comes, or the one that goes. Its revision is
	// empty when there is none.
	beside run

	// ledger to write.
	ledger ledger

	// coming tells that the revision beside is on its way to become live.
	coming bool

	// waits is what the revision that the spec asks for waits for, beyond its pods.
	waits xpv2.ConditionReason

	// until is when the revision that goes has had its time, if one goes.
	until time.Time
}

// decide about the revisions.
func decide(s *state) error {
	l := s.ledger
	live := s.slots[l.Slot]

	// The first pod that serves makes its revision the one that callers reach.
	if l.Revision == "" && live.runs(live.revision) && (live.available > 0 || live.revision == s.target && s.needed() == 0) {
		l.Revision = live.revision
	}

	d := decision{
		ledger: l,
		live:   run{slot: l.Slot, revision: l.Revision, size: s.replicas(l.Slot)},
		beside: run{slot: otherSlot(l.Slot)},
	}

	if l.Revision == "" {
		d.begins(s, live)
	}

	d.accompanies(s, s.slots[d.beside.slot])
	s.decision = d

	return nil
}

// begins what the spec asks for where nothing has served yet: in the live slot.
// Another revision that is there makes room first, like any that is given up.
func (d *decision) begins(s *state, there running) {
	switch given := there.revision != "" && there.revision != s.target; {
	case s.target == "":
		d.live.revision = there.revision
	case given && there.holdsRoom():
		d.live.revision, d.live.size = there.revision, new(int32(0))
	default:
		d.live.revision = s.target
	}
}

// accompanies the live revision by what the idle slot is to run.
func (d *decision) accompanies(s *state, there running) {
	l := d.ledger
	comes := l.Revision != "" && s.target != "" && s.target != l.Revision
	another := there.exists && there.revision != s.target
	timeUp := !s.Now.Before(l.Since.Add(s.drain()))
	drained := timeUp && s.routeLeft(d.beside.slot)

	switch {
	case comes && another && !drained:
		d.goes(s, there, false)

		d.waits = v1alpha1.ReasonAwaitingDrain
		if timeUp {
			d.waits = v1alpha1.ReasonAwaitingRoute
		}
	case comes && another && there.holdsRoom():
		// Pods of it that cannot start would else stay until those of the next can, hold
		// its GPUs, and tell the wrong cause.
		d.goes(s, there, true)
		d.waits = v1alpha1.ReasonPreparing
	case comes:
		d.comes(s, there)
	case s.target == "" && there.exists && s.onItsWay(there.revision):
		// What it waits for may be known again in a moment.
		d.beside.revision, d.beside.size, d.coming = there.revision, there.sizeAsIs(), true
		d.waits = v1alpha1.ReasonPreparing
	case there.exists:
		d.goes(s, there, drained)
	}
}

// onItsWay tells whether a revision was to become live in an earlier pass: the
// status says so, or that it never served.
func (s *state) onItsWay(revision string) bool {
	return revision == compose.Text(s.Composite.Map(), "status", "revision", "candidate") ||
		s.Observed[nameRevisionPrefix+revision] == nil
}

// comes a revision, in the idle slot and as large as the one that callers reach.
// Callers go over to it once all of its pods serve, or as many as serve them now.
func (d *decision) comes(s *state, there running) {
	size := s.sizeOfNext()
	d.coming = true
	d.beside.revision, d.beside.size = s.target, &size

	enough := min(int64(size), max(1, s.running.available))

	switch serves := there.runs(s.target) && there.available >= enough; {
	case !serves || s.spec.Route != nil && s.Observed[serviceOf(d.beside.slot)] == nil:
		d.waits = v1alpha1.ReasonPreparing
	case !s.routeReaches(d.beside.slot):
		d.waits = v1alpha1.ReasonAwaitingRoute
	default:
		d.switchOver(s)
	}
}

// switchOver sends callers to the other slot.
func (d *decision) switchOver(s *state) {
	d.live, d.beside = d.beside, d.live
	d.coming = false
	d.ledger = ledger{Slot: d.live.slot, Revision: d.live.revision, Since: s.Now.UTC().Truncate(time.Second)}
	d.until = d.ledger.Since.Add(s.drain())

	d.live.size = s.replicas(d.live.slot)

	there := s.slots[d.beside.slot]
	d.beside.revision, d.beside.size = there.revision, there.sizeAsIs()
}

// goes what runs in the idle slot: after the time that requests are given, and
// once no Gateway sends any, its pods end; after its pods, the rest of it.
func (d *decision) goes(s *state, there running, drained bool) {
	d.until = s.ledger.Since.Add(s.drain())

	switch {
	case !drained:
		d.beside.revision, d.beside.size = there.revision, there.sizeAsIs()
	case there.holdsRoom() || !there.noticed:
		d.beside.revision, d.beside.size = there.revision, new(int32(0))
	}
}

// drain is how long a revision that callers have left stays.
func (s *state) drain() time.Duration {
	return time.Duration(*s.spec.Availability.DrainSeconds) * time.Second
}

// sizeOfNext is the size at which a revision takes over: that of the live one.
func (s *state) sizeOfNext() int32 {
	sc := s.spec.Scaling
	if sc == nil {
		return *s.spec.Replicas
	}

	size := int32(s.running.size) //nolint:gosec // The API server keeps it in an int32.

	return min(max(size, sc.MinReplicas), sc.MaxReplicas)
}
