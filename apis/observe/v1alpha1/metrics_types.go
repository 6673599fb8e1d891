// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MetricsParameters define the queries to Prometheus. Every query, built in or from the spec, sees only series with the
// labels namespace, algorithm and slot of its pods.
type MetricsParameters struct {
	// Interval between two evaluations, and the minimum time between two changes of the reported metrics. From 10s to
	// 1h. Default: 30s.
	//
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('10s') && duration(self) <= duration('1h')",message="must be from 10s to 1h"
	// +kubebuilder:example="30s"
	// +optional
	Interval *metav1.Duration `json:"interval,omitempty"`

	// Window is the time range of each evaluation, from 20s to 6h and at least four scrape intervals of Prometheus.
	// Default: 2m.
	//
	// +kubebuilder:default="2m"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('20s') && duration(self) <= duration('6h')",message="must be from 20s to 6h"
	// +kubebuilder:example="2m"
	// +optional
	Window *metav1.Duration `json:"window,omitempty"`

	// Slots whose pods are measured: the live one, and the slot of a candidate.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	// +kubebuilder:example={"a"}
	Slots []string `json:"slots"`

	// Queries replace the built-in queries for the known model servers.
	//
	// +optional
	Queries *Queries `json:"queries,omitempty"`

	// Checks to evaluate.
	//
	// +kubebuilder:validation:MaxItems=20
	// +listType=map
	// +listMapKey=name
	// +optional
	Checks []Check `json:"checks,omitempty"`

	// Trial lists checks of a candidate that are tried on the first slot, before the candidate gets any request. Only
	// whether they can be measured there is reported.
	//
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	Trial []Check `json:"trial,omitempty"`

	// Scaling learns the load for one replica.
	//
	// +optional
	Scaling *ScalingParameters `json:"scaling,omitempty"`

	// Canary collects evidence about a candidate.
	//
	// +optional
	Canary *CanaryParameters `json:"canary,omitempty"`

	// SLO measures a service level objective.
	//
	// +optional
	SLO *SLOParameters `json:"slo,omitempty"`
}

// Queries are PromQL expressions. $window stands for the time window, and each selector is restricted to the pods of
// one slot.
type Queries struct {
	// Requests is the number of requests in the window. Several series are added up.
	//
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:example="increase(predictions_total[$window])"
	// +optional
	Requests string `json:"requests,omitempty"`

	// Failures is the number of requests in the window that failed. Several series are added up, no series counts as
	// zero.
	//
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:example="increase(predictions_total{outcome=\"error\"}[$window])"
	// +optional
	Failures string `json:"failures,omitempty"`

	// Latency of the requests in the window: the buckets of a histogram in seconds, with the label le.
	//
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:example="increase(prediction_seconds_bucket[$window])"
	// +optional
	Latency string `json:"latency,omitempty"`

	// InFlight is the number of requests that are in progress now. Several series are added up.
	//
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:example="predictions_in_progress"
	// +optional
	InFlight string `json:"inFlight,omitempty"`
}

// CheckKind is what a check measures.
//
// +kubebuilder:validation:Enum=SuccessRatio;Latency;RequestRate;InFlight;Query;Drift
type CheckKind string

// What a check measures.
const (
	// CheckSuccessRatio is the share of requests that succeed, from 0 to 1, with a one-sided Wilson bound.
	CheckSuccessRatio CheckKind = "SuccessRatio"
	// CheckLatency is a percentile of the latency in milliseconds, with a bound from the order statistics of the
	// buckets.
	CheckLatency CheckKind = "Latency"
	// CheckRequestRate is the number of requests per second and ready replica.
	CheckRequestRate CheckKind = "RequestRate"
	// CheckInFlight is the number of requests in progress per ready replica.
	CheckInFlight CheckKind = "InFlight"
	// CheckQuery is the value of a PromQL expression.
	CheckQuery CheckKind = "Query"
	// CheckDrift is the distance of two distributions, minus its expectation without drift.
	CheckDrift CheckKind = "Drift"
)

// DriftMethod is how two distributions are compared.
//
// +kubebuilder:validation:Enum=PSI;KS
type DriftMethod string

// How two distributions are compared.
const (
	// DriftPSI is the population stability index, sum((p-q)ln(p/q)) over the buckets.
	DriftPSI DriftMethod = "PSI"
	// DriftKS is the Kolmogorov-Smirnov statistic, max|F-G| over the buckets.
	DriftKS DriftMethod = "KS"
)

// Baseline is what a check is compared with.
//
// +kubebuilder:validation:Enum=Baseline
type Baseline string

// RelativeToBaseline compares with the slot of the live revision over the same time.
const RelativeToBaseline Baseline = "Baseline"

