// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
)

// Where the cluster has no room for a candidate beside the live revision, its replicas take the place of live ones. With Borrow
// both revisions together never have more than spec.replicas. A replica goes only while the rest bears the requests that reach
// its revision, and requests follow the replicas: so neither way has a moment in which more than availability.maxUnavailable are
// missing. With Recreate the live revision stops first.

// within is how the spec gives room to a candidate. It is remembered, since sizes and weights of one rollout depend on it, and a
// change counts while no request reaches the candidate.
func (l Ledger) within(f Facts) Ledger {
	switch phase := l.Standing(); {
	case l.Stopped, phase == v1alpha1.RolloutPreparing && (f.shareBeside(l) > 0 || f.live(l).Available < f.floor()):
	case phase == v1alpha1.RolloutPreparing, phase == v1alpha1.RolloutStable, phase == v1alpha1.RolloutRolledBack:
		if l.Capacity = f.Lifecycle.Capacity; l.Capacity == v1alpha1.CapacitySurge {
			l.Capacity = ""
		}
	}
	return l
}

// capacity is how a rollout finds room. Both arms of an experiment are as large as their shares, and an autoscaler follows the
// load of one revision.
func (f Facts) capacity(l Ledger) v1alpha1.Capacity {
	c := l.Capacity
	unshared := c == v1alpha1.CapacityBorrow && f.Replicas < 2
	if c == "" || unshared || l.Experiment != nil || f.Scaling != nil || f.Lifecycle == nil || f.Lifecycle.Capacity == v1alpha1.CapacitySurge {
		return v1alpha1.CapacitySurge
	}
	return c
}

// mayMiss is how many replicas may be missing while they are exchanged: never all of them.
func (f Facts) mayMiss() int64 {
	n, err := intstr.GetScaledValueFromIntOrPercent(&f.MaxUnavailable, int(f.Replicas), true)
	if err != nil {
		n = 1
	}
	return min(max(int64(n), 1), max(int64(f.Replicas)-1, 1))
}

// floor is the number of replicas that have to serve all requests.
func (f Facts) floor() int64 { return max(int64(f.Replicas)-f.mayMiss(), 1) }

// bearing is the number of replicas that bear a share of requests. Weights are whole percents.
func (f Facts) bearing(share int32) int64 {
	if share <= 0 {
		return 0
	}
	return max((int64(share-1)*f.floor()+99)/100, 1)
}

// borrowedSize of a candidate for a share of requests below all of them: the rest has to bear its own. Where the number of
// replicas makes the share it is rounded down, but not below one pod.
func (f Facts) borrowedSize(weight int32) int32 {
	total := int64(f.Replicas)
	n := (total*int64(weight) + 99) / 100
	if f.ByReplicas {
		n = total * int64(weight) / 100
	}
	return int32(min(max(n, 1), total-f.bearing(100-weight), total-1)) //nolint:gosec // It is below the total.
}

// toBegin is the number of replicas of a candidate that its first requests need. Borrowed are as many at first as may be missing.
func (f Facts) toBegin(l Ledger, weight int32) int64 {
	n := int64(f.sizeFor(weight))
	if f.capacity(l) == v1alpha1.CapacityBorrow {
		n = min(n, f.mayMiss())
	}
	return n
}

// shareBeside is the share of requests that reaches the revision beside the live one by what is observed.
func (f Facts) shareBeside(l Ledger) int32 {
	other, live, beside := names.Other(l.Slot), f.live(l).Available, f.idle(l).Available
	switch {
	case !f.ByReplicas:
		return int32(min(f.Slots[other].Routed.Weight, 100)) //nolint:gosec // It is at most 100.
	case f.Selects == other:
		return 100
	case f.Selects == "" && live+beside > 0:
		return int32(100 * beside / (live + beside)) //nolint:gosec // The same.
	default:
		return 0
	}
}

