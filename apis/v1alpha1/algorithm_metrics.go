// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// Metrics that the container tells, and what is expected of them. Names of metrics
// of the usual model servers are known: vLLM, Triton, TorchServe, TensorFlow
// Serving, KServe, MLServer, and the plain http_requests_total and
// http_request_duration_seconds.
//
// +kubebuilder:validation:XValidation:rule="!has(self.interval) || !has(self.window) || ![self.interval, self.window].all(d, d.matches('^([0-9]{1,6}([.][0-9]{1,3})?(ms|s|m|h)){1,4}$')) || duration(self.window) >= duration(self.interval)",fieldPath=".window",message="window must not be shorter than interval, or requests in between never count: raise window or lower interval"
type Metrics struct {
	// Port that metrics are served on. Default: spec.port. A port is open or closed
	// as a whole: who may scrape metrics on spec.port may call the Algorithm as well.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +kubebuilder:example=9090
	// +optional
	Port *int32 `json:"port,omitempty"`

	// Path that metrics are served on.
	//
	// +kubebuilder:default="/metrics"
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^/[-a-zA-Z0-9._~/%]*$')",message="must be an absolute path of a URL, without a query"
	// +kubebuilder:example="/metrics"
	// +optional
	Path string `json:"path,omitempty"`

	// Interval between two looks at Prometheus. At least 10s.
	//
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,3})?(ms|s|m|h)){1,4}$') && duration(self) >= duration('10s') && duration(self) <= duration('1h')",message="must be a time from 10s to 1h, for instance 2m"
	// +kubebuilder:example="30s"
	// +optional
	Interval *metav1.Duration `json:"interval,omitempty"`

	// Window of time that each look is about.
	//
	// +kubebuilder:default="2m"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,3})?(ms|s|m|h)){1,4}$') && duration(self) >= duration('20s') && duration(self) <= duration('6h')",message="must be a time from 20s to 6h, for instance 2m"
	// +kubebuilder:example="2m"
	// +optional
	Window *metav1.Duration `json:"window,omitempty"`

	// ProviderConfigReference names the ProviderConfig of this namespace, or the
	// ClusterProviderConfig, that says where Prometheus is. Default: the
	// ClusterProviderConfig prometheus.
	//
	// +kubebuilder:validation:XValidation:rule="self.kind in ['ProviderConfig', 'ClusterProviderConfig']",messageExpression="'providerConfigRef.kind: ' + self.kind + ' is neither ProviderConfig nor ClusterProviderConfig'"
	// +kubebuilder:validation:XValidation:rule="size(self.name) <= 63 && self.name.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",messageExpression="'providerConfigRef.name: ' + self.name + ' is not the name of a config: at most 63 lower case letters, digits, - and .'"
	// +kubebuilder:example={"kind": "ClusterProviderConfig", "name": "prometheus"}
	// +optional
	ProviderConfigReference *xpv2.ProviderConfigReference `json:"providerConfigRef,omitempty"`

	// Queries in place of those for the metric names of the known model servers.
	//
	// +optional
	Queries *MetricQueries `json:"queries,omitempty"`

	// SuccessRatio is the least share of requests that must succeed, from 0 to 1.
	// The condition WithinTargets tells when it is missed.
	//
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1
	// +kubebuilder:example=0.99
	// +optional
	SuccessRatio *float64 `json:"successRatio,omitempty"`

	// Checks compare values of PromQL expressions with bounds. The condition
	// WithinTargets tells when one is out of them.
	//
	// +kubebuilder:validation:MaxItems=10
	// +listType=map
	// +listMapKey=name
	// +optional
	Checks []MetricCheck `json:"checks,omitempty"`
}

// MetricQueries are PromQL expressions. In them $window stands for the window, and
// they see only series of one slot of this Algorithm's pods.
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

	// Latency holds the buckets of a histogram of the window's requests in
	// seconds, with the label le.
	//
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:example="increase(prediction_seconds_bucket[$window])"
	// +optional
	Latency string `json:"latency,omitempty"`

	// InFlight is the number of requests being worked on now.
	//
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:example="predictions_in_progress"
	// +optional
	InFlight string `json:"inFlight,omitempty"`
}

// MetricCheck compares the value of a PromQL expression with bounds.
//
// +kubebuilder:validation:XValidation:rule="has(self.min) || has(self.max)",message="min, max: at least one bound is needed, or nothing is checked"
// +kubebuilder:validation:XValidation:rule="!has(self.min) || !has(self.max) || self.min <= self.max",fieldPath=".min",message="min: must not be above max"
type MetricCheck struct {
	// Name of the check. success and latency are those of successRatio and
	// targetLatencyMs, and request-rate and in-flight are always told.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="must be lower case letters, digits and '-', start with a letter and end with a letter or digit"
	// +kubebuilder:validation:XValidation:rule="!(self in ['success', 'latency', 'request-rate', 'in-flight'])",message="success, latency, request-rate and in-flight are the names of the built-in checks: choose another"
	// +kubebuilder:example="queue"
	Name string `json:"name"`

	// Query is a PromQL expression with one value.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:example="avg(queue_length)"
	Query string `json:"query"`

	// Min is the least value that passes.
	//
	// +kubebuilder:example=1
	// +optional
	Min *float64 `json:"min,omitempty"`

	// Max is the greatest value that passes.
	//
	// +kubebuilder:example=10
	// +optional
	Max *float64 `json:"max,omitempty"`
}
