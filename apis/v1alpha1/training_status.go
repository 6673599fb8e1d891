// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// TrainingPhase is the phase of a Training in one word.
//
// +kubebuilder:validation:Enum=Pending;Scheduled;Queued;Starting;Running;Recovering;Ending;Restarting;Suspended;Succeeded;Failed
type TrainingPhase string

// Phases of a Training.
const (
	// TrainingPending: Capstan creates the composed objects, no run has begun.
	TrainingPending TrainingPhase = "Pending"
	// TrainingScheduled: no run has begun, and the first one waits for the schedule.
	TrainingScheduled TrainingPhase = "Scheduled"
	// TrainingQueued: a queue has not admitted the run.
	TrainingQueued TrainingPhase = "Queued"
	// TrainingStarting: pods of a run start.
	TrainingStarting TrainingPhase = "Starting"
	// TrainingRunning: all ranks run.
	TrainingRunning TrainingPhase = "Running"
	// TrainingRecovering: an attempt ended by a fault, and all ranks start again in their pods.
	TrainingRecovering TrainingPhase = "Recovering"
	// TrainingEnding: no rank runs any more, and the pods of the run end. How it ended follows.
	TrainingEnding TrainingPhase = "Ending"
	// TrainingRestarting: the pods of a run end, and another run follows.
	TrainingRestarting TrainingPhase = "Restarting"
	// TrainingSuspended: spec.suspend is set, and no pod runs.
	TrainingSuspended TrainingPhase = "Suspended"
	// TrainingSucceeded: the program has ended with success.
	TrainingSucceeded TrainingPhase = "Succeeded"
	// TrainingFailed: the Training has ended without success.
	TrainingFailed TrainingPhase = "Failed"
)

