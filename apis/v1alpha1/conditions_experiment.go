// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

// Conditions of an Algorithm about its experiment.
const (
	// TypeExperimentDecided: True when spec.experiment has a result, that one arm is better or that none is. It is
	// False when the experiment ended without one, and Unknown until it has ended.
	TypeExperimentDecided xpv2.ConditionType = "ExperimentDecided"
)

// Reasons of the condition ExperimentDecided, beside the reasons of a candidate that fails and of a rollout that holds.
const (
	// ReasonArmBBetter: arm B is better with the required confidence. To adopt it, write its fields into the spec.
	ReasonArmBBetter xpv2.ConditionReason = "ArmBBetter"
	// ReasonArmABetter: arm A is better with the required confidence.
	ReasonArmABetter xpv2.ConditionReason = "ArmABetter"
	// ReasonNoDifference: the arms differ by less than minEffect.
	ReasonNoDifference xpv2.ConditionReason = "NoDifference"
	// ReasonDurationOver: the experiment reached its maximum duration without a result.
	ReasonDurationOver xpv2.ConditionReason = "DurationOver"
	// ReasonGuardrailViolated: arm B fails a guardrail.
	ReasonGuardrailViolated xpv2.ConditionReason = "GuardrailViolated"
	// ReasonExperimenting: both arms get traffic. Wait.
	ReasonExperimenting xpv2.ConditionReason = "Experimenting"
	// ReasonExperimentBegins: nothing blocks the start of the experiment.
	ReasonExperimentBegins xpv2.ConditionReason = "ExperimentBegins"
	// ReasonExperimentEdited: the experiment was edited, so its data is about another experiment. Use another ID for
	// the new one.
	ReasonExperimentEdited xpv2.ConditionReason = "ExperimentEdited"
	// ReasonExperimentRemoved: spec.experiment was removed.
	ReasonExperimentRemoved xpv2.ConditionReason = "ExperimentRemoved"
	// ReasonExperimentOver: an experiment with this ID has already run. Use another ID.
	ReasonExperimentOver xpv2.ConditionReason = "ExperimentOver"
	// ReasonRolloutFirst: the experiment waits for the end of a rollout.
	ReasonRolloutFirst xpv2.ConditionReason = "RolloutFirst"
	// ReasonSameRevision: both arms are the same. Change spec.experiment.armB.
	ReasonSameRevision xpv2.ConditionReason = "SameRevision"
)
