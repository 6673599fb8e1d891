// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Objectives are what an Algorithm is good for, in one place. The condition WithinTargets reports whether the live
// revision reaches them, a candidate of spec.lifecycle has to reach them, arm B of an experiment too, and spec.slo makes
// an error budget of the share of requests that can fail.
type Objectives struct {
	// SuccessRatio is the minimum share of requests that must succeed, above 0 and below 1. A candidate needs the more
	// requests to pass the closer it is to 1: 0.99 needs 268 without a failure, 0.999 ten times as many. Default: none for
	// the live revision, and 0.99 for a candidate.
	//
	// +kubebuilder:validation:XValidation:rule="self > 0.0 && self < 1.0",message="must be above 0 and below 1, for instance 0.99: with 1 no request can fail"
	// +kubebuilder:example=0.99
	// +optional
	SuccessRatio *float64 `json:"successRatio,omitempty"`

	// LatencyMs is the maximum latency in milliseconds at latencyPercentile. Default: scaling.targetLatencyMs, where it is
	// set.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600000
	// +kubebuilder:example=50
	// +optional
	LatencyMs *int32 `json:"latencyMs,omitempty"`

	// LatencyPercentile is the percentage of requests that must get a response within the latency: 50, 90, 95 or 99. It is
	// also the percentile of scaling.targetLatencyMs and lifecycle.maxLatencyIncreasePercent. Default: 95.
	//
	// +kubebuilder:default=95
	// +kubebuilder:validation:Enum=50;90;95;99
	// +kubebuilder:example=95
	// +optional
	LatencyPercentile int32 `json:"latencyPercentile,omitempty"`

	// TimeToFirstTokenMs is the maximum time in milliseconds from the arrival of a request to the first token of its
	// answer, at latencyPercentile. It needs a server that has a histogram of it: vLLM or SGLang. Default: not checked.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600000
	// +kubebuilder:example=500
	// +optional
	TimeToFirstTokenMs *int32 `json:"timeToFirstTokenMs,omitempty"`

	// TimePerOutputTokenMs is the maximum time in milliseconds for each further token, at latencyPercentile: 50 is 20
	// tokens per second for each client. It needs a server that has a histogram of it: vLLM or SGLang. Default: not
	// checked.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600000
	// +kubebuilder:example=50
	// +optional
	TimePerOutputTokenMs *int32 `json:"timePerOutputTokenMs,omitempty"`
}
