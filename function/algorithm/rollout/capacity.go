// SPDX-License-Identifier: Apache-2.0

package rollout

import (
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
	case l.Experiment != nil:
		// Both arms have their own replicas, which nothing exchanges at its end either.
		l.Capacity = ""
	case f.Scaling != nil && (phase == v1alpha1.RolloutPreparing || phase == v1alpha1.RolloutRollingBack):
		// What was exchanged is back (see exchanging), and the autoscaler may give the live revision more.
		l.Capacity = ""
	case l.Stopped, phase == v1alpha1.RolloutPreparing && (f.shareBeside(l) > 0 || f.live(l).Available < f.floor()):
	case phase == v1alpha1.RolloutPreparing, phase == v1alpha1.RolloutStable, phase == v1alpha1.RolloutRolledBack:
		if l.Capacity = f.Lifecycle.Capacity; l.Capacity == v1alpha1.CapacitySurge {
			l.Capacity = ""
		}
	}
	return l
}

// capacity is how a rollout finds room. Both arms of an experiment are as large as their shares, and an autoscaler follows the
// load of one revision. With Surge in the spec, a live revision that has stopped starts again at once. But replicas that are lent
// come back one by one, since requests would otherwise return to too few.
func (f Facts) capacity(l Ledger) v1alpha1.Capacity {
	c := l.Capacity
	unshared := c == v1alpha1.CapacityBorrow && f.Replicas < 2
	restarts := c == v1alpha1.CapacityRecreate && f.Lifecycle != nil && f.Lifecycle.Capacity == v1alpha1.CapacitySurge
	if c == "" || unshared || restarts || l.Experiment != nil || f.Scaling != nil || f.Lifecycle == nil {
		return v1alpha1.CapacitySurge
	}
	return c
}

// exchanging facts: an autoscaler that the spec gets while replicas are exchanged begins when that is done. It would follow the load
// of a part of the requests, and the replicas of the other revision would be missing for the rest. The exchange continues with the
// number of replicas that it began with.
func (f Facts) exchanging() Facts {
	l := f.Ledger
	if f.Scaling == nil || f.Lifecycle == nil || l.Capacity != v1alpha1.CapacityBorrow || l.Base < 2 || l.Experiment != nil {
		return f
	}
	fixed := f
	fixed.Scaling, fixed.Replicas = nil, l.Base
	switch l.Standing() {
	case v1alpha1.RolloutStepping, v1alpha1.RolloutPromoting:
		return fixed
	case v1alpha1.RolloutPreparing, v1alpha1.RolloutRollingBack:
		if f.shareBeside(l) > 0 || f.live(l).Available < fixed.floor() {
			return fixed
		}
	default:
	}
	return f
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

// shareBeside is the share of requests that reaches the revision beside the live one by what is observed.
func (f Facts) shareBeside(l Ledger) int32 {
	other, live, beside := names.Other(l.Slot), f.live(l).Available, f.idle(l).Available
	switch {
	case !f.ByReplicas && (f.Route.Exists || f.Selects != ""):
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
