// SPDX-License-Identifier: Apache-2.0

// Package autoload learns the load that a replica bears while its latency keeps a target.
package autoload

import (
	"math"
	"time"

	"github.com/capstan-dev/capstan/provider/internal/stats"
)

const (
	// fewest requests that a window must hold to be learned from.
	fewest = 100
	// stepEvery is the least time between two changes of the load per replica.
	stepEvery = time.Minute
	// down and up are the longest steps.
	down, up = 0.8, 1.2
	// aim is the share of the target at which the latency should settle.
	aim = 0.95
	// worthwhile is the least rise that is made: two digits show no less.
	worthwhile = 1.05
	// loaded is the share of the load per replica that replicas must have for a rise: only then the latency is caused by this
	// load.
	loaded = 0.85
	// overloaded is the share of it from which the load says nothing about it: there are not enough replicas yet, or there may
	// not be more.
	overloaded = 1.25
	// below is how far a rise stays below the load at which the latency broke.
	below = 0.9
	// flooded is how many times its target the latency is when requests have piled up. What replicas then bear is no measure:
	// they work off what came before.
	flooded = 3.0
	// steep is the power of the room that is left by which a load rises to which the latency is not proportional.
	steep = 0.4
	// rememberBreak is how long it is remembered at which load the latency broke.
	rememberBreak = 6 * time.Hour
	// littleToDo is the share of the requests in flight at which the latency held, below which replicas have little to do; alone
	// is how many requests in flight do not wait for each other in any case.
	littleToDo, alone = 0.3, 1.0
	// With so much less in flight, and without more requests being served for it, the latency should have fallen by this power of
	// it at least: it is proportional where requests wait for each other.
	relieved, served, inert = 0.65, 1.15, 0.45
	// After so many windows in a row the latency counts as independent of the load, and after so many others no longer.
	believe, disbelieve = 5, 3
	// Bounds of what is learned.
	leastLoad, mostLoad = 0.1, 10_000.0
)

// A term is what one window shows of the pods of a slot.
type term struct {
	// load of a ready replica in the unit of the signal, and inFlight of it.
	load, inFlight float64
	// latency in milliseconds at the percentile that counts, with bounds that are certain.
	latency stats.Quantile
	// requests in the window.
	requests float64
	// settled means that the replicas are the same for long enough, and warm; growing that there were fewer before, if they are
	// not.
	settled, growing bool
}

// A lesson is what has been learned about the load that a replica bears: the load at which the latency keeps its target.
//
// It works like the finger that feels for an edge. Steps are at most a fifth, and at most one a minute. Where the latency was
// seen to hold, no step down goes below; where it was seen to break, no step up goes near. So it comes to rest between the two
// instead of going to and fro over an edge that is steeper than a step: for requests per second the latency of a replica may
// double within a tenth.
type lesson struct {
	// proportional means that the latency is at most proportional to the load, as it is to the requests in flight. To requests
	// per second it is not.
	proportional bool
	// perReplica is the load that is reported. Zero as long as nothing is known.
	perReplica float64
	// held is the highest load at which the latency was seen to hold, broke the lowest at which it was seen to break. Zero when
	// not seen.
	held, broke float64
	brokeAt     time.Time
	// heldInFlight is the highest number in flight at which it held.
	heldInFlight float64
	// worst is the window with most in flight since the latency broke, and nil when it has not.
	worst *term
	// independent of the load; inFavour and against are the windows in a row that say so.
	independent       bool
	inFavour, against int
	steppedAt         time.Time
}

