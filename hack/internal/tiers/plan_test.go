// SPDX-License-Identifier: Apache-2.0

package tiers

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var day = time.Date(2026, 11, 24, 9, 0, 0, 0, time.UTC)

// small has four tests in rotation: two groups, {TestC, TestA} and {TestB, TestD}.
func small() *Catalogue {
	return &Catalogue{
		SpareMinutes: 20,
		Clusters:     []Cluster{{Nodes: 1, SetupMinutes: 2, Parallel: 4}, {Nodes: 3, SetupMinutes: 4, Parallel: 1}},
		Tests: []Test{
			{Name: "TestA", Nodes: 1, Tier: Rotation, Minutes: 6, Parallel: true, Protects: []string{"a/"}},
			{Name: "TestB", Nodes: 1, Tier: Rotation, Minutes: 8, Protects: []string{"b/"}},
			{Name: "TestC", Nodes: 3, Tier: Rotation, Minutes: 10, Protects: []string{"c/"}},
			{Name: "TestD", Nodes: 3, Tier: Rotation, Minutes: 4, Protects: []string{"d/"}},
			{Name: "TestE", Nodes: 3, Tier: Change, Minutes: 12, Protects: []string{"e/"}},
		},
	}
}

func passed(test string, daysAgo int) Run {
	return Run{Began: day.AddDate(0, 0, -daysAgo), Test: test, Commit: "c", Occasion: string(Rotation), Result: Passed, Took: time.Minute}
}

func TestOrder(t *testing.T) {
	failed := func(test string, daysAgo int) Run { r := passed(test, daysAgo); r.Result = Failed; return r }
	skipped := func(test string, daysAgo int) Run { r := passed(test, daysAgo); r.Result = Skipped; return r }
	all := Ledger{passed("TestA", 4), passed("TestB", 3), passed("TestC", 2), passed("TestD", 1)}
	cases := map[string]struct {
		reason string
		s      Situation
		want   []string
	}{
		"NothingKnown": {
			reason: "the day and the commit decide, and a group stays together",
			s:      Situation{Now: day, Commit: "1"}, want: []string{"TestB", "TestD", "TestC", "TestA"},
		},
		"NextDay": {
			reason: "the next day begins with the next group",
			s:      Situation{Now: day.AddDate(0, 0, 1), Commit: "1"}, want: []string{"TestC", "TestA", "TestB", "TestD"},
		},
		"OldestFirst": {
			reason: "what has not run for longest comes first",
			s:      Situation{Now: day, Ledger: all}, want: []string{"TestA", "TestB", "TestC", "TestD"},
		},
		"NeverFirst": {
			reason: "what has never run comes before what has",
			s:      Situation{Now: day, Ledger: all[:3]}, want: []string{"TestD", "TestA", "TestB", "TestC"},
		},
		"TouchedFirst": {
			reason: "what the change touches comes first, the oldest of it before the others",
			s:      Situation{Now: day, Ledger: all, Touched: []string{"d/x.go", "c/x.go"}}, want: []string{"TestC", "TestD", "TestA", "TestB"},
		},
		"FailedFirst": {
			reason: "what failed last must be seen to pass, whatever is touched",
			s:      Situation{Now: day, Ledger: append(slices.Clone(all), failed("TestB", 0)), Touched: []string{"d/x.go"}},
			want:   []string{"TestB", "TestD", "TestA", "TestC"},
		},
		"FailedAndPassed": {
			reason: "a failure that was followed by a pass is over",
			s:      Situation{Now: day, Ledger: append(Ledger{failed("TestD", 5)}, all...)}, want: []string{"TestA", "TestB", "TestC", "TestD"},
		},
		"Skipped": {
			reason: "a test that was skipped has not run",
			s:      Situation{Now: day, Ledger: append(slices.Clone(all), skipped("TestA", 0))}, want: []string{"TestA", "TestB", "TestC", "TestD"},
		},
		"Overdue": {
			reason: "what waits for more than two weeks comes before what is touched",
			s:      Situation{Now: day, Ledger: append(Ledger{passed("TestA", 15)}, all[1:]...), Touched: []string{"d/x.go"}},
			want:   []string{"TestA", "TestD", "TestB", "TestC"},
		},
		"OverdueAndNeverRun": {
			reason: "what has never run waits for as long as there is a ledger",
			s:      Situation{Now: day, Ledger: append(Ledger{passed("TestE", 15)}, all[1:]...), Touched: []string{"d/x.go"}},
			want:   []string{"TestA", "TestD", "TestB", "TestC"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for range 3 {
				var got []string
				for _, turn := range small().Order(tc.s) {
					got = append(got, turn.Test.Name)
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
				}
			}
		})
	}
}

