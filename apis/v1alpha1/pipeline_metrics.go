// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "cmp"

// PipelineMetrics defines what Prometheus scrapes in the pods of a Pipeline.
//
// +kubebuilder:validation:XValidation:rule="!has(self.path) || has(self.port)",fieldPath=".path",message="path needs port: set the port on which your program serves its metrics, or remove path"
type PipelineMetrics struct {
	// Port on which your program serves metrics of its own: the program of a container, the driver of Spark, or each pod of Flink. The
	// namespaces in the platform's setting algorithm.metricsNamespaces can reach it. It cannot be a port that Capstan uses. Series whose
	// names begin with capstan_ are dropped. Without it only the state of a stream with Flink is scraped, and other engines need it.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +kubebuilder:example=9090
	// +optional
	Port *int32 `json:"port,omitempty"`

	// Path that serves the metrics of your program. Default: /metrics.
	//
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^/[-a-zA-Z0-9._~/%]*$')",message="must be an absolute path of a URL, without a query"
	// +kubebuilder:example="/metrics"
	// +optional
	Path string `json:"path,omitempty"`
}

// ServedAt is the path that serves the metrics of the program.
func (m *PipelineMetrics) ServedAt() string { return cmp.Or(m.Path, usualMetricsPath) }
