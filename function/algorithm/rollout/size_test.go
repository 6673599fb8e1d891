// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
)

// TestSizeFor a share of requests behind a Gateway.
func TestSizeFor(t *testing.T) {
	cases := map[string]struct {
		reason       string
		total, share int32
		want         int32
		even         bool
	}{
		"Half":          {"as many as the live revision for as many requests", 6, 50, 6, true},
		"Fifth":         {"a quarter of the live ones for a quarter of their requests", 8, 20, 2, true},
		"Twentieth":     {"no second one for the twentieth part of a replica", 20, 5, 1, true},
		"One":           {"at least one", 1, 20, 1, false},
		"Few":           {"whole replicas are not always even", 6, 20, 2, false},
		"Tenth":         {"one for a tenth of ten has as much to do as one had before, and more than one has now", 10, 10, 1, false},
		"NeverTooSmall": {"no replica gets more than one had before", 11, 10, 2, false},
		"Most":          {"more than all requests need is not needed for any share", 6, 80, 6, false},
		"All":           {"all of them", 6, 100, 6, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := facts()
			f.ByReplicas, f.Replicas = false, tc.total
			got := f.sizeFor(tc.share)
			if got != tc.want {
				t.Errorf("%s: want %d replicas, got %d", tc.reason, tc.want, got)
			}
			if tc.share == 100 {
				return
			}
			live, idle := f.Slots[names.SlotA], f.Slots[names.SlotB]
			live.Available, idle.Available = int64(tc.total), int64(got)
			f.Slots = map[string]Slot{names.SlotA: live, names.SlotB: idle}
			f.Ledger = ledger(v1alpha1.RolloutStepping, func(l *Ledger) { l.Weight = tc.share })
			if uneven := f.Uneven(); (uneven == "") != tc.even {
				t.Errorf("%s: want even loads %t, got %q", tc.reason, tc.even, uneven)
			}
		})
	}
}

// TestUneven loads of the replicas of two revisions.
func TestUneven(t *testing.T) {
	f := facts()
	f.ByReplicas = false
	f.Ledger = ledger(v1alpha1.RolloutStepping, func(l *Ledger) { l.Weight = 50 })
	if got, want := f.Uneven(), "a replica of the candidate gets 4 times the requests of a live one"; !strings.HasPrefix(got, want) {
		t.Errorf("four live replicas and one of the candidate: want %q, got %q", want, got)
	}
	f.ByReplicas = true
	if got := f.Uneven(); got != "" {
		t.Errorf("where the number of replicas makes the share they are even, got %q", got)
	}
	f.ByReplicas, f.Lifecycle.MirrorPercent = false, new(int32(25))
	f.Ledger.Phase, f.Ledger.Weight = v1alpha1.RolloutMirroring, 0
	if got := f.Uneven(); got != "" {
		t.Errorf("one replica for copies of a quarter beside four for all, got %q", got)
	}
}

// TestBase is what all requests need, which the autoscaler of a revision that gets a part of them does not know.
func TestBase(t *testing.T) {
	weighs := func(weight, base int32) Ledger {
		return ledger(v1alpha1.RolloutStepping, func(l *Ledger) { l.Weight, l.Base = weight, base })
	}
	bakes := func(base int32) Ledger {
		return ledger(v1alpha1.RolloutBaking, func(l *Ledger) {
			l.Slot, l.Revision, l.Previous, l.Weight, l.Base = names.SlotB, candidate, live, 100, base
		})
	}
	cases := map[string]struct {
		reason     string
		ledger     Ledger
		live, idle int64
		needs      [2]float64
		want       int32
	}{
		"Preparing":  {"its autoscaler knows best, as long as all requests reach it", ledger(v1alpha1.RolloutPreparing, nil), 7, 2, [2]float64{5, 0}, 7},
		"Remembered": {"it has less to do by now", weighs(50, 10), 5, 6, [2]float64{5, 5}, 10},
		"Grown":      {"both have more to do", weighs(50, 10), 10, 10, [2]float64{7, 8}, 15},
		"Tolerance":  {"an autoscaler changes nothing for so little either", weighs(50, 10), 10, 10, [2]float64{5.4, 5.4}, 10},
		"Larger":     {"something made it larger", weighs(20, 10), 12, 3, [2]float64{1, 1}, 12},
		"Forgotten":  {"an earlier version did not remember it", weighs(50, 0), 5, 6, [2]float64{}, 10},
		"Most":       {"the spec allows no more", weighs(50, 10), 10, 10, [2]float64{30, 30}, 20},
		"Least":      {"the spec asks for more", weighs(50, 1), 1, 1, [2]float64{}, 2},
		"Baking":     {"what runs now has grown", bakes(10), 10, 14, [2]float64{}, 14},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := facts()
			f.ByReplicas, f.Scaling, f.Ledger = false, &v1alpha1.Scaling{MinReplicas: 2, MaxReplicas: 20}, tc.ledger
			a, b := f.Slots[names.SlotA], f.Slots[names.SlotB]
			a.Size, b.Size, a.Needs, b.Needs = tc.live, tc.idle, tc.needs[0], tc.needs[1]
			f.Slots = map[string]Slot{names.SlotA: a, names.SlotB: b}
			if got := f.fullSize(); got != tc.want {
				t.Errorf("%s: want %d, got %d", tc.reason, tc.want, got)
			}
		})
	}
}

