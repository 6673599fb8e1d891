// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "cmp"

// TrainingMetrics defines what Prometheus scrapes in each pod of a Training, beside the state of the run.
//
// +kubebuilder:validation:XValidation:rule="!has(self.path) || has(self.port)",fieldPath=".path",message="path needs port: set the port on which your program serves its metrics, or remove path"
type TrainingMetrics struct {
	// Port on which your program serves metrics of its own. All ranks of a pod share its ports, so one of them serves for all, for
	// instance the one with LOCAL_RANK 0. The namespaces in the platform's setting algorithm.metricsNamespaces can reach it. It cannot
	// be 7700, 7701 or one from 29400 to 29499, which Capstan uses. Series
	// whose names begin with capstan_ are dropped. Default: only the state of the run is scraped.
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

// usualMetricsPath of programs.
const usualMetricsPath = "/metrics"

// ServedAt is the path that serves the metrics of the program.
func (m *TrainingMetrics) ServedAt() string { return cmp.Or(m.Path, usualMetricsPath) }
