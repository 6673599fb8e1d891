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
	// +kubebuilder:validation:MaxItems=24
	// +listType=map
	// +listMapKey=name
	// +optional
	Checks []Check `json:"checks,omitempty"`

	// Trial lists checks of a candidate that are tried on the first slot, before the candidate gets any request. Only
	// whether they can be measured there is reported.
	//
	// +kubebuilder:validation:MaxItems=24
	// +listType=map
	// +listMapKey=name
	// +optional
	Trial []Check `json:"trial,omitempty"`

	// Scaling learns the load for one replica.
	//
	// +optional
	Scaling *ScalingParameters `json:"scaling,omitempty"`

	// RecordLatency is the percentile of queries.latency that status.atProvider.latency has the expressions of, to record
	// them: 50, 90, 95 or 99. Default: none. The expressions of the latency that scaling follows are among its own.
	//
	// +kubebuilder:validation:Enum=50;90;95;99
	// +kubebuilder:example=95
	// +optional
	RecordLatency *int32 `json:"recordLatency,omitempty"`

	// IdleAfterSeconds has the status report since when no request has come (idleSince), once that is so many seconds
	// ago. Default: it is not reported.
	//
	// +kubebuilder:validation:Minimum=60
	// +kubebuilder:validation:Maximum=86400
	// +kubebuilder:example=600
	// +optional
	IdleAfterSeconds *int32 `json:"idleAfterSeconds,omitempty"`

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
// +kubebuilder:validation:Enum=SuccessRatio;Latency;RequestRate;InFlight;Query;Drift;FirstToken;EachToken;TokenRate;Waiting;CacheUse
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
	// CheckFirstToken is a percentile of the time to the first token in milliseconds, with the bounds of Latency.
	CheckFirstToken CheckKind = "FirstToken"
	// CheckEachToken is a percentile of the time for each further token in milliseconds, with the bounds of Latency.
	CheckEachToken CheckKind = "EachToken"
	// CheckTokenRate is the number of tokens generated per second and ready replica.
	CheckTokenRate CheckKind = "TokenRate"
	// CheckWaiting is the number of requests that wait for their turn per ready replica.
	CheckWaiting CheckKind = "Waiting"
	// CheckCacheUse is the share of a replica's key-value cache that is in use, from 0 to 1.
	CheckCacheUse CheckKind = "CacheUse"
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
// +kubebuilder:validation:XValidation:rule="has(self.min) || has(self.max) || self.kind in ['RequestRate', 'InFlight', 'TokenRate', 'Waiting', 'CacheUse'] || self.kind == 'SuccessRatio' && has(self.relativeTo)",message="min, max: set at least one, otherwise nothing is checked"
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

	// Percentile of kinds Latency, FirstToken and EachToken: 50, 90, 95 or 99. Default: 95.
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
