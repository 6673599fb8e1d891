// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"math"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
)

// tolerance of an autoscaler: by default it changes nothing for a load that is off by so much.
const tolerance = 1.1

// nextShare of requests: the least one that is greater than the present one.
func (f Facts) nextShare(l Ledger) int32 {
	if f.Experiment != nil && l.Experiment != nil {
		return f.Experiment.Assignment.Percent
	}
	if f.capacity(l) == v1alpha1.CapacityRecreate {
		return 100
	}
	shares := f.Lifecycle.Steps
	if len(shares) == 0 {
		shares = []int32{*f.Lifecycle.CanaryWeight}
	}
	for _, w := range shares {
		if w > l.Weight && !f.indivisible(w) {
			return w
		}
	}
	return 100
}

// indivisible reports whether a share cannot be given where the number of replicas makes it: one pod beside a single replica gets
// half of the requests. A greater share follows, and all requests at last.
func (f Facts) indivisible(weight int32) bool {
	rest := f.live(f.Ledger).Size
	if f.capacity(f.Ledger) == v1alpha1.CapacityBorrow {
		rest = int64(f.Replicas) - 1
	}
	return f.ByReplicas && weight < 50 && rest <= 1
}

// fullSize at which a revision serves all requests.
func (f Facts) fullSize() int32 {
	if f.Scaling == nil {
		return f.Replicas
	}
	return f.scalable(f.base())
}

// scalable is the number of replicas within the bounds of the autoscaler that is nearest to another.
func (f Facts) scalable(size int64) int32 {
	return min(max(int32(size), f.fewest()), f.Scaling.MaxReplicas) //nolint:gosec // The API server keeps it in an int32.
}

// base is the number of replicas that all requests need. While they reach one revision, its autoscaler keeps that number. Once a
// part of them reaches the candidate, the live revision has less to do: so its number of before is remembered, and what the load
// of both asks for together when that is more.
func (f Facts) base() int64 {
	l := f.Ledger
	live, idle := f.live(l), f.idle(l)
	base := max(int64(l.Base), live.Size)
	if !l.Shared() {
		return base
	}
	// An earlier version remembered nothing.
	if l.Base == 0 {
		base = l.scaledUp(live.Size)
	}
	needs := live.Needs + idle.Needs
	switch n, rest := live.serving(), 100-f.shareBeside(l); {
	case f.ByReplicas && n > 0:
		// Those that serve share the load. Those that start do not yet: they would make the share of the live ones seem larger.
		needs = live.Needs * float64(n+idle.serving()) / float64(n)
	case !f.ByReplicas && idle.Needs == 0 && rest > 0:
		// The autoscaler of a candidate whose replicas start knows nothing.
		needs = live.Needs * 100 / float64(rest)
	}
	if needs > tolerance*float64(base) {
		base = int64(math.Ceil(needs))
	}
	return base
}

// baseOf a ledger that comes of this pass: it is remembered from the first share of requests on, until they reach one revision
// for long enough that its autoscaler knows its load. An exchange of replicas remembers the number that it is of.
func (f Facts) baseOf(l Ledger) int32 {
	before := f.Ledger.Standing()
	switch phase := l.Standing(); {
	case f.capacity(l) == v1alpha1.CapacityBorrow && (l.Testing() || l.Previous != "" || phase == v1alpha1.RolloutRollingBack):
		return f.Replicas
	case f.Scaling == nil:
		return 0
	case l.Shared(), phase == v1alpha1.RolloutRollingBack, phase == v1alpha1.RolloutStepping && l.Next > 0,
		phase == v1alpha1.RolloutPreparing && l.Doubted:
		return f.fullSize()
	case phase != v1alpha1.RolloutPromoting && phase != v1alpha1.RolloutBaking && phase != v1alpha1.RolloutDraining:
		return 0
	case f.Ledger.Base == 0, before != phase && before != v1alpha1.RolloutPromoting && before != v1alpha1.RolloutBaking:
		return f.fullSize()
	default:
		return f.Ledger.Base
	}
}