// TrainingStatus is the observed state of a Training.
type TrainingStatus struct {
	xpv2.ConditionedStatus `json:",inline"`

	// Phase in one word: Pending, Scheduled, Queued, Starting, Running, Recovering, Ending, Restarting, Suspended, Succeeded or Failed.
	//
	// +optional
	Phase TrainingPhase `json:"phase,omitempty"`

	// Run is the number of the present or last run, from 1.
	//
	// +optional
	Run int32 `json:"run,omitempty"`

	// Attempt of the run, from 0. All ranks start together in each attempt.
	//
	// +optional
	Attempt *int32 `json:"attempt,omitempty"`

	// Job of the run, while it exists. Its pods have the logs.
	//
	// +optional
	Job string `json:"job,omitempty"`

	// StartedAt is when the run began.
	//
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`

	// FinishedAt is when the Training ended.
	//
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`

	// Progress of the ranks. It follows in steps of 5 percent, or every ten minutes.
	//
	// +optional
	Progress *TrainingProgress `json:"progress,omitempty"`

	// Checkpoint is the newest complete one. It follows every five minutes.
	//
	// +optional
	Checkpoint *TrainingCheckpointStatus `json:"checkpoint,omitempty"`

	// Restarts of the run.
	//
	// +optional
	Restarts *TrainingRestarts `json:"restarts,omitempty"`

	// LastFault of the run.
	//
	// +optional
	LastFault *TrainingFault `json:"lastFault,omitempty"`

	// GoodputPercent is the share of the run's time since its first attempt that was spent on steps that were kept.
	//
	// +optional
	GoodputPercent *int32 `json:"goodputPercent,omitempty"`

	// Message has the last lines of a Training that failed.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// Model that the result is registered as.
	//
	// +optional
	Model *TrainingModel `json:"model,omitempty"`

	// Schedule is which runs it has begun and will begin. It exists only with spec.schedule.
	//
	// +optional
	Schedule *TrainingScheduleStatus `json:"schedule,omitempty"`

	// History has the last runs that ended, the newest first.
	//
	// +listType=map
	// +listMapKey=run
	// +optional
	History []TrainingRun `json:"history,omitempty"`

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

// TrainingProgress is how far the ranks are.
type TrainingProgress struct {
	// Step that was completed.
	Step int64 `json:"step"`

	// Of is the number of steps in all, if the program reports it.
	//
	// +optional
	Of int64 `json:"of,omitempty"`

	// Percent of the steps that are completed, if their number is known.
	//
	// +optional
	Percent *int32 `json:"percent,omitempty"`

	// ETA is when the last step would be completed at the present pace.
	//
	// +optional
	ETA *metav1.Time `json:"eta,omitempty"`

	// StepsPerMinute over the last minutes.
	//
	// +optional
	StepsPerMinute *float64 `json:"stepsPerMinute,omitempty"`

	// Loss as the program reported it.
	//
	// +optional
	Loss string `json:"loss,omitempty"`

	// At is when this was read.
	//
	// +optional
	At *metav1.Time `json:"at,omitempty"`
}

// TrainingCheckpointStatus is a complete checkpoint.
type TrainingCheckpointStatus struct {
	// Step that it was taken after.
	Step int64 `json:"step"`

	// URI or path.
	URI string `json:"uri"`

	// At is when it became known.
	//
	// +optional
	At *metav1.Time `json:"at,omitempty"`
}

// TrainingRestarts counts what was started again.
type TrainingRestarts struct {
	// Processes counts the attempts of the run after the first.
	//
	// +optional
	Processes int32 `json:"processes"`

	// Pods counts the pods of the run that were replaced.
	//
	// +optional
	Pods int32 `json:"pods"`

	// Runs counts the runs in a row that were lost without progress.
	//
	// +optional
	Runs int32 `json:"runs"`

	// WithoutProgress counts the attempts of the run in a row that ended without progress.
	//
	// +optional
	WithoutProgress int32 `json:"withoutProgress"`
}

// TrainingFault ended an attempt.
type TrainingFault struct {
	// Class: Infrastructure, Stalled, NonFinite, OutOfMemory or User.
	Class string `json:"class"`

	// Attempt that it ended.
	Attempt int32 `json:"attempt"`

	// Index of the pod that was first, -1 when unknown.
	Index int32 `json:"index"`

	// Rank that was first, -1 when the whole pod was lost.
	Rank int32 `json:"rank"`

	// Node of the pod.
	//
	// +optional
	Node string `json:"node,omitempty"`

	// At is when it became known.
	//
	// +optional
	At *metav1.Time `json:"at,omitempty"`

	// Message for people.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// TrainingModel is what the result is registered as.
type TrainingModel struct {
	// Name of the model in the registry.
	Name string `json:"name"`

	// Version that the registry gave it.
	//
	// +optional
	Version string `json:"version,omitempty"`

	// Run that it is the result of.
	Run int32 `json:"run"`
}

// TrainingRun is a run that ended.
type TrainingRun struct {
	// Run is its number.
	Run int32 `json:"run"`

	// ScheduledAt is the time of the schedule that it began for, if it did.
	//
	// +optional
	ScheduledAt *metav1.Time `json:"scheduledAt,omitempty"`

	// Outcome: Succeeded, Failed, or why another run followed: Edited, Rerun, Scheduled, Suspended, Lost, NotStarted or JobDeleted.
	Outcome string `json:"outcome"`

	// StartedAt is when it began.
	//
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`

	// EndedAt is when it was known to have ended.
	//
	// +optional
	EndedAt *metav1.Time `json:"endedAt,omitempty"`

	// Step that it reached.
	//
	// +optional
	Step int64 `json:"step,omitempty"`

	// Message says why it ended.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// TrainingScheduleStatus is which runs a schedule has begun and will begin.
type TrainingScheduleStatus struct {
	// NextAt is when the next run begins. While spec.suspend is set, there is none.
	//
	// +optional
	NextAt *metav1.Time `json:"nextAt,omitempty"`

	// LastAt is the time of the schedule that a run began for last.
	//
	// +optional
	LastAt *metav1.Time `json:"lastAt,omitempty"`

	// LastRun is the number of that run.
	//
	// +optional
	LastRun int32 `json:"lastRun,omitempty"`

	// Missed counts the times since then that no run began for. Of a long outage, at most 1,000 are counted.
	//
	// +optional
	Missed int32 `json:"missed,omitempty"`

	// MissedAt is the newest of them.
	//
	// +optional
	MissedAt *metav1.Time `json:"missedAt,omitempty"`

	// MissedBecause says why no run began for it.
	//
	// +optional
	MissedBecause string `json:"missedBecause,omitempty"`
}
