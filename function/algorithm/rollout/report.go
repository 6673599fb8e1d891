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
	st.LastDecision, st.Failed = l.Last, l.Failed
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
	if !o.wake.IsZero() {
		st.Until = &metav1.Time{Time: o.wake.UTC().Truncate(time.Second)}
	}
	if d.evidenceCounts(f) {
		st.Evidence, st.Measured = f.Evidence.status(), d.measured(f)
	}
	return st
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
	// What an experiment waits for lasts for days, and the Analysis reports it.
	if d.Experimenting() {
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
	return d.Experimenting() || d.Rollout != nil && d.Ledger.Phase == v1alpha1.RolloutBaking
}

// Tested is the candidate until all requests reach it, or empty. An arm of an experiment is no candidate to be live.
func (d Decision) Tested() string {
	if d.Rollout != nil && d.Ledger.Previous == "" && d.Ledger.Experiment == nil {
		return d.Ledger.Candidate
	}
	return ""
}

// ExperimentStatus is where an experiment stands, or the result of the last one.
func (d Decision) ExperimentStatus(f Facts) *v1alpha1.ExperimentStatus {
	l, e, o := d.Ledger, f.Experiment, d.Rollout
	switch {
	case o != nil && l.Experiment != nil:
		var found observev1alpha1.ExperimentObservation
		if d.evidenceCounts(f) {
			found = f.Evidence.Experiment
		}
		st := compared(l, found)
		st.Phase, st.Reason, st.Message = v1alpha1.ExperimentRunning, string(v1alpha1.ReasonExperimenting), o.Message
		if l.Standing() == v1alpha1.RolloutPreparing {
			st.Phase, st.Reason = v1alpha1.ExperimentPreparing, string(v1alpha1.ReasonPreparing)
		}
		if l.Phase == v1alpha1.RolloutHolding {
			st.Reason = string(l.Reason)
		}
		return &st
	case e != nil && !l.experimented(e.ID):
		st := &v1alpha1.ExperimentStatus{
			ID: e.ID, Phase: v1alpha1.ExperimentWaiting, Reason: string(v1alpha1.ReasonRolloutFirst),
			Message: "it begins once all requests reach what the spec asks for, and nothing else is in the other slot",
		}
		if o != nil && o.Waits.Reason != "" {
			st.Reason, st.Message = string(o.Waits.Reason), o.Waits.Message
		}
		return st
	case e != nil && (l.Compared == nil || l.Compared.ID != e.ID):
		return &v1alpha1.ExperimentStatus{
			ID: e.ID, Phase: v1alpha1.ExperimentEnded, Reason: string(v1alpha1.ReasonExperimentOver), Winner: v1alpha1.WinnerInconclusive,
			Message: fmt.Sprintf("experiment %s has been run: choose another id, or remove spec.experiment", e.ID),
		}
	default:
		return l.Compared
	}
}

// ExperimentDecided is the result of the requested experiment as the condition of that type, or nil without one. It changes with
// the phase only: numbers that change by themselves are in status.experiment.
func (d Decision) ExperimentDecided(f Facts) *xpv2.Condition {
	st := d.ExperimentStatus(f)
	if st == nil || f.Experiment == nil {
		return nil
	}
	status := corev1.ConditionUnknown
	switch {
	case st.Phase == v1alpha1.ExperimentEnded && st.Winner == v1alpha1.WinnerInconclusive:
		status = corev1.ConditionFalse
	case st.Phase == v1alpha1.ExperimentEnded:
		status = corev1.ConditionTrue
	}
	return new(compose.NewCondition(v1alpha1.TypeExperimentDecided, status, xpv2.ConditionReason(st.Reason), st.Message))
}
