// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// ExperimentKind is what an experiment compares.
//
// +kubebuilder:validation:Enum=SuccessRatio;Latency;Share
type ExperimentKind string

// What an experiment compares: always a share from 0 to 1.
const (
	// ExperimentSuccessRatio is the share of requests that succeed.
	ExperimentSuccessRatio ExperimentKind = "SuccessRatio"
	// ExperimentLatency is the share of requests that get a response within a time limit.
	ExperimentLatency ExperimentKind = "Latency"
	// ExperimentShare is the quotient of two counts that the spec defines.
	ExperimentShare ExperimentKind = "Share"
)

// ExperimentParameters define how the candidate is compared with the baseline.
//
// +kubebuilder:validation:XValidation:rule="(self.kind == 'Share') == has(self.events)",fieldPath=".events",message="events is required for kind Share, and only for it"
// +kubebuilder:validation:XValidation:rule="(self.kind == 'Latency') == has(self.withinMs)",fieldPath=".withinMs",message="withinMs is required for kind Latency, and only for it"
type ExperimentParameters struct {
	// Kind of the comparison.
	//
	// +kubebuilder:example=Share
	Kind ExperimentKind `json:"kind"`

	// Events of kind Share: a PromQL expression with one value, the number of events in $window.
	//
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:example="sum(increase(purchases_total[$window]))"
	// +optional
	Events string `json:"events,omitempty"`

	// Of is the denominator of kind Share: the number of possible events in $window. Default: the number of requests.
	//
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:example="sum(increase(recommendations_total[$window]))"
	// +optional
	Of string `json:"of,omitempty"`

	// WithinMs of kind Latency is the time limit in milliseconds.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600000
	// +kubebuilder:example=50
	// +optional
	WithinMs *int32 `json:"withinMs,omitempty"`

	// LowerIsBetter reports whether the revision with the smaller share is better. Default: false.
	//
	// +kubebuilder:example=true
	// +optional
	LowerIsBetter bool `json:"lowerIsBetter,omitempty"`

	// MinEffect is the smallest difference of the two shares that matters.
	//
	// +kubebuilder:validation:Minimum=0.0001
	// +kubebuilder:validation:Maximum=0.5
	// +kubebuilder:example=0.01
	MinEffect float64 `json:"minEffect"`

	// MinSamples is the number of samples that each revision needs before a result.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:example=1000
	MinSamples int32 `json:"minSamples"`

	// Confidence in percent, of all evaluations together.
	//
	// +kubebuilder:validation:Minimum=80
	// +kubebuilder:validation:Maximum=99.99
	// +kubebuilder:example=95
	Confidence float64 `json:"confidence"`
}

// ExperimentResult is the result of an experiment.
//
// +kubebuilder:validation:Enum=Undecided;CanaryBetter;BaselineBetter;NoDifference
type ExperimentResult string

// Results of an experiment.
const (
	// ExperimentUndecided: there is too little data.
	ExperimentUndecided ExperimentResult = "Undecided"
	// ExperimentCanaryBetter: the candidate is better.
	ExperimentCanaryBetter ExperimentResult = "CanaryBetter"
	// ExperimentBaselineBetter: the baseline is better.
	ExperimentBaselineBetter ExperimentResult = "BaselineBetter"
	// ExperimentNoDifference: they differ by less than the minimum effect.
	ExperimentNoDifference ExperimentResult = "NoDifference"
)

// ExperimentObservation is how the two revisions compare since the epoch settled.
type ExperimentObservation struct {
	// Result of all evaluations so far.
	Result ExperimentResult `json:"result"`

	// Effect is the share of the candidate minus the share of the baseline.
	//
	// +optional
	Effect *float64 `json:"effect,omitempty"`

	// Lower bound of the effect, valid for all evaluations together.
	//
	// +optional
	Lower *float64 `json:"lower,omitempty"`

	// Upper bound of the effect, valid for all evaluations together.
	//
	// +optional
	Upper *float64 `json:"upper,omitempty"`

	// Canary is the share of the candidate and its number of samples.
	//
	// +optional
	Canary *ExperimentShareOf `json:"canary,omitempty"`

	// Baseline is the share of the baseline and its number of samples.
	//
	// +optional
	Baseline *ExperimentShareOf `json:"baseline,omitempty"`

	// Message explains why there is no result yet.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// ExperimentShareOf is a share and its number of samples.
type ExperimentShareOf struct {
	// Value from 0 to 1.
	Value float64 `json:"value"`

	// Samples behind the value.
	Samples int64 `json:"samples"`
}
