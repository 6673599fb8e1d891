// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

// Conditions of an Algorithm about its data.
const (
	// TypeDataDrift tells whether what the live revision tells has left the
	// distribution of an earlier time. Nothing is rolled back for it: what comes in has
	// changed, and another revision would meet the same. It is told only when
	// spec.lifecycle.drift has a reference.
	TypeDataDrift xpv2.ConditionType = "DataDrift"
)

// Reasons of the condition DataDrift.
const (
	// ReasonDistributionLeft: the distribution is another one.
	ReasonDistributionLeft xpv2.ConditionReason = "DistributionLeft"
	// ReasonDistributionKept: the distribution is still the same.
	ReasonDistributionKept xpv2.ConditionReason = "DistributionKept"
)

// What a rollout tells as its reason, in status.rollout and in the condition Updated.
const (
	// ReasonRollingOut: the revision is being tried.
	ReasonRollingOut xpv2.ConditionReason = "RollingOut"
	// ReasonApplying: the share of callers was changed, and is not in force yet.
	ReasonApplying xpv2.ConditionReason = "Applying"
	// ReasonSoaking: evidence is being gathered.
	ReasonSoaking xpv2.ConditionReason = "Soaking"
	// ReasonSizing: replicas start for the next share of callers.
	ReasonSizing xpv2.ConditionReason = "Sizing"
	// ReasonPassed: the evidence is enough to go on.
	ReasonPassed xpv2.ConditionReason = "Passed"
	// ReasonPromoted: somebody named the revision in spec.lifecycle.promote.
	ReasonPromoted xpv2.ConditionReason = "Promoted"
	// ReasonBaked: all callers reached the revision for long enough.
	ReasonBaked xpv2.ConditionReason = "Baked"
	// ReasonContinued: too little is known, and spec.lifecycle.onNoData is Continue.
	ReasonContinued xpv2.ConditionReason = "Continued"
	// ReasonResumed: the reason to hold is gone.
	ReasonResumed xpv2.ConditionReason = "Resumed"
	// ReasonEdited: the spec asks for another revision.
	ReasonEdited xpv2.ConditionReason = "Edited"
	// ReasonDrained: the revision that callers left is gone.
	ReasonDrained xpv2.ConditionReason = "Drained"
)

// Why a rollout holds.
const (
	// ReasonAwaitingApproval: somebody has to agree.
	ReasonAwaitingApproval xpv2.ConditionReason = "AwaitingApproval"
	// ReasonInconclusive: a step has lasted for its deadline, and too little is known.
	ReasonInconclusive xpv2.ConditionReason = "Inconclusive"
	// ReasonMetricsUnavailable: nobody can tell how the revision does.
	ReasonMetricsUnavailable xpv2.ConditionReason = "MetricsUnavailable"
	// ReasonNoCapacity: replicas of the revision find no room.
	ReasonNoCapacity xpv2.ConditionReason = "NoCapacity"
	// ReasonFreezeWindow: a time of spec.lifecycle.freeze lasts.
	ReasonFreezeWindow xpv2.ConditionReason = "FreezeWindow"
	// ReasonErrorBudget: the error budget of spec.slo is spent.
	ReasonErrorBudget xpv2.ConditionReason = "ErrorBudget"
	// ReasonRollbackLoop: three revisions were rolled back within an hour.
	ReasonRollbackLoop xpv2.ConditionReason = "RollbackLoop"
	// ReasonStateLost: nothing remembers how far the rollout had come.
	ReasonStateLost xpv2.ConditionReason = "StateLost"
	// ReasonMirrorNotOffered: the Gateway does not copy requests as spec.lifecycle.mirror
	// asks.
	ReasonMirrorNotOffered xpv2.ConditionReason = "MirrorNotOffered"
	// ReasonStepTooFine: there are too few replicas for so small a share of callers.
	ReasonStepTooFine xpv2.ConditionReason = "StepTooFine"
)

// Why callers are taken back, beside what is wrong with pods.
const (
	// ReasonMetricFailed: a metric of the revision is out of its bounds.
	ReasonMetricFailed xpv2.ConditionReason = "MetricFailed"
	// ReasonDrifted: the revision tells another distribution than the one before it.
	ReasonDrifted xpv2.ConditionReason = "Drifted"
	// ReasonNotServing: no replica of the revision serves any more.
	ReasonNotServing xpv2.ConditionReason = "NotServing"
	// ReasonNeverReady: replicas of the revision did not become ready in the time they
	// have.
	ReasonNeverReady xpv2.ConditionReason = "NeverReady"
	// ReasonAborted: somebody named the revision in spec.lifecycle.abort.
	ReasonAborted xpv2.ConditionReason = "Aborted"
	// ReasonReverted: the spec asks for the revision before again.
	ReasonReverted xpv2.ConditionReason = "Reverted"
	// ReasonSuperseded: the spec asks for another revision.
	ReasonSuperseded xpv2.ConditionReason = "Superseded"
	// ReasonRolledBack: the spec still asks for a revision that was rolled back.
	ReasonRolledBack xpv2.ConditionReason = "RolledBack"
	// ReasonCoolingDown: it is too early to try the revision again.
	ReasonCoolingDown xpv2.ConditionReason = "CoolingDown"
)
