// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

// Conditions of an Algorithm and an Experiment about the experiment.
const (
	// TypeExperimentDecided: True when the experiment has a result, that one arm is better or that none is. It is False
	// when the experiment ended without one, and Unknown until it has ended.
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
	// ReasonUndecided: the experiment has not ended. Its phase, reason and message are in the status of the Experiment.
	ReasonUndecided xpv2.ConditionReason = "Undecided"
	// ReasonExperimenting: both arms get traffic. Wait.
	ReasonExperimenting xpv2.ConditionReason = "Experimenting"
	// ReasonExperimentBegins: nothing blocks the start of the experiment.
	ReasonExperimentBegins xpv2.ConditionReason = "ExperimentBegins"
	// ReasonExperimentEdited: the Experiment was edited, or spec.experiment of the Algorithm names another one, so its
	// data is about another experiment. Use another name for the new one.
	ReasonExperimentEdited xpv2.ConditionReason = "ExperimentEdited"
	// ReasonExperimentRemoved: spec.experiment of the Algorithm was removed, or the Experiment or the Algorithm was
	// deleted.
	ReasonExperimentRemoved xpv2.ConditionReason = "ExperimentRemoved"
	// ReasonExperimentOver: an experiment with this name has already run. Use another name.
	ReasonExperimentOver xpv2.ConditionReason = "ExperimentOver"
	// ReasonRolloutFirst: the experiment waits for the end of a rollout.
	ReasonRolloutFirst xpv2.ConditionReason = "RolloutFirst"
	// ReasonSameRevision: both arms are the same. Change spec.armB of the Experiment.
	ReasonSameRevision xpv2.ConditionReason = "SameRevision"
	// ReasonExperimentMissing: there is no Experiment of this name in the namespace. Create it, or correct
	// spec.experiment of the Algorithm.
	ReasonExperimentMissing xpv2.ConditionReason = "ExperimentMissing"
	// ReasonExperimentInvalid: the Experiment cannot run on this Algorithm. Correct the field that the message names.
	ReasonExperimentInvalid xpv2.ConditionReason = "ExperimentInvalid"
	// ReasonAwaitingExperiment: Crossplane has not read the Experiment yet. Wait.
	ReasonAwaitingExperiment xpv2.ConditionReason = "AwaitingExperiment"
	// ReasonAlgorithmMissing: there is no Algorithm of the name in spec.algorithm in the namespace. Create it.
	ReasonAlgorithmMissing xpv2.ConditionReason = "AlgorithmMissing"
	// ReasonNotRequested: the Algorithm does not name the Experiment. Set spec.experiment of the Algorithm to begin.
	ReasonNotRequested xpv2.ConditionReason = "NotRequested"
)
