// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

// Status of the rollout, or nil without a lifecycle.
func (d Decision) Status(f Facts) *v1alpha1.RolloutStatus {
	if f.Lifecycle == nil {
		return nil
	}
	l, o := d.Ledger, d.Rollout
	st := &v1alpha1.RolloutStatus{Phase: v1alpha1.RolloutBootstrapping, Epoch: l.Epoch, Stable: l.Revision, Ledger: l.Text()}
	if o == nil {
		if l.Revision != "" {
			st.Phase = v1alpha1.RolloutStable
		}
		return st
	}
	st.Phase, st.Held, st.Reason, st.Message = cmp.Or(l.Phase, v1alpha1.RolloutStable), l.Held, string(l.Reason), o.Message
	st.Weight, st.Share, st.Candidate = d.Weight, d.Share, l.Candidate
	st.LastDecision, st.Failed, st.Hooks = l.Last, l.Failed, l.hookStatus()
	switch {
	case l.Previous != "":
		st.Stable, st.Weight = l.Previous, 100
	case l.Next > 0 && l.Phase == v1alpha1.RolloutStepping:
		st.Reason = string(v1alpha1.ReasonSizing)
	case l.Phase != v1alpha1.RolloutStepping && l.Phase != v1alpha1.RolloutMirroring:
	case l.Evidence == 0:
		st.Reason = string(v1alpha1.ReasonApplying)
	default:
		st.Reason = string(v1alpha1.ReasonSoaking)
	}
	if !l.Entered.IsZero() {
		st.Since = &metav1.Time{Time: l.Entered}
	}
	if until := at(o.wake).with(at(o.soaks)).wake; !until.IsZero() {
		st.Until = &metav1.Time{Time: until.UTC().Truncate(time.Second)}
	}
	if phase := l.Standing(); l.Evidence != 0 && (l.Testing() || phase == v1alpha1.RolloutPromoting || phase == v1alpha1.RolloutBaking) {
		st.Measured, st.Evidence = d.measured(f), d.evidence(f)
	}
	return st
}

// evidence that the status shows: what it showed before, as long as that leads to the same decisions. While only time is waited for,
// nothing is shown of checks that pass from the first: the decision that follows has their numbers.
func (d Decision) evidence(f Facts) []v1alpha1.EvidenceStatus {
	var known []v1alpha1.EvidenceStatus
	if d.evidenceCounts(f) {
		known = f.Evidence.status()
	}
	o := d.Rollout
	steps := d.Ledger.Standing() != v1alpha1.RolloutBaking && o.soaks.IsZero()
	says := slices.ContainsFunc(known, func(e v1alpha1.EvidenceStatus) bool { return e.Message != "" })
	if !o.Moved && (alike(f.Shown, known, steps) || len(f.Shown) == 0 && !steps && !says && f.Evidence.passing()) {
		return f.Shown
	}
	return known
}

// Reached reports whether requests, or copies of them, reach the revision beside the live one, or may at any moment: a candidate has a
// share of them, and the revision before it may get them back.
func (d Decision) Reached() bool {
	return d.Ledger.Previous != "" || d.Weight > 0 || d.Mirror || d.Rollout != nil && d.Coming && d.Ledger.Standing() != v1alpha1.RolloutPreparing
}

// Stays reports whether a rollout is under way and stays in its phase. What is shown of numbers may then stay as well.
func (d Decision) Stays() bool {
	phase := d.Ledger.Standing()
	return d.Rollout != nil && !d.Rollout.Moved && phase != v1alpha1.RolloutStable && phase != v1alpha1.RolloutRolledBack
}

// alike reports whether what was shown of the checks leads to the same decisions as what is known now. That they pass leads to one
// where a step can end by it.
func alike(shown, known []v1alpha1.EvidenceStatus, steps bool) bool {
	deciding := func(verdicts string) observev1alpha1.Standing {
		s := observev1alpha1.StandingOf(verdicts).Deciding()
		s.Passing = s.Passing && steps
		return s
	}
	return slices.EqualFunc(shown, known, func(a, b v1alpha1.EvidenceStatus) bool {
		return a.Name == b.Name && a.Asked == b.Asked && a.Message == b.Message && deciding(a.Verdicts) == deciding(b.Verdicts)
	})
}

