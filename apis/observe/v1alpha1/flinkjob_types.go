// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// A FlinkJob is the quiet observer of a stream with Apache Flink. It asks the companion of the JobManager how the stream is going, and
// reports what blocks its pods. Its status changes at once when a fact changes. For new checkpoints it changes after ten minutes. Each
// Pipeline with the engine Flink composes one.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,managed,capstan}
// +kubebuilder:printcolumn:name="Synced",type=string,JSONPath=`.status.conditions[?(@.type=="Synced")].status`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Pipeline",type=string,JSONPath=`.spec.forProvider.pipeline`
// +kubebuilder:printcolumn:name="Revision",type=integer,JSONPath=`.status.atProvider.revision`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.atProvider.phase`
// +kubebuilder:printcolumn:name="Restarts",type=integer,JSONPath=`.status.atProvider.restarts`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type FlinkJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what to observe.
	Spec FlinkJobSpec `json:"spec"`

	// Status is the observed state.
	//
	// +optional
	Status FlinkJobStatus `json:"status,omitempty"`
}

// FlinkJobList is a list of FlinkJobs.
//
// +kubebuilder:object:root=true
type FlinkJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []FlinkJob `json:"items"`
}

// FlinkJobSpec is what to observe.
type FlinkJobSpec struct {
	// ManagementPolicies: a FlinkJob only observes. Default: ["Observe"].
	//
	// +kubebuilder:default={"Observe"}
	// +kubebuilder:validation:XValidation:rule="self.all(p, p == 'Observe')",message="must be Observe or nothing: a FlinkJob changes nothing"
	// +kubebuilder:example={"Observe"}
	// +optional
	ManagementPolicies xpv2.ManagementPolicies `json:"managementPolicies,omitempty"`

	// ForProvider is what to observe.
	ForProvider FlinkJobParameters `json:"forProvider"`
}

// FlinkJobParameters are what to observe.
type FlinkJobParameters struct {
	// Pipeline of this namespace whose pods are observed.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be the name of a Pipeline: lower case letters, digits and '-'"
	// +kubebuilder:example="clicks"
	Pipeline string `json:"pipeline"`
}

// FlinkJobStatus is the observed state.
type FlinkJobStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	// AtProvider is the observed state.
	//
	// +optional
	AtProvider FlinkJobObservation `json:"atProvider,omitempty"`
}

// FlinkJobObservation is the observed state of a stream.
type FlinkJobObservation struct {
	// Revision that all other fields are about. Zero until a JobManager has answered.
	//
	// +optional
	Revision int32 `json:"revision,omitempty"`

	// Phase as the companion of the JobManager reports it: Starting, Running, Restarting, Stopping, Stopped, Finished, Canceled or
	// Blocked. Gone while there is no JobManager.
	//
	// +optional
	Phase string `json:"phase,omitempty"`

	// From is the state that the revision started from.
	//
	// +optional
	From *FlinkJobState `json:"from,omitempty"`

	// RunningSince is when all tasks began to run the last time.
	//
	// +optional
	RunningSince *metav1.Time `json:"runningSince,omitempty"`

	// Checkpoint is the newest one of the revision, at most ten minutes late.
	//
	// +optional
	Checkpoint *FlinkJobCheckpoint `json:"checkpoint,omitempty"`

	// CheckpointFault is why the last checkpoint failed, if none was completed since.
	//
	// +optional
	CheckpointFault string `json:"checkpointFault,omitempty"`

	// Restarts of the revision.
	//
	// +optional
	Restarts int32 `json:"restarts,omitempty"`

	// Parallelism of the job.
	//
	// +optional
	Parallelism int32 `json:"parallelism,omitempty"`

	// TaskManagers that are registered.
	//
	// +optional
	TaskManagers int32 `json:"taskManagers,omitempty"`

	// Savepoint is the newest one that a companion took.
	//
	// +optional
	Savepoint *FlinkJobState `json:"savepoint,omitempty"`

	// SavepointError is why the last stop took no savepoint.
	//
	// +optional
	SavepointError string `json:"savepointError,omitempty"`

	// Fault is why tasks failed last, or Flink did not start.
	//
	// +optional
	Fault *FlinkJobFault `json:"fault,omitempty"`

	// Message when the phase needs one.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// Silent is why the companion does not answer while its pod runs, after three requests. Absent while it does.
	//
	// +optional
	Silent string `json:"silent,omitempty"`

	// Pods says what blocks pods, the most common problem first, in the reasons and words of an Analysis. Absent while nothing does.
	//
	// +optional
	Pods *RunPods `json:"pods,omitempty"`
}

// FlinkJobState is a state of a job: a checkpoint or a savepoint.
type FlinkJobState struct {
	// Path of its folder.
	Path string `json:"path"`
	// ID is its number, which grows through all revisions.
	ID int64 `json:"id"`
	// At is when it became complete.
	At metav1.Time `json:"at"`
}

// FlinkJobCheckpoint is a checkpoint of a job.
type FlinkJobCheckpoint struct {
	// ID is its number.
	ID int64 `json:"id"`
	// At is when it became complete.
	At metav1.Time `json:"at"`
	// Bytes of state.
	//
	// +optional
	Bytes int64 `json:"bytes,omitempty"`
	// Millis it took.
	//
	// +optional
	Millis int64 `json:"millis,omitempty"`
}

// FlinkJobFault is a fault of a stream.
type FlinkJobFault struct {
	// At is when it became known.
	At metav1.Time `json:"at"`
	// Message for people.
	Message string `json:"message"`
}
