// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// A Lineage sends events about the runs of one job, and the data that they read and write, to a server for OpenLineage. Each run has two
// events: when it began, and how it ended. It is quiet: its status changes only when an event was sent, or when another cause keeps one
// from being sent. Each Pipeline and each Training with spec.lineage composes one.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,managed,capstan}
// +kubebuilder:printcolumn:name="Synced",type=string,JSONPath=`.status.conditions[?(@.type=="Synced")].status`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Connected",type=string,JSONPath=`.status.conditions[?(@.type=="Connected")].reason`
// +kubebuilder:printcolumn:name="Last-Run",type=string,JSONPath=`.status.atProvider.sent[-1].run`
// +kubebuilder:printcolumn:name="Event",type=string,JSONPath=`.status.atProvider.sent[-1].event`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Lineage struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what to report, and where to.
	Spec LineageSpec `json:"spec"`

	// Status is what has been sent.
	//
	// +optional
	Status LineageStatus `json:"status,omitempty"`
}

// LineageList is a list of Lineages.
//
// +kubebuilder:object:root=true
type LineageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Lineage `json:"items"`
}

// LineageSpec is what to report, and where to.
type LineageSpec struct {
	// ManagementPolicies: a Lineage sends events (Update) and reports what became of them (Observe). Default: ["Observe", "Update"].
	//
	// +kubebuilder:default={"Observe","Update"}
	// +kubebuilder:validation:XValidation:rule="self.all(p, p == 'Observe' || p == 'Update')",message="must be Observe, Update or nothing: a Lineage takes nothing back"
	// +kubebuilder:example={"Observe","Update"}
	// +optional
	ManagementPolicies xpv2.ManagementPolicies `json:"managementPolicies,omitempty"`

	// ProviderConfigReference names the ProviderConfig of this namespace, or the ClusterProviderConfig, with the address of the server.
	// Default: the ClusterProviderConfig openlineage.
	//
	// +kubebuilder:default={"kind": "ClusterProviderConfig", "name": "openlineage"}
	// +kubebuilder:example={"kind": "ClusterProviderConfig", "name": "openlineage"}
	// +kubebuilder:validation:XValidation:rule="self.kind in ['ProviderConfig', 'ClusterProviderConfig']",messageExpression="'providerConfigRef.kind: ' + self.kind + ' is neither ProviderConfig nor ClusterProviderConfig'"
	// +kubebuilder:validation:XValidation:rule="size(self.name) <= 63 && self.name.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",messageExpression="'providerConfigRef.name: ' + self.name + ' is not the name of a config: at most 63 lower case letters, digits, - and .'"
	// +optional
	ProviderConfigReference *xpv2.ProviderConfigReference `json:"providerConfigRef,omitempty"`

	// ForProvider is what to report.
	ForProvider LineageParameters `json:"forProvider"`
}

// LineageParameters are what to report.
type LineageParameters struct {
	// Job whose runs are reported, by its name in the namespace of jobs that the config defines.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be the name of a Pipeline or Training: lower case letters, digits and '-'"
	// +kubebuilder:example="daily-features"
	Job string `json:"job"`

	// Streaming reports that a run has no end of its own. Default: false.
	//
	// +kubebuilder:example=false
	// +optional
	Streaming bool `json:"streaming,omitempty"`

	// Inputs are the datasets that runs read.
	//
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=namespace
	// +listMapKey=name
	// +optional
	Inputs []LineageDataset `json:"inputs,omitempty"`

	// Outputs are the datasets that runs write.
	//
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=namespace
	// +listMapKey=name
	// +optional
	Outputs []LineageDataset `json:"outputs,omitempty"`

	// Runs to report, the oldest first. One that is no longer among them is not reported any more.
	//
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	Runs []LineageRun `json:"runs,omitempty"`
}

// LineageDataset is a dataset by its name in OpenLineage.
type LineageDataset struct {
	// Namespace is where the data is, for instance s3://BUCKET or postgres://HOST:PORT.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z][a-zA-Z0-9+.-]*(:[^[:cntrl:] ]+)?$')",message="must be the name of a scheme, alone or with a place, for instance s3://lake or bigquery"
	// +kubebuilder:example="s3://lake"
	Namespace string `json:"namespace"`

	// Name of the data there.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^[:cntrl:]]+$')",message="must be one line of text"
	// +kubebuilder:example="raw/clicks"
	Name string `json:"name"`
}

// LineageRunState is how far a run is.
//
// +kubebuilder:validation:Enum=Running;Succeeded;Failed;Ended
type LineageRunState string

// States of a run.
const (
	// LineageRunning: it has begun.
	LineageRunning LineageRunState = "Running"
	// LineageSucceeded and LineageFailed are ends by itself.
	LineageSucceeded LineageRunState = "Succeeded"
	LineageFailed    LineageRunState = "Failed"
	// LineageEnded: something else ended it.
	LineageEnded LineageRunState = "Ended"
)

// LineageRun is a run to report.
//
// +kubebuilder:validation:XValidation:rule="(self.state == 'Running') != has(self.endedAt)",message="endedAt is the end of a run that does not run any more: set it then, and only then"
type LineageRun struct {
	// Name of the run. With startedAt and the namespace it becomes the ID of the run, the same each time.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be lower case letters, digits and '-', with a letter or digit at both ends"
	// +kubebuilder:example="daily-features-29400000"
	Name string `json:"name"`

	// StartedAt is when it began.
	//
	// +kubebuilder:example="2026-01-01T03:00:00Z"
	StartedAt metav1.Time `json:"startedAt"`

	// State: Running, or Succeeded, Failed or Ended.
	//
	// +kubebuilder:example="Succeeded"
	State LineageRunState `json:"state"`

	// EndedAt is when it ended.
	//
	// +kubebuilder:example="2026-01-01T03:20:00Z"
	// +optional
	EndedAt *metav1.Time `json:"endedAt,omitempty"`

	// Outputs are datasets that only this run writes, beside the outputs of all runs. They are in the event about its end.
	//
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=namespace
	// +listMapKey=name
	// +optional
	Outputs []LineageDataset `json:"outputs,omitempty"`
}

// LineageStatus is what has been sent.
type LineageStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	// AtProvider is what has been sent.
	//
	// +optional
	AtProvider LineageObservation `json:"atProvider,omitempty"`
}

// LineageObservation is what has been sent.
type LineageObservation struct {
	// Sent has the last event of each run of the spec.
	//
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	Sent []LineageSent `json:"sent,omitempty"`
}

// LineageSent is the last event of a run.
type LineageSent struct {
	// Run by its name.
	Run string `json:"run"`

	// StartedAt is when the run began.
	StartedAt metav1.Time `json:"startedAt"`

	// Event: START, or COMPLETE, FAIL or ABORT.
	Event string `json:"event"`

	// Refused is why the server takes none of the events of the run. They are not sent again.
	//
	// +optional
	Refused string `json:"refused,omitempty"`
}
