// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"time"
)

// A Pace says what a composite resource waits for.
type Pace int

// What a composite resource waits for, the most patient first.
const (
	// Settled: for nothing.
	Settled Pace = iota
	// Waiting: for something Crossplane watches, so that a change wakes it up.
	Waiting
	// Following: for what may have gone unheard. When many things change at once, Crossplane stops listening to the composite
	// resource for a while; so one more pass follows a change, and passes continue until it listens again.
	Following
	// Asking: for a desired object that does not exist yet. Crossplane watches it as well, but whether it was refused
	// shows nowhere else.
	Asking
	// Expecting: for something that is on its way, while changes may go unheard.
	Expecting
	// Hurrying: for something that clients wait for. It is not left to changes that may go unheard.
	Hurrying
)

// The longest time between two looks. Each look costs one write per composed object even when nothing changed; none at all would
// trust that no watch event is ever lost.
const (
	ttlSettled   = 30 * time.Minute
	ttlWaiting   = 5 * time.Minute
	ttlFollowing = 30 * time.Second
	ttlAsking    = 20 * time.Second
	ttlExpecting = 10 * time.Second
	ttlHurrying  = 3 * time.Second
)

// typeResponsive is the condition that Crossplane sets: False while it does not listen to all changes of the composite resource
// and of what it composes.
const typeResponsive = "Responsive"

// notListening is how long Crossplane does not listen once it has had too much, five minutes unless it is configured differently, and as
// long as it may overlook a change after that. It continues to say so until the next change comes, however long that takes; but
// that one it hears.
const notListening = 5*time.Minute + ttlFollowing

// Unheard reports whether a change may go unheard: Crossplane says that it does not listen, and has not said so for longer than
// this can be true; or something wrote the composite resource within the time that Following waits, going by the API server's
// account of who wrote what.
func Unheard(r Request) bool {
	if Unresponsive(r) {
		return true
	}
	for _, entry := range r.Composite.Managed() {
		if within(r.Now, entry.Field("time"), ttlFollowing-ttlFollowing/6) {
			return true
		}
	}
	return false
}

// Unresponsive reports whether Crossplane says that it does not listen, and has not said so for longer than this can be true.
func Unresponsive(r Request) bool {
	responsive := Condition(r.Composite.Map(), typeResponsive)
	return Text(responsive, "status") == "False" && within(r.Now, responsive["lastTransitionTime"], notListening)
}

// within reports whether something happened less than a while ago. A time that is a little ahead comes from another clock; one far
// ahead, and what is no time, never.
func within(now time.Time, happened any, while time.Duration) bool {
	text, _ := happened.(string)
	at, err := time.Parse(time.RFC3339, text)
	age := now.Sub(at)
	return err == nil && age > -ttlFollowing && age < while
}

// TTL is the time until the next pass: the pace, or less when a deadline is nearer. It is never less than a second.
func (p Pace) TTL(now time.Time, deadlines ...time.Time) time.Duration {
	ttl := map[Pace]time.Duration{
		Settled: ttlSettled, Following: ttlFollowing, Waiting: ttlWaiting, Asking: ttlAsking, Expecting: ttlExpecting,
		Hurrying: ttlHurrying,
	}[p]
	for _, d := range deadlines {
		ttl = min(ttl, d.Sub(now))
	}
	return max(ttl, time.Second)
}
