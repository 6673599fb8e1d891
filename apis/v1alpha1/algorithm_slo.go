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

	// FreezeRolloutsAtPercent is how much of the error budget, in percent, rollouts must not use: with no more left, rollouts
	// hold until there is more. With 0 they can use all of it, and with -1 the budget only informs. A
	// rollback is always possible. Default: 10.
	//
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=-1
	// +kubebuilder:validation:Maximum=99
	// +kubebuilder:example=10
	// +optional
	FreezeRolloutsAtPercent *int32 `json:"freezeRolloutsAtPercent,omitempty"`
}

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