// Previewed is the slot in which a candidate can be tried before all requests reach it, or empty. It is known with the first objects of
// the candidate: a pass later, it would be another change of the status, for which Crossplane applies every object again.
func (d Decision) Previewed(f Facts) string {
	beside := f.Slots[d.Beside.Slot]
	another := beside.Exists && beside.Revision != d.Ledger.Candidate
	if d.Tested() == "" || !d.Coming || another || d.Beside.Revision != d.Ledger.Candidate || !beside.HasService {
		return ""
	}
	return d.Beside.Slot
}

// measured requests, in words.
func (d Decision) measured(f Facts) string {
	var words string
	through := fmt.Sprintf("through Gateway %q of namespace %q", f.Gateway.Name, f.Gateway.Namespace)
	switch phase := d.Ledger.Standing(); {
	case phase == v1alpha1.RolloutPromoting, phase == v1alpha1.RolloutBaking:
		words = "all requests"
	case phase == v1alpha1.RolloutMirroring:
		words = "copies of requests " + through
	case f.ByReplicas:
		words = "requests to the Service, by the number of replicas"
	case d.Pooled:
		words = "requests " + through + "; clients of the Service reach both revisions by the number of replicas, and count for the one that they reach"
	default:
		words = "requests " + through + "; clients of the Service reach the live revision only, and count for the baseline"
	}
	if f.Evidence.Omitted != "" {
		words += ". Failures are not compared: " + f.Evidence.Omitted
	}
	return words
}

// evidenceCounts reports whether the evidence is about the present weight. What was gathered for the one before says nothing
// about it.
func (d Decision) evidenceCounts(f Facts) bool {
	return d.Ledger.Evidence != 0 && d.Ledger.Evidence == f.Ledger.Evidence
}

// Annotation by which the provider serves the phase as a metric, or empty.
func (d Decision) Annotation() string {
	l := d.Ledger
	if d.Rollout == nil {
		return ""
	}
	told := observev1alpha1.RolloutTold{Phase: string(cmp.Or(l.Phase, v1alpha1.RolloutStable)), Reason: string(l.Reason)}
	if !l.Entered.IsZero() {
		told.Since = new(metav1.NewTime(l.Entered))
	}
	raw, _ := json.Marshal(told) //nolint:errchkjson // Text and a time of this century always marshal.
	return string(raw)
}

// Updated is how far the candidate has come, as the condition of that type, or nil where the rollout has nothing to report. It
// changes as rarely as it can: the phases, and numbers that change by themselves, are in status.rollout. Each change of a
// condition has Crossplane look at the Algorithm several times. Every message ends with what serves until then.
func (d Decision) Updated(f Facts, serves string) *xpv2.Condition {
	l, o, failed := d.Ledger, d.Rollout, d.Ledger.Failure(f.Target)
	is := func(reason xpv2.ConditionReason, message string) *xpv2.Condition {
		return new(compose.False(v1alpha1.TypeUpdated, reason, message))
	}
	switch {
	case o == nil && failed != nil:
		return is(v1alpha1.ReasonRolledBack, fmt.Sprintf(
			"revision %s was rolled back: %s: %s. Correct the spec; with spec.lifecycle it can be tried again by retry: %q%s",
			failed.Revision, failed.Reason, failed.Message, fmt.Sprintf("%s#%d", failed.Revision, failed.Attempts+1), serves))
	case o == nil:
		return nil
	}
	switch phase := l.Phase; {
	case phase == v1alpha1.RolloutHolding, phase == v1alpha1.RolloutRolledBack && failed == nil:
		return is(l.Reason, o.Message+serves)
	case (phase == v1alpha1.RolloutRolledBack || phase == v1alpha1.RolloutRollingBack) && failed != nil:
		reason := v1alpha1.ReasonRolledBack
		if f.retries(failed) {
			reason = v1alpha1.ReasonCoolingDown
		}
		return is(reason, remedyOf(failed)+serves)
	case phase == v1alpha1.RolloutRollingBack:
		return is(v1alpha1.ReasonRolledBack, fmt.Sprintf("requests go back to revision %s: see status.rollout", l.Revision))
	case phase == v1alpha1.RolloutStepping, phase == v1alpha1.RolloutMirroring,
		phase == v1alpha1.RolloutPreparing && f.Slots[d.Beside.Slot].Trouble == "":
		return is(v1alpha1.ReasonRollingOut, fmt.Sprintf(
			"revision %s is under test, and all other clients reach revision %s: see status.rollout", l.Candidate, l.Revision))
	default:
		return nil
	}
}

