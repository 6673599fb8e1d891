// SPDX-License-Identifier: Apache-2.0

// Package rollout decides which revision serves, which one runs beside it, and how traffic shifts from one to the other. It is
// made of pure rules: facts and a ledger in, a decision with the next ledger out. Start reading at the table in rules.go.
package rollout

import (
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
)

// A Run is a revision in a slot.
type Run struct {
	Slot     string
	Revision string

	// Size is the number of pods, or nil when it is the autoscaler's.
	Size *int32

	// Least is the number of pods that the autoscaler keeps, or nil when there is no autoscaler.
	Least *int32
}

// A Decision is what happens to the revisions in one pass. Each pass decides by what is observed, so that the next one makes up
// for a pass that got lost.
type Decision struct {
	// Live is what requests reach after this pass.
	Live Run

	// Beside it is the candidate, or the revision that ends. Its revision is empty when there is none.
	Beside Run

	// Ledger to write.
	Ledger Ledger

	// Coming reports whether the revision beside will become live.
	Coming bool

	// Waits is what the target waits for, beyond its pods.
	Waits xpv2.ConditionReason

	// Until is when the revision that ends has had its time, if one does.
	Until time.Time

	// Weight is the share of requests in percent that may reach the revision beside, Drawn the part of it that the Gateway draws
	// at random, and Assigned are the headers and cookies whose requests reach it as well.
	Weight, Drawn int32
	Assigned      []v1alpha1.RequestMatch

	// Share of requests in percent that reach the candidate by the number of replicas, or nil.
	Share *float64

	// Pooled reports whether the Service selects the pods of both revisions.
	Pooled bool

	// Mirror reports whether the revision beside gets copies of requests.
	Mirror bool

	// Rollout is how traffic shifts, when the spec asks for a rollout.
	Rollout *Outcome
}

// Decide about the revisions.
func Decide(f Facts) Decision {
	f = f.exchanging()
	l := f.Ledger
	live := f.live(l)
	// The first pod that serves makes its revision the live one.
	if l.Revision == "" && live.Runs(live.Revision) && (live.Available > 0 || live.Revision == f.Target && f.Needed() == 0) {
		l.Revision = live.Revision
	}
	var d Decision
	switch {
	case f.Lifecycle == nil, f.Scaling == nil && f.Replicas == 0:
		// Without replicas nothing can be tried.
		d = f.around(f.aborted(l).withoutRollout())
	case l.Revision == "":
		d = f.around(l)
	default:
		o := advance(f, l)
		o.Ledger.Base = f.baseOf(o.Ledger)
		d = f.around(o.Ledger)
		d.Rollout = &o
	}
	idle := f.Slots[d.Beside.Slot]
	switch {
	case d.Rollout != nil:
		d = d.following(f, idle).within(f)
	case d.Ledger.Revision == "":
		d.Live = f.firstRun(d.Live, live)
		fallthrough
	default:
		d = d.accompanied(f, idle)
	}
	return d.weighted(f)
}

// around a ledger.
func (f Facts) around(l Ledger) Decision {
	least := f.least(l)
	return Decision{
		Ledger: l,
		Live:   Run{Slot: l.Slot, Revision: l.Revision, Size: f.replicas(l.Slot, least), Least: least},
		Beside: Run{Slot: names.Other(l.Slot)},
	}
}

// following a rollout: beside the live revision runs the candidate, or the revision that takes requests back, or one that ends.
func (d Decision) following(f Facts, idle Slot) Decision {
	l := d.Ledger
	switch phase := l.Standing(); phase {
	case v1alpha1.RolloutPreparing, v1alpha1.RolloutMirroring, v1alpha1.RolloutStepping:
		if idle.Exists && idle.Revision != l.Candidate {
			return d.ending(f, idle, f.drained(d.Beside.Slot))
		}
		d.Beside.Revision, d.Coming = l.Candidate, true
		d.Beside.Size, d.Beside.Least = f.candidateSize(idle, d.Rollout.size, phase == v1alpha1.RolloutStepping)
		if l.holdsFor(v1alpha1.ReasonCandidateReleased) {
			// It starts again here, and nothing of it is kept until then but its name.
			d.Beside.Size, d.Beside.Least = idle.sizeAsIs(), nil
			if f.drained(d.Beside.Slot) && !f.Now.Before(l.Since.Add(f.Drain)) {
				d.Beside.Size = new(int32(0))
			}
		}
		if l.holdsFor(v1alpha1.ReasonStandbyStarting) && f.ByReplicas {
			// More of them than serve now would take a greater share while the live revision grows.
			d.Beside.Size = new(max(min(*idle.sizeAsIs(), max(int32(idle.serving()), f.sizeFor(l.Weight))), 1)) //nolint:gosec // They are at most its size.
		}
		if l.holdsFor(v1alpha1.ReasonNotServing, v1alpha1.ReasonStandbyStarting) {
			d = d.takingBack(f)
		}
	case v1alpha1.RolloutPromoting, v1alpha1.RolloutBaking:
		d.Beside.Revision, d.Beside.Size = l.Previous, f.standbySize(l, idle)
	default:
		if phase == v1alpha1.RolloutRollingBack {
			d = d.takingBack(f)
		}
		if idle.Exists {
			return d.ending(f, idle, f.finished(l))
		}
	}
	return d
}

