// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SLO is the service level objective: objectives.successRatio over a long time, whichever revision responds. The rest is
// the error budget.
type SLO struct {
	// FailedAfterMs is the time in milliseconds after which a response counts as a failed request of the error budget. It
	// is for every request, and so longer than objectives.latencyMs, which some of them can exceed. Default: only requests
	// that fail count.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600000
	// +kubebuilder:example=250
	// +optional
	FailedAfterMs *int32 `json:"failedAfterMs,omitempty"`

	// Window is the time range of the objective, up to now: from 1h to 2160h, which is 90 days. Default: 720h, which is
	// 30 days.
	//
	// +kubebuilder:default="720h"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,3})?(ms|s|m|h)){1,4}$') && duration(self) >= duration('1h') && duration(self) <= duration('2160h')",message="must be a time from 1h to 2160h, for instance 720h for 30 days"
	// +kubebuilder:example="720h"
	// +optional
	Window *metav1.Duration `json:"window,omitempty"`

	// MinBudgetPercent is the percentage of the error budget that rollouts must not use. With 0 they can use all of it.
	// Default: 10.
	//
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=99
	// +kubebuilder:example=10
	// +optional
	MinBudgetPercent *int32 `json:"minBudgetPercent,omitempty"`

	// OnExhausted is what happens when no more than minBudgetPercent of the budget is left. FreezeRollouts holds the
	// rollouts of spec.lifecycle until there is more; None does nothing. A rollback is always possible. Default:
	// FreezeRollouts.
	//
	// +kubebuilder:default=FreezeRollouts
	// +kubebuilder:example=FreezeRollouts
	// +optional
	OnExhausted OnExhausted `json:"onExhausted,omitempty"`
}

// OnExhausted is what happens when the error budget is used up.
//
// +kubebuilder:validation:Enum=FreezeRollouts;None
type OnExhausted string

// What happens when the error budget is used up.
const (
	// ExhaustedFreezeRollouts holds rollouts until there is budget again.
	ExhaustedFreezeRollouts OnExhausted = "FreezeRollouts"
	// ExhaustedNone only reports it.
	ExhaustedNone OnExhausted = "None"
)

// SLOStatus is the state of the error budget. It is updated only when a number has changed noticeably.
type SLOStatus struct {
	// Verdict: Pass while some budget is left, Fail when none is, Insufficient when there were too few requests for a
	// budget, NoData or Error when it is unknown.
	//
	// +optional
	Verdict string `json:"verdict,omitempty"`

	// Availability over the window, in percent.
	//
	// +optional
	Availability *float64 `json:"availability,omitempty"`

	// BudgetRemainingPercent is the percentage of the error budget that is left. Below 0 the objective is missed.
	//
	// +optional
	BudgetRemainingPercent *int32 `json:"budgetRemainingPercent,omitempty"`

	// BurnRate1h is how fast the last hour used the budget. At 1 the budget lasts exactly for the window; at 2 for half
	// of it.
	//
	// +optional
	BurnRate1h *float64 `json:"burnRate1h,omitempty"`

	// BurnRate6h is how fast the last six hours used the budget, like burnRate1h.
	//
	// +optional
	BurnRate6h *float64 `json:"burnRate6h,omitempty"`

	// Message explains why the budget is unknown, or how much of the window it covers.
	//
	// +optional
	Message string `json:"message,omitempty"`
}
