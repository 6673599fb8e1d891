// SPDX-License-Identifier: Apache-2.0

package bouncer

import "time"

// Why clients wait.
const (
	// Handover: the leader said that it is about to stop.
	Handover = "Handover"
	// Loss: the leader is gone, or says nothing.
	Loss = "Loss"
)

// Bounds of a wait.
const (
	// HandoverLimit is how long clients wait for a leader to stop that said it would.
	HandoverLimit = 20 * time.Second
	// LossLimit is how long clients wait for a leader when there is none. Later they get an error at once.
	LossLimit = time.Minute
	// Rest is how long no member is believed after one said that it would stop and did not.
	Rest = time.Minute
	// Silences in a row are a loss. One alone may be a server that has much to do.
	Silences = 3
)

// An Outlook is what was seen of the leader.
type Outlook int

const (
	// Unclear says nothing, and nothing follows from it.
	Unclear Outlook = iota
	// Answers means that a server is there that does not say whether it is the leader. No client should wait for it.
	Answers
	// Serves means that a server answers, and takes writes, or of a pooler before standbys that it takes none.
	Serves
	// Gone means that no server takes the connection, or one that does not serve.
	Gone
	// Silent means that there was no answer in time.
	Silent
)

// A Sight of the leader.
type Sight struct {
	Outlook Outlook
	// Server that is the leader: what is another after each start of a server.
	Server string
}

// An Action is what to do with PgBouncer.
type Action int

const (
	// Nothing to do.
	Nothing Action = iota
	// Hold clients.
	Hold
	// Release clients.
	Release
	// Renew connections to the server: the leader changed without a wait.
	Renew
)

// A Guard decides when clients wait. Nothing can make them wait for longer than its bounds.
type Guard struct {
	cause string
	since time.Time

	// from is the server whose end is waited for, last the one that was the leader last.
	from, last string

	// silences in a row.
	silences int

	// spent reports that clients waited for as long as they may, and no leader came.
	spent bool

	// deaf is until when no member is believed.
	deaf time.Time
}

// Cause of the wait, or nothing.
func (g *Guard) Cause() string { return g.cause }

// Known reports whether a leader was ever seen.
func (g *Guard) Known() bool { return g.last != "" }

// Ask for a wait, because the leader is about to stop.
func (g *Guard) Ask(now time.Time) Action {
	if g.last == "" || g.cause != "" || now.Before(g.deaf) {
		return Nothing
	}
	g.cause, g.since, g.from = Handover, now, g.last
	return Hold
}

// See the leader, or that there is none.
func (g *Guard) See(now time.Time, s Sight) Action {
	if s.Outlook == Silent {
		g.silences++
	} else {
		g.silences = 0
	}
	before := g.last
	if s.Outlook == Serves {
		g.last, g.spent = s.Server, false
	}
	switch g.cause {
	case Handover:
		return g.inHandover(now, s)
	case Loss:
		return g.inLoss(now, s)
	}
	switch {
	case s.Outlook == Serves && before != "" && before != s.Server:
		return Renew
	case g.last == "" || g.spent:
	case s.Outlook == Gone, g.silences >= Silences:
		g.cause, g.since = Loss, now
		return Hold
	}
	return Nothing
}

// inHandover another server is waited for. When its bound is over, one that does not stop is served, and without one it is a
// loss.
func (g *Guard) inHandover(now time.Time, s Sight) Action {
	switch {
	case s.Outlook == Serves && s.Server != g.from:
		return g.release()
	case now.Sub(g.since) < HandoverLimit:
	case s.Outlook == Serves:
		g.deaf = now.Add(Rest)
		return g.release()
	default:
		g.cause = Loss
	}
	return Nothing
}

// inLoss any server is waited for.
func (g *Guard) inLoss(now time.Time, s Sight) Action {
	switch {
	case s.Outlook == Serves, s.Outlook == Answers:
		return g.release()
	case now.Sub(g.since) >= LossLimit:
		g.spent = true
		return g.release()
	}
	return Nothing
}

func (g *Guard) release() Action {
	g.cause, g.from = "", ""
	return Release
}
