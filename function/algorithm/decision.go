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

	// rollout is how callers go over, when the spec asks about it.
	rollout *rollout
}

// decide about the revisions.
func decide(s *state) error {
	l := s.ledger
	live := s.slots[l.Slot]

	// The first pod that serves makes its revision the one that callers reach.
	if l.Revision == "" && live.runs(live.revision) && (live.available > 0 || live.revision == s.target && s.needed() == 0) {
		l.Revision = live.revision
	}

	var d decision

	switch {
	case s.spec.Lifecycle == nil, s.spec.Scaling == nil && *s.spec.Replicas == 0:
		// Where nobody is served, nobody can try anything.
		d = s.around(l.forgotten())
	case l.Revision == "":
		d = s.around(l)
	default:
		r := s.advance(l)
		d = s.around(r.ledger)
		d.rollout = r
	}

	switch {
	case d.ledger.Revision == "":
		d.begins(s, live)
		d.accompanies(s, s.slots[d.beside.slot])
	case d.rollout == nil:
		d.accompanies(s, s.slots[d.beside.slot])
	default:
		d.follows(s, s.slots[d.beside.slot])
	}

	s.decision = d

	return nil
}

// around a ledger.
func (s *state) around(l ledger) decision {
	return decision{
		ledger: l,
		live:   run{slot: l.Slot, revision: l.Revision, size: s.replicas(l.Slot)},
		beside: run{slot: otherSlot(l.Slot)},
	}
}

// follows a rollout: beside the live revision runs the one that is tried, or the one
// that takes callers back, or what is given up ends.
func (d *decision) follows(s *state, there running) {
	l, r := d.ledger, d.rollout

	switch l.standing() {
	case v1alpha1.RolloutPreparing, v1alpha1.RolloutMirroring, v1alpha1.RolloutStepping:
		if there.exists && there.revision != l.Candidate {
			d.goes(s, there, s.callersLeft(d.beside.slot))
			return
		}

		size := s.sizeFor(r.sizing)

		switch {
		case !s.byReplicas():
			// It does not shrink while it is tried.
			size = max(size, int32(there.size)) //nolint:gosec // The API server keeps it in an int32.
		case size == 0 && l.standing() == v1alpha1.RolloutStepping:
			// It waits, reached by nobody, until there are enough live ones beside it again.
			size = 1
		}

		d.beside.revision, d.beside.size, d.coming = l.Candidate, &size, true
	case v1alpha1.RolloutPromoting, v1alpha1.RolloutBaking:
		d.beside.revision, d.beside.size = l.Previous, there.sizeAsIs()
		if !there.exists {
			d.beside.size = new(s.sizeOfNext())
		}

		if n := s.spec.Lifecycle.StandbyReplicas; n != nil && l.standing() == v1alpha1.RolloutBaking {
			d.beside.size = new(min(*n, *d.beside.size))
		}
	default:
		// Who takes callers back takes as many as there were.
		if d.live.size != nil && s.spec.Scaling != nil && l.Phase == v1alpha1.RolloutRollingBack {
			d.live.size = new(min(max(*d.live.size, int32(there.size)), s.spec.Scaling.MaxReplicas)) //nolint:gosec // The same.
		}

		if there.exists {
			d.goes(s, there, !s.Now.Before(l.Since.Add(s.drain())) && s.callersLeft(d.beside.slot))
		}
	}
}

// weight of callers in percent that may reach the revision beside the live one.
func (s *state) weight() int32 {
	l, r := s.decision.ledger, s.decision.rollout

	switch there := s.slots[otherSlot(l.Slot)]; {
	case r == nil || l.standing() != v1alpha1.RolloutStepping || there.revision != l.Candidate:
		return 0
	case !s.bearable(max(l.Weight, l.Next)):
		// There are too few live replicas beside it for now.
		return 0
	default:
		return l.Weight
	}
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
	comes := l.awaits(s.target)
	another := there.exists && there.revision != s.target
	timeUp := !s.Now.Before(l.Since.Add(s.drain()))
	drained := timeUp && s.callersLeft(d.beside.slot)

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
	case s.target == "" && there.exists && s.onItsWay(there.revision) && l.failure(there.revision) == nil:
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
	// What was forgotten in this pass is part of the same transition.
	d.ledger.Slot, d.ledger.Revision, d.ledger.Since, d.ledger.Epoch = d.live.slot, d.live.revision, s.clock(), s.ledger.Epoch+1
	d.until = d.ledger.Since.Add(s.drain())

	d.live.size = s.replicas(d.live.slot)

	there := s.slots[d.beside.slot]
	d.beside.revision, d.beside.size = there.revision, there.sizeAsIs()
}

// goes what runs in the idle slot: after the time that requests are given, and
// once no Gateway sends any, its pods end; after its pods, the rest of it.
func (d *decision) goes(s *state, there running, drained bool) {
	d.until = d.ledger.Since.Add(s.drain())

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