// TestBaseOfOneRevision: while replicas of the candidate start, its autoscaler knows nothing, and it has its share all the same.
func TestBaseOfOneRevision(t *testing.T) {
	f := facts()
	routed(75, 25, true)(&f)
	f.Scaling = &v1alpha1.Scaling{MinReplicas: 2, MaxReplicas: 20}
	f.Ledger = ledger(v1alpha1.RolloutStepping, func(l *Ledger) { l.Weight, l.Base = 25, 5 })
	a := f.Slots[names.SlotA]
	a.Size, a.Available, a.Needs = 5, 5, 7.5
	f.Slots[names.SlotA] = a
	if got := f.fullSize(); got != 10 {
		t.Errorf("three quarters need seven and a half, so that all requests need ten, got %d", got)
	}
}

// TestSizeByReplicas: where the number of replicas makes the share, the candidate grows as live replicas become ready.
func TestSizeByReplicas(t *testing.T) {
	for name, tc := range map[string]struct {
		reason                string
		size, serve, replicas int64
		has                   int64
		want                  int32
	}{
		"Ready":   {"as many as serve beside it", 6, 6, 6, 2, 6},
		"Starts":  {"more would have a greater share until they do", 6, 4, 6, 2, 4},
		"Missing": {"it keeps what it has, while live ones are missing", 6, 2, 6, 6, 6},
		"Shrinks": {"those that the spec takes away do not count", 6, 6, 4, 6, 4},
		"None":    {"at least one", 0, 0, 6, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts()
			f.Replicas = int32(tc.replicas)
			f.Ledger = ledger(v1alpha1.RolloutStepping, func(l *Ledger) { l.Weight = 50 })
			a, b := f.Slots[names.SlotA], f.Slots[names.SlotB]
			a.Size, a.Available, b.Size = tc.size, tc.serve, tc.has
			f.Slots = map[string]Slot{names.SlotA: a, names.SlotB: b}
			if got := f.sizeFor(50); got != tc.want {
				t.Errorf("%s: want %d, got %d", tc.reason, tc.want, got)
			}
		})
	}
}

// TestRouteAdded: requests that come by the Service reach both revisions until the live one alone bears them, although the spec has a
// route now.
func TestRouteAdded(t *testing.T) {
	for serve, want := range map[int64]bool{4: true, 8: false} {
		f := facts()
		routed(50, 50, true)(&f)
		f.Scaling, f.Selects = &v1alpha1.Scaling{MinReplicas: 2, MaxReplicas: 20}, ""
		f.Ledger = ledger(v1alpha1.RolloutStepping, func(l *Ledger) { l.Weight, l.Evidence, l.Base = 50, 5, 8 })
		f.Evidence = Evidence{Asked: true, LookedAt: now, Checks: []Check{{Name: "success", Verdicts: "P"}}}
		a, b := f.Slots[names.SlotA], f.Slots[names.SlotB]
		a.Size, a.Available, b.Size, b.Available = serve, serve, 8, 8
		f.Slots = map[string]Slot{names.SlotA: a, names.SlotB: b}
		if got := Decide(f).Pooled; got != want {
			t.Errorf("%d of 8 live replicas serve: want the Service to select both %t, got %t", serve, want, got)
		}
	}
}

// TestGrowsNoMore: a candidate that ends keeps the replicas that serve, where their number makes its share, and gets no others.
func TestGrowsNoMore(t *testing.T) {
	f := facts()
	f.Selects, f.Target, f.Scaling = "", live, &v1alpha1.Scaling{MinReplicas: 2, MaxReplicas: 20}
	f.Ledger = ledger(v1alpha1.RolloutStepping, func(l *Ledger) {
		l.Weight, l.Evidence, l.Base, l.Next, l.NextBy = 20, 5, 8, 100, v1alpha1.ReasonPassed
	})
	b := f.Slots[names.SlotB]
	b.Size, b.Available = 6, 1
	f.Slots[names.SlotB] = b
	d := Decide(f)
	if l := d.Ledger; !l.holdsFor(v1alpha1.ReasonStandbyStarting) || d.Beside.Size == nil || *d.Beside.Size != 1 || !d.Pooled {
		t.Errorf("want it held with its one replica, got %s %s with %v", l.Phase, l.Reason, d.Beside.Size)
	}
}

