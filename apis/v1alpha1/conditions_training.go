// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

// Conditions of a Training, beside Accepted, Composed and PodsHealthy.
const (
	// TypeProgressing: True while all ranks run. Otherwise the reason is the state of the Training, and the message has the cause.
	TypeProgressing xpv2.ConditionType = "Progressing"

	// TypeSucceeded: True when the Training has ended with success, False when it has failed, and Unknown until then. To wait for the
	// end, use kubectl wait --for=condition=Succeeded.
	TypeSucceeded xpv2.ConditionType = "Succeeded"

	// TypeOnSchedule: True when a run began for each time of the schedule since the last one, False when times were left out. It exists
	// only with spec.schedule.
	TypeOnSchedule xpv2.ConditionType = "OnSchedule"

	// TypeCheckpointsHealthy: True while checkpoints become complete as often as spec.checkpoint.every says, and old ones are removed as
	// spec.checkpoint.keep says. It exists only with one of the two.
	TypeCheckpointsHealthy xpv2.ConditionType = "CheckpointsHealthy"

	// TypeModelRegistered: True when the result is a version of the model registry, and the alias is on it. It exists only with
	// spec.onSuccess.register.
	TypeModelRegistered xpv2.ConditionType = "ModelRegistered"
)

// Reasons of the conditions Progressing and Succeeded. The phases of a Training other than Running are reasons of Progressing, too.
const (
	// ReasonTraining: all ranks run. Nothing to do.
	ReasonTraining xpv2.ConditionReason = "Training"
	// ReasonCoordinatorSilent: the coordinator of the ranks does not answer, so that it is unknown whether they run. The message says why,
	// and what to do.
	ReasonCoordinatorSilent xpv2.ConditionReason = "CoordinatorSilent"
	// ReasonMemberMissing: all ranks run, but not all spares are there to replace a pod. The message has the pods and their nodes, and what
	// to do.
	ReasonMemberMissing xpv2.ConditionReason = "MemberMissing"
	// ReasonFinished: the Training has ended, and needs no pods.
	ReasonFinished xpv2.ConditionReason = "Finished"
	// ReasonNotFinished: the Training has not ended.
	ReasonNotFinished xpv2.ConditionReason = "NotFinished"
	// ReasonProgramFailed: the program failed, and to start it again would not help. Correct what the message has, and edit the spec or
	// set spec.rerun.id to start again.
	ReasonProgramFailed xpv2.ConditionReason = "ProgramFailed"
	// ReasonRunsLost: as many runs as spec.retry.runs allows were lost without progress, because pods or their nodes were. The message
	// says how the last one was lost. Correct it, and set spec.rerun.id to start again.
	ReasonRunsLost xpv2.ConditionReason = "RunsLost"
	// ReasonDeadlineExceeded: a run took longer than spec.deadline. Raise it, or set spec.rerun.id to continue from the newest checkpoint.
	ReasonDeadlineExceeded xpv2.ConditionReason = "DeadlineExceeded"
)

// Reasons of the condition OnSchedule.
const (
	// ReasonOnSchedule: no time was left out. The message has the next one. Nothing to do.
	ReasonOnSchedule xpv2.ConditionReason = "OnSchedule"
	// ReasonScheduleMissed: no run began for some times of the schedule. The message says how many, and why. To train now, set another
	// spec.rerun.id.
	ReasonScheduleMissed xpv2.ConditionReason = "ScheduleMissed"
)

// Reasons of the condition CheckpointsHealthy.
const (
	// ReasonCheckpointsInTime: no checkpoint is overdue, and old ones are removed. Nothing to do.
	ReasonCheckpointsInTime xpv2.ConditionReason = "CheckpointsInTime"
	// ReasonCheckpointOverdue: ranks have made steps for three times spec.checkpoint.every, and no checkpoint became complete meanwhile. A
	// fault would repeat them. The message has the remedy.
	ReasonCheckpointOverdue xpv2.ConditionReason = "CheckpointOverdue"
	// ReasonCheckpointsNotRemoved: some old checkpoints could not be removed, so that the volume may become full. The message says why, and
	// what to do.
	ReasonCheckpointsNotRemoved xpv2.ConditionReason = "CheckpointsNotRemoved"
)

// Reasons of the condition ModelRegistered.
const (
	// ReasonRegistered: the result is a version of the model registry, and the alias is on it. Nothing to do.
	ReasonRegistered xpv2.ConditionReason = "Registered"
	// ReasonRegistering: the registry has not answered yet. Wait.
	ReasonRegistering xpv2.ConditionReason = "Registering"
	// ReasonAwaitingSuccess: the Training has not succeeded.
	ReasonAwaitingSuccess xpv2.ConditionReason = "AwaitingSuccess"
)
