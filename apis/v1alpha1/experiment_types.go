// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// An Experiment compares two arms of an Algorithm over a long time: A is the revision that the Algorithm's spec
// describes, B is the same revision with a few fields changed. It runs once the Algorithm names it in spec.experiment,
// and only while no rollout does. At the end all traffic returns to A, with any result. To adopt B, write its fields
// into the Algorithm's spec. Each name runs once: another experiment needs another name.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=exp,categories={capstan,composite}
// +kubebuilder:printcolumn:name="Algorithm",type=string,JSONPath=`.spec.algorithm`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Winner",type=string,JSONPath=`.status.winner`
// +kubebuilder:printcolumn:name="Effect",type=number,JSONPath=`.status.effect`
// +kubebuilder:printcolumn:name="Lower",type=number,JSONPath=`.status.lower`
// +kubebuilder:printcolumn:name="Upper",type=number,JSONPath=`.status.upper`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.reason`
// +kubebuilder:printcolumn:name="Started",type=date,JSONPath=`.status.startedAt`
// +kubebuilder:printcolumn:name="Ended",type=date,JSONPath=`.status.endedAt`,priority=1
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`,priority=1
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$')",fieldPath=".metadata.name",message="must be at most 63 lower case letters, digits and '-', with a letter or digit at both ends"
type Experiment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what to compare. Any edit except an edit of stop.duration ends an experiment that runs.
	Spec ExperimentSpec `json:"spec"`

	// Status is the state and the result. The result stays after the end, also without the Algorithm.
	//
	// +optional
	Status ExperimentStatus `json:"status,omitempty"`
}

// ExperimentList is a list of Experiments.
//
// +kubebuilder:object:root=true
type ExperimentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Experiment `json:"items"`
}

// ExperimentSpec is what an Experiment compares.
type ExperimentSpec struct {
	// Algorithm of this namespace that the experiment is about. It cannot change. The experiment begins when
	// spec.experiment of the Algorithm has the name of this Experiment.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="must be the name of an Algorithm: lower case letters, digits and '-', with a letter first and no '-' at the end"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot be changed: make another Experiment"
	// +kubebuilder:example=reco
	Algorithm string `json:"algorithm"`

	// ArmB holds the fields in which arm B differs.
	ArmB ExperimentArm `json:"armB"`

	// Assignment defines which requests go to arm B.
	Assignment ExperimentAssignment `json:"assignment"`

	// Metric that compares the arms.
	Metric ExperimentMetric `json:"metric"`

	// Guardrails end the experiment at once when arm B fails them. One guardrail always applies: the success ratio of B
	// must not be worse than the ratio of A.
	//
	// +kubebuilder:default={}
	// +optional
	Guardrails *ExperimentGuardrails `json:"guardrails,omitempty"`

	// Stop defines when there is enough data, and when the experiment ends without it.
	//
	// +kubebuilder:default={}
	// +optional
	Stop *ExperimentStop `json:"stop,omitempty"`
}

// ExperimentArm holds the fields in which arm B differs.
//
// +kubebuilder:validation:XValidation:rule="has(self.image) || has(self.env) || has(self.modelVersion)",message="image, env, modelVersion: set at least one, otherwise both arms are the same"
type ExperimentArm struct {
	// Image of arm B. Default: the image of A.
	//
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^[][a-zA-Z0-9._:/@+-]+$')",message="must be an image reference: letters, digits and any of . _ - / : @ +"
	// +kubebuilder:example="registry.example.org/algo/reco:2.2.0-rc.1"
	// +optional
	Image string `json:"image,omitempty"`

	// Env holds variables of arm B. They replace variables of the same name in spec.env of the
	// Algorithm.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=name
	// +optional
	Env []EnvVar `json:"env,omitempty"`

	// ModelVersion of arm B, in the registry of spec.model of the Algorithm, which must be set. Default: the version of A.
	//
	// +kubebuilder:validation:MaxLength=10
	// +kubebuilder:validation:XValidation:rule="self.matches('^[1-9][0-9]*$')",message="must be the number of a version, for instance 12"
	// +kubebuilder:example="12"
	// +optional
	ModelVersion string `json:"modelVersion,omitempty"`
}

// ExperimentAssignment defines which requests go to arm B.
type ExperimentAssignment struct {
	// Percent of requests that go to arm B, from 1 to 50. It also determines the number of replicas of arm B. The
	// Gateway decides for each request, so one client can reach both arms. With match, only matching requests go to B,
	// and this is their expected percentage.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=50
	// +kubebuilder:example=50
	Percent int32 `json:"percent"`

	// Match lists headers or cookies: requests with one of them go to arm B, all others go to A: header NAME=VALUE, or
	// cookie NAME=VALUE. So a client stays in one arm. The sender of the header must choose clients at random; otherwise the experiment compares groups of
	// clients, not arms.
	//
	// +kubebuilder:validation:MaxItems=4
	// +listType=atomic
	// +kubebuilder:example={"cookie arm=b"}
	// +optional
	Match []RequestMatch `json:"match,omitempty"`
}

// ExperimentMetricKind is what the experiment compares.
//
// +kubebuilder:validation:Enum=SuccessRatio;Latency;Share
type ExperimentMetricKind string

// What the experiment compares. It is always a share, because the statistics of a share are known.
const (
	// ExperimentSuccessRatio is the share of requests that succeed.
	ExperimentSuccessRatio ExperimentMetricKind = "SuccessRatio"
	// ExperimentLatency is the share of requests that get a response within a time limit.
	ExperimentLatency ExperimentMetricKind = "Latency"
	// ExperimentShare is a share that you define, for instance of recommendations that lead to a purchase.
	ExperimentShare ExperimentMetricKind = "Share"
)

// Direction is which values of a metric are better.
//
// +kubebuilder:validation:Enum=Higher;Lower
type Direction string

// Which values of a metric are better.
const (
	// DirectionHigher: more is better.
	DirectionHigher Direction = "Higher"
	// DirectionLower: less is better.
	DirectionLower Direction = "Lower"
)

// ExperimentMetric is a share from 0 to 1 that compares the arms.
//
// +kubebuilder:validation:XValidation:rule="(self.kind == 'Share') == has(self.query)",fieldPath=".query",message="query is required for kind Share, and only for it"
// +kubebuilder:validation:XValidation:rule="self.kind == 'Share' || !has(self.of)",fieldPath=".of",message="of is only for kind Share: remove it"
// +kubebuilder:validation:XValidation:rule="(self.kind == 'Latency') == has(self.withinMs)",fieldPath=".withinMs",message="withinMs is required for kind Latency, and only for it"
// +kubebuilder:validation:XValidation:rule="self.kind == 'Share' || !has(self.direction) || self.direction == 'Higher'",fieldPath=".direction",message="direction must be Higher, except for kind Share"
type ExperimentMetric struct {
	// Kind of the metric: SuccessRatio, the share of requests that succeed; Latency, the share with a response within
	// withinMs; Share, a share that query and of define.
	//
	// +kubebuilder:example=Share
	Kind ExperimentMetricKind `json:"kind"`

	// Query of kind Share: a PromQL expression with one value, the number of events in the window, for instance of
	// purchases. $window stands for the time window, and only series of the arm's pods are visible to it.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.contains('$window')",message="must contain $window, which stands for the time since the experiment began"
	// +kubebuilder:example="sum(increase(purchases_total[$window]))"
	// +optional
	Query string `json:"query,omitempty"`

	// Of is the denominator of kind Share: the number of possible events in the window. Each of them must be
	// independent and have at most one event. Default: the number of requests of the arm.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.contains('$window')",message="must contain $window, which stands for the time since the experiment began"
	// +kubebuilder:example="sum(increase(recommendations_total[$window]))"
	// +optional
	Of string `json:"of,omitempty"`

	// WithinMs of kind Latency is the time limit in milliseconds. A bucket of the histogram should end there.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600000
	// +kubebuilder:example=50
	// +optional
	WithinMs *int32 `json:"withinMs,omitempty"`

	// Direction of kind Share: Higher or Lower is better. Default: Higher.
	//
	// +kubebuilder:default=Higher
	// +kubebuilder:example=Higher
	// +optional
	Direction Direction `json:"direction,omitempty"`

	// MinEffect is the smallest difference of the two shares that matters, from 0.0001 to 0.5. 0.01 is one percentage
	// point. When the difference is certainly smaller, no arm wins. Default: 0.01.
	//
	// +kubebuilder:default=0.01
	// +kubebuilder:validation:Minimum=0.0001
	// +kubebuilder:validation:Maximum=0.5
	// +kubebuilder:example=0.01
	// +optional
	MinEffect *float64 `json:"minEffect,omitempty"`
}

// ExperimentGuardrails end the experiment at once when arm B fails them.
type ExperimentGuardrails struct {
	// SuccessThreshold is the minimum share of requests to arm B that must succeed, from 0 to less than 1. With 0 only
	// the comparison with A counts. Default: objectives.successRatio, or 0.99 without one.
	//
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:ExclusiveMaximum=true
	// +kubebuilder:validation:Maximum=1
	// +kubebuilder:example=0.99
	// +optional
	SuccessThreshold *float64 `json:"successThreshold,omitempty"`

	// Latency that arm B must reach. Default: objectives.latencyMs, where it is set.
	//
	// +optional
	Latency *LatencyTarget `json:"latency,omitempty"`
}

// ExperimentStop defines when there is enough data, and when the experiment ends without it.
type ExperimentStop struct {
	// Duration is the maximum time that arm B gets traffic, from 1m to 336h. You can edit it during the experiment,
	// because the test is valid at any time. It must not exceed the time that Prometheus keeps its data. Default: 168h.
	//
	// +kubebuilder:default="168h"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,3})?(ms|s|m|h)){1,4}$') && duration(self) >= duration('1m') && duration(self) <= duration('336h')",message="must be a time from 1m to 336h, for instance 168h for a week"
	// +kubebuilder:example="168h"
	// +optional
	Duration *metav1.Duration `json:"duration,omitempty"`

	// MinSamples is the number of samples that each arm needs before a result. Default: 1000.
	//
	// +kubebuilder:default=1000
	// +kubebuilder:validation:Minimum=100
	// +kubebuilder:validation:Maximum=100000000
	// +kubebuilder:example=1000
	// +optional
	MinSamples *int32 `json:"minSamples,omitempty"`

	// Confidence of the test in percent, from 80 to 99.99. If the arms are equal, at most 100 - confidence percent of
	// all experiments find a winner, however often they are evaluated. Default: 95.
	//
	// +kubebuilder:default=95
	// +kubebuilder:validation:XValidation:rule="self >= 80.0 && self <= 99.99",message="must be from 80 to 99.99, for instance 95"
	// +kubebuilder:example=95
	// +optional
	Confidence *float64 `json:"confidence,omitempty"`
}

// ExperimentPhase is the phase of an experiment.
//
// +kubebuilder:validation:Enum=Waiting;Preparing;Running;Ended
type ExperimentPhase string

// Phases of an experiment.
const (
	// ExperimentWaiting: something blocks its start.
	ExperimentWaiting ExperimentPhase = "Waiting"
	// ExperimentPreparing: replicas of arm B start. It gets no traffic.
	ExperimentPreparing ExperimentPhase = "Preparing"
	// ExperimentRunning: both arms get traffic.
	ExperimentRunning ExperimentPhase = "Running"
	// ExperimentEnded: all traffic goes to the revision that the spec describes.
	ExperimentEnded ExperimentPhase = "Ended"
)

// ExperimentWinner is the result of an experiment.
//
// +kubebuilder:validation:Enum=A;B;None;Inconclusive
type ExperimentWinner string

// Results of an experiment.
const (
	// WinnerA: A is better with the required confidence.
	WinnerA ExperimentWinner = "A"
	// WinnerB: B is better with the required confidence.
	WinnerB ExperimentWinner = "B"
	// WinnerNone: the arms differ by less than minEffect with the required confidence.
	WinnerNone ExperimentWinner = "None"
	// WinnerInconclusive: it ended with too little data.
	WinnerInconclusive ExperimentWinner = "Inconclusive"
)

// ExperimentStatus is the observed state of an Experiment.
type ExperimentStatus struct {
	xpv2.ConditionedStatus `json:",inline"`

	ExperimentState `json:",inline"`
}

// AlgorithmExperiment is the experiment of an Algorithm. It stays until another experiment begins.
type AlgorithmExperiment struct {
	ExperimentState `json:",inline"`

	// Name of the Experiment.
	Name string `json:"name"`
}

// ExperimentState is the state and the result of an experiment.
type ExperimentState struct {
	// Phase of the experiment: Waiting, Preparing, Running or Ended.
	//
	// +optional
	Phase ExperimentPhase `json:"phase,omitempty"`

	// Reason in one word: what it waits for, or why it ended.
	//
	// +optional
	Reason string `json:"reason,omitempty"`

	// Message explains what happens and, after the end, has the numbers of the result.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// Winner after the end: A, B, None or Inconclusive.
	//
	// +optional
	Winner ExperimentWinner `json:"winner,omitempty"`

	// Effect is the share of B minus the share of A.
	//
	// +optional
	Effect *float64 `json:"effect,omitempty"`

	// Lower bound of the effect at the requested confidence. The bounds are valid for all evaluations together.
	//
	// +optional
	Lower *float64 `json:"lower,omitempty"`

	// Upper bound of the effect.
	//
	// +optional
	Upper *float64 `json:"upper,omitempty"`

	// A is the arm that the spec describes.
	//
	// +optional
	A *ExperimentArmStatus `json:"a,omitempty"`

	// B is the other arm.
	//
	// +optional
	B *ExperimentArmStatus `json:"b,omitempty"`

	// StartedAt is when both arms began to get traffic.
	//
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`

	// EndedAt is when all traffic returned to A.
	//
	// +optional
	EndedAt *metav1.Time `json:"endedAt,omitempty"`
}