// candidateSize for a share of requests, and the least number that its autoscaler keeps, if it has one: where requests reach it
// and their share does not depend on the number. It does not shrink while it is tried.
func (f Facts) candidateSize(idle Slot, weight int32, steps bool) (size, least *int32) {
	n := f.sizeFor(weight)
	switch {
	case f.ByReplicas:
		return &n, nil
	case f.Scaling != nil && steps:
		least = new(n)
	}
	if least != nil && idle.Autoscaled && idle.Size >= int64(n) {
		return nil, least
	}
	return new(max(n, int32(idle.Size))), least //nolint:gosec // The API server keeps it in an int32.
}

// standbySize of the revision that may take requests back: as many replicas as it has, or as spec.lifecycle.standbyReplicas
// says, and as many as serve requests now once it is to have them back.
func (f Facts) standbySize(l Ledger, idle Slot) *int32 {
	all := f.fullSize()
	blind := l.holdsFor(v1alpha1.ReasonMetricsUnavailable) && f.Lifecycle.OnNoData == v1alpha1.NoDataRollback
	if blind || l.holdsFor(v1alpha1.ReasonStandbyStarting) {
		return new(max(all, int32(idle.Size))) //nolint:gosec // The API server keeps it in an int32.
	}
	// What its autoscaler wrote last may not be observed yet.
	size := new(max(int32(idle.Size), l.Base)) //nolint:gosec // The same.
	if !idle.Exists {
		size = &all
	}
	if n := f.Lifecycle.StandbyReplicas; n != nil && l.Standing() == v1alpha1.RolloutBaking {
		size = new(min(*n, *size))
	}
	return size
}

// takingBack requests takes as many replicas as served them, before its autoscaler can know.
func (d Decision) takingBack(f Facts) Decision {
	if s := f.live(d.Ledger); f.Scaling != nil && s.Exists && s.Size < int64(*d.Live.Least) {
		d.Live.Size = d.Live.Least
	}
	return d
}

// firstRun is what begins in the live slot where nothing has served yet. Another revision that is there makes room first.
func (f Facts) firstRun(r Run, live Slot) Run {
	switch replaced := live.Revision != "" && live.Revision != f.Target; {
	case f.Target == "":
		r.Revision = live.Revision
	case replaced && live.HoldsRoom():
		r.Revision, r.Size = live.Revision, new(int32(0))
	default:
		r.Revision = f.Target
	}
	return r
}

// accompanied by what the idle slot runs, without a rollout.
func (d Decision) accompanied(f Facts, idle Slot) Decision {
	l := d.Ledger
	comes := l.Revision != "" && f.Target != "" && f.Target != l.Revision && l.Failure(f.Target) == nil
	another := idle.Exists && idle.Revision != f.Target
	late := !f.Now.Before(l.Since.Add(f.Drain))
	drained := late && f.drained(d.Beside.Slot)
	switch {
	case comes && another && !drained:
		d = d.ending(f, idle, false)
		d.Waits = v1alpha1.ReasonAwaitingDrain
		if late {
			d.Waits = v1alpha1.ReasonAwaitingRoute
		}
	case comes && another && idle.HoldsRoom():
		// Pods of it that cannot start would else stay until the pods of the next can, hold its GPUs, and report the wrong cause.
		d = d.ending(f, idle, true)
		d.Waits = v1alpha1.ReasonPreparing
	case comes:
		return d.starting(f, idle)
	case f.Target == "" && f.onItsWay(l, idle):
		// What it waits for may be known again in a moment.
		d.Beside.Revision, d.Beside.Size, d.Coming = idle.Revision, idle.sizeAsIs(), true
		d.Waits = v1alpha1.ReasonPreparing
	case idle.Exists:
		d = d.ending(f, idle, drained)
	}
	return d
}

// onItsWay reports whether what runs in the idle slot was to become live in an earlier pass: the status reports it, or it never
// served.
func (f Facts) onItsWay(l Ledger, idle Slot) bool {
	return idle.Exists && (idle.Revision == f.LastCandidate || !idle.Served) && l.Failure(idle.Revision) == nil
}

// starting the target in the idle slot, as large as the live revision. Traffic shifts to it once all of its pods serve, or as
// many as serve requests now.
func (d Decision) starting(f Facts, idle Slot) Decision {
	size := f.fullSize()
	d.Coming = true
	d.Beside.Revision, d.Beside.Size = f.Target, &size
	enough := min(int64(size), max(1, f.live(f.Ledger).Available))
	switch serves := idle.Runs(f.Target) && idle.Available >= enough; {
	case !serves || f.HasRoute && !idle.HasService:
		d.Waits = v1alpha1.ReasonPreparing
	case !f.routeReaches(d.Beside.Slot):
		d.Waits = v1alpha1.ReasonAwaitingRoute
	default:
		return d.switched(f)
	}
	return d
}

