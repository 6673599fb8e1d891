// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// PipelinePhase is the phase of a Pipeline in one word.
//
// +kubebuilder:validation:Enum=Pending;Waiting;Queued;Starting;Running;Recovering;Upgrading;Suspended;Succeeded;Failed
type PipelinePhase string

// Phases of a Pipeline.
const (
	// PipelinePending: Capstan creates the composed objects.
	PipelinePending PipelinePhase = "Pending"
	// PipelineWaiting: no run has begun yet, and the schedule has the next one.
	PipelineWaiting PipelinePhase = "Waiting"
	// PipelineQueued: a queue has not admitted the run.
	PipelineQueued PipelinePhase = "Queued"
	// PipelineStarting: the pods of a run start.
	PipelineStarting PipelinePhase = "Starting"
	// PipelineRunning: the program runs.
	PipelineRunning PipelinePhase = "Running"
	// PipelineRecovering: the program failed, and starts again.
	PipelineRecovering PipelinePhase = "Recovering"
	// PipelineUpgrading: a stream ends, and starts again with an edited spec.
	PipelineUpgrading PipelinePhase = "Upgrading"
	// PipelineSuspended: spec.suspend is set, and no run is active.
	PipelineSuspended PipelinePhase = "Suspended"
	// PipelineSucceeded: the last run succeeded.
	PipelineSucceeded PipelinePhase = "Succeeded"
	// PipelineFailed: the last run failed.
	PipelineFailed PipelinePhase = "Failed"
)

// PipelineStatus is the observed state of a Pipeline.
type PipelineStatus struct {
	xpv2.ConditionedStatus `json:",inline"`

	// Phase in one word: Pending, Waiting, Queued, Starting, Running, Recovering, Upgrading, Suspended, Succeeded or Failed.
	//
	// +optional
	Phase PipelinePhase `json:"phase,omitempty"`

	// LastRun is the run that began last.
	//
	// +optional
	LastRun *PipelineRun `json:"lastRun,omitempty"`

	// Runs are those that are active, and the last that have ended, the newest first.
	//
	// +listType=map
	// +listMapKey=job
	// +optional
	Runs []PipelineRun `json:"runs,omitempty"`

	// NextRun is when the schedule begins the next run.
	//
	// +optional
	NextRun *metav1.Time `json:"nextRun,omitempty"`

	// Stream that runs without end.
	//
	// +optional
	Stream *PipelineStream `json:"stream,omitempty"`

	// Ledger is what Capstan remembers of the runs.
	//
	// +optional
	Ledger string `json:"ledger,omitempty"`

	// Withheld lists composed objects that the API server has rejected. Capstan does not send them again until the given time, so that
	// one rejection does not block the others.
	//
	// +listType=map
	// +listMapKey=resource
	// +optional
	Withheld []Withheld `json:"withheld,omitempty"`
}

// PipelineRun is one run.
type PipelineRun struct {
	// ID of the run: the id of spec.run, the time of a scheduled run in minutes since 1970, or the number of a stream's start.
	ID string `json:"id"`

	// Job of the run. Its pods have the logs, as long as it exists.
	Job string `json:"job"`

	// State: Queued, Starting, Running, Recovering, Succeeded, Failed or Ended. Ended: an edit, a suspension or another run ended it.
	State string `json:"state"`

	// StartedAt is when it began.
	//
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`

	// EndedAt is when it ended.
	//
	// +optional
	EndedAt *metav1.Time `json:"endedAt,omitempty"`

	// Took is the time from its start to its end.
	//
	// +optional
	Took string `json:"took,omitempty"`

	// Attempts of the program.
	//
	// +optional
	Attempts int32 `json:"attempts,omitempty"`

	// Memory of the program, where a retry has raised it.
	//
	// +optional
	Memory string `json:"memory,omitempty"`

	// Class of the last failure: User, OutOfMemory or Infrastructure.
	//
	// +optional
	Class string `json:"class,omitempty"`

	// Message has the last failure, with the last lines of the program.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// PipelineStream is a stream that runs without end.
type PipelineStream struct {
	PipelineFlinkStream `json:",inline"`

	// StartedAt is when the program started last.
	//
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`

	// Restarts of the program since the last edit.
	//
	// +optional
	Restarts int32 `json:"restarts"`
}
