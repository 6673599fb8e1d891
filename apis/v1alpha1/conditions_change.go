// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

// Conditions of a Database with logins that are rotated.
const (
	// TypeCredentialsFresh tells whether every consumer has the login that it should
	// have by now. It is told only with spec.credentials, or that of a consumer.
	TypeCredentialsFresh xpv2.ConditionType = "CredentialsFresh"
)

// Reasons of the condition CredentialsFresh.
const (
	// ReasonCredentialsFresh: nothing is to be rotated.
	ReasonCredentialsFresh xpv2.ConditionReason = "CredentialsFresh"
	// ReasonCredentialsOverlap: a login was replaced and is good for a while longer.
	ReasonCredentialsOverlap xpv2.ConditionReason = "CredentialsOverlap"
	// ReasonRotating: the next login is being made.
	ReasonRotating xpv2.ConditionReason = "Rotating"
	// ReasonRotationWaits: the next login cannot be made before the one before the
	// present is no longer in use.
	ReasonRotationWaits xpv2.ConditionReason = "RotationWaits"
)

// Reasons of the condition Updated, of a change with hooks.
const (
	// ReasonHookRunning: a hook of spec.maintenance.hooks runs.
	ReasonHookRunning xpv2.ConditionReason = "HookRunning"
	// ReasonHookFailed: a hook of spec.maintenance.hooks failed.
	ReasonHookFailed xpv2.ConditionReason = "HookFailed"
)
