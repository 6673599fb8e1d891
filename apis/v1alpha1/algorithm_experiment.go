// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Experiment compares two arms over a long time: A is the revision that the spec
// asks for, B the same with a few fields changed. It needs spec.lifecycle and
// spec.route, and runs beside no rollout. When it ends all callers reach A again,
// whatever came of it: who wants B writes it into the spec.
type Experiment struct {
	// ID names the experiment. Each runs once: another needs another id. Any edit but
	// that of stop.duration ends it.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be lower case letters, digits and '-', with a letter or digit at both ends"
	// +kubebuilder:example="ranking-2026-11"
	ID string `json:"id"`

	// ArmB is what is different in arm B.
	ArmB ExperimentArm `json:"armB"`

	// Assignment says which requests meet arm B.
	Assignment ExperimentAssignment `json:"assignment"`

	// Metric that the arms are compared by.
	Metric ExperimentMetric `json:"metric"`

	// Guardrails end the experiment at once when arm B fails them. That it is no worse
	// than A by the requests that succeed is always one.
	//
	// +kubebuilder:default={}
	// +optional
	Guardrails *ExperimentGuardrails `json:"guardrails,omitempty"`

	// Stop says when enough is known, and when it ends without.
	//
	// +kubebuilder:default={}
	// +optional
	Stop *ExperimentStop `json:"stop,omitempty"`
}

// ExperimentArm is what is different in arm B.
//
// +kubebuilder:validation:XValidation:rule="has(self.image) || has(self.env) || has(self.modelVersion)",message="image, env, modelVersion: at least one must be set, or both arms are the same"
type ExperimentArm struct {
	// Image of arm B. Default: that of A.
	//
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^[][a-zA-Z0-9._:/@+-]+$')",message="must be an image reference: letters, digits and any of . _ - / : @ +"
	// +kubebuilder:example="registry.example.org/algo/reco:2.2.0-rc.1"
	// +optional
	Image string `json:"image,omitempty"`

	// Env holds variables of arm B, which take the place of those of the same name in
	// spec.env.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=name
	// +optional
	Env []EnvVar `json:"env,omitempty"`

	// ModelVersion of arm B in the registry of spec.model, which it needs. Default:
	// that of A.
	//
	// +kubebuilder:validation:MaxLength=10
	// +kubebuilder:validation:XValidation:rule="self.matches('^[1-9][0-9]*$')",message="must be the number of a version, for instance 12"
	// +kubebuilder:example="12"
	// +optional
	ModelVersion string `json:"modelVersion,omitempty"`
}

// ExperimentAssignment says which requests meet arm B.
type ExperimentAssignment struct {
	// Percent of requests that meet arm B, and what it is made large enough for. The
	// Gateway draws anew for each request: the same caller meets both arms. With match,
	// only those requests meet it, and this is how many they are expected to be.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=50
	// +kubebuilder:example=50
	Percent int32 `json:"percent"`

	// Match are headers or cookies whose requests meet arm B, and no others. So a caller
	// stays in one arm. Whoever sets them must have drawn the callers at random, or the
	// experiment compares groups and not arms.
	//
	// +kubebuilder:validation:MaxItems=4
	// +listType=atomic
	// +optional
	Match []CallerMatch `json:"match,omitempty"`
}

// ExperimentMetricKind says what is compared.
//
// +kubebuilder:validation:Enum=SuccessRatio;Latency;Share
type ExperimentMetricKind string

// What is compared: always a share, of which the test knows how much chance is in it.
const (
	// ExperimentSuccessRatio is the share of requests that succeed.
	ExperimentSuccessRatio ExperimentMetricKind = "SuccessRatio"
	// ExperimentLatency is the share of requests that are answered within a time.
	ExperimentLatency ExperimentMetricKind = "Latency"
	// ExperimentShare is a share of one's own, for instance of recommendations that are
	// bought.
	ExperimentShare ExperimentMetricKind = "Share"
)

// Direction is where a metric is better.
//
// +kubebuilder:validation:Enum=Higher;Lower
type Direction string

// Where a metric is better.
const (
	// DirectionHigher: more is better.
	DirectionHigher Direction = "Higher"
	// DirectionLower: less is better.
	DirectionLower Direction = "Lower"
)