// learn from a window, for a target in milliseconds. A requested load per replica stays as it is.
func (l lesson) learn(w term, target float64, requested bool, now time.Time) lesson {
	if w.requests < fewest {
		return l
	}
	breaks, holds := w.latency.Lower > target, w.latency.Upper <= target
	// Most is in flight before replicas are added, and while they are.
	if w.settled || w.growing {
		l = l.compare(w, breaks, holds)
	}
	if !w.settled {
		// Requests that are alone in a replica wait for nothing that another one would give them. While replicas are added for
		// their latency none is ever settled, and all that there may be would be added.
		if breaks && w.inFlight < alone {
			l = l.conclude(true)
		}
		return l
	}
	without := breaks && l.withoutLoad(w)
	l = l.conclude(without).remember(w, breaks && !without, holds, target, now)
	if requested || without || now.Sub(l.steppedAt) < stepEvery {
		return l
	}
	next := l.perReplica
	switch {
	case breaks && w.load <= overloaded*l.perReplica:
		next = l.lower()
	case holds && w.load >= loaded*l.perReplica:
		next = l.higher(aim * target / w.latency.Upper)
	}
	if next != l.perReplica {
		l.perReplica, l.steppedAt = next, now
	}
	return l
}

// compare with the worst that was seen since the latency broke.
func (l lesson) compare(w term, breaks, holds bool) lesson {
	switch {
	case holds:
		l.worst = nil
	case breaks && (l.worst == nil || w.inFlight > l.worst.inFlight):
		l.worst = &w
	}
	return l
}

func (l lesson) lower() float64 {
	next := stats.Rounded(max(l.perReplica*down, leastLoad), 2)
	if l.held > next {
		// Rounding must not lift it over what held.
		next = floored(l.held)
	}
	return min(next, l.perReplica)
}

// higher is the next step up, when the latency leaves so much room.
func (l lesson) higher(room float64) float64 {
	if !l.proportional {
		room = math.Pow(room, steep)
	}
	if room < worthwhile {
		return l.perReplica
	}
	next := min(l.perReplica*min(up, room), mostLoad)
	if l.broke > 0 {
		next = min(next, l.broke*below)
	}
	return max(floored(next), l.perReplica)
}

// withoutLoad reports whether the latency is broken for another reason than load: replicas have little to do, or have much less
// to do than at its worst, and it has hardly fallen. More requests that are served for it show that replicas were short.
func (l lesson) withoutLoad(w term) bool {
	if w.inFlight < max(alone, littleToDo*l.heldInFlight) {
		return true
	}
	was := l.worst
	return was != nil && !was.latency.Beyond && w.inFlight < relieved*was.inFlight && w.requests < served*was.requests &&
		math.Log(was.latency.Value/w.latency.Value) < inert*math.Log(was.inFlight/w.inFlight)
}

// conclude whether the latency is independent of the load.
func (l lesson) conclude(without bool) lesson {
	if without {
		l.inFavour, l.against = l.inFavour+1, 0
	} else {
		l.inFavour, l.against = 0, l.against+1
	}
	switch {
	case l.inFavour >= believe:
		l.independent = true
	case l.against >= disbelieve:
		l.independent = false
	}
	return l
}

// remember at which load the latency held or broke. What is seen now is truer than what was seen before.
func (l lesson) remember(w term, broke, holds bool, target float64, now time.Time) lesson {
	if now.Sub(l.brokeAt) > rememberBreak {
		l.broke = 0
	}
	switch {
	case broke:
		if l.held >= w.load {
			l.held, l.heldInFlight = 0, 0
		}
		if w.latency.Beyond || w.latency.Value > flooded*target {
			return l
		}
		if l.broke == 0 || w.load < l.broke {
			l.broke = w.load
		}
		l.brokeAt = now
	case holds:
		l.held, l.heldInFlight = max(l.held, w.load), max(l.heldInFlight, w.inFlight)
		if l.broke > 0 && w.load >= l.broke {
			l.broke = 0
		}
	}
	return l
}

// floored to two significant digits.
func floored(v float64) float64 {
	r := stats.Rounded(v, 2)
	if r <= v {
		return r
	}
	return stats.Rounded(r-math.Pow(10, math.Floor(math.Log10(v))-1), 2)
}
