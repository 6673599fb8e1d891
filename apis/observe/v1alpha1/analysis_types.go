// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// Labels by which the pods of an Algorithm are found.
const (
	// LabelAlgorithm names the Algorithm that a pod belongs to.
	LabelAlgorithm = "capstan.dev/algorithm"

	// LabelSlot names the slot of the Algorithm that a pod belongs to.
	LabelSlot = "capstan.dev/slot"

	// AnnotationRevision names the revision that a pod is of.
	AnnotationRevision = "capstan.dev/revision"
)

// An Analysis is the quiet observer of an Algorithm. It looks at the pods of
// the Algorithm while they are not ready and tells what hinders them, asks
// Prometheus how well they serve, learns how much load a replica bears, and tells
// when a Secret of theirs has changed. Its status changes at most once an interval
// and only when a fact changes, so that neither an idle nor a busy Algorithm is a
// noisy one. The Algorithm's composition makes one for each Algorithm.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,managed,capstan}
// +kubebuilder:printcolumn:name="Synced",type=string,JSONPath=`.status.conditions[?(@.type=="Synced")].status`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Connected",type=string,JSONPath=`.status.conditions[?(@.type=="Connected")].reason`
// +kubebuilder:printcolumn:name="Finding",type=string,JSONPath=`.status.atProvider.findings[0].reason`
// +kubebuilder:printcolumn:name="Verdicts",type=string,JSONPath=`.status.atProvider.metrics[*].verdict`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Analysis struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what the provider is to observe.
	Spec AnalysisSpec `json:"spec"`

	// Status is what was seen.
	//
	// +optional
	Status AnalysisStatus `json:"status,omitempty"`
}

// AnalysisList holds many Analyses.
//
// +kubebuilder:object:root=true
type AnalysisList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Analysis `json:"items"`
}

// AnalysisSpec says what is observed.
type AnalysisSpec struct {
	// ManagementPolicies: an Analysis only ever observes.
	//
	// +kubebuilder:default={"Observe"}
	// +kubebuilder:validation:XValidation:rule="self.all(p, p == 'Observe')",message="must be Observe or nothing: an Analysis only observes"
	// +kubebuilder:example={"Observe"}
	// +optional
	ManagementPolicies xpv2.ManagementPolicies `json:"managementPolicies,omitempty"`

	// ProviderConfigReference names the ProviderConfig of this namespace, or the
	// ClusterProviderConfig, that says where Prometheus is. It is used only when
	// forProvider.metrics is set.
	//
	// +kubebuilder:default={"kind": "ClusterProviderConfig", "name": "prometheus"}
	// +kubebuilder:example={"kind": "ClusterProviderConfig", "name": "prometheus"}
	// +kubebuilder:validation:XValidation:rule="self.kind in ['ProviderConfig', 'ClusterProviderConfig']",messageExpression="'providerConfigRef.kind: ' + self.kind + ' is neither ProviderConfig nor ClusterProviderConfig'"
	// +kubebuilder:validation:XValidation:rule="size(self.name) <= 63 && self.name.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",messageExpression="'providerConfigRef.name: ' + self.name + ' is not the name of a config: at most 63 lower case letters, digits, - and .'"
	// +optional
	ProviderConfigReference *xpv2.ProviderConfigReference `json:"providerConfigRef,omitempty"`

	// ForProvider is what the provider is to observe.
	ForProvider AnalysisParameters `json:"forProvider"`
}

// AnalysisParameters say what is looked at.
type AnalysisParameters struct {
	// Algorithm whose pods are looked at: pods of this namespace with the label
	// capstan.dev/algorithm of this value.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:example="recommendation-engine"
	Algorithm string `json:"algorithm"`

	// Container in those pods.
	//
	// +kubebuilder:default=algorithm
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:example="algorithm"
	// +optional
	Container string `json:"container,omitempty"`

	// Secrets of this namespace whose content is watched: status.atProvider.secrets
	// tells a fingerprint of each, which changes when the content does. Pods that
	// wait for one that is missing are found.
	//
	// +kubebuilder:validation:MaxItems=17
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.all(n, n.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$'))",message="must be names of Secrets: lower case letters, digits, '-' and '.', with a letter or digit at both ends"
	// +listType=set
	// +kubebuilder:example={"reco-license"}
	// +optional
	Secrets []string `json:"secrets,omitempty"`

	// Metrics to ask Prometheus for. None when absent.
	//
	// +optional
	Metrics *MetricsParameters `json:"metrics,omitempty"`
}

// AnalysisStatus is what was seen.
type AnalysisStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	// AtProvider is what was seen.
	//
	// +optional
	AtProvider AnalysisObservation `json:"atProvider,omitempty"`
}

// AnalysisObservation is what was seen.
type AnalysisObservation struct {
	// Findings tell what hinders pods that are not ready, the most frequent
	// first. Empty when nothing does.
	//
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	// +optional
	Findings []Finding `json:"findings,omitempty"`

	// Secrets that are watched and exist, sorted by name.
	//
	// +listType=map
	// +listMapKey=name
	// +optional
	Secrets []SecretObservation `json:"secrets,omitempty"`

	// Server whose metric names the pods use, for instance vLLM, or Custom when
	// every query is one's own. Empty as long as none was recognised.
	//
	// +optional
	Server string `json:"server,omitempty"`

	// Metrics that were asked for, by slot and name.
	//
	// +kubebuilder:validation:MaxItems=40
	// +listType=map
	// +listMapKey=slot
	// +listMapKey=name
	// +optional
	Metrics []MetricObservation `json:"metrics,omitempty"`

	// Scaling is what was learned about the load that a replica bears.
	//
	// +optional
	Scaling *ScalingObservation `json:"scaling,omitempty"`

	// Canary is the evidence about a revision that is tried.
	//
	// +optional
	Canary *CanaryObservation `json:"canary,omitempty"`

	// SLO is what is left of the error budget.
	//
	// +optional
	SLO *SLOObservation `json:"slo,omitempty"`
}

// SecretObservation is what was seen of a Secret.
type SecretObservation struct {
	// Name of the Secret.
	Name string `json:"name"`

	// Fingerprint of its content. It tells nothing about the content itself: it is
	// keyed with the UID of the Secret.
	Fingerprint string `json:"fingerprint"`
}

// A Finding is one cause that keeps pods from being ready.
type Finding struct {
	// Reason in one word. The same words are the reasons of the Algorithm's
	// condition PodsHealthy: ImagePullFailed, InsufficientGPU, Unschedulable,
	// CrashLooping, ConfigError, RunsAsRoot, NotListening, NotWarm, and those about
	// the model: ModelNotFound, ModelForbidden, ModelUnreachable,
	// ModelDigestMismatch, ModelSizeMismatch, ModelNoSpace, ModelInvalid,
	// ModelFetching.
	Reason string `json:"reason"`

	// Message tells the cause and what to do. It holds no pod name, time or
	// count that would change by itself.
	Message string `json:"message"`

	// Slot whose pods it keeps from being ready: the label capstan.dev/slot.
	//
	// +optional
	Slot string `json:"slot,omitempty"`

	// Revision of those pods: the annotation capstan.dev/revision. Empty for pods of
	// before they had one.
	//
	// +optional
	Revision string `json:"revision,omitempty"`
}
