// SPDX-License-Identifier: Apache-2.0

package tiers

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"time"
)

// overdue is how long a test may wait while others are touched again and again.
const overdue = 14 * 24 * time.Hour

// A Situation is all that the order of tests depends on.
type Situation struct {
	Now time.Time
	// Commit that is tested.
	Commit string
	// Touched are the files that the change touches, by their paths in the repository.
	Touched []string
	Ledger  Ledger
}

// A Turn of a test in the order of a day.
type Turn struct {
	Test Test
	// Reason for its place.
	Reason string
	// Takes is how long it typically takes.
	Takes time.Duration
}

// Ranks of tests, the first ones first.
const (
	rankFailed = iota
	rankOverdue
	rankTouched
	rankWaiting
)

// Order is in which order the tests in rotation come: what failed last, what is overdue, what the change touches, and the others. Each
// of these begins with the test that has not passed for longest. What the ledger does not distinguish follows the day and the commit.
func (c *Catalogue) Order(s Situation) []Turn {
	places := c.places(s)
	type ranked struct {
		Turn

		rank int
		last time.Time
	}
	tests := c.In(Rotation)
	all := make([]ranked, 0, len(tests))
	for _, t := range tests {
		r := ranked{Turn: Turn{Test: t, Takes: s.Ledger.typically(t)}, last: s.Ledger.LastPass(t.Name)}
		r.rank, r.Reason = s.rank(t, r.last)
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), a.last.Compare(b.last), cmp.Compare(places[a.Test.Name], places[b.Test.Name]))
	})
	turns := make([]Turn, 0, len(all))
	for _, r := range all {
		turns = append(turns, r.Turn)
	}
	return turns
}

// rank of a test that passed last at that time, and why.
func (s Situation) rank(t Test, last time.Time) (int, string) {
	if r, ok := s.Ledger.last(t.Name); ok && r.Result != Passed {
		return rankFailed, "it failed on " + r.Began.UTC().Format(time.DateOnly)
	}
	waits := last
	// What has never passed waits since there has been a ledger.
	if waits.IsZero() && len(s.Ledger) > 0 {
		waits = s.Ledger[0].Began
	}
	if !waits.IsZero() && s.Now.Sub(waits) > overdue {
		return rankOverdue, "it has not passed since " + waits.UTC().Format(time.DateOnly)
	}
	if file := t.touchedBy(s.Touched); file != "" {
		return rankTouched, "the change touches " + file
	}
	if last.IsZero() {
		return rankWaiting, "the ledger knows of no run"
	}
	return rankWaiting, "it passed last on " + last.UTC().Format(time.DateOnly)
}

// Groups divide the tests in rotation so that each group fits into what CI is expected to have left: the longest tests first, each into
// the first group with room. All machines agree on the groups, because they follow from the list alone.
func (c *Catalogue) Groups() [][]Test {
	var groups [][]Test
	limit := time.Duration(c.SpareMinutes * float64(time.Minute))
	tests := c.In(Rotation)
	slices.SortStableFunc(tests, func(a, b Test) int { return cmp.Compare(b.Minutes, a.Minutes) })
	for _, t := range tests {
		i := slices.IndexFunc(groups, func(g []Test) bool { return scale(c.wall(turnsOf(append(slices.Clone(g), t), nil))) <= limit })
		if i < 0 {
			groups, i = append(groups, nil), len(groups)
		}
		groups[i] = append(groups[i], t)
	}
	return groups
}

// places of tests when no ledger distinguishes them: the group of the day, the group that the commit selects, and the groups of the days to
// come. So a second run on the same day runs other tests than the first.
func (c *Catalogue) places(s Situation) map[string]int {
	groups := c.Groups()
	n := len(groups)
	if n == 0 {
		return nil
	}
	day := int(s.Now.Unix()/int64((24*time.Hour).Seconds())) % n
	h := fnv.New32a()
	_, _ = h.Write([]byte(s.Commit))
	order := []int{day, int(h.Sum32()>>1) % n}
	for i := range n {
		order = append(order, (day+i)%n)
	}
	places := map[string]int{}
	for _, i := range order {
		for _, t := range groups[i] {
			if _, ok := places[t.Name]; !ok {
				places[t.Name] = len(places)
			}
		}
	}
	return places
}

// Pick takes turns in their order as long as all that are taken end within the time that is left, also on a noisy machine. What does not
// fit is passed over for what does.
func (c *Catalogue) Pick(turns []Turn, left time.Duration) []Turn {
	var picked []Turn
	for _, t := range turns {
		if with := append(slices.Clone(picked), t); scale(c.wall(with)) <= left {
			picked = with
		}
	}
	return picked
}

// Reserve is what the clusters that follow the one of this many nodes need for what runs with every change.
func (c *Catalogue) Reserve(nodes int, l Ledger) time.Duration {
	var sum time.Duration
	after := false
	for _, k := range c.Clusters {
		if after {
			sum += time.Duration(k.SetupMinutes * float64(time.Minute))
			sum += c.wall(turnsOf(On(k.Nodes, c.In(Change)), l))
		}
		after = after || k.Nodes == nodes
	}
	return scale(sum)
}

// wall is how long tests take together. Those that run in parallel wait for the cluster most of the time; that two at a time make
// progress is what two cores can be relied on for.
func (c *Catalogue) wall(turns []Turn) time.Duration {
	var sum time.Duration
	for _, k := range c.Clusters {
		var together, longest time.Duration
		for _, t := range turns {
			switch {
			case t.Test.Nodes != k.Nodes:
			case t.Test.Parallel && k.Parallel > 1:
				together += t.Takes
				longest = max(longest, t.Takes)
			default:
				sum += t.Takes
			}
		}
		sum += max(longest, together/2)
	}
	return sum
}

// scale a typical time to one that is kept on a noisy machine.
func scale(d time.Duration) time.Duration { return time.Duration(float64(d) * noise) }

// turnsOf tests, which take as long as the ledger knows.
func turnsOf(tests []Test, l Ledger) []Turn {
	turns := make([]Turn, 0, len(tests))
	for _, t := range tests {
		turns = append(turns, Turn{Test: t, Takes: l.typically(t)})
	}
	return turns
}

// String names test and reason.
func (t Turn) String() string {
	return fmt.Sprintf("%-42s %5.1f min  %s", t.Test.Name, t.Takes.Minutes(), t.Reason)
}