// ExperimentArmStatus is one arm of an experiment.
type ExperimentArmStatus struct {
	// Revision of the arm.
	Revision string `json:"revision"`

	// Value of the metric.
	//
	// +optional
	Value *float64 `json:"value,omitempty"`

	// Samples behind the value.
	//
	// +optional
	Samples *int64 `json:"samples,omitempty"`
}

// LatencyTarget is the latency that a revision must reach.
//
// +kubebuilder:validation:XValidation:rule="has(self.maxMs) || has(self.maxRegressionPercent)",message="maxMs, maxRegressionPercent: set at least one, otherwise nothing is checked"
type LatencyTarget struct {
	// MaxMs is the maximum latency in milliseconds.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600000
	// +kubebuilder:example=50
	// +optional
	MaxMs *int32 `json:"maxMs,omitempty"`

	// MaxRegressionPercent is the percentage by which the latency can exceed the latency of the live revision.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +kubebuilder:example=10
	// +optional
	MaxRegressionPercent *int32 `json:"maxRegressionPercent,omitempty"`

	// Percentile of the latency: 50, 90, 95 or 99. Default: 95.
	//
	// +kubebuilder:default=95
	// +kubebuilder:validation:Enum=50;90;95;99
	// +kubebuilder:example=95
	// +optional
	Percentile int32 `json:"percentile,omitempty"`
}
