// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

// Conditions of an Algorithm, beside those that Crossplane keeps (Synced,
// Ready, Responsive).
const (
	// TypeAccepted tells whether the spec can be carried out. While it is
	// False, everything that runs keeps running unchanged.
	TypeAccepted xpv2.ConditionType = "Accepted"

	// TypeComposed tells whether every object that was asked for is there.
	TypeComposed xpv2.ConditionType = "Composed"

	// TypePodsHealthy tells whether pods serve and nothing hinders those that are
	// still missing, and if not, why and what to do. It is not called Healthy
	// because Crossplane keeps that type for itself and drops it from what a
	// function tells.
	TypePodsHealthy xpv2.ConditionType = "PodsHealthy"
)

// Reasons of the condition Accepted.
const (
	// ReasonValid: the spec is being carried out.
	ReasonValid xpv2.ConditionReason = "Valid"
	// ReasonInvalidSpec: a field of the spec cannot be carried out.
	ReasonInvalidSpec xpv2.ConditionReason = "InvalidSpec"
	// ReasonConfigTooLarge: spec.config is larger than a ConfigMap may be.
	ReasonConfigTooLarge xpv2.ConditionReason = "ConfigTooLarge"
	// ReasonInvalidSettings: the platform's settings cannot be used.
	ReasonInvalidSettings xpv2.ConditionReason = "InvalidSettings"
)

// Reasons of the condition Composed.
const (
	// ReasonComposed: every object is there.
	ReasonComposed xpv2.ConditionReason = "Composed"
	// ReasonComposing: objects are being made.
	ReasonComposing xpv2.ConditionReason = "Composing"
	// ReasonNotAllowedToCompose: Crossplane may not make an object of this kind.
	ReasonNotAllowedToCompose xpv2.ConditionReason = "NotAllowedToCompose"
	// ReasonRefused: the API server refused an object for another reason, for
	// instance an admission policy or an object of the same name.
	ReasonRefused xpv2.ConditionReason = "Refused"
)

// Reasons of the condition PodsHealthy. They are the union of what a Deployment and
// the Analysis of an Algorithm tell.
const (
	// ReasonServing: pods serve, and nothing hinders those that are on their way.
	ReasonServing xpv2.ConditionReason = "Serving"
	// ReasonStarting: pods start and nothing is wrong so far.
	ReasonStarting xpv2.ConditionReason = "Starting"
	// ReasonStopped: zero replicas were asked for.
	ReasonStopped xpv2.ConditionReason = "Stopped"
	// ReasonImagePullFailed: the image cannot be pulled.
	ReasonImagePullFailed xpv2.ConditionReason = "ImagePullFailed"
	// ReasonInsufficientGPU: no node has the GPUs asked for.
	ReasonInsufficientGPU xpv2.ConditionReason = "InsufficientGPU"
	// ReasonUnschedulable: no node can take the pod for another reason.
	ReasonUnschedulable xpv2.ConditionReason = "Unschedulable"
	// ReasonCrashLooping: the container starts and ends again.
	ReasonCrashLooping xpv2.ConditionReason = "CrashLooping"
	// ReasonConfigError: the container cannot be made, for instance because a
	// Secret is missing.
	ReasonConfigError xpv2.ConditionReason = "ConfigError"
	// ReasonRunsAsRoot: the image runs as root or as a user known by name only.
	ReasonRunsAsRoot xpv2.ConditionReason = "RunsAsRoot"
	// ReasonNotListening: the container runs and does not answer on its port.
	ReasonNotListening xpv2.ConditionReason = "NotListening"
	// ReasonQuotaExceeded: the namespace's quota has no room for the pods.
	ReasonQuotaExceeded xpv2.ConditionReason = "QuotaExceeded"
	// ReasonPodsRefused: pods are refused for another reason, for instance an
	// admission policy or a missing ServiceAccount.
	ReasonPodsRefused xpv2.ConditionReason = "PodsRefused"
)
