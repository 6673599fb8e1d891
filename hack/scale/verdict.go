// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
)

// Goals of a run.
const (
	// goalPerHour is how many requests a composite resource may cost in an hour in which no tenant does anything.
	goalPerHour = 42
	// goalSlower is how many times as long an edit may take beside one tenant who edits all the time.
	goalSlower = 1.1
)

// limits of memory in MiB: core's is the run's, the others are the packages'.
func (r Report) limits() map[string]float64 {
	return map[string]float64{core: float64(r.CoreMemory), function: 256, provider: 256}
}

// verdicts compare what was measured with the goals, one a line. What was not measured has none.
func (r Report) verdicts() []string {
	all := make([]string, 0, 6)
	if p := r.named(idle); p != nil {
		all = append(all, fmt.Sprintf("Requests for each composite resource in an idle hour: %.1f; goal: at most %d. %s", p.PerHour, goalPerHour, met(p.PerHour <= goalPerHour)))
	}
	if alone, busy := r.named(calm), r.named(beside); alone != nil && busy != nil && alone.P50 > 0 && alone.P99 > 0 {
		p50, p99 := busy.P50/alone.P50, busy.P99/alone.P99
		all = append(all, fmt.Sprintf("Edits beside the noisy tenant take %.2f times as long at p50, and %.2f at p99; goal: at most %.1f. %s",
			p50, p99, goalSlower, met(max(p50, p99) <= goalSlower)))
	}
	for _, name := range []string{core, function, provider} {
		peak, starts := 0.0, 0
		for _, p := range r.Phases {
			peak = max(peak, p.Use[name].Peak)
			if !slices.Contains(p.Ended, name) {
				starts += p.Use[name].Starts
			}
		}
		all = append(all, fmt.Sprintf("Most memory of %s: %.0f MiB of a limit of %.0f; started again by itself: %d times. %s",
			name, peak, r.limits()[name], starts, met(peak < r.limits()[name] && starts == 0)))
	}
	return append(all, r.backlog())
}

// backlog is which phases ended with objects in a queue. A phase until quiet has none left, unless more came than was done.
func (r Report) backlog() string {
	var left []string
	for _, p := range r.Phases {
		for _, name := range []string{core, provider} {
			if n := p.Use[name].Left; n > 0 && strings.Contains(p.Name, "quiet") {
				left = append(left, fmt.Sprintf("%d of %s after %q", n, name, p.Name))
			}
		}
	}
	if len(left) == 0 {
		return "Left in queues after phases that end quiet: nothing. " + met(true)
	}
	return "Left in queues after phases that end quiet: " + strings.Join(left, ", ") + ". " + met(false)
}

// named phase, or nil.
func (r Report) named(name string) *Phase {
	for i := range r.Phases {
		if r.Phases[i].Name == name {
			return &r.Phases[i]
		}
	}
	return nil
}

func met(is bool) string {
	if is {
		return "Met."
	}
	return "Not met."
}
