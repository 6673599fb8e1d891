// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// CanaryParameters define the evidence about a candidate beside the live revision.
type CanaryParameters struct {
	// Epoch of the evidence. A new epoch starts from zero, so that nothing earlier counts.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:example=41
	Epoch int64 `json:"epoch"`

	// Slot of the candidate.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:example="b"
	Slot string `json:"slot"`

	// Baseline is the slot of the live revision. Default: no check is relative.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:example="a"
	// +optional
	Baseline string `json:"baseline,omitempty"`

	// Percent of the requests to the two slots that the candidate gets, where each request is drawn. Checks relative to
	// the baseline then pass only while both slots get their shares. Default: unknown, and not compared.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=99
	// +kubebuilder:example=20
	// +optional
	Percent *int32 `json:"percent,omitempty"`

	// Settle is the longest time at the beginning of an epoch that does not count, because the windows of Prometheus
	// still contain earlier requests. It is shorter where pods are scraped more often. At most 1h. Default: 30s.
	//
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s') && duration(self) <= duration('1h')",message="must be at most 1h"
	// +kubebuilder:example="30s"
	// +optional
	Settle *metav1.Duration `json:"settle,omitempty"`

	// MinSamples is the minimum number of requests for a Pass. Default: 100.
	//
	// +kubebuilder:default=100
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:example=100
	// +optional
	MinSamples int32 `json:"minSamples,omitempty"`

	// DecidesAt is when passes can decide: at the end of a share's time, or of the bake, which has no baseline. A pass before
	// then changes no decision. The first query of the bake from then on is reported. Default: at any time.
	//
	// +kubebuilder:example="2026-11-26T12:30:00Z"
	// +optional
	DecidesAt *metav1.Time `json:"decidesAt,omitempty"`

	// Checks to evaluate.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=24
	// +listType=map
	// +listMapKey=name
	Checks []Check `json:"checks"`

	// Experiment compares the two revisions to find the better one. It needs a baseline.
	//
	// +optional
	Experiment *ExperimentParameters `json:"experiment,omitempty"`
}

// CanaryObservation is the evidence about a candidate. It changes with each evaluation.
type CanaryObservation struct {
	// Epoch of the evidence.
	Epoch int64 `json:"epoch"`

	// StartedAt is when the epoch was first observed.
	StartedAt metav1.Time `json:"startedAt"`

	// LookedAt is the time of the latest query to Prometheus that is reported here, successful or not. Queries whose
	// result changes no decision are reported together, before LooksUntil.
	LookedAt metav1.Time `json:"lookedAt"`

	// LooksUntil is until when Prometheus is queried once per interval, and a result that changes a decision is
	// reported at once. After this time the evidence is not used.
	//
	// +optional
	LooksUntil *metav1.Time `json:"looksUntil,omitempty"`

	// CountedFrom is when counting began again, because both revisions had failed a check before. Checks count from then
	// on, and an experiment from the beginning of the epoch. Empty: they count from the beginning as well.
	//
	// +optional
	CountedFrom *metav1.Time `json:"countedFrom,omitempty"`

	// Looks is the number of evaluations since the epoch settled.
	Looks int64 `json:"looks"`

	// Errors is the number of failed queries in a row.
	//
	// +optional
	Errors int64 `json:"errors,omitempty"`

	// Checks with their results.
	//
	// +kubebuilder:validation:MaxItems=24
	// +listType=map
	// +listMapKey=name
	// +optional
	Checks []CanaryCheck `json:"checks,omitempty"`

	// Experiment is how the two revisions compare.
	//
	// +optional
	Experiment *ExperimentObservation `json:"experiment,omitempty"`
}

// CanaryCheck is the evidence of one check.
type CanaryCheck struct {
	// Name of the check.
	Name string `json:"name"`

	// Verdicts of the latest evaluations of the epoch, at most 10 and the latest last: P for Pass, F for Fail, S for Shared
	// (candidate and baseline fail alike), I for Insufficient, N for NoData, E for Error.
	//
	// +kubebuilder:validation:MaxLength=10
	// +optional
	Verdicts string `json:"verdicts,omitempty"`

	// Value in the unit of the check since the epoch settled; of kind Query, over the recent window. A latency or query
	// relative to the baseline is divided by that.
	//
	// +optional
	Value *float64 `json:"value,omitempty"`

	// Lower bound of the value at a confidence of 95 %, one-sided.
	//
	// +optional
	Lower *float64 `json:"lower,omitempty"`

	// Upper bound of the value at a confidence of 95 %, one-sided.
	//
	// +optional
	Upper *float64 `json:"upper,omitempty"`

	// Baseline is the value of the baseline over the same time.
	//
	// +optional
	Baseline *float64 `json:"baseline,omitempty"`

	// Samples is the number of requests behind the value.
	//
	// +optional
	Samples *int64 `json:"samples,omitempty"`

	// Incomparable reports whether candidate and baseline get other shares of the requests than they should, so that
	// other clients are measured in one of them.
	//
	// +optional
	Incomparable bool `json:"incomparable,omitempty"`

	// Message explains the latest verdict with its numbers.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// TrialObservation is whether a check of a candidate can be measured.
type TrialObservation struct {
	// Name of the check.
	Name string `json:"name"`

	// Verdict on the live revision. NoData and Error mean that the check cannot be measured.
	Verdict Verdict `json:"verdict"`

	// Message explains why the check cannot be measured, and what to do.
	//
	// +optional
	Message string `json:"message,omitempty"`
}
