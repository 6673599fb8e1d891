// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MetricsParameters say what Prometheus is asked. Every query, built in or one's
// own, sees only series that carry the labels namespace, algorithm and slot of the
// pods it is asked about.
type MetricsParameters struct {
	// Interval between two looks, and so the least time between two changes of
	// what is told of metrics. At least 10 s.
	//
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('10s') && duration(self) <= duration('1h')",message="must be from 10s to 1h"
	// +kubebuilder:example="30s"
	// +optional
	Interval *metav1.Duration `json:"interval,omitempty"`

	// Window of time that each look is about. At least 20 s, and at least four
	// times the interval at which Prometheus scrapes the pods.
	//
	// +kubebuilder:default="2m"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('20s') && duration(self) <= duration('6h')",message="must be from 20s to 6h"
	// +kubebuilder:example="2m"
	// +optional
	Window *metav1.Duration `json:"window,omitempty"`

	// Slots whose pods are asked about: the live one, and beside it that of a
	// revision on its way.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	// +kubebuilder:example={"a"}
	Slots []string `json:"slots"`

	// Queries of one's own in place of those for the metric names of the known
	// model servers.
	//
	// +optional
	Queries *Queries `json:"queries,omitempty"`

	// Checks to make.
	//
	// +kubebuilder:validation:MaxItems=20
	// +listType=map
	// +listMapKey=name
	// +optional
	Checks []Check `json:"checks,omitempty"`

	// Scaling asks to learn the load that a replica bears.
	//
	// +optional
	Scaling *ScalingParameters `json:"scaling,omitempty"`

	// Canary asks to gather evidence about a revision that is tried.
	//
	// +optional
	Canary *CanaryParameters `json:"canary,omitempty"`

	// SLO asks to account for a service level objective.
	//
	// +optional
	SLO *SLOParameters `json:"slo,omitempty"`
}

// Queries are PromQL expressions. In them $window stands for the window, and each
// selector is narrowed to the pods of one slot.
type Queries struct {
	// Requests in the window: their number. Several series are added up.
	//
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:example="increase(predictions_total[$window])"
	// +optional
	Requests string `json:"requests,omitempty"`

	// Failures in the window: the number of requests that failed. Several series
	// are added up, none counts as zero.
	//
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:example="increase(predictions_total{outcome=\"error\"}[$window])"
	// +optional
	Failures string `json:"failures,omitempty"`

	// Latency of the requests in the window: the buckets of a histogram in
	// seconds, with the label le.
	//
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:example="increase(prediction_seconds_bucket[$window])"
	// +optional
	Latency string `json:"latency,omitempty"`

	// InFlight is the number of requests being worked on now. Several series are
	// added up.
	//
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:example="predictions_in_progress"
	// +optional
	InFlight string `json:"inFlight,omitempty"`
}

// CheckKind says what a check looks at.
//
// +kubebuilder:validation:Enum=SuccessRatio;Latency;RequestRate;InFlight;Query;Drift
type CheckKind string

// What a check looks at.
const (
	// CheckSuccessRatio is the share of requests that succeed, from 0 to 1, with a
	// one-sided Wilson bound.
	CheckSuccessRatio CheckKind = "SuccessRatio"
	// CheckLatency is a percentile of the latency in milliseconds, with a bound by
	// the order statistics of the buckets.
	CheckLatency CheckKind = "Latency"
	// CheckRequestRate is the number of requests per second and ready replica.
	CheckRequestRate CheckKind = "RequestRate"
	// CheckInFlight is the number of requests in flight per ready replica.
	CheckInFlight CheckKind = "InFlight"
	// CheckQuery is the value of a PromQL expression.
	CheckQuery CheckKind = "Query"
	// CheckDrift is the distance of two distributions, with the expectation without
	// any drift taken off.
	CheckDrift CheckKind = "Drift"
)

// DriftMethod says how two distributions are compared.
//
// +kubebuilder:validation:Enum=PSI;KS
type DriftMethod string