// least number of replicas that the autoscaler keeps of the revision that all requests reach, or go back to.
func (f Facts) least(l Ledger) *int32 {
	if f.Scaling == nil {
		return nil
	}
	return new(f.scalable(int64(l.Base)))
}

// sizeFor a share of requests. Behind a Gateway it is as large beside the live revision as its share is beside the rest, as far
// as whole replicas allow: a replica of either has as much to do, so that their latencies can be compared. Where the number of
// replicas makes the share it is rounded down, but not below one pod.
func (f Facts) sizeFor(weight int32) int32 {
	total := f.fullSize()
	switch {
	case weight >= 100:
		return max(total, 1)
	case f.capacity(f.Ledger) == v1alpha1.CapacityBorrow:
		return f.borrowedSize(weight)
	case f.ByReplicas:
		// It grows as live replicas become ready: before, it would have a greater share. It keeps what it has while some of them are
		// missing.
		stays, serving := f.staying()
		beside := func(n int64) int64 { return int64(weight) * n / int64(100-weight) }
		n := min(beside(stays), max(beside(serving), f.idle(f.Ledger).Size))
		return int32(max(n, 1)) //nolint:gosec // It is at most what the API server keeps in an int32.
	default:
		share, rest := int64(total)*int64(weight), int64(100-weight)
		even := (2*share + rest) / (2 * rest)
		// No replica gets more than one had before, and all of them together are never needed twice.
		enough := (share + 99) / 100
		return int32(min(max(even, enough, 1), max(int64(total), 1))) //nolint:gosec // It is at most the total.
	}
}

// even is how far from each other two replicas may be loaded so that their latencies can be compared.
const even = 1.1

// Uneven is why the latencies of the candidate and the live revision cannot be compared, or empty: their replicas have different
// loads.
func (f Facts) Uneven() string {
	l := f.Ledger
	live, idle, share, rest := f.live(l).Available, f.idle(l).Available, l.Weight, 100-l.Weight
	if l.Standing() == v1alpha1.RolloutMirroring && f.Lifecycle != nil && f.Lifecycle.MirrorPercent != nil {
		share, rest = *f.Lifecycle.MirrorPercent, 100
	}
	if !l.Testing() || f.ByReplicas || live == 0 || idle == 0 || share <= 0 || rest <= 0 {
		return ""
	}
	ratio := float64(share) * float64(live) / (float64(rest) * float64(idle))
	if ratio <= even && ratio >= 1/even {
		return ""
	}
	return fmt.Sprintf("a replica of the candidate gets %.3g times the requests of a live one, so that their latencies cannot be compared", ratio)
}

// staying replicas of the live revision, and how many of them serve: a spec that asks for fewer takes the others away in this pass.
func (f Facts) staying() (size, serving int64) {
	live := f.live(f.Ledger)
	size = live.Size
	if f.Scaling == nil {
		size = min(size, int64(f.Replicas))
	}
	return size, min(size, live.Available)
}

// bearable reports whether the candidate's replicas would have no more than a share of requests, where their number makes it. One
// pod is the least share. It has twice as much while half of the live ones are missing, and nothing while more of them are.
func (f Facts) bearable(weight int32) bool {
	idle, share := f.idle(f.Ledger), int64(weight)
	size, n := f.staying()
	least := idle.Available <= 1 && share*size < 100-share && n > 0 && 2*n >= size
	return !f.ByReplicas || weight >= 100 || least || idle.Available*(100-share) <= share*n
}

// shareOf requests that reach the candidate by the number of replicas, in percent with one decimal, or nil without any.
func (f Facts) shareOf(l Ledger) *float64 {
	live, there := float64(f.live(l).Available), float64(f.idle(l).Available)
	if !f.ByReplicas || live+there == 0 {
		return nil
	}
	return new(math.Round(1000*there/(live+there)) / 10)
}

// shareInWords is a share of requests, with the true one where replicas cannot be divided so finely.
func (f Facts) shareInWords(l Ledger, weight int32) string {
	words := fmt.Sprintf("%d %% of requests", weight)
	if s := f.shareOf(l); s != nil && *s > float64(weight) {
		words += fmt.Sprintf(" (%g %%, because without spec.route one replica is the smallest share)", *s)
	}
	return words
}

