// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

// Conditions of a stream with the engine Flink, beside the conditions of every Pipeline.
const (
	// TypeStateSaved reports whether the state of a stream is safe: checkpoints are completed, and the last stop took a savepoint.
	TypeStateSaved xpv2.ConditionType = "StateSaved"
	// TypeRevisionStable reports whether the edited revision runs well. False after it was rolled back.
	TypeRevisionStable xpv2.ConditionType = "RevisionStable"
)

// Reasons of the condition StateSaved.
const (
	// ReasonCheckpointed: the last checkpoint is complete.
	ReasonCheckpointed xpv2.ConditionReason = "Checkpointed"
	// ReasonSavepointFailed: the last stop took no savepoint, and the last checkpoint served in its place. The message has the cause. The
	// next stop that takes a savepoint, or the next edit, ends it.
	ReasonSavepointFailed xpv2.ConditionReason = "SavepointFailed"
	// ReasonCheckpointFailed: the last checkpoint failed. The message has the cause.
	ReasonCheckpointFailed xpv2.ConditionReason = "CheckpointFailed"
	// ReasonStateBlocked: Flink is not started, for instance because the state that it had is gone. The message has the remedy.
	ReasonStateBlocked xpv2.ConditionReason = "StateBlocked"
	// ReasonNoCheckpoint: the revision has not completed a checkpoint yet.
	ReasonNoCheckpoint xpv2.ConditionReason = "NoCheckpoint"
)

// Reasons of the condition RevisionStable, beside ReasonRolledBack: the edited revision completed no checkpoint in time, and the revision
// before runs again from the state that the edit saved. Correct the spec; the message has the cause.
const (
	// ReasonStable: the revision has completed a checkpoint.
	ReasonStable xpv2.ConditionReason = "Stable"
	// ReasonTrial: the revision has spec.flink.stableWithin to complete a checkpoint.
	ReasonTrial xpv2.ConditionReason = "Trial"
	// ReasonUnstable: the revision completed no checkpoint in time, and there is none before it to go back to.
	ReasonUnstable xpv2.ConditionReason = "Unstable"
)