// How two distributions are compared.
const (
	// DriftPSI is the population stability index, sum((p-q)ln(p/q)) over the buckets.
	DriftPSI DriftMethod = "PSI"
	// DriftKS is the statistic of Kolmogorov and Smirnov, max|F-G| over the buckets.
	DriftKS DriftMethod = "KS"
)

// Baseline is what a check is compared with.
//
// +kubebuilder:validation:Enum=Baseline
type Baseline string

// RelativeToBaseline compares with the slot of the revision before, over the same
// time.
const RelativeToBaseline Baseline = "Baseline"

// A Check compares a metric with bounds.
//
// +kubebuilder:validation:XValidation:rule="(self.kind in ['Query', 'Drift']) == has(self.query)",fieldPath=".query",message="query: is what the kinds Query and Drift compare, and no other kind has one"
// +kubebuilder:validation:XValidation:rule="has(self.min) || has(self.max) || self.kind in ['RequestRate', 'InFlight'] || self.kind == 'SuccessRatio' && has(self.relativeTo)",message="min, max: at least one bound is needed, or nothing is checked"
// +kubebuilder:validation:XValidation:rule="self.kind != 'Drift' || has(self.relativeTo) != has(self.reference)",message="relativeTo, reference: kind Drift needs one of them, or there is nothing to compare with"
// +kubebuilder:validation:XValidation:rule="self.kind == 'Drift' || !has(self.reference)",fieldPath=".reference",message="reference: is what kind Drift compares with, and no other kind has one"
// +kubebuilder:validation:XValidation:rule="!has(self.min) || !has(self.max) || self.min <= self.max",fieldPath=".min",message="min: must not be above max"
// +kubebuilder:validation:XValidation:rule="self.kind != 'SuccessRatio' || [has(self.min) ? self.min : 0.0, has(self.max) ? self.max : 1.0].all(b, b >= 0.0 && b <= 1.0)",message="min, max: of kind SuccessRatio are shares from 0 to 1"
type Check struct {
	// Name of the check.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="must be lower case letters, digits and '-', start with a letter and end with a letter or digit"
	// +kubebuilder:example="latency"
	Name string `json:"name"`

	// Kind of what is compared.
	//
	// +kubebuilder:example=Latency
	Kind CheckKind `json:"kind"`

	// Query of kind Query: a PromQL expression with one value. Of kind Drift: one
	// that gives the buckets of a histogram, with the label le. In it $window stands
	// for the window.
	//
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:example="avg(queue_length)"
	// +optional
	Query string `json:"query,omitempty"`

	// Percentile of kind Latency: 50, 90, 95 or 99.
	//
	// +kubebuilder:default=95
	// +kubebuilder:validation:Enum=50;90;95;99
	// +kubebuilder:example=95
	// +optional
	Percentile int32 `json:"percentile,omitempty"`

	// Min is the least value that passes.
	//
	// +kubebuilder:example=0.99
	// +optional
	Min *float64 `json:"min,omitempty"`

	// Max is the greatest value that passes.
	//
	// +kubebuilder:example=50
	// +optional
	Max *float64 `json:"max,omitempty"`

	// RelativeTo Baseline makes the value one of the canary divided by that of the
	// baseline, and the distance of kind Drift that of the two. A share of requests
	// that succeed then has no bounds: it fails once the canary is worse beyond doubt.
	// Only checks of a canary have it.
	//
	// +kubebuilder:example=Baseline
	// +optional
	RelativeTo Baseline `json:"relativeTo,omitempty"`

	// Method of kind Drift: PSI or KS.
	//
	// +kubebuilder:default=PSI
	// +kubebuilder:example=PSI
	// +optional
	Method DriftMethod `json:"method,omitempty"`

	// Reference of kind Drift: how far back lies what is compared with.
	//
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m') && duration(self) <= duration('720h')",message="must be from 1m to 720h"
	// +kubebuilder:example="24h"
	// +optional
	Reference *metav1.Duration `json:"reference,omitempty"`
}

