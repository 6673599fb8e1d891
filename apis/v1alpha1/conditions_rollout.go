// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

// Conditions of an Algorithm about its data.
const (
	// TypeDataDrift: True when the outputs of the live revision have another distribution than before. Nothing is
	// rolled back: the input has changed, and another revision would get the same input. It exists only when
	// spec.lifecycle.drift has a reference.
	TypeDataDrift xpv2.ConditionType = "DataDrift"
	// TypeHooksPassed: True when the latest hooks of spec.lifecycle.hooks have passed and notifications were delivered, and those that
	// Signals named have. It exists only when the spec has hooks, of a Database when it has hooks for Signals.
	TypeHooksPassed xpv2.ConditionType = "HooksPassed"
)

// Reasons of the condition DataDrift.
const (
	// ReasonDistributionLeft: the distribution has changed. Check the input, and train again if it stays so.
	ReasonDistributionLeft xpv2.ConditionReason = "DistributionLeft"
	// ReasonDistributionKept: the distribution is the same. Nothing to do.
	ReasonDistributionKept xpv2.ConditionReason = "DistributionKept"
)

// What a rollout reports as its reason in status.rollout, beside the reasons of the condition Updated.
const (
	// ReasonApplying: the share of traffic has changed, and the Gateway has not accepted it yet.
	ReasonApplying xpv2.ConditionReason = "Applying"
	// ReasonSoaking: the step collects evidence.
	ReasonSoaking xpv2.ConditionReason = "Soaking"
	// ReasonSizing: replicas start for the next share of traffic.
	ReasonSizing xpv2.ConditionReason = "Sizing"
	// ReasonRecreating: the live revision stops, and then replicas of the candidate start.
	ReasonRecreating xpv2.ConditionReason = "Recreating"
	// ReasonPassed: the evidence is sufficient.
	ReasonPassed xpv2.ConditionReason = "Passed"
	// ReasonPromoted: spec.rollout.promote names the revision.
	ReasonPromoted xpv2.ConditionReason = "Promoted"
	// ReasonBaked: the revision had all traffic for long enough.
	ReasonBaked xpv2.ConditionReason = "Baked"
	// ReasonContinued: there is too little data, and spec.lifecycle.onNoData is Continue.
	ReasonContinued xpv2.ConditionReason = "Continued"
	// ReasonComparing: a metric of the revision was out of bounds with all traffic, and it is compared with the previous
	// revision once more.
	ReasonComparing xpv2.ConditionReason = "Comparing"
	// ReasonResumed: the reason to hold is gone.
	ReasonResumed xpv2.ConditionReason = "Resumed"
	// ReasonEdited: the spec describes another revision.
	ReasonEdited xpv2.ConditionReason = "Edited"
	// ReasonDrained: the previous revision is gone.
	ReasonDrained xpv2.ConditionReason = "Drained"
)