// RolledBack reports whether the spec asks for what was rolled back, so that no rollout is under way.
func (d Decision) RolledBack(target string) bool {
	return d.Ledger.Phase == v1alpha1.RolloutRolledBack || d.Rollout == nil && d.Ledger.Failure(target) != nil
}

// expected are reasons to hold or to go back that are no cause for worry.
var expected = []xpv2.ConditionReason{
	v1alpha1.ReasonReverted, v1alpha1.ReasonSuperseded, v1alpha1.ReasonAwaitingApproval, v1alpha1.ReasonFreezeWindow,
	v1alpha1.ReasonRolloutPaused,
	v1alpha1.ReasonArmABetter, v1alpha1.ReasonArmBBetter, v1alpha1.ReasonNoDifference, v1alpha1.ReasonDurationOver,
	v1alpha1.ReasonExperimentEdited, v1alpha1.ReasonExperimentRemoved,
}

// Events of the pass: one for a transition. That a share is in force, which was reported when it was decided, is none: few events
// of one object get through.
func (d Decision) Events() []compose.Event {
	if d.Rollout == nil || !d.Rollout.Moved {
		return nil
	}
	last := d.Ledger.Last
	if last.Reason == string(v1alpha1.ReasonSoaking) && last.From == last.To {
		return nil
	}
	worrying := (last.To == v1alpha1.RolloutRollingBack || last.To == v1alpha1.RolloutHolding) &&
		!slices.Contains(expected, xpv2.ConditionReason(last.Reason))
	return []compose.Event{{
		Reason: string(last.To), Message: fmt.Sprintf("%s (%s): %s", last.To, last.Reason, last.Message), Warning: worrying,
	}}
}

// mostRolling is the longest time between two looks while traffic is about to shift, in case a change goes unheard.
const mostRolling = time.Minute

// Deadlines are when something about the rollout changes by time alone.
func (d Decision) Deadlines(now time.Time) []time.Time {
	if d.Rollout == nil {
		return nil
	}
	at := []time.Time{d.Rollout.wake, d.Rollout.silentAt}
	// The Analysis reports what it waits for.
	if d.Watched() && !d.Rollout.silentAt.IsZero() {
		return at
	}
	switch d.Ledger.Phase {
	case v1alpha1.RolloutPreparing, v1alpha1.RolloutMirroring, v1alpha1.RolloutStepping, v1alpha1.RolloutPromoting, v1alpha1.RolloutRollingBack:
		return append(at, now.Add(mostRolling))
	default:
		return at
	}
}

// Experimenting reports whether requests reach both arms, which nothing but evidence and time ends.
func (d Decision) Experimenting() bool { return d.Ledger.Experiment != nil && d.Ledger.Evidence != 0 }

// Watched reports whether nothing but evidence and time ends the phase. The Analysis promises to report what changes a decision, and
// the end of that promise is a deadline.
func (d Decision) Watched() bool {
	return d.Experimenting() || d.Rollout != nil && (d.Ledger.Phase == v1alpha1.RolloutBaking || d.Soaking())
}

// Soaking reports whether a share of requests, or copies of them, are in force, and evidence is being gathered.
func (d Decision) Soaking() bool {
	l := d.Ledger
	soaks := l.Phase == v1alpha1.RolloutStepping || l.Phase == v1alpha1.RolloutMirroring
	return d.Rollout != nil && soaks && l.Evidence != 0 && l.Next == 0
}

// Tested is the candidate until all requests reach it, or empty. An arm of an experiment is no candidate to be live.
func (d Decision) Tested() string {
	if d.Rollout != nil && d.Ledger.Previous == "" && d.Ledger.Experiment == nil {
		return d.Ledger.Candidate
	}
	return ""
}

