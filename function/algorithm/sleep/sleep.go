// SPDX-License-Identifier: Apache-2.0

// Package sleep decides when an idle Algorithm runs no replicas, and when it runs some again. It is a pure rule: facts and a mark
// in, the next mark out.
//
// No request may come unnoticed. So requests go through the activator before the replicas end, and until one serves again:
//
//	Awake ── idle ──▶ Drowsy ── no request ──▶ Asleep ── a request ──▶ Waking ── a replica serves ──▶ Awake
//	  ▲                 │
//	  └── a request ────┘
package sleep

import (
	"strings"
	"time"
)

// A State of an Algorithm that may sleep.
type State string

// States of an Algorithm. The zero value is one that never sleeps.
const (
	// Awake: requests reach replicas directly.
	Awake State = "awake"
	// Drowsy: requests go through the activator to replicas that still run.
	Drowsy State = "drowsy"
	// Asleep: no replica runs.
	Asleep State = "asleep"
	// Waking: replicas start, and the activator holds requests.
	Waking State = "waking"
)

// A Mark is what the Service of the Algorithm remembers of it.
type Mark struct {
	State State

	// Since when it is in this state.
	Since time.Time

	// Seen is what the activator had written last when requests began to go through it.
	Seen string
}

// Activated reports whether requests go through the activator.
func (m Mark) Activated() bool { return m.State == Drowsy || m.State == Asleep || m.State == Waking }

// Down reports whether replicas are not expected to serve.
func (m Mark) Down() bool { return m.State == Asleep || m.State == Waking }

// Text of a mark, or empty for the zero value.
func (m Mark) Text() string {
	if m.State == "" {
		return ""
	}
	return strings.TrimSpace(string(m.State) + " " + m.Since.UTC().Format(time.RFC3339) + " " + m.Seen)
}

// Parse the text of a mark. What cannot be read is the zero value, with which replicas run.
func Parse(text string) Mark {
	state, rest, _ := strings.Cut(text, " ")
	at, seen, _ := strings.Cut(rest, " ")
	since, err := time.Parse(time.RFC3339, at)
	switch m := (Mark{State: State(state), Since: since, Seen: seen}); {
	case err != nil || m.State != Awake && !m.Activated():
		return Mark{}
	default:
		return m
	}
}

// Facts are what decides about the next mark.
type Facts struct {
	Now time.Time

	// Asked reports whether the Algorithm may sleep: the spec wants it, and everything that it needs is there.
	Asked bool

	// Stopped reports whether the spec wants no replicas at all, so that no request may wait for one.
	Stopped bool

	// Ready reports whether the activator can take requests.
	Ready bool

	// Busy reports whether a revision runs beside the live one, or is about to.
	Busy bool

	// Serves reports whether a replica of the live revision serves.
	Serves bool

	// Routed reports whether the Gateway has applied the latest route, or there is none.
	Routed bool

	// IdleSince is since when no request has come, or zero.
	IdleSince time.Time

	// Requested is what the activator has written last.
	Requested string

	// After is how long no request must come, and Watch how long requests go through the activator before the replicas end.
	After, Watch time.Duration
}

// Next mark of an Algorithm.
func (m Mark) Next(f Facts) Mark {
	up := !f.Asked || !f.Ready || f.Busy
	if f.Stopped {
		return Mark{}
	}
	switch m.State {
	case Drowsy:
		switch {
		case up, m.Seen != f.Requested, f.IdleSince.IsZero():
			return m.awake(f)
		case f.Routed && !f.Now.Before(m.Since.Add(f.Watch)):
			return m.enter(Asleep, f)
		}
	case Asleep:
		if up || m.Seen != f.Requested {
			return m.enter(Waking, f)
		}
	case Waking:
		if f.Serves {
			return m.awake(f)
		}
	default:
		if m.State == "" || !f.Asked {
			return m.awake(f)
		}
		if !up && m.tired(f) {
			next := m.enter(Drowsy, f)
			next.Seen = f.Requested
			return next
		}
	}
	return m
}

// enter a state now.
func (m Mark) enter(s State, f Facts) Mark {
	return Mark{State: s, Since: f.Now.UTC().Truncate(time.Second), Seen: m.Seen}
}

// tired reports whether an Algorithm that is awake may fall asleep: no request has come for long enough.
func (m Mark) tired(f Facts) bool {
	return f.Serves && !f.IdleSince.IsZero() && !f.Now.Before(m.Since.Add(f.After))
}

// awake from now on. One that may not sleep has no mark.
func (m Mark) awake(f Facts) Mark {
	if !f.Asked {
		return Mark{}
	}
	return Mark{State: Awake, Since: f.Now.UTC().Truncate(time.Second)}
}

// Due is when the next mark may follow without anything else happening, or zero.
func (m Mark) Due(f Facts) time.Time {
	switch {
	case m.State == Awake && !f.IdleSince.IsZero():
		return m.Since.Add(f.After)
	case m.State == Drowsy:
		// Crossplane looks up to a tenth earlier or later, and a look that is too early is a pass for nothing.
		return m.Since.Add(f.Watch + f.Watch/9)
	default:
		return time.Time{}
	}
}
