// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// A JobHistory is the quiet observer of the runs of a Pipeline: its Jobs, also the Jobs of a CronJob, and their pods. It asks the
// companion of the pod of index 0 how an active run is going, and reports what blocks pods. Its status changes only when a fact changes.
// Each Pipeline composes one.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,path=jobhistories,singular=jobhistory,categories={crossplane,managed,capstan}
// +kubebuilder:printcolumn:name="Synced",type=string,JSONPath=`.status.conditions[?(@.type=="Synced")].status`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Pipeline",type=string,JSONPath=`.spec.forProvider.pipeline`
// +kubebuilder:printcolumn:name="Last-Job",type=string,JSONPath=`.status.atProvider.jobs[0].name`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.atProvider.jobs[0].phase`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type JobHistory struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what to observe.
	Spec JobHistorySpec `json:"spec"`

	// Status is the observed state.
	//
	// +optional
	Status JobHistoryStatus `json:"status,omitempty"`
}

// JobHistoryList is a list of JobHistories.
//
// +kubebuilder:object:root=true
type JobHistoryList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []JobHistory `json:"items"`
}

// JobHistorySpec is what to observe.
type JobHistorySpec struct {
	// ManagementPolicies: a JobHistory only observes. Default: ["Observe"].
	//
	// +kubebuilder:default={"Observe"}
	// +kubebuilder:validation:XValidation:rule="self.all(p, p == 'Observe')",message="must be Observe or nothing: a JobHistory changes nothing"
	// +kubebuilder:example={"Observe"}
	// +optional
	ManagementPolicies xpv2.ManagementPolicies `json:"managementPolicies,omitempty"`

	// ForProvider is what to observe.
	ForProvider JobHistoryParameters `json:"forProvider"`
}

// JobHistoryParameters are what to observe.
type JobHistoryParameters struct {
	// Pipeline whose Jobs are observed: the Jobs of this namespace with it as the label capstan.dev/pipeline.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be the name of a Pipeline: lower case letters, digits and '-'"
	// +kubebuilder:example="daily-features"
	Pipeline string `json:"pipeline"`
}

// JobHistoryStatus is the observed state.
type JobHistoryStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	// AtProvider is the observed state.
	//
	// +optional
	AtProvider JobHistoryObservation `json:"atProvider,omitempty"`
}

// JobHistoryObservation is the observed state of the runs of a Pipeline.
type JobHistoryObservation struct {
	// Pipeline that all other fields are about. Empty until there was a look.
	//
	// +optional
	Pipeline string `json:"pipeline,omitempty"`

	// Jobs that exist, the newest first, at most 50.
	//
	// +listType=map
	// +listMapKey=name
	// +optional
	Jobs []ObservedJob `json:"jobs,omitempty"`

	// Pods says what blocks pods of active runs, the most common problem first. Absent while nothing does.
	//
	// +optional
	Pods *RunPods `json:"pods,omitempty"`
}

// ObservedJob is one run.
type ObservedJob struct {
	// Name of the Job.
	Name string `json:"name"`

	// Phase: Queued, Starting, Running, Recovering, Succeeded or Failed.
	Phase string `json:"phase"`

	// Created is when the Job was made.
	Created metav1.Time `json:"created"`

	// Started is when its program started first.
	//
	// +optional
	Started *metav1.Time `json:"started,omitempty"`

	// Ended is when the Job ended.
	//
	// +optional
	Ended *metav1.Time `json:"ended,omitempty"`

	// Reason for which Kubernetes failed the Job.
	//
	// +optional
	Reason string `json:"reason,omitempty"`

	// Attempts of the program, over all pods of index 0.
	//
	// +optional
	Attempts int32 `json:"attempts,omitempty"`

	// Memory is the limit of the program.
	//
	// +optional
	Memory string `json:"memory,omitempty"`

	// Failure of the program that was the last one.
	//
	// +optional
	Failure *ObservedFailure `json:"failure,omitempty"`
}

// ObservedFailure is why a program failed.
type ObservedFailure struct {
	// Class: User, OutOfMemory or Infrastructure.
	Class string `json:"class"`

	// Action that follows by the rules: Retry, Fail or RetryWithMemory. Empty when the companion could not decide, because it was killed
	// as well.
	//
	// +optional
	Action string `json:"action,omitempty"`

	// ExitCode of the program, or -1.
	ExitCode int32 `json:"exitCode"`

	// At is when it became known.
	At metav1.Time `json:"at"`

	// Message for people, with the last lines of the program.
	Message string `json:"message"`
}
