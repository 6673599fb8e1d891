// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// Metrics defines how the pods are scraped and which values they must reach. Capstan knows the metric names of the
// common model servers: vLLM, SGLang, TGI, Triton, TorchServe, TensorFlow Serving, KServe, MLServer, and the plain
// http_requests_total and http_request_duration_seconds.
//
// +kubebuilder:validation:XValidation:rule="!has(self.interval) || !has(self.window) || ![self.interval, self.window].all(d, d.matches('^([0-9]{1,6}([.][0-9]{1,3})?(ms|s|m|h)){1,4}$')) || duration(self.window) >= duration(self.interval)",fieldPath=".window",message="window must not be shorter than interval, otherwise some requests never count: raise window or lower interval"
type Metrics struct {
	// Port that serves the metrics. A NetworkPolicy opens a port as a whole: if metrics are on spec.port, the scraper
	// can also send requests to the Algorithm. Default: spec.port.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +kubebuilder:example=9090
	// +optional
	Port *int32 `json:"port,omitempty"`

	// Path that serves the metrics. Default: /metrics.
	//
	// +kubebuilder:default="/metrics"
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^/[-a-zA-Z0-9._~/%]*$')",message="must be an absolute path of a URL, without a query"
	// +kubebuilder:example="/metrics"
	// +optional
	Path string `json:"path,omitempty"`

	// Interval between two evaluations of Prometheus, from 10s to 1h. Default: 30s.
	//
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,3})?(ms|s|m|h)){1,4}$') && duration(self) >= duration('10s') && duration(self) <= duration('1h')",message="must be a time from 10s to 1h, for instance 2m"
	// +kubebuilder:example="30s"
	// +optional
	Interval *metav1.Duration `json:"interval,omitempty"`

	// Window is the time range that each evaluation covers, from 20s to 6h and not shorter than interval. It should
	// hold four scrapes. Default: 2m.
	//
	// +kubebuilder:default="2m"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,3})?(ms|s|m|h)){1,4}$') && duration(self) >= duration('20s') && duration(self) <= duration('6h')",message="must be a time from 20s to 6h, for instance 2m"
	// +kubebuilder:example="2m"
	// +optional
	Window *metav1.Duration `json:"window,omitempty"`

	// ProviderConfigReference names the ProviderConfig of this namespace, or the ClusterProviderConfig, with the
	// address of Prometheus. Default: the platform's setting, or the ClusterProviderConfig prometheus.
	//
	// +kubebuilder:validation:XValidation:rule="self.kind in ['ProviderConfig', 'ClusterProviderConfig']",messageExpression="'providerConfigRef.kind: ' + self.kind + ' is neither ProviderConfig nor ClusterProviderConfig'"
	// +kubebuilder:validation:XValidation:rule="size(self.name) <= 63 && self.name.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",messageExpression="'providerConfigRef.name: ' + self.name + ' is not the name of a config: at most 63 lower case letters, digits, - and .'"
	// +kubebuilder:example={"kind": "ClusterProviderConfig", "name": "prometheus"}
	// +optional
	ProviderConfigReference *xpv2.ProviderConfigReference `json:"providerConfigRef,omitempty"`

	// Queries replace the built-in queries for the known model servers. A query that is not set keeps the built-in one.
	//
	// +optional
	Queries *MetricQueries `json:"queries,omitempty"`

	// Checks compare values of PromQL expressions with bounds. For the live revision, the condition WithinTargets
	// reports when a value is out of bounds. A candidate of spec.lifecycle is rolled back for it.
	//
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	Checks []MetricCheck `json:"checks,omitempty"`
}

// MetricQueries are PromQL expressions. $window stands for the time window, and only series of one slot of this
// Algorithm's pods are visible to them.
type MetricQueries struct {
	// Requests is the number of requests in the window.
	//
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:example="increase(predictions_total[$window])"
	// +optional
	Requests string `json:"requests,omitempty"`

	// Failures is the number of requests in the window that failed.
	//
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:example="increase(predictions_total{outcome=\"error\"}[$window])"
	// +optional
	Failures string `json:"failures,omitempty"`

	// Latency returns the buckets of a histogram of the window's requests in seconds, with the label le.
	//
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:example="increase(prediction_seconds_bucket[$window])"
	// +optional
	Latency string `json:"latency,omitempty"`

	// InFlight is the number of requests that are in progress now.
	//
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:example="predictions_in_progress"
	// +optional
	InFlight string `json:"inFlight,omitempty"`
}

// MetricCheck compares the value of a PromQL expression with at least one bound.
//
// +kubebuilder:validation:XValidation:rule="has(self.min) || has(self.max)",message="min, max: set at least one, otherwise nothing is checked"
// +kubebuilder:validation:XValidation:rule="!has(self.min) || !has(self.max) || self.min <= self.max",fieldPath=".min",message="min must not be above max: lower min or raise max"
type MetricCheck struct {
	// Name of the check, which status, evidence and messages use.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="must be lower case letters, digits and '-', start with a letter and end with a letter or digit"
	// +kubebuilder:validation:XValidation:rule="!(self in ['success', 'success-against-baseline', 'latency', 'latency-against-baseline', 'drift', 'data-drift', 'request-rate', 'in-flight', 'time-to-first-token', 'time-per-output-token', 'tokens-per-second', 'requests-waiting', 'cache-use'])",message="must not be the name of a built-in check (success, success-against-baseline, latency, latency-against-baseline, drift, data-drift, request-rate, in-flight, time-to-first-token, time-per-output-token, tokens-per-second, requests-waiting, cache-use): choose another"
	// +kubebuilder:example="revenue"
	Name string `json:"name"`

	// Query is a PromQL expression with one value. $window stands for the time window, and only series of one revision's
	// pods are visible to it.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:example="sum(increase(revenue_total[$window])) / sum(increase(http_requests_total[$window]))"
	Query string `json:"query"`

	// Min is the lowest value that passes. Default: no lower bound.
	//
	// +kubebuilder:example=0.98
	// +optional
	Min *float64 `json:"min,omitempty"`

	// Max is the highest value that passes. Default: no upper bound.
	//
	// +kubebuilder:example=1.1
	// +optional
	Max *float64 `json:"max,omitempty"`

	// AppliesTo is the value that has to pass: of the revision that is Live, of the Candidate of spec.lifecycle, of Both,
	// or the Ratio, which is the value of the candidate divided by the value of the live revision. Default: Both.
	//
	// +kubebuilder:default=Both
	// +kubebuilder:example=Candidate
	// +optional
	AppliesTo CheckedRevision `json:"appliesTo,omitempty"`
}

// CheckedRevision is the revision, or the ratio of both, that has to pass a check.
//
// +kubebuilder:validation:Enum=Live;Candidate;Both;Ratio
type CheckedRevision string

// Revisions that have to pass a check.
const (
	// CheckLive: the revision that clients reach.
	CheckLive CheckedRevision = "Live"
	// CheckCandidate: the revision under test.
	CheckCandidate CheckedRevision = "Candidate"
	// CheckBoth of them.
	CheckBoth CheckedRevision = "Both"
	// CheckRatio: the value of the candidate divided by the value of the live revision over the same time.
	CheckRatio CheckedRevision = "Ratio"
)
