// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SLOParameters say which service level objective is accounted for. The pods of all
// slots count: what matters is what callers met, whoever answered.
type SLOParameters struct {
	// Availability is the share of requests, in percent, that must be answered well:
	// without failure, and within latencyMs where that is set.
	//
	// +kubebuilder:validation:XValidation:rule="self > 0.0 && self < 100.0",message="must be above 0 and below 100"
	// +kubebuilder:example=99.9
	Availability float64 `json:"availability"`

	// LatencyMs is the time in milliseconds beyond which an answer counts as bad.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600000
	// +kubebuilder:example=250
	// +optional
	LatencyMs *int32 `json:"latencyMs,omitempty"`

	// Window of time that the objective is about, up to now.
	//
	// +kubebuilder:default="720h"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1h') && duration(self) <= duration('2160h')",message="must be from 1h to 2160h"
	// +kubebuilder:example="720h"
	// +optional
	Window *metav1.Duration `json:"window,omitempty"`
}

// SLOObservation is what is left of an error budget, as of the last time that a fact
// changed: the verdict, a message, the budget by a percent (by ten below 0), a
// burn rate or the number of requests by more than a quarter and by more than chance
// explains.
type SLOObservation struct {
	// Verdict: Pass while some of the budget is left, Fail when nothing is,
	// Insufficient when there were too few requests to have a budget.
	Verdict Verdict `json:"verdict"`

	// Availability over the window, in percent.
	//
	// +optional
	Availability *float64 `json:"availability,omitempty"`

	// Failed is the share of requests over the window that failed, in percent.
	//
	// +optional
	Failed *float64 `json:"failed,omitempty"`

	// Slow is the share of requests over the window that took longer than latencyMs, in
	// percent.
	//
	// +optional
	Slow *float64 `json:"slow,omitempty"`

	// BudgetRemainingPercent is what is left of the error budget, in percent of all of
	// it. Below 0 more went wrong than may; less than -1000 is not told.
	//
	// +optional
	BudgetRemainingPercent *int32 `json:"budgetRemainingPercent,omitempty"`

	// BurnRate1h is how many times as fast as the budget allows it was used in the last
	// hour, to two significant digits.
	//
	// +optional
	BurnRate1h *float64 `json:"burnRate1h,omitempty"`

	// BurnRate6h is the same of the last six hours.
	//
	// +optional
	BurnRate6h *float64 `json:"burnRate6h,omitempty"`

	// Samples is the number of requests within the window, to two significant digits.
	//
	// +optional
	Samples *int64 `json:"samples,omitempty"`

	// Expressions to record, so that alerts can follow the budget.
	//
	// +listType=map
	// +listMapKey=series
	// +optional
	Expressions []SLOExpression `json:"expressions,omitempty"`

	// Message tells what keeps the budget from being known, or what it is known of.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// SLOExpression is a PromQL expression about the pods of all slots together.
type SLOExpression struct {
	// Series that it is to be recorded as: capstan:slo_requests_per_second and
	// capstan:slo_bad_per_second.
	Series string `json:"series"`

	// Expression, narrowed to the pods of the Algorithm.
	Expression string `json:"expression"`
}
