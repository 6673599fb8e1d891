// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// Metrics defines how the pods are scraped, and queries of your own. Capstan knows the metric names of the
// common model servers: vLLM, SGLang, TGI, Triton, TorchServe, TensorFlow Serving, KServe, MLServer, and the plain
// http_requests_total and http_request_duration_seconds.
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

	// Window is the time range that each evaluation of Prometheus covers, from 20s to 6h. It should hold four scrapes. There
	// are four evaluations in a window, and never less than one in 30 s or more than one in 10 s. Default: 2m.
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

	// Queries are PromQL expressions of your own. One with min or max is a check: for the live revision, the condition
	// WithinTargets reports when its value is out of bounds, and a candidate of spec.lifecycle is rolled back for it. Six
	// names are known, have no bounds, and replace what Capstan asks by itself: requests and failures, the number of
	// requests in the window, and how many of them failed; latency, the buckets of a histogram of their seconds, with the label
	// le; in-flight, the number of requests that are in progress now; outputs, the buckets of a histogram of what the
	// revision answers, for instance of its scores, which spec.lifecycle.drift compares; load, the load of all replicas
	// together, for instance sum(queue_length), for signal Query of spec.scaling. load needs the Prometheus Operator, which
	// records it. Default: the queries for the model server, and no check.
	//
	// +kubebuilder:validation:MaxItems=22
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:example={{"name":"requests","query":"increase(predictions_total[$window])"},{"name":"queue","query":"avg(queue_length)","max":20}}
	// +optional
	Queries []MetricQuery `json:"queries,omitempty"`
}

// Time between two evaluations of Prometheus: a quarter of window within these bounds.
const (
	leastInterval = 10 * time.Second
	mostInterval  = 30 * time.Second
)

// Interval between two evaluations of Prometheus.
func (m *Metrics) Interval() time.Duration {
	return min(max(m.Window.Duration/4, leastInterval), mostInterval)
}

// Names of queries that replace what Capstan asks by itself.
const (
	// QueryRequests is the number of requests in the window.
	QueryRequests = "requests"
	// QueryFailures is the number of them that failed.
	QueryFailures = "failures"
	// QueryLatency has the buckets of a histogram of their seconds.
	QueryLatency = "latency"
	// QueryInFlight is the number of requests in progress.
	QueryInFlight = "in-flight"
	// QueryOutputs has the buckets of a histogram of what a revision answers.
	QueryOutputs = "outputs"
	// QueryLoad is the load of all replicas together.
	QueryLoad = "load"
)

// Query of a name, or empty where there is none.
func (m *Metrics) Query(name string) string {
	if m != nil {
		for i := range m.Queries {
			if m.Queries[i].Name == name {
				return m.Queries[i].Query
			}
		}
	}
	return ""
}

// MetricQuery is a PromQL expression, whose value can have bounds.
//
// +kubebuilder:validation:XValidation:rule="has(self.min) || has(self.max) || self.name in ['requests', 'failures', 'latency', 'in-flight', 'outputs', 'load']",message="min, max: set at least one, otherwise nothing is checked"
// +kubebuilder:validation:XValidation:rule="!(self.name in ['requests', 'failures', 'latency', 'in-flight', 'outputs', 'load']) || !has(self.min) && !has(self.max)",message="min, max: requests, failures, latency, in-flight, outputs and load replace a query of Capstan, and have no bounds: remove them, or choose another name for a check"
// +kubebuilder:validation:XValidation:rule="!has(self.min) || !has(self.max) || self.min <= self.max",fieldPath=".min",message="min must not be above max: lower min or raise max"
type MetricQuery struct {
	// Name of the query: one of the known names, or for a check the name that status, evidence and messages use.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="must be lower case letters, digits and '-', start with a letter and end with a letter or digit"
	// +kubebuilder:validation:XValidation:rule="!(self in ['success', 'success-against-baseline', 'latency-against-baseline', 'drift', 'data-drift', 'request-rate', 'time-to-first-token', 'time-per-output-token', 'tokens-per-second', 'requests-waiting', 'cache-use'])",message="must not be the name of a built-in check (success, success-against-baseline, latency-against-baseline, drift, data-drift, request-rate, time-to-first-token, time-per-output-token, tokens-per-second, requests-waiting, cache-use): choose another"
	// +kubebuilder:example="revenue"
	Name string `json:"name"`

	// Query is a PromQL expression. It has one value, except latency and outputs. $window stands for the time window, and
	// only series of the pods of one revision are visible to it, or of all of this Algorithm for load.
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

	// AppliesTo is the value that has to pass a check: of the revision that is Live, of the Candidate of spec.lifecycle, of
	// Both, or the Ratio, which is the value of the candidate divided by the value of the live revision. Default: Both.
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
