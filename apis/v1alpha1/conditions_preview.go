// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

// Conditions of a Preview, beside Accepted and Composed.
const (
	// TypeBaseAllowed: True when every original exists and allows Previews. While it is False, nothing new is made, and what exists stays
	// as it is until the time is up.
	TypeBaseAllowed xpv2.ConditionType = "BaseAllowed"

	// TypePreviewReady: True when every copy is ready. Otherwise the message has the cause that the copy reports.
	TypePreviewReady xpv2.ConditionType = "PreviewReady"

	// TypeExpired: True when the time of the Preview is up.
	TypeExpired xpv2.ConditionType = "Expired"
)

// Reasons of the condition BaseAllowed.
const (
	// ReasonBaseAllowed: every original allows Previews. Nothing to do.
	ReasonBaseAllowed xpv2.ConditionReason = "Allowed"
	// ReasonBaseMissing: there is no original of this name in the namespace. Correct the name, or create it.
	ReasonBaseMissing xpv2.ConditionReason = "BaseMissing"
	// ReasonPreviewsNotAllowed: the original has no annotation capstan.dev/previews: Allowed. Ask its team to set it.
	ReasonPreviewsNotAllowed xpv2.ConditionReason = "PreviewsNotAllowed"
	// ReasonBaseUnusable: the original cannot be copied as the spec asks for, for instance because it has no backups. The message has the
	// remedy.
	ReasonBaseUnusable xpv2.ConditionReason = "BaseUnusable"
	// ReasonMaskUnusable: the ConfigMap with the statements that mask the copy is missing or wrong, and nothing is copied without them. The
	// message has the remedy.
	ReasonMaskUnusable xpv2.ConditionReason = "MaskUnusable"
	// ReasonAwaitingBase: Crossplane has not read the original yet. Wait.
	ReasonAwaitingBase xpv2.ConditionReason = "AwaitingBase"
	// ReasonNotNeeded: the time of the Preview is up, and originals are not read any more.
	ReasonNotNeeded xpv2.ConditionReason = "NotNeeded"
)

// Reasons of the condition PreviewReady.
const (
	// ReasonCopiesReady: every copy is ready. Nothing to do.
	ReasonCopiesReady xpv2.ConditionReason = "CopiesReady"
	// ReasonCopiesAsleep: the Algorithm sleeps, because no request came for spec.idleAfter. The next request starts it.
	ReasonCopiesAsleep xpv2.ConditionReason = "Asleep"
	// ReasonCopyNotReady: a copy is not ready. The message has the condition of the copy that says why.
	ReasonCopyNotReady xpv2.ConditionReason = "CopyNotReady"
	// ReasonNothingMade: nothing is made, because another condition is False.
	ReasonNothingMade xpv2.ConditionReason = "NothingMade"
	// ReasonTimeUp: the time of the Preview is up. Raise spec.ttl, or set a later spec.expiresAt, to make it again.
	ReasonTimeUp xpv2.ConditionReason = "TimeUp"
	// ReasonNotExpired: the time of the Preview is not up.
	ReasonNotExpired xpv2.ConditionReason = "NotExpired"
)
