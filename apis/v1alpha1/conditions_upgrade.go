// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

// Conditions of a Database with an upgrade to a later major version.
const (
	// TypeUpgraded: True when the upgrade to a later major version is done. It exists once a higher spec.version has
	// requested an upgrade.
	TypeUpgraded xpv2.ConditionType = "Upgraded"
)

// Reasons of the condition Upgraded, beside AwaitingWindow, AwaitingApproval, Frozen and the reasons of hooks. A member that
// blocks it has a reason of its own.
const (
	// ReasonUpgraded: clients use the later version. Nothing to do.
	ReasonUpgraded xpv2.ConditionReason = "Upgraded"
	// ReasonUpgradeSettling: clients use the later version, and statistics are computed. Queries can be slower until
	// then.
	ReasonUpgradeSettling xpv2.ConditionReason = "UpgradeSettling"
	// ReasonUpgradeWaiting: it starts or continues later. The message names what it waits for.
	ReasonUpgradeWaiting xpv2.ConditionReason = "UpgradeWaiting"
	// ReasonUpgradePreparing: the data is copied, or a test shows whether the copy can be upgraded. Wait.
	ReasonUpgradePreparing xpv2.ConditionReason = "UpgradePreparing"
	// ReasonUpgradeIncompatible: something in the data blocks the upgrade. Drop or change what status.upgrade.findings
	// names, or set spec.version back.
	ReasonUpgradeIncompatible xpv2.ConditionReason = "Incompatible"
	// ReasonUpgradeSwitching: the previous generation takes no more writes, and the copy is upgraded. It ends without
	// help.
	ReasonUpgradeSwitching xpv2.ConditionReason = "UpgradeSwitching"
	// ReasonCannotFence: the leader cannot stop without the risk of lost commits, and continues. The message names the
	// cause.
	ReasonCannotFence xpv2.ConditionReason = "CannotFence"
	// ReasonUpgradeFailed: it failed, and the previous generation continues unchanged. Fix the cause in the message,
	// then set spec.upgrade.retry.
	ReasonUpgradeFailed xpv2.ConditionReason = "UpgradeFailed"
	// ReasonUpgradeImpossible: the spec does not fit the later version. Correct the field that the message names.
	ReasonUpgradeImpossible xpv2.ConditionReason = "UpgradeImpossible"
	// ReasonUpgradeUndoing: the previous generation starts, and clients are switched back to it. Wait.
	ReasonUpgradeUndoing xpv2.ConditionReason = "UpgradeUndoing"
	// ReasonUpgradeUndone: clients use the previous version again. Set spec.version to it and remove spec.upgrade.undo.
	ReasonUpgradeUndone xpv2.ConditionReason = "UpgradeUndone"
)
