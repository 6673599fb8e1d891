// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

// Conditions of a Database with a restore in place.
const (
	// TypeRestored: True when the restore of spec.restore is done. It exists with that field, and while a restore is in
	// progress.
	TypeRestored xpv2.ConditionType = "Restored"
)

// Reasons of the condition Restored. A generation that does not start has the reason of the member that blocks it.
const (
	// ReasonRestored: clients use the restored data. Nothing to do.
	ReasonRestored xpv2.ConditionReason = "Restored"
	// ReasonRestoreUndone: clients use the previous generation again. Nothing to do.
	ReasonRestoreUndone xpv2.ConditionReason = "RestoreUndone"
	// ReasonRestoreFilling: members of the new generation restore the data. Wait.
	ReasonRestoreFilling xpv2.ConditionReason = "RestoreFilling"
	// ReasonRestoreFencing: the previous generation stops. If it stays so, check its pods and their nodes.
	ReasonRestoreFencing xpv2.ConditionReason = "RestoreFencing"
	// ReasonRestoreWaiting: the restore starts later. The message names what it waits for.
	ReasonRestoreWaiting xpv2.ConditionReason = "RestoreWaiting"
	// ReasonRestoreImpossible: the request cannot be carried out. Correct spec.restore as the message explains.
	ReasonRestoreImpossible xpv2.ConditionReason = "RestoreImpossible"
	// ReasonRestoreSkipped: the Database was created with this ID. Use another ID for a restore.
	ReasonRestoreSkipped xpv2.ConditionReason = "RestoreSkipped"
	// ReasonMemoryUnread: the record of earlier restores cannot be read. Restore the annotation that the message names.
	ReasonMemoryUnread xpv2.ConditionReason = "MemoryUnread"
)
