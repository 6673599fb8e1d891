// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

// Conditions of a Database with rotation of logins.
const (
	// TypeCredentialsFresh: True when every consumer has the login of its latest rotation. It exists only with
	// credentials in the spec or in a consumer.
	TypeCredentialsFresh xpv2.ConditionType = "CredentialsFresh"
)

// Reasons of the condition CredentialsFresh.
const (
	// ReasonCredentialsFresh: no rotation is due. Nothing to do.
	ReasonCredentialsFresh xpv2.ConditionReason = "CredentialsFresh"
	// ReasonCredentialsOverlap: a login was replaced and stays valid for a while. Make sure that clients read their
	// Secret again.
	ReasonCredentialsOverlap xpv2.ConditionReason = "CredentialsOverlap"
	// ReasonRotating: the next login is being created. If it stays so, see the conditions of the Access and the
	// Credential.
	ReasonRotating xpv2.ConditionReason = "Rotating"
	// ReasonRotationWaits: the next login still serves clients of the rotation before. Wait, or shorten the overlap.
	ReasonRotationWaits xpv2.ConditionReason = "RotationWaits"
)

// Reasons of the condition Updated of a Database, for a change with hooks.
const (
	// ReasonHookRunning: a hook of spec.maintenance.hooks runs. Wait.
	ReasonHookRunning xpv2.ConditionReason = "HookRunning"
	// ReasonHookFailed: a hook of spec.maintenance.hooks or spec.lifecycle.hooks failed. See the condition for the cause.
	// For a Database, correct it, delete its Job to run it again, or set its onFailure to Continue. For an Algorithm, set
	// spec.rollout.promote or abort to the revision, or change the hook.
	ReasonHookFailed xpv2.ConditionReason = "HookFailed"
)
