// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"strings"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
)

// An experiment goes the way of a rollout's first step, and never further: its arm B runs in the idle slot as the candidate, and
// what ends it takes requests back.
//
//	Stable ─► Preparing ─► Stepping ─► RollingBack ─► Stable
//
// So what holds for a candidate holds for arm B: no request reaches it before its replicas serve, no more than its share do, and
// a fault of it takes all of them back.

// Requested reports whether the spec asks for an experiment that has not been run.
func (f Facts) Requested() bool {
	return f.Experiment != nil && !f.Experiment.Over && !f.Ledger.Ran(f.Experiment.ID)
}

func experimentNotRequested(f Facts, l Ledger) (transition, bool) {
	return transition{}, stable(f, l) && !f.Requested()
}

func experimentBlocked(f Facts, l Ledger) (transition, bool) {
	if !stable(f, l) {
		return transition{}, false
	}
	b := f.mayExperiment(l)
	return transition{waits: Waiting{b.Reason, b.Message}, timers: b.timers}, b.Reason != ""
}

// mayExperiment now, or why not.
func (f Facts) mayExperiment(l Ledger) block {
	because := func(reason xpv2.ConditionReason, message string) block {
		return block{Reason: reason, Message: message}
	}
	idle, failed := f.idle(l), l.Failure(f.ArmB)
	switch {
	case f.ByReplicas:
		return because(v1alpha1.ReasonGatewayAPIMissing,
			"without the Gateway API nothing keeps the arms apart: install its CRDs and a controller, or remove spec.experiment")
	case !f.Observes:
		return because(v1alpha1.ReasonProviderMissing, ProviderMissing)
	case f.ArmB == "":
		return because(v1alpha1.ReasonAwaitingModel, f.ArmBUnknown)
	case f.ArmB == l.Revision:
		return because(v1alpha1.ReasonSameRevision, "arm B is the same as the spec: change something in spec.armB of the Experiment")
	case failed != nil:
		return because(v1alpha1.ReasonRolledBack, fmt.Sprintf("revision %s of arm B was rolled back: %s: change spec.armB of the Experiment", f.ArmB, failed.Reason))
	case idle.Exists && idle.Revision != f.ArmB:
		return because(v1alpha1.ReasonRolloutFirst, "arm B starts once the revision in its slot is gone")
	case f.live(l).Available == 0:
		return because(v1alpha1.ReasonNotServing, "no replica of arm A serves")
	default:
		return f.mayShift(l)
	}
}

func experimentBegins(f Facts, l Ledger) (transition, bool) {
	if !stable(f, l) {
		return transition{}, false
	}
	e := f.Experiment
	begin := func(l Ledger) Ledger { return l.testing(f.ArmB, &Trial{ID: e.ID, Key: KeyOf(&e.ExperimentSpec)}) }
	return transition{
		to: v1alpha1.RolloutPreparing, reason: v1alpha1.ReasonExperimentBegins, change: begin, size: e.Assignment.Percent,
		message: fmt.Sprintf("experiment %s: replicas of arm B, revision %s, start, and no request reaches it", e.ID, f.ArmB),
	}, true
}

// experimentWithdrawn: a person aborts it, or it cannot continue, and the live revision can take the requests of arm B.
func experimentWithdrawn(f Facts, l Ledger) (transition, bool) {
	if f.aborts(l.Candidate) {
		return fail(f, l, v1alpha1.ReasonAborted, f.abortedBy(l.Candidate)), !f.stranded(l)
	}
	t, ends := experimentRemoved(f, l)
	return t, ends && !f.keepsShare(l)
}

// experimentRemoved: the spec does not ask for the experiment any more, or it cannot continue.
func experimentRemoved(f Facts, l Ledger) (transition, bool) {
	e := f.Experiment
	ends := func(reason xpv2.ConditionReason, why string) (transition, bool) {
		return leave(f, l, reason, fmt.Sprintf("experiment %s: %s", l.Experiment.ID, why)), true
	}
	switch {
	case e == nil && f.Named == "":
		return ends(v1alpha1.ReasonExperimentRemoved, "spec.experiment was removed")
	case e == nil:
		return ends(v1alpha1.ReasonExperimentRemoved, "its Experiment was deleted")
	case e.ID != l.Experiment.ID:
		return ends(v1alpha1.ReasonExperimentEdited, "spec.experiment names another one")
	case KeyOf(&e.ExperimentSpec) != l.Experiment.Key:
		return ends(v1alpha1.ReasonExperimentEdited, "it was edited, so what was counted belongs to another experiment")
	case f.Target != "" && f.Target != l.Revision:
		return ends(v1alpha1.ReasonSuperseded, fmt.Sprintf("the spec asks for revision %s, and its rollout goes first", f.Target))
	case f.ArmB != "" && f.ArmB != l.Candidate:
		return ends(v1alpha1.ReasonExperimentEdited, "arm B is another revision")
	case f.ByReplicas:
		return ends(v1alpha1.ReasonGatewayAPIMissing, "no Gateway keeps the arms apart any more")
	default:
		return transition{}, false
	}
}