// A Check compares a metric with bounds.
//
// +kubebuilder:validation:XValidation:rule="(self.kind in ['Query', 'Drift']) == has(self.query)",fieldPath=".query",message="query is required for the kinds Query and Drift, and only for them"
// +kubebuilder:validation:XValidation:rule="has(self.min) || has(self.max) || self.kind in ['RequestRate', 'InFlight'] || self.kind == 'SuccessRatio' && has(self.relativeTo)",message="min, max: set at least one, otherwise nothing is checked"
// +kubebuilder:validation:XValidation:rule="self.kind != 'Drift' || has(self.relativeTo) != has(self.reference)",message="relativeTo, reference: kind Drift needs one of them to compare with"
// +kubebuilder:validation:XValidation:rule="self.kind == 'Drift' || !has(self.reference)",fieldPath=".reference",message="reference is only for kind Drift: remove it"
// +kubebuilder:validation:XValidation:rule="!has(self.min) || !has(self.max) || self.min <= self.max",fieldPath=".min",message="min must not be above max: lower min or raise max"
// +kubebuilder:validation:XValidation:rule="self.kind != 'SuccessRatio' || [has(self.min) ? self.min : 0.0, has(self.max) ? self.max : 1.0].all(b, b >= 0.0 && b <= 1.0)",message="min, max: must be from 0 to 1 for kind SuccessRatio"
type Check struct {
	// Name of the check.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="must be lower case letters, digits and '-', start with a letter and end with a letter or digit"
	// +kubebuilder:example="latency"
	Name string `json:"name"`

	// Kind of the check.
	//
	// +kubebuilder:example=Latency
	Kind CheckKind `json:"kind"`

	// Query of kind Query: a PromQL expression with one value. Query of kind Drift: an expression that returns the
	// buckets of a histogram, with the label le. $window stands for the time window.
	//
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:example="avg(queue_length)"
	// +optional
	Query string `json:"query,omitempty"`

	// Percentile of kind Latency: 50, 90, 95 or 99. Default: 95.
	//
	// +kubebuilder:default=95
	// +kubebuilder:validation:Enum=50;90;95;99
	// +kubebuilder:example=95
	// +optional
	Percentile int32 `json:"percentile,omitempty"`

	// Min is the lowest value that passes. Default: no lower bound.
	//
	// +kubebuilder:example=0.99
	// +optional
	Min *float64 `json:"min,omitempty"`

	// Max is the highest value that passes. Default: no upper bound.
	//
	// +kubebuilder:example=50
	// +optional
	Max *float64 `json:"max,omitempty"`

	// RelativeTo Baseline, for checks of a candidate, divides its value by the value of the baseline. The distance of kind
	// Drift is then between the two. Kind SuccessRatio compares the difference instead: max is by how much the share of
	// the candidate can be below the share of the baseline, 0.01 by default.
	//
	// +kubebuilder:example=Baseline
	// +optional
	RelativeTo Baseline `json:"relativeTo,omitempty"`

	// Method of kind Drift: PSI or KS. Default: PSI.
	//
	// +kubebuilder:default=PSI
	// +kubebuilder:example=PSI
	// +optional
	Method DriftMethod `json:"method,omitempty"`

	// Reference of kind Drift compares with the same pods this long ago, from 1m to 720h.
	//
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m') && duration(self) <= duration('720h')",message="must be from 1m to 720h"
	// +kubebuilder:example="24h"
	// +optional
	Reference *metav1.Duration `json:"reference,omitempty"`
}

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

	// Settle is the time at the beginning of an epoch that does not count, because the windows of Prometheus still
	// contain earlier requests. At most 1h. Default: 30s.
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

	// Checks to evaluate.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
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
	// result changes no decision are reported together, at most five minutes later.
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

// Signal is the load of replicas.
//
// +kubebuilder:validation:Enum=Auto;InFlight;RequestRate;CPU;Query
type Signal string

// Signals of the load of replicas.
const (
	// SignalAuto is the first of InFlight and RequestRate that the pods export, otherwise CPU.
	SignalAuto Signal = "Auto"
	// SignalInFlight is the number of requests in progress.
	SignalInFlight Signal = "InFlight"
	// SignalRequestRate is the number of requests per second.
	SignalRequestRate Signal = "RequestRate"
	// SignalCPU is the use of CPU.
	SignalCPU Signal = "CPU"
	// SignalQuery is the value of the query in the spec.
	SignalQuery Signal = "Query"
)

