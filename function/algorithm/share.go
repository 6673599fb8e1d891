// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"fmt"
	"math"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

// headroom that a candidate has beyond its share of callers, who do not come evenly.
const headroom = 1.1

// shares of callers that try a revision one after the other.
func (r *rollout) shares() []int32 {
	switch {
	case len(r.lc.Steps) > 0:
		return r.lc.Steps
	default:
		return []int32{*r.lc.CanaryWeight}
	}
}

// next share of callers: the least one that is greater than the present one.
func (r *rollout) next() int32 {
	if e := r.spec.Experiment; e != nil && r.ledger.Experiment != nil {
		return e.Assignment.Percent
	}

	for _, w := range r.shares() {
		if w > r.ledger.Weight {
			return w
		}
	}

	return 100
}

// sizeFor a share of callers. Where the number of replicas makes the share it is
// rounded down, and zero when a single replica would have more; all callers need as
// many replicas as the live revision has.
func (s *state) sizeFor(weight int32) int32 {
	total := s.sizeOfNext()

	switch {
	case weight >= 100:
		return max(total, 1)
	case s.byReplicas():
		return weight * int32(s.running.size) / (100 - weight) //nolint:gosec // The API server keeps it in an int32.
	default:
		return min(max(int32(math.Ceil(float64(total)*float64(weight)/100*headroom)), 1), max(total, 1))
	}
}

// tooFine tells what to do about a share that is less than that of one replica.
func (r *rollout) tooFine(weight int32) string {
	return fmt.Sprintf("one replica beside %d would have more than %d %% of callers: run at least %d replicas, begin with at least %d %%, or add spec.route",
		r.running.size, weight, (100-weight+weight-1)/weight, (100+r.running.size)/(r.running.size+1))
}

// bearable tells whether the candidate's replicas would have no more than a share of
// callers, where their number makes it.
func (s *state) bearable(weight int32) bool {
	live, there := s.slots[s.ledger.Slot], s.slots[otherSlot(s.ledger.Slot)]
	n := min(live.size, live.available)

	return !s.byReplicas() || weight >= 100 || there.available*int64(100-weight) <= int64(weight)*n
}

// sized tells whether the candidate is large enough for a share of callers. All of
// them need as many replicas as serve them now.
func (r *rollout) sized(weight int32) bool {
	enough := int64(r.sizeFor(weight))

	switch {
	case weight == 100:
		enough = min(enough, max(1, r.running.available))
	case r.byReplicas():
		// More of them are the greater share itself: they start when it is decided.
		return enough > 0
	}

	return r.there.runs(r.ledger.Candidate) && r.there.available >= enough
}

// slotServed tells whether a Gateway could send callers to the candidate.
func (r *rollout) slotServed() bool {
	return r.byReplicas() || r.Observed[serviceOf(otherSlot(r.ledger.Slot))] != nil
}

// routeTaken tells whether the Gateway serves the route as it is now.
func (r *rollout) routeTaken() bool {
	if r.byReplicas() {
		return true
	}

	o := r.observedRoute()

	return o.exists && o.known && o.current && o.served && o.reason == ""
}

// weighted tells whether the ledger's weight is in force.
func (r *rollout) weighted() bool {
	l := r.ledger
	promoted := l.Weight == 100

	switch {
	case promoted && r.serviceSelects() != l.Slot:
		return false
	case r.byReplicas() && promoted:
		return true
	case r.byReplicas():
		return r.serviceSelects() == "" && r.there.runs(l.Candidate) && r.there.available >= int64(r.sizeFor(l.Weight)) && r.bearable(l.Weight)
	}

	o := r.observedRoute()

	candidate := otherSlot(l.Slot)
	if promoted {
		candidate = l.Slot
	}

	drawn := r.drawn(l, l.Weight)

	return r.routeTaken() && (drawn == l.Weight || o.chosen[r.slotServiceName(candidate)]) &&
		o.weights[r.slotServiceName(candidate)] == int64(drawn) &&
		o.weights[r.slotServiceName(otherSlot(candidate))] == int64(100-drawn)
}

// serviceSelects is the slot whose pods the observed Service selects, or empty when
// it does both.
func (s *state) serviceSelects() string {
	o := s.Observed[nameService]
	if o == nil {
		return "none"
	}

	return compose.Text(o.Map(), "spec", "selector", labelSlot)
}

// callersLeft tells whether nothing sends callers to a slot any more.
func (s *state) callersLeft(slot string) bool {
	selected := s.serviceSelects()
	return selected != slot && selected != "" && s.routeLeft(slot)
}

// share of callers in percent that reach the candidate by the number of replicas.
func (s *state) share() *float64 {
	l := s.decision.ledger
	if !s.byReplicas() || l.standing() != v1alpha1.RolloutStepping {
		return nil
	}

	live, there := float64(s.slots[l.Slot].available), float64(s.slots[otherSlot(l.Slot)].available)
	if live+there == 0 {
		return nil
	}

	return new(math.Round(1000*there/(live+there)) / 10)
}