// switched slots: all requests go to the other one.
func (d Decision) switched(f Facts) Decision {
	d.Live, d.Beside, d.Coming = d.Beside, d.Live, false
	// What was forgotten in this pass is part of the same transition.
	d.Ledger.Slot, d.Ledger.Revision, d.Ledger.Since, d.Ledger.Epoch = d.Live.Slot, d.Live.Revision, f.clock(), f.Ledger.Epoch+1
	d.Until = d.Ledger.Since.Add(f.Drain)
	d.Live.Least = f.least(d.Ledger)
	d.Live.Size = f.replicas(d.Live.Slot, d.Live.Least)
	before := f.Slots[d.Beside.Slot]
	d.Beside.Revision, d.Beside.Size, d.Beside.Least = before.Revision, before.sizeAsIs(), nil
	return d
}

// ending what runs in the idle slot: once it is drained its pods end; after its pods, the rest of it.
func (d Decision) ending(f Facts, idle Slot, drained bool) Decision {
	d.Until = d.Ledger.Since.Add(f.Drain)
	switch {
	case !drained:
		d.Beside.Revision, d.Beside.Size = idle.Revision, idle.sizeAsIs()
	case idle.HoldsRoom() || !idle.Noticed:
		d.Beside.Revision, d.Beside.Size = idle.Revision, new(int32(0))
	}
	return d
}

// weighted decision: with what the ledger's weight means for requests as things are.
func (d Decision) weighted(f Facts) Decision {
	l, idle := d.Ledger, f.idle(d.Ledger)
	runs := d.Rollout != nil && idle.Revision == l.Candidate
	phase := l.Standing()
	switch bears := runs && phase == v1alpha1.RolloutStepping && f.shares(l); {
	case d.Rollout != nil && f.capacity(l) == v1alpha1.CapacityBorrow:
		d.Weight = f.borrowedWeight(l)
	case bears:
		d.Weight = l.Weight
	}
	d.Pooled = d.Pooled || d.Weight > 0 && (f.ByReplicas || f.unpoolsLater(l))
	if d.Drawn = f.drawn(l, d.Weight); d.Weight > 0 && phase == v1alpha1.RolloutStepping {
		d.Assigned = f.assigned(l)
	}
	d.Mirror = runs && phase == v1alpha1.RolloutMirroring && f.Lifecycle.MirrorPercent != nil && f.MirrorRefused == ""
	if phase == v1alpha1.RolloutStepping {
		d.Share = f.shareOf(l)
	}
	return d
}

// unpoolsLater reports whether the Service still sends to both revisions, because the spec had no route before, and the live one alone does
// not bear the requests that come by it yet. It grows at once.
func (f Facts) unpoolsLater(l Ledger) bool {
	return f.Scaling != nil && f.Selects == "" && f.live(l).Available < int64(f.fullSize())
}

// shares reports whether the candidate gets its share of requests: none while there are too few live replicas beside it, unless it has
// a share already and live replicas are missing. The rest would not bear all requests.
func (f Facts) shares(l Ledger) bool {
	live := f.live(l)
	short := f.ByReplicas && f.Selects == "" && f.idle(l).Available > 0 && live.Available < max(live.Size, 1)
	return short || f.bearable(max(l.Weight, l.Next))
}

// Rescue requests from a candidate that fails while the spec cannot be carried out: what is wrong with the spec says nothing
// about them. They go back to the revision before. It reports whether there is anything to do.
func Rescue(f Facts) (Decision, bool) {
	l, idle := f.Ledger, f.idle(f.Ledger)
	slot := names.Other(l.Slot)
	if l.Previous != "" {
		slot = l.Slot
	}
	reason, message := f.fault(slot)
	if reason == "" && !f.lost(slot, l.Candidate) {
		return Decision{}, false
	}
	var t transition
	baking := l.Standing() == v1alpha1.RolloutPromoting || l.Standing() == v1alpha1.RolloutBaking
	back := baking && idle.Revision == l.Previous && idle.Available > 0 && f.bears(l)
	switch reached := l.Standing() == v1alpha1.RolloutStepping && l.Weight > 0; {
	case reached && f.stranded(l):
	case reached && reason != "":
		t = fail(f, l, reason, message)
	case reached:
		t = pause(l, v1alpha1.RolloutStepping, l.Weight)
	case back && reason != "":
		t = goBack(l, reason, message)
	case back:
		t = pauseLive(l)
	}
	if t.to == "" {
		return Decision{}, false
	}
	o := Outcome{Ledger: l}.after(f, t)
	return Decision{Ledger: o.Ledger, Rollout: &o}, true
}

// aborted candidate: nothing says that it is good enough for all requests. A person who removes its tests has not requested its
// promotion. It is not tried again by itself.
func (f Facts) aborted(l Ledger) Ledger {
	if !l.Testing() || l.Experiment != nil {
		return l
	}
	message := "spec.lifecycle was removed before it had passed"
	if f.Lifecycle != nil {
		message = "spec.replicas was set to 0 before it had passed"
	}
	l.Entered = f.clock()
	l = l.left()
	if f.Target == l.Candidate || f.Target == "" {
		l = l.condemned(l.Candidate, v1alpha1.ReasonAborted, message)
	}
	return l
}
