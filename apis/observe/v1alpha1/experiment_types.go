// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// ExperimentKind says what two revisions are compared by.
//
// +kubebuilder:validation:Enum=SuccessRatio;Latency;Share
type ExperimentKind string

// What two revisions are compared by: always a share from 0 to 1.
const (
	// ExperimentSuccessRatio is the share of requests that succeed.
	ExperimentSuccessRatio ExperimentKind = "SuccessRatio"
	// ExperimentLatency is the share of requests that are answered within a time.
	ExperimentLatency ExperimentKind = "Latency"
	// ExperimentShare is the quotient of two counts of one's own.
	ExperimentShare ExperimentKind = "Share"
)

// ExperimentParameters say how the revision that is tried is compared with the
// baseline.
//
// +kubebuilder:validation:XValidation:rule="(self.kind == 'Share') == has(self.events)",fieldPath=".events",message="events: is what kind Share counts, and no other kind has one"
// +kubebuilder:validation:XValidation:rule="(self.kind == 'Latency') == has(self.withinMs)",fieldPath=".withinMs",message="withinMs: is the time of kind Latency, and no other kind has one"
type ExperimentParameters struct {
	// Kind of what is compared.
	//
	// +kubebuilder:example=Share
	Kind ExperimentKind `json:"kind"`

	// Events of kind Share: a PromQL expression with one value, the number of events in
	// $window.
	//
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:example="sum(increase(purchases_total[$window]))"
	// +optional
	Events string `json:"events,omitempty"`

	// Of of kind Share: how many there could have been in $window. Default: the requests.
	//
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:example="sum(increase(recommendations_total[$window]))"
	// +optional
	Of string `json:"of,omitempty"`

	// WithinMs of kind Latency, in milliseconds.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600000
	// +kubebuilder:example=50
	// +optional
	WithinMs *int32 `json:"withinMs,omitempty"`

	// LowerIsBetter tells that the revision with the smaller share is the better one.
	//
	// +kubebuilder:example=true
	// +optional
	LowerIsBetter bool `json:"lowerIsBetter,omitempty"`

	// MinEffect is the least difference of the two shares that matters.
	//
	// +kubebuilder:validation:Minimum=0.0001
	// +kubebuilder:validation:Maximum=0.5
	// +kubebuilder:example=0.01
	MinEffect float64 `json:"minEffect"`

	// MinSamples that each revision needs before anything is found.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:example=1000
	MinSamples int32 `json:"minSamples"`

	// Confidence in percent, of all looks together.
	//
	// +kubebuilder:validation:Minimum=80
	// +kubebuilder:validation:Maximum=99.99
	// +kubebuilder:example=95
	Confidence float64 `json:"confidence"`
}

// ExperimentResult is what was found.
//
// +kubebuilder:validation:Enum=Undecided;CanaryBetter;BaselineBetter;NoDifference
type ExperimentResult string

// What was found.
const (
	// ExperimentUndecided: too little is known.
	ExperimentUndecided ExperimentResult = "Undecided"
	// ExperimentCanaryBetter: the revision that is tried is the better one.
	ExperimentCanaryBetter ExperimentResult = "CanaryBetter"
	// ExperimentBaselineBetter: the baseline is the better one.
	ExperimentBaselineBetter ExperimentResult = "BaselineBetter"
	// ExperimentNoDifference: they differ by less than what matters.
	ExperimentNoDifference ExperimentResult = "NoDifference"
)

// ExperimentObservation is how the two revisions compare since the epoch settled.
type ExperimentObservation struct {
	// Result of all looks until now.
	Result ExperimentResult `json:"result"`

	// Effect is the share of the canary less that of the baseline.
	//
	// +optional
	Effect *float64 `json:"effect,omitempty"`

	// Lower bound of the effect, at all looks together.
	//
	// +optional
	Lower *float64 `json:"lower,omitempty"`

	// Upper bound of the effect, at all looks together.
	//
	// +optional
	Upper *float64 `json:"upper,omitempty"`

	// Canary is the share of the revision that is tried, and of how many.
	//
	// +optional
	Canary *ExperimentShareOf `json:"canary,omitempty"`

	// Baseline is the share of the revision beside it, and of how many.
	//
	// +optional
	Baseline *ExperimentShareOf `json:"baseline,omitempty"`

	// Message tells why nothing is found yet.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// ExperimentShareOf is a share of so many.
type ExperimentShareOf struct {
	// Value from 0 to 1.
	Value float64 `json:"value"`

	// Samples that it is made of.
	Samples int64 `json:"samples"`
}
