// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/observed"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

const (
	live      = "1111111111"
	candidate = "2222222222"
)

// facts of two revisions that serve, with enough replicas to share requests by their number.
func facts() Facts {
	serves := func(revision string, n int64) Slot {
		return Slot{Revision: revision, Deployment: observed.Deployment{
			Exists: true, Noticed: true, Size: n, Total: n, Updated: n, Ready: n, Available: n,
		}}
	}
	duration := func(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }
	return Facts{
		Now: now, Name: "reco", Target: candidate, Replicas: 4, ByReplicas: true, Drain: time.Minute, Selects: names.SlotA,
		Slots: map[string]Slot{names.SlotA: serves(live, 4), names.SlotB: serves(candidate, 1)},
		Lifecycle: &v1alpha1.Lifecycle{
			CanaryWeight: new(int32(20)), Soak: duration(time.Minute), Deadline: duration(time.Hour), Bake: duration(time.Minute),
			OnNoData: v1alpha1.NoDataHold, Approval: v1alpha1.ApprovalNone,
		},
	}
}

// ledger in a phase, which began ten minutes ago.
func ledger(phase v1alpha1.RolloutPhase, change func(*Ledger)) Ledger {
	began := now.Add(-10 * time.Minute)
	l := Ledger{Slot: names.SlotA, Revision: live, Candidate: candidate, Phase: phase, Epoch: 5, Entered: began, Began: began}
	if change != nil {
		change(&l)
	}
	return l
}

func TestRules(t *testing.T) {
	type decision struct {
		Phase  v1alpha1.RolloutPhase
		Reason xpv2.ConditionReason
		Weight int32
		Epoch  int64
	}
	cases := map[string]struct {
		reason string
		ledger Ledger
		facts  func(*Facts)
		want   decision
	}{
		"Begins": {
			reason: "another revision is requested",
			ledger: ledger(v1alpha1.RolloutStable, nil),
			want:   decision{v1alpha1.RolloutPreparing, v1alpha1.ReasonEdited, 0, 6},
		},
		"Rests": {
			reason: "what is requested is live",
			ledger: ledger(v1alpha1.RolloutStable, nil), facts: func(f *Facts) { f.Target = live },
			want: decision{v1alpha1.RolloutStable, "", 0, 5},
		},
		"FirstShare": {
			reason: "the candidate is large enough for its first share",
			ledger: ledger(v1alpha1.RolloutPreparing, nil),
			want:   decision{v1alpha1.RolloutStepping, v1alpha1.ReasonPassed, 20, 6},
		},
		"TooFine": {
			reason: "one replica would have more than the share",
			ledger: ledger(v1alpha1.RolloutPreparing, nil), facts: func(f *Facts) { f.Lifecycle.CanaryWeight = new(int32(5)) },
			want: decision{v1alpha1.RolloutHolding, v1alpha1.ReasonStepTooFine, 0, 6},
		},
		"NotInForce": {
			reason: "the Service does not select the candidate yet",
			ledger: ledger(v1alpha1.RolloutStepping, func(l *Ledger) { l.Weight = 20 }),
			want:   decision{v1alpha1.RolloutStepping, "", 20, 5},
		},
		"Fails": {
			reason: "two looks in a row fail",
			ledger: ledger(v1alpha1.RolloutStepping, func(l *Ledger) { l.Weight, l.Evidence = 20, 5 }),
			facts: func(f *Facts) {
				f.Evidence = Evidence{Asked: true, Checks: []Check{{Name: "success", Verdicts: "PFF"}}}
			},
			want: decision{v1alpha1.RolloutRollingBack, v1alpha1.ReasonMetricFailed, 0, 6},
		},
		"Promotes": {
			reason: "the evidence passes and there is no greater step",
			ledger: ledger(v1alpha1.RolloutStepping, func(l *Ledger) { l.Weight, l.Evidence = 20, 5 }),
			facts: func(f *Facts) {
				f.Observes, f.Interval = true, time.Hour
				f.Evidence = Evidence{Asked: true, LookedAt: now, Checks: []Check{{Name: "success", Verdicts: "PPP"}}}
			},
			want: decision{v1alpha1.RolloutStepping, v1alpha1.ReasonPassed, 20, 6},
		},
		"ClockIsBack": {
			reason: "time has no part in that the spec withdraws a candidate",
			ledger: ledger(v1alpha1.RolloutStepping, func(l *Ledger) { l.Weight, l.Entered = 20, now.Add(time.Minute) }),
			facts:  func(f *Facts) { f.Target = live },
			want:   decision{v1alpha1.RolloutRollingBack, v1alpha1.ReasonReverted, 0, 6},
		},
		"ClockIsBackAtRest": {
			reason: "all else waits for the time to come again",
			ledger: ledger(v1alpha1.RolloutStable, func(l *Ledger) { l.Entered = now.Add(time.Minute) }),
			want:   decision{v1alpha1.RolloutStable, "", 0, 5},
		},
		"TakenBack": {
			reason: "the spec asks for the revision before",
			ledger: ledger(v1alpha1.RolloutBaking, func(l *Ledger) {
				l.Slot, l.Revision, l.Previous, l.Weight = names.SlotB, candidate, live, 100
			}),
			facts: func(f *Facts) { f.Target = live },
			want:  decision{v1alpha1.RolloutRollingBack, v1alpha1.ReasonReverted, 0, 6},
		},
		"Baked": {
			reason: "the time to bake is over",
			ledger: ledger(v1alpha1.RolloutBaking, func(l *Ledger) {
				l.Slot, l.Revision, l.Previous, l.Weight = names.SlotB, candidate, live, 100
			}),
			want: decision{v1alpha1.RolloutDraining, v1alpha1.ReasonBaked, 100, 6},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := facts()
			if tc.facts != nil {
				tc.facts(&f)
			}
			f.Ledger = tc.ledger
			l := advance(f, tc.ledger).Ledger
			if diff := cmp.Diff(tc.want, decision{l.Phase, l.Reason, l.Weight, l.Epoch}); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestRulesArePure asks every rule about every phase: none may change the ledger that it looks at.
func TestRulesArePure(t *testing.T) {
	f := facts()
	f.Lifecycle.Mirror = &v1alpha1.Mirror{Percent: 10, For: f.Lifecycle.Soak}
	for phase, ofPhase := range rules {
		l := ledger(phase, func(l *Ledger) { l.Weight, l.Previous = 20, live })
		f.Ledger = l
		before := l.Text()
		for _, r := range ofPhase {
			r.when(f, l)
			if diff := cmp.Diff(before, l.Text()); diff != "" {
				t.Errorf("rule %q of phase %s changes the ledger: -before, +after:\n%s", r.name, phase, diff)
			}
		}
	}
}
