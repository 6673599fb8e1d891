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
)

// An Analysis is the quiet observer of an Algorithm. It looks at the pods of
// the Algorithm while they are not ready and tells what hinders them; its status
// changes only when a fact changes, so that an idle Algorithm costs nothing.
// The Algorithm's composition makes one for each Algorithm.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,managed,capstan}
// +kubebuilder:printcolumn:name="Synced",type=string,JSONPath=`.status.conditions[?(@.type=="Synced")].status`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Finding",type=string,JSONPath=`.status.atProvider.findings[0].reason`
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

	// ForProvider is what the provider is to observe.
	ForProvider AnalysisParameters `json:"forProvider"`
}

// AnalysisParameters say which pods are looked at.
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
}

// A Finding is one cause that keeps pods from being ready.
type Finding struct {
	// Reason in one word. The same words are the reasons of the Algorithm's
	// condition PodsHealthy: ImagePullFailed, InsufficientGPU, Unschedulable,
	// CrashLooping, ConfigError, RunsAsRoot, NotListening.
	Reason string `json:"reason"`

	// Message tells the cause and what to do. It holds no pod name, time or
	// count that would change by itself.
	Message string `json:"message"`

	// Slot whose pods it keeps from being ready: the label capstan.dev/slot.
	//
	// +optional
	Slot string `json:"slot,omitempty"`
}
