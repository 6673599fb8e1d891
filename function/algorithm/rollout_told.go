// SPDX-License-Identifier: Apache-2.0

package algorithm

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

// rolloutStatus tells where the rollout stands.
func (s *state) rolloutStatus() *v1alpha1.RolloutStatus {
	if s.spec.Lifecycle == nil {
		return nil
	}

	l, r := s.decision.ledger, s.decision.rollout
	st := &v1alpha1.RolloutStatus{
		Phase: v1alpha1.RolloutBootstrapping, Epoch: l.Epoch, Stable: l.Revision, Ledger: l.text(),
	}

	if r == nil {
		if l.Revision != "" {
			st.Phase = v1alpha1.RolloutStable
		}

		return st
	}

	st.Phase, st.Held, st.Reason, st.Message = l.Phase, l.Held, string(l.Reason), r.message
	st.Weight, st.Share, st.Candidate = s.weight(), s.share(), l.Candidate
	st.LastDecision, st.Failed = l.Last, l.Failed

	if st.Phase == "" {
		st.Phase = v1alpha1.RolloutStable
	}

	switch {
	case l.Previous != "":
		st.Stable, st.Weight = l.Previous, 100
	case l.Next > 0 && l.Phase == v1alpha1.RolloutStepping:
		st.Reason = string(v1alpha1.ReasonSizing)
	case (l.Phase == v1alpha1.RolloutStepping || l.Phase == v1alpha1.RolloutMirroring) && l.Evidence == 0:
		st.Reason = string(v1alpha1.ReasonApplying)
	case l.Phase == v1alpha1.RolloutStepping, l.Phase == v1alpha1.RolloutMirroring:
		st.Reason = string(v1alpha1.ReasonSoaking)
	}

	if !l.Entered.IsZero() {
		st.Since = &metav1.Time{Time: l.Entered}
	}

	if !r.until.IsZero() {
		st.Until = &metav1.Time{Time: r.until.UTC().Truncate(time.Second)}
	}

	// What was gathered for the weight before says nothing about this one.
	if l.Evidence != 0 && l.Evidence == s.ledger.Evidence {
		st.Evidence = r.evidence.checks
	}

	return st
}

// rolloutTold is where the rollout stands, for the provider to serve as a metric.
func (s *state) rolloutTold() string {
	r, l := s.decision.rollout, s.decision.ledger
	if r == nil {
		return ""
	}

	told := observev1alpha1.RolloutTold{Phase: string(cmp.Or(l.Phase, v1alpha1.RolloutStable)), Reason: string(l.Reason)}
	if !l.Entered.IsZero() {
		told.Since = new(metav1.NewTime(l.Entered))
	}

	raw, _ := json.Marshal(told) //nolint:errchkjson // Text and a time of this century always marshal.

	return string(raw)
}

// rolling tells how far the candidate has come, as the condition Updated. It changes
// as rarely as it can: the phases, and numbers that change by themselves, are told in
// status.rollout. Each change of a condition has Crossplane look at the Algorithm
// several times.
func (s *state) rolling(serves string) (xpv2.Condition, bool) {
	r, l := s.decision.rollout, s.decision.ledger

	if f := l.failure(s.target); r == nil && f != nil {
		return xpv2.Condition{
			Type: v1alpha1.TypeUpdated, Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonRolledBack, Message: fmt.Sprintf(
				"revision %s was rolled back: %s: %s. Correct the spec; with spec.lifecycle it can be tried again by retry: %q%s",
				f.Revision, f.Reason, f.Message, fmt.Sprintf("%s#%d", f.Revision, f.Attempts+1), serves),
		}, true
	}

	if r == nil {
		return xpv2.Condition{}, false
	}

	c := xpv2.Condition{Type: v1alpha1.TypeUpdated, Status: corev1.ConditionFalse, Reason: l.Reason}
	trouble, _ := s.trouble(s.decision.beside.slot)
	f := r.failure(s.target)

	switch phase := l.Phase; {
	case phase == v1alpha1.RolloutHolding, phase == v1alpha1.RolloutRolledBack && f == nil:
		c.Message = r.message + serves
	case (phase == v1alpha1.RolloutRolledBack || phase == v1alpha1.RolloutRollingBack) && f != nil:
		if c.Reason = v1alpha1.ReasonRolledBack; r.retries(f) {
			c.Reason = v1alpha1.ReasonCoolingDown
		}

		c.Message = remedyOf(f) + serves
	case phase == v1alpha1.RolloutRollingBack:
		c.Reason = v1alpha1.ReasonRolledBack
		c.Message = fmt.Sprintf("callers go back to revision %s: see status.rollout", l.Revision)
	case phase == v1alpha1.RolloutStepping, phase == v1alpha1.RolloutMirroring, phase == v1alpha1.RolloutPreparing && trouble == "":
		c.Reason = v1alpha1.ReasonRollingOut
		c.Message = fmt.Sprintf("revision %s is tried, and all other callers reach %s: see status.rollout", l.Candidate, l.Revision)
	default:
		return xpv2.Condition{}, false
	}

	return c, true
}

// announce a transition, by one event. That a share of callers is in force, which was
// told when it was decided, is none: few events of one object get through.
func announce(s *state) error {
	r := s.decision.rollout
	if r == nil || !r.moved {
		return nil
	}

	last := r.ledger.Last
	if last.Reason == string(v1alpha1.ReasonSoaking) && last.From == last.To {
		return nil
	}

	e := compose.Event{Reason: string(last.To), Message: fmt.Sprintf("%s (%s): %s", last.To, last.Reason, last.Message)}

	switch last.To {
	case v1alpha1.RolloutRollingBack, v1alpha1.RolloutHolding:
		e.Warning = !slices.Contains(expected, xpv2.ConditionReason(last.Reason))
	default:
	}

	s.plan.Events = append(s.plan.Events, e)

	return nil
}

// expected are reasons to hold or to go back that nobody has to worry about.
var expected = []xpv2.ConditionReason{
	v1alpha1.ReasonReverted, v1alpha1.ReasonSuperseded, v1alpha1.ReasonAwaitingApproval, v1alpha1.ReasonFreezeWindow,
	v1alpha1.ReasonArmABetter, v1alpha1.ReasonArmBBetter, v1alpha1.ReasonNoDifference, v1alpha1.ReasonDurationOver,
	v1alpha1.ReasonExperimentEdited, v1alpha1.ReasonExperimentRemoved,
}

// mostRolling is the longest time between two looks while callers are about to
// move, in case a change goes unheard.
const mostRolling = time.Minute

// rolloutDeadlines are when something about the rollout changes by time alone.
func (s *state) rolloutDeadlines() []time.Time {
	r := s.decision.rollout
	if r == nil {
		return nil
	}

	var at []time.Time
	for _, t := range []time.Time{r.until, r.silentAt} {
		if !t.IsZero() {
			at = append(at, t)
		}
	}

	// What an experiment waits for lasts for days, and the Analysis tells of it.
	if s.experimenting() {
		return at
	}

	switch s.decision.ledger.Phase {
	case v1alpha1.RolloutPreparing, v1alpha1.RolloutMirroring, v1alpha1.RolloutStepping, v1alpha1.RolloutPromoting, v1alpha1.RolloutRollingBack:
		at = append(at, s.Now.Add(mostRolling))
	default:
	}

	return at
}
