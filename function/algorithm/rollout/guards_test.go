// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
)

// TestGuards has a case for each rule that only keeps something from happening: without the rule the rollout would continue.
// hack/mutate removes them one by one.
func TestGuards(t *testing.T) {
	type decision struct {
		Phase  v1alpha1.RolloutPhase
		Reason xpv2.ConditionReason
	}
	stepping := func(l *Ledger) { l.Weight, l.Evidence = 20, 5 }
	baking := func(l *Ledger) {
		l.Slot, l.Revision, l.Previous, l.Weight, l.Evidence = names.SlotB, candidate, live, 100, 5
	}
	begunNow := func(change func(*Ledger)) func(*Ledger) {
		return func(l *Ledger) {
			change(l)
			l.Entered, l.Began = now, now
		}
	}
	judged := func(verdicts string) func(*Facts) {
		return func(f *Facts) {
			f.Evidence = Evidence{Asked: true, LookedAt: now, Checks: []Check{{Name: "success", Verdicts: verdicts}}}
		}
	}
	// liveServes with so many of the replicas in slot A.
	liveServes := func(n int64) func(*Facts) {
		return func(f *Facts) {
			s := f.Slots[names.SlotA]
			s.Available = n
			f.Slots[names.SlotA] = s
		}
	}
	aborts := func(f *Facts) { f.Requests.Abort = candidate }
	failed := func(l *Ledger) {
		l.Failed = []v1alpha1.FailedRevision{{Revision: candidate, Reason: "MetricFailed", Attempts: 1, RetryAfter: metav1.NewTime(now.Add(time.Minute))}}
	}
	for name, tc := range map[string]struct {
		reason string
		phase  v1alpha1.RolloutPhase
		ledger func(*Ledger)
		facts  []func(*Facts)
		want   decision
	}{
		"CopiesFail": {
			reason: "a candidate that fails with copies of requests never gets requests",
			phase:  v1alpha1.RolloutMirroring, ledger: func(l *Ledger) { l.Evidence = 5 },
			facts: []func(*Facts){judged("FF"), func(f *Facts) { f.Lifecycle.MirrorPercent = new(int32(100)) }},
			want:  decision{v1alpha1.RolloutRollingBack, v1alpha1.ReasonMetricFailed},
		},
		"FailsWhileTheClockIsBack": {
			reason: "a fault does not wait for the clock",
			phase:  v1alpha1.RolloutStepping, ledger: func(l *Ledger) { stepping(l); l.Entered = now.Add(time.Minute) },
			facts: []func(*Facts){judged("FF")},
			want:  decision{v1alpha1.RolloutRollingBack, v1alpha1.ReasonMetricFailed},
		},
		"SlotNotFree": {
			reason: "what is in the slot of the candidate ends first",
			phase:  v1alpha1.RolloutStable,
			facts:  []func(*Facts){func(f *Facts) { f.Slots[names.SlotB] = running(f.Slots[names.SlotB], "3333333333") }},
			want:   decision{Phase: v1alpha1.RolloutStable},
		},
		"Replaced": {
			reason: "requests that reach another revision than the candidate go back",
			phase:  v1alpha1.RolloutStepping, ledger: stepping,
			facts: []func(*Facts){judged("II"), func(f *Facts) { f.Slots[names.SlotB] = running(f.Slots[names.SlotB], "3333333333") }},
			want:  decision{v1alpha1.RolloutRollingBack, v1alpha1.ReasonStateLost},
		},
		"TooLittleEvidence": {
			reason: "a candidate that has had its time does not pass without evidence",
			phase:  v1alpha1.RolloutStepping, ledger: stepping, facts: []func(*Facts){judged("PII")},
			want: decision{Phase: v1alpha1.RolloutStepping},
		},
		"TooSoon": {
			reason: "evidence that passes does not shorten a step",
			phase:  v1alpha1.RolloutStepping, ledger: begunNow(stepping), facts: []func(*Facts){judged("PPP")},
			want: decision{Phase: v1alpha1.RolloutStepping},
		},
		"NotApproved": {
			reason: "a step that passed waits for its approval",
			phase:  v1alpha1.RolloutStepping, ledger: stepping,
			facts: []func(*Facts){judged("PPP"), func(f *Facts) { f.Lifecycle.Approval = v1alpha1.ApprovalEveryStep }},
			want:  decision{v1alpha1.RolloutHolding, v1alpha1.ReasonAwaitingApproval},
		},
		"Bakes": {
			reason: "the revision before stays for as long as the spec says",
			phase:  v1alpha1.RolloutBaking, ledger: begunNow(baking), facts: []func(*Facts){judged("PPP")},
			want: decision{Phase: v1alpha1.RolloutBaking},
		},
		"FailsAlone": {
			reason: "requests do not go back to nothing: bad answers are better than none",
			phase:  v1alpha1.RolloutStepping, ledger: stepping, facts: []func(*Facts){judged("FF"), routed(80, 20, true), liveServes(0)},
			want: decision{v1alpha1.RolloutHolding, v1alpha1.ReasonStandbyStarting},
		},
		"AbortedAlone": {
			reason: "a person who aborts does not ask for an outage",
			phase:  v1alpha1.RolloutStepping, ledger: stepping, facts: []func(*Facts){judged("PII"), routed(80, 20, true), liveServes(0), aborts},
			want: decision{v1alpha1.RolloutHolding, v1alpha1.ReasonStandbyStarting},
		},
		"AbortedBesideOne": {
			reason: "and does not wait for more than one replica",
			phase:  v1alpha1.RolloutStepping, ledger: stepping, facts: []func(*Facts){judged("PII"), routed(80, 20, true), liveServes(1), aborts},
			want: decision{v1alpha1.RolloutRollingBack, v1alpha1.ReasonAborted},
		},
		"WithoutDataAlone": {
			reason: "nothing is known of the only revision that serves",
			phase:  v1alpha1.RolloutHolding, ledger: func(l *Ledger) {
				stepping(l)
				l.Held, l.Reason, l.Entered = v1alpha1.RolloutStepping, v1alpha1.ReasonMetricsUnavailable, now.Add(-2*time.Hour)
			},
			facts: []func(*Facts){routed(80, 20, true), liveServes(0), func(f *Facts) { f.Evidence = Evidence{Asked: true, Errors: 5} }},
			want:  decision{v1alpha1.RolloutHolding, v1alpha1.ReasonMetricsUnavailable},
		},
		"MirrorRemovedInAPause": {
			reason: "without copies there is nothing to hold",
			phase:  v1alpha1.RolloutMirroring, ledger: func(l *Ledger) { l.Evidence = 5 }, facts: []func(*Facts){judged("PII"), func(f *Facts) { f.Requests.Pause = true }},
			want: decision{v1alpha1.RolloutPreparing, v1alpha1.ReasonEdited},
		},
		"TooFewToTakeAPromotionBack": {
			reason: "all replicas have to be back that served before the promotion",
			phase:  v1alpha1.RolloutPromoting, ledger: baking, facts: []func(*Facts){serving(4), liveServes(2), func(f *Facts) { f.Target = live }},
			want: decision{Phase: v1alpha1.RolloutPromoting},
		},
		"AbortsAPromotion": {
			reason: "a person who aborts does not wait for all of them",
			phase:  v1alpha1.RolloutPromoting, ledger: baking, facts: []func(*Facts){serving(4), liveServes(1), aborts},
			want: decision{v1alpha1.RolloutRollingBack, v1alpha1.ReasonAborted},
		},
		"TakesAPromotionBack": {
			reason: "it has just served all of them with fewer replicas than the candidate has",
			phase:  v1alpha1.RolloutPromoting, ledger: baking, facts: []func(*Facts){serving(6), func(f *Facts) { f.Target = live }},
			want: decision{v1alpha1.RolloutRollingBack, v1alpha1.ReasonReverted},
		},
		"TooFewToGoBack": {
			reason: "requests do not go back to fewer replicas than serve them now",
			phase:  v1alpha1.RolloutBaking, ledger: begunNow(baking),
			facts: []func(*Facts){serving(4), func(f *Facts) {
				s := f.Slots[names.SlotA]
				s.Available, f.Target = 1, live
				f.Slots[names.SlotA] = s
			}},
			want: decision{v1alpha1.RolloutHolding, v1alpha1.ReasonStandbyStarting},
		},
		"TargetUnknownInTheBake": {
			reason: "a target that is unknown for a moment supersedes nothing",
			phase:  v1alpha1.RolloutBaking, ledger: begunNow(baking),
			facts: []func(*Facts){judged("PPP"), func(f *Facts) { f.Target = "" }},
			want:  decision{Phase: v1alpha1.RolloutBaking},
		},
		"ComparedBefore": {
			reason: "a candidate that fails with all requests once more is rolled back, and not compared again",
			phase:  v1alpha1.RolloutBaking, ledger: begunNow(func(l *Ledger) { baking(l); l.Doubted = true }),
			facts: []func(*Facts){serving(4), judged("FF")},
			want:  decision{v1alpha1.RolloutRollingBack, v1alpha1.ReasonMetricFailed},
		},
		"CoolsDown": {
			reason: "another attempt waits until the failed revision has cooled down",
			phase:  v1alpha1.RolloutRolledBack, ledger: failed,
			facts: []func(*Facts){serving(0), func(f *Facts) { f.Requests.Retry = candidate + "#2" }},
			want:  decision{v1alpha1.RolloutRolledBack, v1alpha1.ReasonCoolingDown},
		},
		"RollbackLoop": {
			reason: "a fourth rollout within an hour of three rollbacks waits",
			phase:  v1alpha1.RolloutStable,
			ledger: func(l *Ledger) {
				l.Rollbacks = []time.Time{now.Add(-time.Minute), now.Add(-2 * time.Minute), now.Add(-3 * time.Minute)}
			},
			want: decision{v1alpha1.RolloutHolding, v1alpha1.ReasonRollbackLoop},
		},
		"GuardrailsOpen": {
			reason: "an experiment does not end by its metric before its guardrails have passed",
			phase:  v1alpha1.RolloutStepping,
			ledger: begunNow(func(l *Ledger) { stepping(l); l.Experiment = &Trial{ID: "e1"} }),
			facts: []func(*Facts){judged("PII"), routed(80, 20, true), func(f *Facts) {
				f.Target, f.ArmB = live, candidate
				f.Evidence.Experiment = observev1alpha1.ExperimentObservation{Result: observev1alpha1.ExperimentCanaryBetter}
				f.Experiment = &Experiment{ID: "e1", ExperimentSpec: v1alpha1.ExperimentSpec{
					Metric: v1alpha1.ExperimentMetric{MinEffect: new(0.0)},
					Stop:   &v1alpha1.ExperimentStop{Duration: &metav1.Duration{Duration: time.Hour}},
				}}
				f.Ledger.Experiment.Key = KeyOf(&f.Experiment.ExperimentSpec)
			}},
			want: decision{Phase: v1alpha1.RolloutStepping},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := facts()
			f.Ledger = ledger(tc.phase, tc.ledger)
			for _, modify := range tc.facts {
				modify(&f)
			}
			o := advance(f, f.Ledger)
			if diff := cmp.Diff(tc.want, decision{o.Ledger.Phase, o.Ledger.Reason}); diff != "" {
				t.Errorf("%s: -want, +got:\n%s%s", tc.reason, diff, o.Message)
			}
		})
	}
}