// ExperimentStatus is where an experiment stands, or the result of the last one.
func (d Decision) ExperimentStatus(f Facts) *v1alpha1.AlgorithmExperiment {
	l, o := d.Ledger, d.Rollout
	over := l.Ran(f.Named) || f.Experiment != nil && f.Experiment.Over
	named := func(phase v1alpha1.ExperimentPhase, winner v1alpha1.ExperimentWinner, w Waiting) *v1alpha1.AlgorithmExperiment {
		return &v1alpha1.AlgorithmExperiment{Name: f.Named, ExperimentState: v1alpha1.ExperimentState{
			Phase: phase, Winner: winner, Reason: string(w.Reason), Message: w.Message,
		}}
	}
	switch {
	case o != nil && l.Experiment != nil:
		return d.underWay(f)
	case f.Named != "" && !over:
		waits := Waiting{v1alpha1.ReasonRolloutFirst, "it begins once all requests reach what the spec asks for, and nothing else is in the other slot"}
		if f.Unusable.Reason != "" {
			waits = f.Unusable
		} else if o != nil && o.Waits.Reason != "" {
			waits = o.Waits
		}
		return named(v1alpha1.ExperimentWaiting, "", waits)
	case f.Named != "" && (l.Compared == nil || l.Compared.Name != f.Named):
		return named(v1alpha1.ExperimentEnded, v1alpha1.WinnerInconclusive, Waiting{v1alpha1.ReasonExperimentOver, fmt.Sprintf(
			"experiment %s has been run: create an Experiment with another name, or remove spec.experiment", f.Named)})
	default:
		return l.Compared
	}
}

// underWay is the state of the experiment that runs.
func (d Decision) underWay(f Facts) *v1alpha1.AlgorithmExperiment {
	l := d.Ledger
	var found observev1alpha1.ExperimentObservation
	if d.evidenceCounts(f) {
		found = f.Evidence.Experiment
	}
	st := compared(l, found)
	st.Phase, st.Reason, st.Message = v1alpha1.ExperimentRunning, string(v1alpha1.ReasonExperimenting), d.Rollout.Message
	// It runs once the share of arm B is in force.
	if l.Evidence == 0 {
		st.Phase, st.Reason = v1alpha1.ExperimentPreparing, string(v1alpha1.ReasonPreparing)
	}
	if l.Phase == v1alpha1.RolloutHolding {
		st.Reason = string(l.Reason)
	}
	return &st
}

// ExperimentDecided is the result of the requested experiment as the condition of that type, or nil without one. It changes with
// the phase only: numbers that change by themselves are in status.experiment. It says so when spec.experiment names one that
// cannot be used while another one runs, which continues.
func (d Decision) ExperimentDecided(f Facts) *xpv2.Condition {
	st := d.ExperimentStatus(f)
	if st == nil || f.Named == "" {
		return nil
	}
	if f.Unusable.Reason != "" && st.Name != f.Named {
		return new(compose.Unknown(v1alpha1.TypeExperimentDecided, f.Unusable.Reason,
			fmt.Sprintf("%s; experiment %s continues", f.Unusable.Message, st.Name)))
	}
	// As long as it goes as it should the condition stays the same: each change of it is a pass of Crossplane more, over the Algorithm and
	// over the Experiment.
	runs := st.Phase == v1alpha1.ExperimentRunning && st.Reason == string(v1alpha1.ReasonExperimenting)
	if _, waitsForGuardrails := verdictOf(f.Evidence.Experiment, 0); Prepares(st.ExperimentState) || runs && !waitsForGuardrails {
		return new(compose.Unknown(v1alpha1.TypeExperimentDecided, v1alpha1.ReasonExperimenting, "the experiment has not ended: see status.experiment"))
	}
	return new(Decided(st.ExperimentState))
}

// PreparesMessage is the message of an experiment that is prepared, where it is not to follow each step.
const PreparesMessage = "replicas of arm B start, and no request reaches it: see status.experiment"

// Prepares reports whether an experiment is prepared as it should, so that only time passes.
func Prepares(st v1alpha1.ExperimentState) bool {
	return st.Phase == v1alpha1.ExperimentPreparing && st.Reason == string(v1alpha1.ReasonPreparing)
}

// Decided is the result of an experiment as the condition ExperimentDecided.
func Decided(st v1alpha1.ExperimentState) xpv2.Condition {
	status := corev1.ConditionUnknown
	switch {
	case st.Phase == v1alpha1.ExperimentEnded && st.Winner == v1alpha1.WinnerInconclusive:
		status = corev1.ConditionFalse
	case st.Phase == v1alpha1.ExperimentEnded:
		status = corev1.ConditionTrue
	}
	return compose.NewCondition(v1alpha1.TypeExperimentDecided, status, xpv2.ConditionReason(st.Reason), st.Message)
}