// TestShares of a candidate where the number of replicas makes them, with live replicas that are missing.
func TestShares(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		selects string
		serve   int64
		want    int32
	}{
		"Shares":  {"both serve", "", 4, 50},
		"Missing": {"the rest of the live ones does not bear all requests", "", 1, 50},
		"Alone":   {"only the candidate serves", "", 0, 50},
		"Begins":  {"it gets its first share from live replicas that are all there", names.SlotA, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts()
			f.Selects = tc.selects
			f.Ledger = ledger(v1alpha1.RolloutStepping, func(l *Ledger) { l.Weight, l.Evidence = 50, 5 })
			a, b := f.Slots[names.SlotA], f.Slots[names.SlotB]
			a.Available, b.Size, b.Available = tc.serve, 4, 4
			f.Slots = map[string]Slot{names.SlotA: a, names.SlotB: b}
			f.Evidence = Evidence{Asked: true, LookedAt: now, Checks: []Check{{Name: "success", Verdicts: "P"}}}
			d := Decide(f)
			if got := d.Weight; got != tc.want || d.Pooled != (tc.want > 0) {
				t.Errorf("%s: want %d %%, got %d, by the Service of both %t", tc.reason, tc.want, got, d.Pooled)
			}
		})
	}
}

// TestBaseByReplicas: where the number of replicas makes the share, all that serve have the load, and those that start do not yet.
func TestBaseByReplicas(t *testing.T) {
	f := facts()
	f.ByReplicas, f.Scaling = true, &v1alpha1.Scaling{MinReplicas: 2, MaxReplicas: 20}
	f.Ledger = ledger(v1alpha1.RolloutStepping, func(l *Ledger) { l.Weight, l.Base = 50, 2 })
	a, b := f.Slots[names.SlotA], f.Slots[names.SlotB]
	a.Size, a.Available, a.Needs = 4, 2, 4
	b.Size, b.Available = 2, 2
	f.Slots = map[string]Slot{names.SlotA: a, names.SlotB: b}
	if got := f.fullSize(); got != 8 {
		t.Errorf("two of four that serve have the load of four, so that all requests need eight, got %d", got)
	}
}

// TestBaseOf the ledger that a pass ends with.
func TestBaseOf(t *testing.T) {
	f := facts()
	f.Scaling = &v1alpha1.Scaling{MinReplicas: 2, MaxReplicas: 20}
	f.Ledger = ledger(v1alpha1.RolloutBaking, func(l *Ledger) {
		l.Slot, l.Revision, l.Previous, l.Weight, l.Base = names.SlotA, candidate, live, 100, 3
	})
	got := map[v1alpha1.RolloutPhase]int32{}
	for phase := range rules {
		got[phase] = f.baseOf(ledger(phase, func(l *Ledger) { l.Weight = 50 }))
	}
	want := map[v1alpha1.RolloutPhase]int32{
		v1alpha1.RolloutStable: 0, v1alpha1.RolloutRolledBack: 0, v1alpha1.RolloutPreparing: 0, v1alpha1.RolloutMirroring: 0,
		v1alpha1.RolloutStepping: 4, v1alpha1.RolloutRollingBack: 4,
		v1alpha1.RolloutPromoting: 3, v1alpha1.RolloutBaking: 3, v1alpha1.RolloutDraining: 3,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestWaived is a check without effect.
func TestWaived(t *testing.T) {
	check := func(name, verdicts string) Check {
		return Check{Name: name, Verdicts: verdicts}
	}
	cases := map[string]struct {
		reason          string
		checks          []Check
		passes, failing bool
	}{
		"None":      {"nothing is no evidence", nil, false, false},
		"Only":      {"neither is what says nothing", []Check{check("uneven", "PPP")}, false, false},
		"Beside":    {"the others decide", []Check{check("uneven", "FFF"), check("success", "PPP")}, true, false},
		"Undecided": {"and have to", []Check{check("uneven", "PPP"), check("success", "PPI")}, false, false},
		"Fails":     {"compared again, it counts", []Check{check("latency", "FF"), check("success", "PPP")}, false, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := Evidence{Checks: tc.checks}
			for _, c := range tc.checks {
				if c.Name == "uneven" {
					e.Waived = append(e.Waived, c.Name)
				}
			}
			if e.passing() != tc.passes || (e.failing() != nil) != tc.failing {
				t.Errorf("%s: passes %t, fails %v", tc.reason, e.passing(), e.failing())
			}
		})
	}
}