// ofExperiment is a rule that decides about experiments only.
func ofExperiment(when func(Facts, Ledger) (transition, bool)) func(Facts, Ledger) (transition, bool) {
	return func(f Facts, l Ledger) (transition, bool) {
		if l.Experiment == nil {
			return transition{}, false
		}
		return when(f, l)
	}
}

// experimentEnds by its metric, once its guardrails have passed, or by time. A guardrail that is violated has ended it before.
func experimentEnds(f Facts, l Ledger) (transition, bool) {
	e, found := f.Experiment, f.Evidence.Experiment
	v, decided := verdictOf(found, *e.Metric.MinEffect)
	open := f.Evidence.unsettled(v.winner)
	ends := func(t transition) (transition, bool) {
		if f.keepsShare(l) {
			t = growLive(f, l, f.fullSize(), t.message)
		}
		return t, true
	}
	if decided && len(open) == 0 {
		return ends(conclude(f, l, v.winner, v.reason, fmt.Sprintf("experiment %s: %s: %s", l.Experiment.ID, v.message, differs(found))))
	}
	over, wake := f.due(l.Began, e.Stop.Duration.Duration)
	if !over {
		return transition{timers: at(wake)}, false
	}
	why := "there is too little evidence: " + differs(found)
	if decided {
		why = fmt.Sprintf("guardrails have not passed (%s), although %s: %s", strings.Join(open, ", "), v.message, differs(found))
	}
	return ends(leave(f, l, v1alpha1.ReasonDurationOver,
		fmt.Sprintf("experiment %s: %s are over, and %s", l.Experiment.ID, check.Duration(e.Stop.Duration.Duration), why)))
}

func experimentWithoutMetrics(f Facts, l Ledger) (transition, bool) {
	reason, message, silentAt := f.unknown(l)
	t := hold(l, v1alpha1.RolloutStepping, reason, message)
	t.silentAt = silentAt
	return t, reason != ""
}

func experimentGoesOn(f Facts, l Ledger) (transition, bool) {
	message := fmt.Sprintf("experiment %s: arm A is revision %s, arm B %s", f.Experiment.ID, l.Revision, l.Candidate)
	if v, decided := verdictOf(f.Evidence.Experiment, *f.Experiment.Metric.MinEffect); decided {
		message += fmt.Sprintf(": %s, and it continues until its guardrails have passed: %s", v.message, strings.Join(f.Evidence.unsettled(v.winner), ", "))
	}
	return stay(message), true
}

// A result is what the metric of an experiment shows.
type result struct {
	winner  v1alpha1.ExperimentWinner
	reason  xpv2.ConditionReason
	message string
}

// verdictOf the metric, if it shows anything yet.
func verdictOf(o observev1alpha1.ExperimentObservation, minEffect float64) (result, bool) {
	switch o.Result {
	case observev1alpha1.ExperimentCanaryBetter:
		return result{v1alpha1.WinnerB, v1alpha1.ReasonArmBBetter, "arm B is better"}, true
	case observev1alpha1.ExperimentBaselineBetter:
		return result{v1alpha1.WinnerA, v1alpha1.ReasonArmABetter, "arm A is better"}, true
	case observev1alpha1.ExperimentNoDifference:
		return result{v1alpha1.WinnerNone, v1alpha1.ReasonNoDifference, fmt.Sprintf("they differ by less than %g", minEffect)}, true
	default:
		return result{}, false
	}
}

// differs by how much, in words.
func differs(o observev1alpha1.ExperimentObservation) string {
	if o.Effect == nil || o.Lower == nil || o.Upper == nil || o.Canary == nil || o.Baseline == nil {
		if o.Message != "" {
			return o.Message
		}
		return "nothing was counted"
	}
	return fmt.Sprintf("B less A is %.4g (%.4g to %.4g): %.4g of %d, and %.4g of %d",
		*o.Effect, *o.Lower, *o.Upper, o.Canary.Value, o.Canary.Samples, o.Baseline.Value, o.Baseline.Samples)
}
