// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

// sloParameters are what is accounted for.
func (s *state) sloParameters() *observev1alpha1.SLOParameters {
	o := s.spec.SLO
	if o == nil {
		return nil
	}

	return &observev1alpha1.SLOParameters{Availability: o.Availability, LatencyMs: o.LatencyMs, Window: o.Window}
}

// accounted is what the Analysis tells of the error budget. It is empty as long as it
// tells nothing.
func (s *state) accounted() observev1alpha1.SLOObservation {
	var o observev1alpha1.SLOObservation

	a := s.Observed[nameAnalysis]
	if a == nil || s.spec.SLO == nil {
		return o
	}

	raw, err := json.Marshal(compose.Map(a.Map(), "status", "atProvider", "slo"))
	if err == nil {
		err = json.Unmarshal(raw, &o)
	}

	// What cannot be read, as from a later version, tells nothing.
	if err != nil {
		return observev1alpha1.SLOObservation{}
	}

	return o
}

// sloStatus of the Algorithm.
func (s *state) sloStatus() *v1alpha1.SLOStatus {
	o := s.accounted()
	if o.Verdict == "" {
		return nil
	}

	return &v1alpha1.SLOStatus{
		Verdict:                string(o.Verdict),
		Availability:           o.Availability,
		BudgetRemainingPercent: o.BudgetRemainingPercent,
		BurnRate1h:             o.BurnRate1h,
		BurnRate6h:             o.BurnRate6h,
		Message:                o.Message,
	}
}

// budgetExhausted tells whether the error budget lets no revision be tried, and why.
// A budget that nobody knows is not used up: rollouts wait for metrics anyway.
func (s *state) budgetExhausted() (message string, exhausted bool) {
	o := s.spec.SLO
	if o == nil || o.OnExhausted != v1alpha1.ExhaustedFreezeRollouts {
		return "", false
	}

	left := s.accounted().BudgetRemainingPercent
	if left == nil || *left > *o.MinBudgetPercent {
		return "", false
	}

	return fmt.Sprintf("%d %% of the error budget of spec.slo is left: rollouts go on when it is more than minBudgetPercent, %d %%", *left, *o.MinBudgetPercent), true
}

// withinSLO tells whether some of the error budget is left.
func (s *state) withinSLO() (xpv2.Condition, bool) {
	c := xpv2.Condition{Type: v1alpha1.TypeWithinSLO, Status: corev1.ConditionUnknown}
	if s.spec.SLO == nil {
		return c, false
	}

	o := s.accounted()
	frozen, freezes := s.budgetExhausted()

	switch {
	case !s.observes():
		c.Reason = v1alpha1.ReasonProviderMissing
		c.Message = providerMissing
	case o.Verdict == observev1alpha1.VerdictError:
		c.Reason, c.Message = v1alpha1.ReasonQueryFailed, o.Message
	case o.Verdict == observev1alpha1.VerdictNoData:
		c.Reason, c.Message = v1alpha1.ReasonNoData, o.Message
	case o.Verdict == observev1alpha1.VerdictInsufficient:
		c.Reason, c.Message = v1alpha1.ReasonTooLittleData, o.Message
	case o.BudgetRemainingPercent == nil || o.Availability == nil:
		c.Reason, c.Message = v1alpha1.ReasonMeasuring, "the error budget was not looked at yet"
	case o.Verdict == observev1alpha1.VerdictFail:
		c.Status, c.Reason = corev1.ConditionFalse, v1alpha1.ReasonBudgetExhausted
		c.Message = fmt.Sprintf("nothing of the error budget is left: availability %g %% over %s, asked for %g %%",
			*o.Availability, words(s.spec.SLO.Window.Duration), s.spec.SLO.Availability)

		if freezes {
			c.Message += "; rollouts hold until more than " + fmt.Sprintf("%d %% of it is left", *s.spec.SLO.MinBudgetPercent)
		}
	case freezes:
		c.Status, c.Reason, c.Message = corev1.ConditionTrue, v1alpha1.ReasonBudgetLow, frozen
	default:
		c.Status, c.Reason, c.Message = corev1.ConditionTrue, v1alpha1.ReasonBudgetLeft, "some of the error budget is left: status.slo tells how much"
	}

	return c, true
}
