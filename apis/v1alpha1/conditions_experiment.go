// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

// Conditions of an Algorithm about its experiment.
const (
	// TypeExperimentDecided tells what came of spec.experiment: True when one arm is
	// better or neither is, False when it ended before that was known, Unknown until it
	// has ended.
	TypeExperimentDecided xpv2.ConditionType = "ExperimentDecided"
)

// Reasons of the condition ExperimentDecided, beside those that a candidate fails for
// and those that a rollout holds for.
const (
	// ReasonArmBBetter: arm B is better beyond doubt.
	ReasonArmBBetter xpv2.ConditionReason = "ArmBBetter"
	// ReasonArmABetter: arm A is better beyond doubt.
	ReasonArmABetter xpv2.ConditionReason = "ArmABetter"
	// ReasonNoDifference: the arms differ by less than what matters.
	ReasonNoDifference xpv2.ConditionReason = "NoDifference"
	// ReasonDurationOver: the experiment lasted as long as it may.
	ReasonDurationOver xpv2.ConditionReason = "DurationOver"
	// ReasonGuardrailViolated: arm B fails a guardrail.
	ReasonGuardrailViolated xpv2.ConditionReason = "GuardrailViolated"
	// ReasonExperimenting: callers are sent to both arms.
	ReasonExperimenting xpv2.ConditionReason = "Experimenting"
	// ReasonExperimentBegins: nothing keeps the experiment from beginning.
	ReasonExperimentBegins xpv2.ConditionReason = "ExperimentBegins"
	// ReasonExperimentEdited: the experiment was edited, so that what was counted is
	// about another one.
	ReasonExperimentEdited xpv2.ConditionReason = "ExperimentEdited"
	// ReasonExperimentRemoved: nobody asks for the experiment any more.
	ReasonExperimentRemoved xpv2.ConditionReason = "ExperimentRemoved"
	// ReasonExperimentOver: an experiment of this id has been run.
	ReasonExperimentOver xpv2.ConditionReason = "ExperimentOver"
	// ReasonRolloutFirst: a rollout goes on, which an experiment waits for.
	ReasonRolloutFirst xpv2.ConditionReason = "RolloutFirst"
	// ReasonSameRevision: both arms are the same.
	ReasonSameRevision xpv2.ConditionReason = "SameRevision"
)
