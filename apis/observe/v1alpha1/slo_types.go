// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SLOParameters define the service level objective to measure. The pods of all slots count, because clients do not see
// which of them responds.
type SLOParameters struct {
	// Availability is the percentage of requests that must have a good response: no failure and, where latencyMs is
	// set, within that time.
	//
	// +kubebuilder:validation:XValidation:rule="self > 0.0 && self < 100.0",message="must be above 0 and below 100"
	// +kubebuilder:example=99.9
	Availability float64 `json:"availability"`

	// LatencyMs is the time limit of a good response in milliseconds. Default: latency does not count.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600000
	// +kubebuilder:example=250
	// +optional
	LatencyMs *int32 `json:"latencyMs,omitempty"`

	// Window is the time range of the objective, up to now, from 1h to 2160h. Default: 720h.
	//
	// +kubebuilder:default="720h"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1h') && duration(self) <= duration('2160h')",message="must be from 1h to 2160h"
	// +kubebuilder:example="720h"
	// +optional
	Window *metav1.Duration `json:"window,omitempty"`
}

// SLOObservation is the state of an error budget. It changes only with a fact: the verdict, the message, or the budget
// by one percent (by ten below 0). A burn rate and the number of requests must change by more than a quarter and by
// more than chance explains.
type SLOObservation struct {
	// Verdict: Pass while some budget is left, Fail when none is, Insufficient when there were too few requests for a
	// budget.
	Verdict Verdict `json:"verdict"`

	// Availability over the window, in percent.
	//
	// +optional
	Availability *float64 `json:"availability,omitempty"`

	// Failed is the percentage of requests in the window that failed.
	//
	// +optional
	Failed *float64 `json:"failed,omitempty"`

	// Slow is the percentage of requests in the window that took longer than latencyMs.
	//
	// +optional
	Slow *float64 `json:"slow,omitempty"`

	// BudgetRemainingPercent is the percentage of the error budget that is left, not below -1000. Below 0 the objective
	// is missed.
	//
	// +optional
	BudgetRemainingPercent *int32 `json:"budgetRemainingPercent,omitempty"`

	// BurnRate1h is how fast the last hour used the budget, to two significant digits. At 1 the budget lasts exactly
	// for the window.
	//
	// +optional
	BurnRate1h *float64 `json:"burnRate1h,omitempty"`

	// BurnRate6h is how fast the last six hours used the budget, like burnRate1h.
	//
	// +optional
	BurnRate6h *float64 `json:"burnRate6h,omitempty"`

	// Samples is the number of requests in the window, to two significant digits.
	//
	// +optional
	Samples *int64 `json:"samples,omitempty"`

	// Expressions to record, for alerts on the budget.
	//
	// +listType=map
	// +listMapKey=series
	// +optional
	Expressions []SLOExpression `json:"expressions,omitempty"`

	// Message explains why the budget is unknown, or how much of the window it covers.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// Series that an Algorithm with an objective records of all its slots together: see SLOExpression.
const (
	SeriesSLORequests = "capstan:slo_requests_per_second"
	SeriesSLOBad      = "capstan:slo_bad_per_second"
)

// SLOExpression is a PromQL expression for the pods of all slots together.
type SLOExpression struct {
	// Series to record it as: capstan:slo_requests_per_second and capstan:slo_bad_per_second.
	Series string `json:"series"`

	// Expression, restricted to the pods of the Algorithm.
	Expression string `json:"expression"`
}