// ScalingParameters define what to learn about the load for one replica.
//
// +kubebuilder:validation:XValidation:rule="(self.signal == 'Query') == has(self.query)",fieldPath=".query",message="query is required for signal Query, and only for it"
type ScalingParameters struct {
	// Slot whose replicas are measured: the live one.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:example="a"
	Slot string `json:"slot"`

	// Signal is the load. Default: Auto.
	//
	// +kubebuilder:default=Auto
	// +kubebuilder:example=Auto
	// +optional
	Signal Signal `json:"signal,omitempty"`

	// Query of signal Query: a PromQL expression whose value is the load of all replicas of a slot together. It is
	// restricted like any other query; status.atProvider.scaling.expressions has the result.
	//
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:example="sum(queue_length)"
	// +optional
	Query string `json:"query,omitempty"`

	// PerReplica is the load for one replica. Default: learned.
	//
	// +kubebuilder:validation:XValidation:rule="self >= 0.001",message="must be at least 0.001"
	// +kubebuilder:example=6
	// +optional
	PerReplica *float64 `json:"perReplica,omitempty"`

	// TargetLatencyMs is the latency to keep, in milliseconds. Default: nothing is learned.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600000
	// +kubebuilder:example=50
	// +optional
	TargetLatencyMs *int32 `json:"targetLatencyMs,omitempty"`

	// Percentile of the latency: 50, 90, 95 or 99. Default: 95.
	//
	// +kubebuilder:default=95
	// +kubebuilder:validation:Enum=50;90;95;99
	// +kubebuilder:example=95
	// +optional
	Percentile int32 `json:"percentile,omitempty"`
}

// A Verdict on a metric. Only Fail is evidence of a failure, and only Pass of success.
//
// +kubebuilder:validation:Enum=Pass;Fail;Insufficient;NoData;Error
type Verdict string

// Verdicts on a metric.
const (
	// VerdictPass: the value is within its bounds, with enough samples to be certain.
	VerdictPass Verdict = "Pass"
	// VerdictFail: the value is out of its bounds, with enough samples to be certain.
	VerdictFail Verdict = "Fail"
	// VerdictInsufficient: there are too few samples for either.
	VerdictInsufficient Verdict = "Insufficient"
	// VerdictNoData: there is no such series, or its value is not a number.
	VerdictNoData Verdict = "NoData"
	// VerdictError: Prometheus is unreachable, or rejected the query.
	VerdictError Verdict = "Error"
)

// MetricObservation is the observed state of a metric. It changes only with a fact: the verdict, the message, or a
// number by more than a quarter and by more than chance explains. With too few requests only their number is reported.
type MetricObservation struct {
	// Slot whose pods are measured.
	Slot string `json:"slot"`

	// Name of the check.
	Name string `json:"name"`

	// Verdict on the metric.
	Verdict Verdict `json:"verdict"`

	// Value in the unit of the check, to three significant digits. A share close to 1 has three significant digits of
	// its distance to 1.
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

	// Samples is the number of requests behind the value.
	//
	// +optional
	Samples *int64 `json:"samples,omitempty"`

	// Message explains why the verdict is neither Pass nor Fail, and what to do.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// ScalingObservation is what was learned about the load for one replica.
type ScalingObservation struct {
	// Signal of the load that the pods export: InFlight, RequestRate, Query or CPU.
	//
	// +optional
	Signal Signal `json:"signal,omitempty"`

	// PerReplica is the load of one replica at which the latency stays at its target, to two significant digits: from
	// the spec, or learned. It changes by at most 20 % at a time.
	//
	// +optional
	PerReplica *float64 `json:"perReplica,omitempty"`

	// LoadIndependent reports whether the latency is above its target although replicas have little load, so that more
	// replicas would not lower it.
	//
	// +optional
	LoadIndependent bool `json:"loadIndependent,omitempty"`

	// Held is the greatest load of a replica at which the latency was seen to be within its target, to two significant
	// digits. With the fields below it lets another process of the provider continue to learn.
	//
	// +optional
	Held *float64 `json:"held,omitempty"`

	// HeldInFlight is the greatest number of requests in progress in a replica at which it was.
	//
	// +optional
	HeldInFlight *float64 `json:"heldInFlight,omitempty"`

	// Broke is the least load of a replica at which the latency was seen to be above its target.
	//
	// +optional
	Broke *float64 `json:"broke,omitempty"`

	// BrokeAt is when that was seen last, to ten minutes. It is forgotten after 6h.
	//
	// +optional
	BrokeAt *metav1.Time `json:"brokeAt,omitempty"`

	// Expressions of the queries of the spec, by slot and by the series to record for the autoscaler.
	//
	// +listType=map
	// +listMapKey=slot
	// +listMapKey=series
	// +optional
	Expressions []SlotExpression `json:"expressions,omitempty"`

	// Message explains what blocks learning, and what to do.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// SlotExpression is a PromQL expression for the pods of one slot.
type SlotExpression struct {
	// Slot of the pods.
	Slot string `json:"slot"`

	// Series to record it as: capstan:custom for the query of signal Query, and capstan:own_inflight,
	// capstan:own_requests_per_second and capstan:own_latency_ms for queries that replace built-in ones.
	Series string `json:"series"`

	// Expression, restricted to the pods of the slot.
	Expression string `json:"expression"`
}
