// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SLO is a service level objective: the share of requests that callers must get
// answered well over a long time, whichever revision answers. What may go wrong
// nevertheless is the error budget.
type SLO struct {
	// Availability is the share of requests, in percent, that must be answered well:
	// without failure, and within latencyMs where that is set.
	//
	// +kubebuilder:validation:XValidation:rule="self > 0.0 && self < 100.0",message="must be above 0 and below 100, for instance 99.9: of 100 nothing could ever go wrong, and there would be no budget"
	// +kubebuilder:example=99.9
	Availability float64 `json:"availability"`

	// LatencyMs is the time in milliseconds within which a request must be answered.
	// Slower ones count as bad. Default: latency does not count.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600000
	// +kubebuilder:example=250
	// +optional
	LatencyMs *int32 `json:"latencyMs,omitempty"`

	// Window of time that the objective is about, up to now: from 1h to 2160h, which is
	// 90 days.
	//
	// +kubebuilder:default="720h"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,3})?(ms|s|m|h)){1,4}$') && duration(self) >= duration('1h') && duration(self) <= duration('2160h')",message="must be a time from 1h to 2160h, for instance 720h for 30 days"
	// +kubebuilder:example="720h"
	// +optional
	Window *metav1.Duration `json:"window,omitempty"`

	// MinBudgetPercent is the part of the error budget, in percent of all of it, that
	// rollouts must leave untouched. At 0 they may use all of it.
	//
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=99
	// +kubebuilder:example=10
	// +optional
	MinBudgetPercent *int32 `json:"minBudgetPercent,omitempty"`

	// OnExhausted says what happens when no more of the budget is left than
	// minBudgetPercent: FreezeRollouts holds the rollouts of spec.lifecycle until there
	// is, None nothing. To go back is always possible.
	//
	// +kubebuilder:default=FreezeRollouts
	// +kubebuilder:example=FreezeRollouts
	// +optional
	OnExhausted OnExhausted `json:"onExhausted,omitempty"`
}

// OnExhausted says what happens when the error budget is used up.
//
// +kubebuilder:validation:Enum=FreezeRollouts;None
type OnExhausted string

// What happens when the error budget is used up.
const (
	// ExhaustedFreezeRollouts holds rollouts until there is a budget again.
	ExhaustedFreezeRollouts OnExhausted = "FreezeRollouts"
	// ExhaustedNone only tells.
	ExhaustedNone OnExhausted = "None"
)

// SLOStatus tells what is left of the error budget, as of the last time that it
// changed by more than a step.
type SLOStatus struct {
	// Verdict: Pass while some of the budget is left, Fail when nothing is,
	// Insufficient when there were too few requests to have a budget, NoData and Error
	// when nobody knows.
	//
	// +optional
	Verdict string `json:"verdict,omitempty"`

	// Availability over the window, in percent.
	//
	// +optional
	Availability *float64 `json:"availability,omitempty"`

	// BudgetRemainingPercent is what is left of the error budget, in percent of all of
	// it. Below 0 more went wrong than may.
	//
	// +optional
	BudgetRemainingPercent *int32 `json:"budgetRemainingPercent,omitempty"`

	// BurnRate1h is how many times as fast as the budget allows it was used in the last
	// hour. At 1 it lasts for just the window.
	//
	// +optional
	BurnRate1h *float64 `json:"burnRate1h,omitempty"`

	// BurnRate6h is the same of the last six hours.
	//
	// +optional
	BurnRate6h *float64 `json:"burnRate6h,omitempty"`

	// Message tells what keeps the budget from being known, or what it is known of.
	//
	// +optional
	Message string `json:"message,omitempty"`
}
