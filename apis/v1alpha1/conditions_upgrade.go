// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

// Conditions of a Database that is upgraded to a later major version.
const (
	// TypeUpgraded tells what became of an upgrade to a later major version. It is there
	// once a higher spec.version asked for one.
	TypeUpgraded xpv2.ConditionType = "Upgraded"
)

// Reasons of the condition Upgraded, beside AwaitingWindow, AwaitingApproval, Frozen and
// those of hooks. A member that hinders it has a reason of its own.
const (
	// ReasonUpgraded: clients are led to the later version.
	ReasonUpgraded xpv2.ConditionReason = "Upgraded"
	// ReasonUpgradeSettling: they are, and statistics are computed.
	ReasonUpgradeSettling xpv2.ConditionReason = "UpgradeSettling"
	// ReasonUpgradeWaiting: it begins or goes on when what the message tells is so.
	ReasonUpgradeWaiting xpv2.ConditionReason = "UpgradeWaiting"
	// ReasonUpgradePreparing: the data is copied, or it is tried whether the copy can be
	// upgraded.
	ReasonUpgradePreparing xpv2.ConditionReason = "UpgradePreparing"
	// ReasonUpgradeIncompatible: something in the data stands in the way.
	ReasonUpgradeIncompatible xpv2.ConditionReason = "Incompatible"
	// ReasonUpgradeSwitching: the former generation takes no writes any more, and the
	// copy is upgraded.
	ReasonUpgradeSwitching xpv2.ConditionReason = "UpgradeSwitching"
	// ReasonCannotFence: the leader cannot stop in a way that loses nothing, and goes on
	// serving.
	ReasonCannotFence xpv2.ConditionReason = "CannotFence"
	// ReasonUpgradeFailed: it did not work, and the former generation goes on.
	ReasonUpgradeFailed xpv2.ConditionReason = "UpgradeFailed"
	// ReasonUpgradeImpossible: it cannot be carried out as it is written.
	ReasonUpgradeImpossible xpv2.ConditionReason = "UpgradeImpossible"
	// ReasonUpgradeUndoing: clients are being led back.
	ReasonUpgradeUndoing xpv2.ConditionReason = "UpgradeUndoing"
	// ReasonUpgradeUndone: clients were led back.
	ReasonUpgradeUndone xpv2.ConditionReason = "UpgradeUndone"
)
