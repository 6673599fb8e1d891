// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PipelineFlinkStream is what a stream with the engine Flink has beside others.
type PipelineFlinkStream struct {
	// Revision is the number of the present revision: each edit that reaches the pods makes another, and so does going back.
	//
	// +optional
	Revision int32 `json:"revision,omitempty"`

	// From is the state that the present revision started from. Absent: from the beginning.
	//
	// +optional
	From *PipelineFlinkSaved `json:"from,omitempty"`

	// Checkpoint is the newest one of the present revision, at most ten minutes late.
	//
	// +optional
	Checkpoint *PipelineFlinkCheckpoint `json:"checkpoint,omitempty"`

	// Savepoint is the newest one that an edit, a suspension or the end of a pod took.
	//
	// +optional
	Savepoint *PipelineFlinkSaved `json:"savepoint,omitempty"`

	// SavepointError is why the last stop took no savepoint. The last checkpoint served in its place.
	//
	// +optional
	SavepointError string `json:"savepointError,omitempty"`

	// Parallelism of the job.
	//
	// +optional
	Parallelism int32 `json:"parallelism,omitempty"`

	// TaskManagers that are registered.
	//
	// +optional
	TaskManagers int32 `json:"taskManagers,omitempty"`

	// LastFault is why tasks failed last.
	//
	// +optional
	LastFault string `json:"lastFault,omitempty"`

	// RolledBack is the revision that did not run well, with the reason. Absent after the next edit.
	//
	// +optional
	RolledBack *PipelineFlinkRolledBack `json:"rolledBack,omitempty"`
}

// PipelineFlinkSaved is a state of a job: a checkpoint or a savepoint.
type PipelineFlinkSaved struct {
	// Path in the state folder.
	Path string `json:"path"`

	// ID is its number, which grows through all revisions.
	ID int64 `json:"id"`

	// At is when it became complete.
	At metav1.Time `json:"at"`
}

// PipelineFlinkCheckpoint is a checkpoint of a job.
type PipelineFlinkCheckpoint struct {
	// ID is its number.
	ID int64 `json:"id"`

	// At is when it became complete.
	At metav1.Time `json:"at"`

	// Size of the state in bytes.
	//
	// +optional
	Size int64 `json:"size,omitempty"`

	// Took is the time from its start to its end.
	//
	// +optional
	Took string `json:"took,omitempty"`
}

// PipelineFlinkRolledBack is a revision that did not run well.
type PipelineFlinkRolledBack struct {
	// Revision is its number. Its state is not used any more, and not deleted.
	Revision int32 `json:"revision"`

	// At is when the revision before came back.
	At metav1.Time `json:"at"`

	// Message says why.
	Message string `json:"message"`
}