func TestPick(t *testing.T) {
	cases := map[string]struct {
		reason string
		left   time.Duration
		want   []string
	}{
		"Nothing":  {reason: "without time nothing starts", left: 0},
		"Overrun":  {reason: "nor when the budget is overrun", left: -30 * time.Minute},
		"TooShort": {reason: "four minutes and a quarter more do not fit into less than five", left: 5*time.Minute - time.Second},
		"Smallest": {reason: "what does not fit is passed over for what does", left: 5 * time.Minute, want: []string{"TestD"}},
		"InOrder":  {reason: "the first ones are taken first", left: 13 * time.Minute, want: []string{"TestA", "TestD"}},
		"All":      {reason: "all fit into their sum and a quarter more", left: 35 * time.Minute, want: []string{"TestA", "TestB", "TestC", "TestD"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, turn := range small().Pick(turnsOf(small().In(Rotation), nil), tc.left) {
				got = append(got, turn.Test.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestWall(t *testing.T) {
	c := small()
	c.Tests = append(c.Tests, Test{Name: "TestF", Nodes: 1, Minutes: 2, Parallel: true}, Test{Name: "TestG", Nodes: 1, Minutes: 8, Parallel: true})
	// Alone: 8, 10, 4 and 12. Together: 6, 2 and 8, two at a time.
	if got, want := c.wall(turnsOf(c.Tests, nil)), 42*time.Minute; got != want {
		t.Errorf("tests in parallel should share their time: want %s, got %s", want, got)
	}
}

func TestReserve(t *testing.T) {
	// Four minutes for the cluster and twelve for TestE, and a quarter more.
	if got, want := small().Reserve(1, nil), 20*time.Minute; got != want {
		t.Errorf("the next cluster should keep its time: want %s, got %s", want, got)
	}
	if got := small().Reserve(3, nil); got != 0 {
		t.Errorf("nothing follows the last cluster, got %s", got)
	}
	slow := passed("TestE", 1)
	slow.Took = 16 * time.Minute
	if got, want := small().Reserve(1, Ledger{slow}), 25*time.Minute; got != want {
		t.Errorf("what was measured counts when it is longer: want %s, got %s", want, got)
	}
}

// TestEveryTestGetsItsTurn holds the real list to what the page of tests guarantees.
func TestEveryTestGetsItsTurn(t *testing.T) {
	c, err := Load(repository)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	left := time.Duration(c.SpareMinutes * float64(time.Minute))
	groups := len(c.Groups())
	for trial := range 30 {
		start := day.AddDate(0, 0, random.IntN(10000))
		commit := func() string { return fmt.Sprintf("%040x", random.Uint64()) }

		t.Run(fmt.Sprintf("WithoutLedger%d", trial), func(t *testing.T) {
			ran := map[string]bool{}
			for i := range groups {
				for _, turn := range c.Pick(c.Order(Situation{Now: start.AddDate(0, 0, i), Commit: commit()}), left) {
					ran[turn.Test.Name] = true
				}
			}
			missing(t, c, ran, groups)
		})
		t.Run(fmt.Sprintf("WithLedger%d", trial), func(t *testing.T) {
			var l Ledger
			now := start
			// Whatever ran before, and whenever the runs are.
			for _, test := range c.In(Rotation) {
				if random.IntN(2) == 0 {
					l = append(l, Run{Began: now.Add(-time.Duration(random.IntN(9*24)) * time.Hour), Test: test.Name, Result: Passed, Took: test.typically()})
				}
			}
			slices.SortFunc(l, func(a, b Run) int { return a.Began.Compare(b.Began) })
			ran := map[string]bool{}
			for range 2*groups + 1 {
				now = now.Add(time.Duration(1+random.IntN(48)) * time.Hour)
				for _, turn := range c.Pick(c.Order(Situation{Now: now, Commit: commit(), Ledger: l}), left) {
					ran[turn.Test.Name] = true
					l = append(l, Run{Began: now, Test: turn.Test.Name, Result: Passed, Took: turn.Test.typically()})
				}
			}
			missing(t, c, ran, 2*groups+1)
		})
	}
}

// TestTouchedDelaysOthersForTwoWeeks has each change touch the same tests, which alone could take all the time.
func TestTouchedDelaysOthersForTwoWeeks(t *testing.T) {
	c, err := Load(repository)
	if err != nil {
		t.Fatal(err)
	}
	var l Ledger
	ran := map[string]bool{}
	left := time.Duration(c.SpareMinutes * float64(time.Minute))
	runs := 15 + 2*len(c.Groups())
	for i := range runs {
		s := Situation{Now: day.AddDate(0, 0, i), Ledger: l, Touched: []string{"function/database/backup.go", "provider/credential/secret.go"}}
		for _, turn := range c.Pick(c.Order(s), left) {
			ran[turn.Test.Name] = true
			l = append(l, Run{Began: s.Now, Test: turn.Test.Name, Result: Passed, Took: turn.Test.typically()})
		}
	}
	missing(t, c, ran, runs)
}

func missing(t *testing.T, c *Catalogue, ran map[string]bool, runs int) {
	t.Helper()
	for _, test := range c.In(Rotation) {
		if !ran[test.Name] {
			t.Errorf("%s did not run in %d runs", test.Name, runs)
		}
	}
}

// TestGroups fit into the time that CI is expected to have left, and miss no test.
func TestGroups(t *testing.T) {
	c, err := Load(repository)
	if err != nil {
		t.Fatal(err)
	}
	ran := map[string]bool{}
	for i, g := range c.Groups() {
		if got := scale(c.wall(turnsOf(g, nil))); got > time.Duration(c.SpareMinutes*float64(time.Minute)) {
			t.Errorf("group %d takes %s", i, got)
		}
		for _, test := range g {
			ran[test.Name] = true
		}
	}
	missing(t, c, ran, len(c.Groups()))
	if got := (&Catalogue{}).Order(Situation{Now: day}); len(got) != 0 {
		t.Errorf("without slow tests there is no order, got %v", got)
	}
}
