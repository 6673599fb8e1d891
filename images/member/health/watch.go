// SPDX-License-Identifier: Apache-2.0

package health

import "time"

// Limits of a Watch.
const (
	// Silent is how long Patroni may not answer at all. It answers within milliseconds, also when PostgreSQL or the API server
	// hang; one that is silent is frozen, while its PostgreSQL continues without it.
	Silent = 11 * time.Second
	// Stuck is how long its loop may be frozen although it answers.
	Stuck = time.Minute
	// Begin is how long it may take to answer first.
	Begin = time.Minute
	// misses is how many looks in a row have to find it so: after a freeze of the whole container the first would.
	misses = 3
)

// A Watch over one start of Patroni. It reports when Patroni has to be restarted.
type Watch struct {
	begun, answered, looped time.Time
	missed, stood           int
}

// NewWatch of a Patroni that starts now.
func NewWatch(now time.Time) *Watch { return &Watch{begun: now} }

// Look at what was observed now, and return why Patroni has to be restarted, or nothing when it has not. Patroni may be silent,
// and its loop alive.
func (w *Watch) Look(now time.Time, silent, alive bool) string {
	w.missed++
	w.stood++
	if !silent {
		w.answered, w.missed = now, 0
	}
	if alive {
		w.looped, w.stood = now, 0
	}
	switch {
	case w.answered.IsZero():
		if now.Sub(w.begun) >= Begin {
			return "it has not begun to answer"
		}
	case w.missed >= misses && now.Sub(w.answered) >= Silent:
		return "it does not answer"
	case w.stood >= misses && now.Sub(w.looped) >= Stuck && now.Sub(w.begun) >= Stuck:
		return "its loop is frozen"
	}
	return ""
}
