// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/signals"
)

// TestPause shows that a person can hold a rollout in every phase, and what is stronger than that.
func TestPause(t *testing.T) {
	testPause(t, "spec.rollout.pause", func(f *Facts) { f.Requests.Pause = true })
}

// TestSignalHolds shows that a Signal does the same.
func TestSignalHolds(t *testing.T) {
	testPause(t, `Signal "errors"`, func(f *Facts) {
		f.Held = signals.Hold{Signal: `Signal "errors" (alertmanager: CheckoutErrors)`, Until: now.Add(time.Hour)}
	})
}

func testPause(t *testing.T, by string, pause func(*Facts)) {
	t.Helper()
	type decision struct {
		Phase, Held v1alpha1.RolloutPhase
		Reason      xpv2.ConditionReason
		Weight      int32
	}
	letters := func(letters string) func(*Facts) {
		return func(f *Facts) {
			f.Evidence = Evidence{Asked: true, LookedAt: now, Checks: []Check{{Name: "success", Verdicts: letters}}}
		}
	}
	mirrors := func(f *Facts) {
		f.Lifecycle.MirrorPercent = new(int32(100))
		s := f.Slots[names.SlotB]
		s.Routed.Mirrored = true
		f.Slots[names.SlotB] = s
	}
	stepping := func(l *Ledger) { l.Weight, l.Evidence = 20, 5 }
	baking := func(l *Ledger) {
		l.Slot, l.Revision, l.Previous, l.Weight, l.Evidence = names.SlotB, candidate, live, 100, 5
	}
	held := func(change func(*Ledger), phase v1alpha1.RolloutPhase) func(*Ledger) {
		return func(l *Ledger) {
			change(l)
			l.Phase, l.Held, l.Reason = v1alpha1.RolloutHolding, phase, v1alpha1.ReasonRolloutPaused
		}
	}
	holds := func(phase v1alpha1.RolloutPhase, weight int32) decision {
		return decision{v1alpha1.RolloutHolding, phase, v1alpha1.ReasonRolloutPaused, weight}
	}
	resumed := func(phase v1alpha1.RolloutPhase, weight int32) decision {
		return decision{phase, "", v1alpha1.ReasonResumed, weight}
	}
	for name, tc := range map[string]struct {
		reason string
		phase  v1alpha1.RolloutPhase
		ledger func(*Ledger)
		off    bool
		facts  []func(*Facts)
		want   decision
	}{
		"Begins": {
			reason: "no rollout begins", phase: v1alpha1.RolloutStable,
			want: holds(v1alpha1.RolloutStable, 0),
		},
		"Prepares": {
			reason: "no request reaches a candidate that is ready", phase: v1alpha1.RolloutPreparing,
			want: holds(v1alpha1.RolloutPreparing, 0),
		},
		"Mirrors": {
			reason: "copies of requests reach it as before", phase: v1alpha1.RolloutMirroring, ledger: func(l *Ledger) { l.Evidence = 5 },
			facts: []func(*Facts){routed(100, 0, true), mirrors, letters("PPP")},
			want:  holds(v1alpha1.RolloutMirroring, 0),
		},
		"Steps": {
			reason: "the share stays, although the candidate has passed", phase: v1alpha1.RolloutStepping, ledger: stepping,
			facts: []func(*Facts){letters("PPP")},
			want:  holds(v1alpha1.RolloutStepping, 20),
		},
		"Grows": {
			reason: "so it does while replicas start for the next one", phase: v1alpha1.RolloutStepping,
			ledger: func(l *Ledger) { stepping(l); l.Next, l.NextBy = 100, v1alpha1.ReasonPassed },
			facts:  []func(*Facts){letters("PPP"), serving(4)},
			want:   holds(v1alpha1.RolloutStepping, 20),
		},
		"Awaits": {
			reason: "evidence of the share counts first, so that a failure is noticed", phase: v1alpha1.RolloutStepping,
			ledger: func(l *Ledger) { l.Weight = 20 }, facts: []func(*Facts){routed(80, 20, true)},
			want: decision{v1alpha1.RolloutStepping, "", v1alpha1.ReasonSoaking, 20},
		},
		"Deadline": {
			reason: "a person who pauses does not wait for evidence, and nothing is decided without it", phase: v1alpha1.RolloutStepping,
			ledger: func(l *Ledger) { stepping(l); l.Began = now.Add(-2 * time.Hour) },
			facts:  []func(*Facts){letters("NNN"), func(f *Facts) { f.Lifecycle.OnNoData = v1alpha1.NoDataRollback }},
			want:   holds(v1alpha1.RolloutStepping, 20),
		},
		"Bakes": {
			reason: "the revision before stays ready", phase: v1alpha1.RolloutBaking, ledger: baking,
			facts: []func(*Facts){letters("PPP")},
			want:  holds(v1alpha1.RolloutBaking, 100),
		},
		"Fails": {
			reason: "evidence of failure is stronger", phase: v1alpha1.RolloutStepping, ledger: held(stepping, v1alpha1.RolloutStepping),
			facts: []func(*Facts){letters("PFF")},
			want:  decision{v1alpha1.RolloutRollingBack, "", v1alpha1.ReasonMetricFailed, 0},
		},
		"Aborted": {
			reason: "so is a person who aborts", phase: v1alpha1.RolloutStepping, ledger: held(stepping, v1alpha1.RolloutStepping),
			facts: []func(*Facts){func(f *Facts) { f.Requests.Abort = candidate }},
			want:  decision{v1alpha1.RolloutRollingBack, "", v1alpha1.ReasonAborted, 0},
		},
		"Promoted": {
			reason: "or promotes, which corrects an outage", phase: v1alpha1.RolloutStepping, ledger: stepping,
			facts: []func(*Facts){func(f *Facts) { f.Requests.Promote = candidate }, serving(4)},
			want:  decision{v1alpha1.RolloutPromoting, "", v1alpha1.ReasonPromoted, 100},
		},
		"PromotedBakes": {
			reason: "what was promoted so bakes all the same", phase: v1alpha1.RolloutBaking, ledger: baking,
			facts: []func(*Facts){func(f *Facts) { f.Requests.Promote = candidate }},
			want:  holds(v1alpha1.RolloutBaking, 100),
		},
		"Edited": {
			reason: "so is another spec: the candidate is withdrawn", phase: v1alpha1.RolloutStepping, ledger: held(stepping, v1alpha1.RolloutStepping),
			facts: []func(*Facts){func(f *Facts) { f.Target = live }},
			want:  decision{v1alpha1.RolloutRollingBack, "", v1alpha1.ReasonReverted, 0},
		},
		"StepResumes": {
			reason: "it continues when pause is removed", off: true, phase: v1alpha1.RolloutStepping, ledger: held(stepping, v1alpha1.RolloutStepping),
			facts: []func(*Facts){letters("PPP")},
			want:  resumed(v1alpha1.RolloutStepping, 20),
		},
		"MirrorResumes": {
			reason: "so do copies", off: true, phase: v1alpha1.RolloutMirroring,
			ledger: held(func(l *Ledger) { l.Evidence = 5 }, v1alpha1.RolloutMirroring),
			facts:  []func(*Facts){routed(100, 0, true), mirrors, letters("PPP")},
			want:   resumed(v1alpha1.RolloutMirroring, 0),
		},
		"BakeResumes": {
			reason: "and a bake", off: true, phase: v1alpha1.RolloutBaking, ledger: held(baking, v1alpha1.RolloutBaking),
			want: resumed(v1alpha1.RolloutBaking, 100),
		},
		"BeginsAgain": {
			reason: "and what waited begins", off: true, phase: v1alpha1.RolloutStable, ledger: held(func(*Ledger) {}, v1alpha1.RolloutStable),
			want: decision{v1alpha1.RolloutPreparing, "", v1alpha1.ReasonEdited, 0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts()
			if !tc.off {
				pause(&f)
			}
			for _, change := range tc.facts {
				change(&f)
			}
			l := ledger(tc.phase, tc.ledger)
			f.Ledger = l
			o := advance(f, l)
			got := decision{o.Ledger.Phase, o.Ledger.Held, o.Ledger.Reason, o.Ledger.Weight}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
			if paused := tc.want.Reason == v1alpha1.ReasonRolloutPaused; paused && !strings.Contains(o.Message, by) {
				t.Errorf("%s: the message should name what holds, got %q", tc.reason, o.Message)
			}
			if resumes := tc.want.Reason == v1alpha1.ReasonResumed; resumes && !o.Ledger.Began.Equal(now) {
				t.Errorf("%s: the step should have all of its time again, it began at %s", tc.reason, o.Ledger.Began)
			}
			if diff := cmp.Diff(tc.want.Reason == v1alpha1.ReasonRolloutPaused, !advance(f, o.Ledger).Moved && o.Moved); tc.want.Reason == v1alpha1.ReasonRolloutPaused && diff != "" {
				t.Errorf("%s: a pause is one transition, and then it rests: %s", tc.reason, diff)
			}
		})
	}
}
