// SPDX-License-Identifier: Apache-2.0

package load

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// A Burst is failures of one kind, none of them more than a second after the one before.
type Burst struct {
	// Kind of the failures, as in Failed.
	Kind string `json:"kind"`
	// Count of them.
	Count int64 `json:"count"`
	// From and To are when the first and the last of them were sent, in seconds since Started.
	From float64 `json:"from"`
	To   float64 `json:"to"`
	// NearChange reports whether any of them was sent while the versions that answer were changing.
	NearChange bool `json:"nearChange"`
}

// What lies between two failures of one burst, and what a change can explain. A replica is no longer sent requests within some
// seconds of its end, during which it serves: what a change breaks is seen by then, and little earlier than the first
// new answer.
const (
	burstGap     = time.Second
	beforeChange = 5 * time.Second
	afterChange  = 10 * time.Second
)

// tolerated share of failures that no change explains. A machine that is short of CPU loses some, and an outage loses more.
const tolerated = 0.01

func (r *Report) burst(kind string, at time.Time) {
	second := at.Sub(r.Started).Seconds()
	b := r.open[kind]
	if b == nil || second > b.To+burstGap.Seconds() || second < b.From-burstGap.Seconds() {
		b = &Burst{Kind: kind, From: second, To: second}
		r.open[kind] = b
		r.Bursts = append(r.Bursts, b)
	}
	b.Count++
	b.From, b.To = min(b.From, second), max(b.To, second)
}

// A span of time in seconds since Started.
type span struct{ from, to float64 }

// relate the bursts to changes of the versions that answered.
func (r *Report) relate() {
	slices.SortFunc(r.Bursts, func(a, b *Burst) int { return cmp.Compare(a.From, b.From) })
	changes := r.changes()
	for _, b := range r.Bursts {
		b.NearChange = slices.ContainsFunc(changes, func(c span) bool { return b.From <= c.to && b.To >= c.from })
	}
}

// changes of the versions that answered: each begins before a version answers first, or another answers last, whichever comes
// first, and lasts until after the other. A version that answers all the time is no change.
func (r *Report) changes() []span {
	versions := slices.SortedFunc(maps.Values(r.Versions), func(a, b *Version) int { return a.First.Compare(b.First) })
	spans := make([]span, 0, len(versions))
	for i, later := range versions {
		for _, earlier := range versions[:i] {
			// Of two that overlap, the change ends with the one that ends first; of two that do not, it is the gap.
			from, to := later.First, earlier.Last
			if later.Last.Before(to) {
				to = later.Last
			}
			if to.Before(from) {
				from, to = to, from
			}
			spans = append(spans, span{
				from: from.Add(-beforeChange).Sub(r.Started).Seconds(),
				to:   to.Add(afterChange).Sub(r.Started).Seconds(),
			})
		}
	}
	return spans
}

// Broken says what is broken, and is empty when nothing is: no request was answered, a request failed while versions changed, or
// more than 1% failed at other times. Failures of the expected kinds do not matter.
func (r *Report) Broken(expected ...string) string {
	if r.Answered == 0 {
		return fmt.Sprintf("none of %d calls was answered", r.Sent)
	}
	var near, other int64
	for _, b := range r.Bursts {
		switch {
		case slices.Contains(expected, b.Kind):
		case b.NearChange:
			near += b.Count
		default:
			other += b.Count
		}
	}
	switch all := near + other; {
	case near > 0:
		return fmt.Sprintf("%d of %d calls failed while versions changed", near, r.Sent)
	case float64(all) > tolerated*float64(r.Sent):
		return fmt.Sprintf("%d of %d calls failed, more than 1%%", all, r.Sent)
	default:
		return ""
	}
}

// Summary on one line, for people.
func (r *Report) Summary() string {
	if r.Lost() == 0 {
		return fmt.Sprintf("no call of %d failed", r.Sent)
	}
	parts := make([]string, 0, len(r.Bursts))
	for _, b := range r.Bursts {
		when := "not near a change of versions"
		if b.NearChange {
			when = "while versions changed"
		}
		parts = append(parts, fmt.Sprintf("%d %s from %.1f s to %.1f s after the start, %s", b.Count, b.Kind, b.From, b.To, when))
	}
	return fmt.Sprintf("%d of %d calls failed: %s", r.Lost(), r.Sent, strings.Join(parts, "; "))
}
