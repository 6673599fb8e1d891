// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"math"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
)

// headroom that a candidate has beyond its share of requests, which do not come evenly.
const headroom = 1.1

// nextShare of requests: the least one that is greater than the present one.
func (f Facts) nextShare(l Ledger) int32 {
	if f.Experiment != nil && l.Experiment != nil {
		return f.Experiment.Assignment.Percent
	}
	shares := f.Lifecycle.Steps
	if len(shares) == 0 {
		shares = []int32{*f.Lifecycle.CanaryWeight}
	}
	for _, w := range shares {
		if w > l.Weight {
			return w
		}
	}
	return 100
}

// fullSize at which a revision takes over: the size of the live one.
func (f Facts) fullSize() int32 {
	if f.Scaling == nil {
		return f.Replicas
	}
	size := int32(f.live(f.Ledger).Size) //nolint:gosec // The API server keeps it in an int32.
	return min(max(size, f.Scaling.MinReplicas), f.Scaling.MaxReplicas)
}

// sizeFor a share of requests. Where the number of replicas makes the share it is rounded down, and zero when a single replica
// would have more; all requests need as many replicas as the live revision has.
func (f Facts) sizeFor(weight int32) int32 {
	total := f.fullSize()
	switch {
	case weight >= 100:
		return max(total, 1)
	case f.ByReplicas:
		return weight * int32(f.live(f.Ledger).Size) / (100 - weight) //nolint:gosec // The API server keeps it in an int32.
	default:
		return min(max(int32(math.Ceil(float64(total)*float64(weight)/100*headroom)), 1), max(total, 1))
	}
}

// tooFine is what to do about a share that is less than one replica's.
func (f Facts) tooFine(weight int32) string {
	size := f.live(f.Ledger).Size
	return fmt.Sprintf("one replica beside %d would have more than %d %% of requests: run at least %d replicas, begin with at least %d %%, or add spec.route",
		size, weight, (100-weight+weight-1)/weight, (100+size)/(size+1))
}

// bearable reports whether the candidate's replicas would have no more than a share of requests, where their number makes it.
func (f Facts) bearable(weight int32) bool {
	live, idle := f.live(f.Ledger), f.idle(f.Ledger)
	n := min(live.Size, live.Available)
	return !f.ByReplicas || weight >= 100 || idle.Available*int64(100-weight) <= int64(weight)*n
}

// grown reports whether the candidate is large enough for a share of requests. All of them need as many replicas as serve them
// now.
func (f Facts) grown(l Ledger, weight int32) bool {
	enough := int64(f.sizeFor(weight))
	switch {
	case weight == 100:
		enough = min(enough, max(1, f.live(l).Available))
	case f.ByReplicas:
		// More of them are the greater share itself: they start when it is decided.
		return enough > 0
	}
	return f.idle(l).Runs(l.Candidate) && f.idle(l).Available >= enough
}

// canBegin reports whether the candidate is large enough for its first share of requests, and could get it.
func (f Facts) canBegin(l Ledger, weight int32) bool {
	idle := f.idle(l)
	return idle.Runs(l.Candidate) && idle.Available >= int64(f.sizeFor(weight)) && (f.ByReplicas || idle.HasService) && f.bearable(weight)
}

// inForce reports whether the ledger's weight is in force.
func (f Facts) inForce(l Ledger) bool {
	candidate, promoted := names.Other(l.Slot), l.Weight == 100
	if promoted {
		candidate = l.Slot
	}
	switch {
	case promoted && f.Selects != l.Slot:
		return false
	case f.ByReplicas && promoted:
		return true
	case f.ByReplicas:
		idle := f.idle(l)
		return f.Selects == "" && idle.Runs(l.Candidate) && idle.Available >= int64(f.sizeFor(l.Weight)) && f.bearable(l.Weight)
	}
	drawn := f.drawn(l, l.Weight)
	to, rest := f.Slots[candidate].Routed, f.Slots[names.Other(candidate)].Routed
	return f.routeTaken() && (drawn == l.Weight || to.Chosen) && to.Weight == int64(drawn) && rest.Weight == int64(100-drawn)
}

// drawn is what the Gateway sends to a candidate at random, of a share of requests: none where headers and cookies assign them.
func (f Facts) drawn(l Ledger, weight int32) int32 {
	if f.Experiment != nil && l.Experiment != nil && len(f.Experiment.Assignment.Match) > 0 {
		return 0
	}
	return weight
}

// assigned are headers and cookies whose requests reach the candidate.
func (f Facts) assigned(l Ledger) []v1alpha1.CallerMatch {
	switch {
	case l.Experiment != nil && f.Experiment != nil:
		return f.Experiment.Assignment.Match
	case l.Experiment != nil:
		return nil
	default:
		return f.Lifecycle.Match
	}
}

// replicas of the live slot's Deployment, or nil when they are the autoscaler's.
//
// To leave out a field that nothing else owns resets it, here to one replica. So the number is given until the autoscaler has
// written it once by way of the scale subresource, which it does when it first sets another number. A size of zero would switch
// the autoscaler off, so that it is never left alone.
func (f Facts) replicas(slot string) *int32 {
	sc, s := f.Scaling, f.Slots[slot]
	switch {
	case sc == nil:
		return &f.Replicas
	case !s.Exists, f.Ledger.Revision == "" && s.Size == 0:
		return new(min(max(f.Replicas, sc.MinReplicas), sc.MaxReplicas))
	case s.Autoscaled && s.Size > 0:
		return nil
	default:
		return new(max(int32(s.Size), sc.MinReplicas)) //nolint:gosec // The API server keeps it in an int32.
	}
}
