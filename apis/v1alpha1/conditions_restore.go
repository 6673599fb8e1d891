// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

// Conditions of a Database that is restored in place.
const (
	// TypeRestored tells what became of spec.restore. It is there with one, and while
	// one is under way.
	TypeRestored xpv2.ConditionType = "Restored"
)

// Reasons of the condition Restored. A generation that does not come up has the reason
// of the member that hinders it.
const (
	// ReasonRestored: clients are led to the data of the moment.
	ReasonRestored xpv2.ConditionReason = "Restored"
	// ReasonRestoreUndone: clients were led back.
	ReasonRestoreUndone xpv2.ConditionReason = "RestoreUndone"
	// ReasonRestoreFilling: the generation to go to comes up.
	ReasonRestoreFilling xpv2.ConditionReason = "RestoreFilling"
	// ReasonRestoreFencing: the generation that served is being stopped.
	ReasonRestoreFencing xpv2.ConditionReason = "RestoreFencing"
	// ReasonRestoreWaiting: it begins later, when what the message tells is so.
	ReasonRestoreWaiting xpv2.ConditionReason = "RestoreWaiting"
	// ReasonRestoreImpossible: it cannot be carried out as it is written.
	ReasonRestoreImpossible xpv2.ConditionReason = "RestoreImpossible"
	// ReasonRestoreSkipped: the Database was made with this id.
	ReasonRestoreSkipped xpv2.ConditionReason = "RestoreSkipped"
	// ReasonMemoryUnread: what is kept of earlier restores cannot be read.
	ReasonMemoryUnread xpv2.ConditionReason = "MemoryUnread"
)
