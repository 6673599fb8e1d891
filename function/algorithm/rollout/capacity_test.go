// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
)

// TestKeepsShare: a good candidate that is not requested any more keeps its requests until the live revision bears them.
func TestKeepsShare(t *testing.T) {
	type decision struct {
		Phase  v1alpha1.RolloutPhase
		Reason xpv2.ConditionReason
		Weight int32
	}
	stays := decision{v1alpha1.RolloutHolding, v1alpha1.ReasonStandbyStarting, 50}
	leaves := decision{v1alpha1.RolloutRollingBack, v1alpha1.ReasonReverted, 0}
	alter := func(change func(*Slot)) func(*Facts) {
		return func(f *Facts) {
			s := f.Slots[names.SlotA]
			change(&s)
			f.Slots[names.SlotA] = s
		}
	}
	holds := func(l Ledger, since time.Time) Ledger {
		l.Phase, l.Held, l.Reason, l.Entered = v1alpha1.RolloutHolding, v1alpha1.RolloutStepping, v1alpha1.ReasonStandbyStarting, since
		return l
	}
	for name, tc := range map[string]struct {
		reason string
		facts  func(*Facts)
		want   decision
	}{
		"Needed": {"both bear twice what the live revision does", nil, stays},
		"Passed": {"it gets no greater share either", func(f *Facts) { f.Evidence.Checks[0].Verdicts = "PPP" }, stays},
		"Grown":  {"the live revision bears all requests", alter(func(s *Slot) { s.Size, s.Available = 8, 8 }), leaves},
		"OtherNoMore": {"no replica of the candidate serves", func(f *Facts) {
			s := f.Slots[names.SlotB]
			s.Available = 0
			f.Slots[names.SlotB] = s
		}, leaves},
		"Fixed":    {"with a fixed number the spec says how many are enough", func(f *Facts) { f.Scaling = nil }, leaves},
		"Pooled":   {"the replicas of both share the requests", func(f *Facts) { f.ByReplicas, f.Selects = true, "" }, stays},
		"Apart":    {"no request reaches it any more", func(f *Facts) { f.ByReplicas, f.Selects = true, names.SlotA }, leaves},
		"LongStep": {"how long the step has lasted says nothing", func(f *Facts) { f.Ledger.Entered = now.Add(-time.Hour) }, stays},
		"Late": {"it did not grow before the deadline", func(f *Facts) {
			f.Ledger = holds(f.Ledger, now.Add(-time.Hour))
		}, leaves},
		"NoRoom": {"room may be found in a moment", alter(func(s *Slot) { s.Trouble = v1alpha1.ReasonUnschedulable }), stays},
		"NoRoomAtAll": {"the live revision cannot grow", func(f *Facts) {
			alter(func(s *Slot) { s.Trouble = v1alpha1.ReasonUnschedulable })(f)
			f.Ledger = holds(f.Ledger, now.Add(-roomTimeout))
		}, leaves},
		"RequestedAgain": {"the spec asks for it", func(f *Facts) {
			f.Ledger, f.Target = holds(f.Ledger, now), f.Ledger.Candidate
		}, decision{v1alpha1.RolloutStepping, v1alpha1.ReasonResumed, 50}},
		"Removed": {"what an experiment gave to arm B goes back as that of a rollout does", func(f *Facts) {
			f.Ledger.Experiment = &Trial{ID: "one"}
		}, stays},
		"Over": {"its time is over", func(f *Facts) {
			f.Experiment = &Experiment{ID: "one", ExperimentSpec: v1alpha1.ExperimentSpec{
				Assignment: v1alpha1.ExperimentAssignment{Percent: 50}, Metric: v1alpha1.ExperimentMetric{MinEffect: new(0.1)},
				Stop: &v1alpha1.ExperimentStop{Duration: &metav1.Duration{Duration: 2 * time.Hour}},
			}}
			f.Ledger.Experiment = &Trial{ID: "one", Key: KeyOf(&f.Experiment.ExperimentSpec)}
			f.Ledger.Began = now.Add(-3 * time.Hour)
		}, stays},
		"Matched": {"nothing remembers which requests matched", func(f *Facts) {
			f.Ledger.Experiment = &Trial{ID: "one"}
			s := f.Slots[names.SlotB]
			s.Routed.Chosen = true
			f.Slots[names.SlotB] = s
		}, decision{v1alpha1.RolloutRollingBack, v1alpha1.ReasonExperimentRemoved, 0}},
		"Fails": {
			"a bad candidate gives its requests back in any case", func(f *Facts) { f.Evidence.Checks[0].Verdicts = "PFF" },
			decision{v1alpha1.RolloutRollingBack, v1alpha1.ReasonMetricFailed, 0},
		},
		"Silent": {
			"nothing is known of it any more", func(f *Facts) { f.Evidence.LookedAt, f.Interval = now.Add(-10*time.Minute), 15*time.Second },
			stays,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts()
			routed(50, 50, true)(&f)
			f.Target, f.Scaling = live, &v1alpha1.Scaling{MinReplicas: 2, MaxReplicas: 20}
			f.Evidence = Evidence{Asked: true, LookedAt: now, Checks: []Check{{Name: "success", Verdicts: "P"}}}
			f.Ledger = ledger(v1alpha1.RolloutStepping, func(l *Ledger) { l.Weight, l.Evidence, l.Base = 50, 5, 4 })
			for slot, s := range f.Slots {
				s.Size, s.Available, s.Needs = 4, 4, 4
				f.Slots[slot] = s
			}
			if tc.facts != nil {
				tc.facts(&f)
			}
			l := advance(f, f.Ledger).Ledger
			if diff := cmp.Diff(tc.want, decision{l.Phase, l.Reason, l.Weight}); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestExchanging: an autoscaler that the spec gets waits for the end of an exchange of replicas.
func TestExchanging(t *testing.T) {
	type given struct {
		Scaled   bool
		Replicas int32
	}
	fixed, scaled := given{false, 4}, given{true, 1}
	lends := func(phase v1alpha1.RolloutPhase) Ledger {
		return ledger(phase, func(l *Ledger) { l.Capacity, l.Base = v1alpha1.CapacityBorrow, 4 })
	}
	for name, tc := range map[string]struct {
		reason string
		ledger Ledger
		facts  func(*Facts)
		want   given
	}{
		"Stepping":  {"both revisions share what there was", lends(v1alpha1.RolloutStepping), nil, fixed},
		"Promoting": {"some are still to be exchanged", lends(v1alpha1.RolloutPromoting), nil, fixed},
		"GivesBack": {"requests go back with the replicas", lends(v1alpha1.RolloutRollingBack), routed(75, 25, true), fixed},
		"Back":      {"all replicas are back, and all requests", lends(v1alpha1.RolloutRollingBack), routed(100, 0, true), scaled},
		"Short": {"requests are back before the replicas", lends(v1alpha1.RolloutPreparing), func(f *Facts) {
			routed(100, 0, true)(f)
			s := f.Slots[names.SlotA]
			s.Available = 2
			f.Slots[names.SlotA] = s
		}, fixed},
		"Baking":     {"all requests reach one revision", lends(v1alpha1.RolloutBaking), nil, scaled},
		"Surge":      {"there is no exchange", ledger(v1alpha1.RolloutStepping, func(l *Ledger) { l.Base = 4 }), nil, scaled},
		"Forgotten":  {"an earlier version did not remember the number", ledger(v1alpha1.RolloutStepping, func(l *Ledger) { l.Capacity = v1alpha1.CapacityBorrow }), nil, scaled},
		"WithoutOne": {"no autoscaler, no end", lends(v1alpha1.RolloutStepping), func(f *Facts) { f.Scaling = nil }, given{false, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts()
			f.Scaling, f.Replicas, f.Ledger = &v1alpha1.Scaling{MinReplicas: 1, MaxReplicas: 20}, 1, tc.ledger
			if tc.facts != nil {
				tc.facts(&f)
			}
			got := f.exchanging()
			if diff := cmp.Diff(tc.want, given{got.Scaling != nil, got.Replicas}); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestMeasured names the clients that the evidence is about.
func TestMeasured(t *testing.T) {
	borrows := func(f *Facts) { f.Lifecycle.Capacity = v1alpha1.CapacityBorrow }
	for name, tc := range map[string]struct {
		reason string
		facts  func(*Facts)
		want   string
	}{
		"Gateway":  {"the live revision bears what the Service sends", routed(50, 50, true), "reach the live revision only"},
		"Borrowed": {"and does not, with half of its replicas", func(f *Facts) { routed(50, 50, true)(f); borrows(f) }, "reach both revisions by the number of replicas"},
		"Service":  {"there is nothing else without a Gateway", borrows, "requests to the Service, by the number of replicas"},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts()
			tc.facts(&f)
			f.Evidence = Evidence{Asked: true, LookedAt: now, Checks: []Check{{Name: "success", Verdicts: "P"}}}
			f.Ledger = ledger(v1alpha1.RolloutStepping, func(l *Ledger) { l.Weight, l.Evidence, l.Capacity = 50, 5, f.Lifecycle.Capacity })
			for slot, s := range f.Slots {
				s.Size, s.Available = 2, 2
				f.Slots[slot] = s
			}
			if got := Decide(f).measured(f); !strings.Contains(got, tc.want) {
				t.Errorf("%s: want %q in %q", tc.reason, tc.want, got)
			}
		})
	}
}