// toGrow is the number of replicas of the candidate that a share of requests needs. All of them need as many replicas as the live
// revision would have for them, if as many served for each request as do now. Where the number of replicas makes the share, more of
// them are the greater share itself, and start when it is decided: before, it is none.
func (f Facts) toGrow(l Ledger, weight int32) int64 {
	enough := int64(f.sizeFor(weight))
	switch {
	case weight == 100 && f.capacity(l) == v1alpha1.CapacityBorrow:
		return f.floor()
	case weight == 100:
		return min(enough, max(1, l.scaledUp(f.live(l).Available)))
	case f.ByReplicas:
		return 0
	}
	return enough
}

// grown reports whether the candidate is large enough for a share of requests.
func (f Facts) grown(l Ledger, weight int32) bool {
	n := f.toGrow(l, weight)
	return n == 0 || f.idle(l).Runs(l.Candidate) && f.idle(l).Available >= n
}

// toBegin is the number of replicas of a candidate that its first requests need. Borrowed are as many at first as may be missing.
func (f Facts) toBegin(l Ledger, weight int32) int64 {
	n := int64(f.sizeFor(weight))
	if f.capacity(l) == v1alpha1.CapacityBorrow {
		n = min(n, f.mayMiss())
	}
	return n
}

// canBegin reports whether the candidate is large enough for its first share of requests, and could get it.
func (f Facts) canBegin(l Ledger, weight int32) bool {
	idle := f.idle(l)
	return idle.Runs(l.Candidate) && idle.Available >= f.toBegin(l, weight) && (f.ByReplicas || idle.HasService) && f.bearable(weight)
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
func (f Facts) assigned(l Ledger) []v1alpha1.RequestMatch {
	switch {
	case l.Experiment != nil && f.Experiment != nil:
		return f.Experiment.Assignment.Match
	case l.Experiment != nil:
		return nil
	default:
		return f.Lifecycle.Match
	}
}

// replicas of the live slot's Deployment, or nil when they are the autoscaler's, which keeps at least so many.
//
// To leave out a field that nothing else owns resets it, here to one replica. So the number is given until the autoscaler has
// written it once by way of the scale subresource, which it does when it first sets another number. A size of zero would switch
// the autoscaler off, so that it is never left alone.
func (f Facts) replicas(slot string, least *int32) *int32 {
	sc, s := f.Scaling, f.Slots[slot]
	switch {
	case sc == nil:
		return &f.Replicas
	case !s.Exists, s.Size == 0:
		return new(min(max(f.Replicas, *least), sc.MaxReplicas))
	case s.Autoscaled && s.Size > 0:
		return nil
	default:
		return new(max(int32(s.Size), *least)) //nolint:gosec // The API server keeps it in an int32.
	}
}

// usualSize of the candidate in a phase, as the share of requests that it is sized for.
func (f Facts) usualSize(l Ledger) int32 {
	switch l.Standing() {
	case v1alpha1.RolloutPreparing:
		return f.first(l).size
	case v1alpha1.RolloutMirroring:
		if f.Lifecycle.MirrorPercent != nil {
			return max(f.nextShare(l), *f.Lifecycle.MirrorPercent)
		}
		return f.nextShare(l)
	case v1alpha1.RolloutStepping:
		return l.Weight
	default:
		return 0
	}
}

// A beginning is the first share of requests of a candidate.
type beginning struct {
	// weight is the share, and size the one that the candidate is sized for.
	weight, size int32

	// promoted reports whether it gets all requests because the spec says so, copied whether it gets copies of requests first.
	promoted, copied bool
}

func (f Facts) first(l Ledger) beginning {
	b := beginning{weight: f.nextShare(l), promoted: l.Experiment == nil && f.promotes(l.Candidate)}
	if b.promoted {
		b.weight = 100
	}
	b.size, b.copied = b.weight, f.mirrorsFirst(l) && !b.promoted
	if b.copied {
		b.size = max(b.weight, *f.Lifecycle.MirrorPercent)
	}
	return b
}