// CanaryParameters say what evidence is gathered about a revision that is tried,
// beside the one before it.
type CanaryParameters struct {
	// Epoch that the evidence belongs to. With another one everything is counted from
	// its beginning, so that nothing from before can count.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:example=41
	Epoch int64 `json:"epoch"`

	// Slot of the revision that is tried.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:example="b"
	Slot string `json:"slot"`

	// Baseline is the slot of the revision before. Without it no check is relative.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:example="a"
	// +optional
	Baseline string `json:"baseline,omitempty"`

	// Settle is the time at the beginning of an epoch that does not count, because
	// requests of before are in the windows of Prometheus.
	//
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s') && duration(self) <= duration('1h')",message="must be at most 1h"
	// +kubebuilder:example="30s"
	// +optional
	Settle *metav1.Duration `json:"settle,omitempty"`

	// MinSamples is how many requests a Pass needs at least.
	//
	// +kubebuilder:default=100
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:example=100
	// +optional
	MinSamples int32 `json:"minSamples,omitempty"`

	// Checks to make.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	Checks []Check `json:"checks"`

	// Experiment asks which of the two revisions is the better one. It needs a baseline.
	//
	// +optional
	Experiment *ExperimentParameters `json:"experiment,omitempty"`
}

// CanaryObservation is the evidence about a revision that is tried. It changes with
// each look.
type CanaryObservation struct {
	// Epoch that the evidence belongs to.
	Epoch int64 `json:"epoch"`

	// StartedAt is when the epoch was seen first.
	StartedAt metav1.Time `json:"startedAt"`

	// LookedAt is when Prometheus was asked last, with or without an answer.
	LookedAt metav1.Time `json:"lookedAt"`

	// Looks at Prometheus since the time to settle was over.
	Looks int64 `json:"looks"`

	// Errors in a row: looks that Prometheus did not answer.
	//
	// +optional
	Errors int64 `json:"errors,omitempty"`

	// Checks that were made.
	//
	// +kubebuilder:validation:MaxItems=16
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

	// Verdicts of the latest looks of the epoch, at most 10 and the last one last: P
	// for Pass, F for Fail, I for Insufficient, N for NoData, E for Error.
	//
	// +kubebuilder:validation:MaxLength=10
	// +optional
	Verdicts string `json:"verdicts,omitempty"`

	// Value in the unit of the check, since the epoch settled: of kind Query, of the
	// recent window, and of a latency or query relative to the baseline, divided by that.
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

	// Samples is the number of requests that the value is made of.
	//
	// +optional
	Samples *int64 `json:"samples,omitempty"`

	// Message tells why the last verdict is what it is, in a few words with its numbers.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// Signal of the load of replicas.
//
// +kubebuilder:validation:Enum=Auto;InFlight;RequestRate;CPU;Query
type Signal string

// Signals of the load of replicas.
const (
	// SignalAuto is the first of InFlight and RequestRate that the pods tell, and
	// else CPU.
	SignalAuto Signal = "Auto"
	// SignalInFlight is the number of requests being worked on.
	SignalInFlight Signal = "InFlight"
	// SignalRequestRate is the number of requests per second.
	SignalRequestRate Signal = "RequestRate"
	// SignalCPU is the use of the CPU.
	SignalCPU Signal = "CPU"
	// SignalQuery is the value of a query of one's own.
	SignalQuery Signal = "Query"
)

// ScalingParameters say what is to be learned.
//
// +kubebuilder:validation:XValidation:rule="(self.signal == 'Query') == has(self.query)",fieldPath=".query",message="query: is the load of signal Query, and no other signal has one"
type ScalingParameters struct {
	// Slot whose replicas are learned from: the live one.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:example="a"
	Slot string `json:"slot"`

	// Signal of the load.
	//
	// +kubebuilder:default=Auto
	// +kubebuilder:example=Auto
	// +optional
	Signal Signal `json:"signal,omitempty"`

	// Query of signal Query: a PromQL expression whose value is the load of all
	// replicas of a slot together. It is narrowed like any other;
	// status.atProvider.scaling.expressions tells what it becomes.
	//
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:example="sum(queue_length)"
	// +optional
	Query string `json:"query,omitempty"`

	// PerReplica is the load that one replica is to bear. Learned when absent.
	//
	// +kubebuilder:validation:XValidation:rule="self >= 0.001",message="must be at least 0.001"
	// +kubebuilder:example=6
	// +optional
	PerReplica *float64 `json:"perReplica,omitempty"`

	// TargetLatencyMs is the latency to keep, in milliseconds. Without it nothing
	// is learned.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600000
	// +kubebuilder:example=50
	// +optional
	TargetLatencyMs *int32 `json:"targetLatencyMs,omitempty"`

	// Percentile of the latency: 50, 90, 95 or 99.
	//
	// +kubebuilder:default=95
	// +kubebuilder:validation:Enum=50;90;95;99
	// +kubebuilder:example=95
	// +optional
	Percentile int32 `json:"percentile,omitempty"`
}

// A Verdict on a metric. Only Fail is evidence of a failure, and only Pass of
// success.
//
// +kubebuilder:validation:Enum=Pass;Fail;Insufficient;NoData;Error
type Verdict string

// Verdicts on a metric.
const (
	// VerdictPass: the value is within its bounds, and the samples are enough to
	// say so.
	VerdictPass Verdict = "Pass"
	// VerdictFail: the value is out of its bounds, and the samples are enough to
	// say so.
	VerdictFail Verdict = "Fail"
	// VerdictInsufficient: too few samples to say either.
	VerdictInsufficient Verdict = "Insufficient"
	// VerdictNoData: there is no such series, or its value is not a number.
	VerdictNoData Verdict = "NoData"
	// VerdictError: Prometheus could not be asked, or refused the query.
	VerdictError Verdict = "Error"
)

// MetricObservation is what was seen of a metric, as of the last time that a fact
// changed: a verdict, a message, or a number by more than a quarter and by more than
// chance explains. Of too few requests only their number counts.
type MetricObservation struct {
	// Slot whose pods it is about.
	Slot string `json:"slot"`

	// Name of the check.
	Name string `json:"name"`

	// Verdict on it.
	Verdict Verdict `json:"verdict"`

	// Value in the unit of the check, to three significant digits: of a share that is
	// nearly all, those of what is missing to 1.
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

	// Samples is the number of requests that the value is made of.
	//
	// +optional
	Samples *int64 `json:"samples,omitempty"`

	// Message tells why the verdict is neither Pass nor Fail, and what to do.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// ScalingObservation is what was learned about the load that a replica bears.
type ScalingObservation struct {
	// Signal of the load that the pods tell: InFlight, RequestRate, Query or CPU.
	//
	// +optional
	Signal Signal `json:"signal,omitempty"`

	// PerReplica is the load of one replica at which the latency holds, to two
	// significant digits: as asked, or as learned. It moves by 20 % a step at most.
	//
	// +optional
	PerReplica *float64 `json:"perReplica,omitempty"`

	// LoadIndependent tells that the latency is above its target although replicas
	// have little to do, so that more of them would not lower it.
	//
	// +optional
	LoadIndependent bool `json:"loadIndependent,omitempty"`

	// Expressions that queries of one's own become, by slot and the series that is to
	// be recorded of each, so that the autoscaler can follow it.
	//
	// +listType=map
	// +listMapKey=slot
	// +listMapKey=series
	// +optional
	Expressions []SlotExpression `json:"expressions,omitempty"`

	// Message tells what keeps the load from being learned, and what to do.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// SlotExpression is a PromQL expression about the pods of one slot.
type SlotExpression struct {
	// Slot that it is about.
	Slot string `json:"slot"`

	// Series that it is to be recorded as: capstan:custom for the query of signal
	// Query, and capstan:own_inflight, capstan:own_requests_per_second and
	// capstan:own_latency_ms for queries in place of the known ones.
	Series string `json:"series"`

	// Expression, narrowed to the pods of the slot.
	Expression string `json:"expression"`
}