// Reasons of the condition Updated of an Algorithm with spec.lifecycle. All but the first three are reasons to hold.
const (
	// ReasonRollingOut: the candidate is under test.
	ReasonRollingOut xpv2.ConditionReason = "RollingOut"
	// ReasonRolledBack: the spec still describes a revision that was rolled back. Correct the spec, or set
	// spec.rollout.retry.
	ReasonRolledBack xpv2.ConditionReason = "RolledBack"
	// ReasonCoolingDown: the cooldown before another attempt is not over. Wait, or set spec.rollout.promote.
	ReasonCoolingDown xpv2.ConditionReason = "CoolingDown"
	// ReasonAwaitingApproval: spec.lifecycle.approval requires an approval. Add the entry that the message names to
	// spec.rollout.approve.
	ReasonAwaitingApproval xpv2.ConditionReason = "AwaitingApproval"
	// ReasonInconclusive: a step has reached its deadline with too little data. Send more requests, raise its share, or
	// lower minSamples.
	ReasonInconclusive xpv2.ConditionReason = "Inconclusive"
	// ReasonEvidenceMissing: a check cannot be measured, so that no traffic reaches the revision. The message names the
	// check, the cause and the remedy.
	ReasonEvidenceMissing xpv2.ConditionReason = "EvidenceMissing"
	// ReasonMetricsUnavailable: there are no measurements of the revision. See the condition MetricsAvailable.
	ReasonMetricsUnavailable xpv2.ConditionReason = "MetricsUnavailable"
	// ReasonNoCapacity: the cluster has no room for replicas of the revision. Make room, or set spec.lifecycle.capacity
	// to Borrow.
	ReasonNoCapacity xpv2.ConditionReason = "NoCapacity"
	// ReasonCandidateReleased: replicas of the revision found no room for spec.lifecycle.deadline, and were removed. They
	// start again after the same time. Make room, set spec.lifecycle.capacity to Borrow, or set spec.rollout.promote.
	ReasonCandidateReleased xpv2.ConditionReason = "CandidateReleased"
	// ReasonSourceUnreachable: the registry of the image or the source of the model does not respond, or a node has no
	// room for them. It continues when they can be downloaded.
	ReasonSourceUnreachable xpv2.ConditionReason = "SourceUnreachable"
	// ReasonNodeFault: pods of the revision fail on one node only. Repair or cordon the node.
	ReasonNodeFault xpv2.ConditionReason = "NodeFault"
	// ReasonSharedFault: the live revision fails a check as well. It continues when they pass.
	ReasonSharedFault xpv2.ConditionReason = "SharedFault"
	// ReasonRolloutPaused: spec.rollout.pause is set. It continues when pause is removed.
	ReasonRolloutPaused xpv2.ConditionReason = "Paused"
	// ReasonFreezeWindow: a window of spec.lifecycle.freeze is open. Wait, or set spec.rollout.promote.
	ReasonFreezeWindow xpv2.ConditionReason = "FreezeWindow"
	// ReasonErrorBudget: the error budget of spec.slo is used up. Wait, or set spec.rollout.promote for a revision
	// that fixes the cause.
	ReasonErrorBudget xpv2.ConditionReason = "ErrorBudget"
	// ReasonRollbackLoop: three revisions were rolled back within an hour. Find the cause; the next one starts an hour
	// after the first of them.
	ReasonRollbackLoop xpv2.ConditionReason = "RollbackLoop"
	// ReasonStandbyStarting: requests go back to the revision before, once as many of its replicas serve as they need.
	// Wait, or set spec.rollout.abort to the revision to go back to those that there are.
	ReasonStandbyStarting xpv2.ConditionReason = "StandbyStarting"
	// ReasonStateLost: the state of the rollout is lost. Set spec.rollout.promote or abort to the revision.
	ReasonStateLost xpv2.ConditionReason = "StateLost"
	// ReasonMirrorNotOffered: the Gateway does not support spec.lifecycle.mirror. Remove mirror, set its percent to
	// 100, or use another Gateway.
	ReasonMirrorNotOffered xpv2.ConditionReason = "MirrorNotOffered"
)

// Why a revision is rolled back, beside problems of its pods.
const (
	// ReasonMetricFailed: a metric of the revision is out of bounds.
	ReasonMetricFailed xpv2.ConditionReason = "MetricFailed"
	// ReasonDrifted: the outputs of the revision have another distribution than the outputs of the live revision.
	ReasonDrifted xpv2.ConditionReason = "Drifted"
	// ReasonNotServing: no replica of the revision is ready any more. The rollout holds until one is, and the revision is
	// rolled back when none was for probes.startupSeconds and ten minutes.
	ReasonNotServing xpv2.ConditionReason = "NotServing"
	// ReasonNeverReady: replicas of the revision did not become ready in probes.startupSeconds.
	ReasonNeverReady xpv2.ConditionReason = "NeverReady"
	// ReasonAborted: spec.rollout.abort names the revision, or spec.lifecycle was removed before it had passed.
	ReasonAborted xpv2.ConditionReason = "Aborted"
	// ReasonReverted: the spec describes the previous revision again.
	ReasonReverted xpv2.ConditionReason = "Reverted"
	// ReasonSuperseded: the spec describes another revision.
	ReasonSuperseded xpv2.ConditionReason = "Superseded"
)