// ExperimentMetric is a share from 0 to 1 that the arms are compared by.
//
// +kubebuilder:validation:XValidation:rule="(self.kind == 'Share') == has(self.query)",fieldPath=".query",message="query: counts the events of kind Share, and no other kind has one"
// +kubebuilder:validation:XValidation:rule="self.kind == 'Share' || !has(self.of)",fieldPath=".of",message="of: counts what kind Share is a share of, and no other kind has one"
// +kubebuilder:validation:XValidation:rule="(self.kind == 'Latency') == has(self.withinMs)",fieldPath=".withinMs",message="withinMs: is the time of kind Latency, and no other kind has one"
// +kubebuilder:validation:XValidation:rule="self.kind == 'Share' || !has(self.direction) || self.direction == 'Higher'",fieldPath=".direction",message="direction: of requests that succeed, or are answered in time, more is always better"
type ExperimentMetric struct {
	// Kind of what is compared: SuccessRatio, the share of requests that succeed;
	// Latency, the share that is answered within withinMs; Share, one of one's own.
	//
	// +kubebuilder:example=Share
	Kind ExperimentMetricKind `json:"kind"`

	// Query of kind Share: a PromQL expression with one value, the number of events in
	// the window, for instance of purchases. In it $window stands for the window, and it
	// sees only series of the arm's pods.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:example="sum(increase(purchases_total[$window]))"
	// +optional
	Query string `json:"query,omitempty"`

	// Of of kind Share: how many there could have been in the window, each by itself and
	// each with one event at most. Default: the requests of the arm.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:example="sum(increase(recommendations_total[$window]))"
	// +optional
	Of string `json:"of,omitempty"`

	// WithinMs of kind Latency, in milliseconds. A bucket of the histogram should end
	// there.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600000
	// +kubebuilder:example=50
	// +optional
	WithinMs *int32 `json:"withinMs,omitempty"`

	// Direction of kind Share: whether Higher or Lower is better.
	//
	// +kubebuilder:default=Higher
	// +kubebuilder:example=Higher
	// +optional
	Direction Direction `json:"direction,omitempty"`

	// MinEffect is the least difference of the two shares that matters: 0.01 is one
	// point of a percent. When the arms are closer to each other beyond doubt, neither wins.
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
	// SuccessThreshold is the least share of requests to arm B that must succeed. 0
	// leaves only the comparison with A.
	//
	// +kubebuilder:default=0.99
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:ExclusiveMaximum=true
	// +kubebuilder:validation:Maximum=1
	// +kubebuilder:example=0.99
	// +optional
	SuccessThreshold *float64 `json:"successThreshold,omitempty"`

	// Latency that is asked of arm B.
	//
	// +optional
	Latency *LatencyTarget `json:"latency,omitempty"`
}

// ExperimentStop says when enough is known, and when it ends without.
type ExperimentStop struct {
	// Duration is the longest time that arm B has callers. It may be edited while the
	// experiment runs: the test holds whenever it ends. Longer than Prometheus keeps its
	// data makes no sense.
	//
	// +kubebuilder:default="168h"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,3})?(ms|s|m|h)){1,4}$') && duration(self) >= duration('1m') && duration(self) <= duration('336h')",message="must be a time from 1m to 336h, for instance 168h for a week"
	// +kubebuilder:example="168h"
	// +optional
	Duration *metav1.Duration `json:"duration,omitempty"`

	// MinSamples that each arm needs before anything is decided.
	//
	// +kubebuilder:default=1000
	// +kubebuilder:validation:Minimum=100
	// +kubebuilder:validation:Maximum=100000000
	// +kubebuilder:example=1000
	// +optional
	MinSamples *int32 `json:"minSamples,omitempty"`

	// Confidence of the test, in percent: of arms that are equal, one is found better in
	// at most 100 - confidence percent of all experiments, however often it is looked at.
	//
	// +kubebuilder:default=95
	// +kubebuilder:validation:XValidation:rule="self >= 80.0 && self <= 99.99",message="must be from 80 to 99.99, for instance 95"
	// +kubebuilder:example=95
	// +optional
	Confidence *float64 `json:"confidence,omitempty"`
}

// ExperimentPhase is where an experiment stands.
//
// +kubebuilder:validation:Enum=Waiting;Preparing;Running;Ended
type ExperimentPhase string

// Where an experiment stands.
const (
	// ExperimentWaiting: something keeps it from beginning.
	ExperimentWaiting ExperimentPhase = "Waiting"
	// ExperimentPreparing: replicas of arm B start. No caller reaches it.
	ExperimentPreparing ExperimentPhase = "Preparing"
	// ExperimentRunning: callers are sent to both arms.
	ExperimentRunning ExperimentPhase = "Running"
	// ExperimentEnded: all callers reach what the spec asks for.
	ExperimentEnded ExperimentPhase = "Ended"
)

// ExperimentWinner is what came of an experiment.
//
// +kubebuilder:validation:Enum=A;B;None;Inconclusive
type ExperimentWinner string

// What came of an experiment.
const (
	// WinnerA: A is better beyond doubt.
	WinnerA ExperimentWinner = "A"
	// WinnerB: B is better beyond doubt.
	WinnerB ExperimentWinner = "B"
	// WinnerNone: they differ by less than minEffect, beyond doubt.
	WinnerNone ExperimentWinner = "None"
	// WinnerInconclusive: it ended before enough was known.
	WinnerInconclusive ExperimentWinner = "Inconclusive"
)

// ExperimentStatus tells where an experiment stands, and what came of it. It stays
// until another begins.
type ExperimentStatus struct {
	// ID of the experiment.
	ID string `json:"id"`

	// Phase of the experiment: Waiting, Preparing, Running or Ended.
	Phase ExperimentPhase `json:"phase"`

	// Reason in one word: what it waits for, or why it ended.
	//
	// +optional
	Reason string `json:"reason,omitempty"`

	// Message tells what is going on, and when it ended, by which numbers.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// Winner, once it has ended: A, B, None or Inconclusive.
	//
	// +optional
	Winner ExperimentWinner `json:"winner,omitempty"`

	// Effect is the share of B less that of A.
	//
	// +optional
	Effect *float64 `json:"effect,omitempty"`

	// Lower bound of the effect at the confidence that is asked for. It holds at all
	// looks together.
	//
	// +optional
	Lower *float64 `json:"lower,omitempty"`

	// Upper bound of the effect.
	//
	// +optional
	Upper *float64 `json:"upper,omitempty"`

	// A is the arm that the spec asks for.
	//
	// +optional
	A *ExperimentArmStatus `json:"a,omitempty"`

	// B is the other arm.
	//
	// +optional
	B *ExperimentArmStatus `json:"b,omitempty"`

	// StartedAt tells when callers were sent to both arms.
	//
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`

	// EndedAt tells when they were taken back.
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

	// Samples that it is made of.
	//
	// +optional
	Samples *int64 `json:"samples,omitempty"`
}
