// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
)

// borrowedWeight is the share of requests that reaches the revision beside: what the ledger says, as far as the replicas that have
// been exchanged bear it. On the way back it falls as the live revision grows, and it never rises for want of live replicas.
func (f Facts) borrowedWeight(l Ledger) int32 {
	idle, target := f.idle(l), int32(0)
	switch phase := l.Standing(); {
	case !idle.Exists, idle.Available == 0:
		return 0
	case phase == v1alpha1.RolloutStepping && idle.Revision == l.Candidate:
		if next := max(l.Weight, l.Next); f.bearable(next) && !l.holdsFor(v1alpha1.ReasonNotServing) {
			target = next
		}
	case phase != v1alpha1.RolloutPreparing && phase != v1alpha1.RolloutStepping && phase != v1alpha1.RolloutRollingBack:
		return 0
	}
	weight := f.affordable(l, target)
	if weight > target {
		weight = min(weight, max(target, f.shareBeside(l)))
	}
	return weight
}

// within the room that there is: how many replicas each revision has in this pass.
func (d Decision) within(f Facts) Decision {
	switch f.capacity(d.Ledger) {
	case v1alpha1.CapacityBorrow:
		return d.borrowing(f)
	case v1alpha1.CapacityRecreate:
		return d.recreating(f)
	default:
		return d
	}
}

// borrowing replicas from the live revision, or giving them back.
func (d Decision) borrowing(f Facts) Decision {
	l := d.Ledger
	idle, weight, beside := f.idle(l), f.borrowedWeight(l), int64(0)
	if d.Beside.Revision != "" && d.Beside.Size != nil {
		beside = int64(*d.Beside.Size)
	}
	blind := l.holdsFor(v1alpha1.ReasonMetricsUnavailable) && f.Lifecycle.OnNoData == v1alpha1.NoDataRollback
	switch phase := l.Standing(); {
	case l.Testing() && l.holdsFor(v1alpha1.ReasonNotServing):
		// What does not serve gives its room to what does.
		beside = min(int64(f.sizeFor(d.Rollout.size)), f.mayMiss())
	case l.Testing() && d.Coming && !l.holdsFor(v1alpha1.ReasonCandidateReleased):
		// The last live replica serves until all requests go to the candidate, which a pause may keep from it.
		beside = min(int64(f.sizeFor(d.Rollout.size)), int64(f.Replicas)-1)
	case phase == v1alpha1.RolloutPromoting:
		beside = idle.Size
	case phase == v1alpha1.RolloutBaking && (blind || l.holdsFor(v1alpha1.ReasonStandbyStarting)):
		beside = f.mayMiss()
	case phase == v1alpha1.RolloutBaking, weight > 0:
		beside = 0
	}
	// Clients of the Service share out to both by the number of replicas, while the live replicas are too few for them.
	live := f.live(l)
	d.Pooled = weight > 0 && min(live.Available, int64(f.Replicas)-beside) < f.floor()
	m := f.exchanged(l, weight, beside, d.Pooled)
	d.Live.Size = &m.live
	if d.Beside.Revision != "" {
		d.Beside.Size = &m.beside
	}
	return d
}

// sizes of the two slots.
type sizes struct{ live, beside int32 }

// exchanged replicas, as far as that is possible now, on the way to a number of them beside the live revision.
func (f Facts) exchanged(l Ledger, weight int32, wanted int64, pooled bool) sizes {
	total, other := int64(f.Replicas), names.Other(l.Slot)
	a, b := f.live(l), f.idle(l)
	wanted = min(wanted, total)
	// What reaches a slot by the route is what was observed, until the Gateway has taken what is decided now.
	toLive, toBeside := f.bearing(100-weight), f.bearing(weight)
	if f.Route.Exists && !f.ByReplicas {
		toLive = max(toLive, f.bearing(int32(min(a.Routed.Weight, 100))))     //nolint:gosec // It is at most 100.
		toBeside = max(toBeside, f.bearing(int32(min(b.Routed.Weight, 100)))) //nolint:gosec // The same.
	}
	if f.HasRoute && f.Route.Exists && f.Route.Known && !f.Route.Current {
		toLive, toBeside = total, total
	}
	// The Service sends all of its requests to one slot, or to both by the number of their replicas.
	shared, spare := pooled || f.Selects == "", a.serving()+b.serving()-f.floor()
	if f.Selects == l.Slot || !pooled {
		toLive = max(toLive, f.floor())
	}
	if f.Selects == other {
		toBeside = max(toBeside, f.floor())
	}
	if f.ByReplicas && f.Selects == "" && pooled {
		toLive, toBeside = 0, 0
	}
	if !shared {
		spare = total
	}
	live := a.shrunk(total-wanted, toLive, spare)
	spare -= a.serving() - min(live, a.serving())
	beside := b.shrunk(wanted, toBeside, spare)
	// The pods that make room have to be gone.
	if a.Size < total-wanted {
		live = min(total-wanted, max(a.Size, total-b.holds()))
	}
	if b.Size < wanted {
		beside = min(wanted, max(b.Size, total-a.holds()))
	}
	return sizes{int32(live), int32(beside)} //nolint:gosec // They are at most what the API server keeps in an int32.
}

// recreating: no revision has a replica before the last one of the other is gone.
func (d Decision) recreating(f Facts) Decision {
	l := d.Ledger
	live, idle, none, all := f.live(l), f.idle(l), new(int32(0)), new(f.Replicas)
	size := none
	switch phase := l.Standing(); {
	case l.Testing() && d.Coming:
		if l.Stopped {
			d.Live.Size = none
		}
		if l.Stopped && !live.HoldsRoom() && !l.holdsFor(v1alpha1.ReasonCandidateReleased) {
			size = all
		}
	case phase == v1alpha1.RolloutRollingBack && idle.HoldsRoom():
		d.Live.Size = none
		if live.HoldsRoom() {
			d.Live.Size = live.sizeAsIs()
		}
	}
	if d.Beside.Revision != "" {
		d.Beside.Size = size
	}
	return d
}