// affordable is the share of requests nearest to another that the replicas of the revision beside and of the live one bear. Where
// replicas are missing anyway, each gets as many requests as another.
func (f Facts) affordable(l Ledger, weight int32) int32 {
	live, beside, floor := f.live(l).Available, f.idle(l).Available, f.floor()
	least, most := 100-100*min(live, floor)/floor, 100*min(beside, floor)/floor
	switch {
	case live+beside == 0:
		return weight
	case live+beside < floor:
		least = 100 * beside / (live + beside)
		most = least
	}
	return int32(max(min(int64(weight), most), least)) //nolint:gosec // It is at most 100.
}

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
		beside = int64(f.sizeFor(d.Rollout.size))
	case phase == v1alpha1.RolloutPromoting:
		beside = idle.Size
	case phase == v1alpha1.RolloutBaking && (blind || l.holdsFor(v1alpha1.ReasonStandbyStarting)):
		beside = f.mayMiss()
	case phase == v1alpha1.RolloutBaking, weight > 0:
		beside = 0
	}
	// Clients of the Service share out to both by the number of replicas, while those of one are too few for them.
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

// serving replicas that stay, when one that does not serve goes first.
func (s Slot) serving() int64 { return min(s.Available, s.Size) }

// holds is the number of replicas that a slot has room for.
func (s Slot) holds() int64 { return max(s.Size, s.Total) }

// shrunk slot on the way to a size: so many of its replicas have to stay that serve, and so many of them can be spared.
func (s Slot) shrunk(to, stay, spare int64) int64 {
	if s.Size <= to {
		return s.Size
	}
	n := s.serving()
	return max(to, n-max(min(n-stay, spare), 0))
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

// givesBack: requests go back as the live revision gets its replicas back, and nothing else begins before.
func givesBack(f Facts, l Ledger) (transition, bool) {
	if l.Standing() != v1alpha1.RolloutRollingBack || f.capacity(l) != v1alpha1.CapacityBorrow {
		return transition{}, false
	}
	weight := f.borrowedWeight(l)
	return stay(fmt.Sprintf("%d %% of requests still go to revision %s: they go back to %s as its replicas start", weight, f.idle(l).Revision, l.Revision)), weight > 0
}

// liveStops before the first replica of the candidate starts. What would keep requests from the candidate afterwards is checked
// before.
func liveStops(f Facts, l Ledger) (transition, bool) {
	if f.capacity(l) != v1alpha1.CapacityRecreate || l.Stopped {
		return transition{}, false
	}
	waits := timers{}
	for _, blocked := range []func(Facts, Ledger) (transition, bool){notMeasuredBefore, firstEvidenceMissing, firstRouteNotTaken, firstShareBlocked} {
		t, decides := blocked(f, l)
		if waits = waits.with(t.timers); decides {
			t.timers = waits
			return t, true
		}
	}
	return transition{
		to: v1alpha1.RolloutPreparing, reason: v1alpha1.ReasonRecreating,
		message: fmt.Sprintf("revision %s stops, and then replicas of %s start: until they serve, requests are refused", l.Revision, l.Candidate),
		change: func(l Ledger) Ledger {
			l.Stopped = true
			return l.startingAt(l.Entered)
		},
	}, true
}

// unlessStopped is a rule for as long as the live revision serves.
func unlessStopped(when func(Facts, Ledger) (transition, bool)) func(Facts, Ledger) (transition, bool) {
	return func(f Facts, l Ledger) (transition, bool) {
		if l.Stopped {
			return transition{}, false
		}
		return when(f, l)
	}
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
	return fmt.Sprintf("replicas of revision %s found no room for spec.lifecycle.deadline (%s) and are removed: %s, or name it in spec.lifecycle.promote or abort; they start again at %s",
		l.Candidate, f.Lifecycle.Deadline.Duration, remedy, since.Add(f.Lifecycle.Deadline.Duration).UTC().Format(time.RFC3339))
}

// released candidate: it starts again after a time, when a person promotes it, or when the spec gives it another room.
func released(f Facts, l Ledger) (transition, bool) {
	if !l.holdsFor(v1alpha1.ReasonCandidateReleased) {
		return transition{}, false
	}
	over, wake := f.due(l.Entered, f.Lifecycle.Deadline.Duration)
	if over || f.promotes(l.Candidate) || l.Last != nil && f.capacity(l) != f.capacity(f.Ledger) {
		t := resume(l)
		t.message = fmt.Sprintf("replicas of revision %s start again", l.Candidate)
		t.change = func(l Ledger) Ledger { return l.suffering("", l.Entered).startingAt(l.Entered) }
		return t, true
	}
	t := stay(releasedWords(f, l, l.Entered))
	t.timers = at(wake)
	return t, true
}
