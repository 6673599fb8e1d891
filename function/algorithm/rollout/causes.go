// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// incurable reasons are those that no waiting changes, where the revision itself is their cause.
var incurable = []xpv2.ConditionReason{
	v1alpha1.ReasonImagePullFailed, v1alpha1.ReasonConfigError, v1alpha1.ReasonRunsAsRoot, v1alpha1.ReasonModelNotFound,
	v1alpha1.ReasonModelForbidden, v1alpha1.ReasonModelDigestMismatch, v1alpha1.ReasonModelSizeMismatch, v1alpha1.ReasonModelInvalid,
}

// outOfRoom reports whether replicas wait for others to make room.
func outOfRoom(reason xpv2.ConditionReason) bool {
	return slices.Contains([]xpv2.ConditionReason{
		v1alpha1.ReasonInsufficientGPU, v1alpha1.ReasonUnschedulable, v1alpha1.ReasonQuotaExceeded, v1alpha1.ReasonPodsRefused,
	}, reason)
}

// crashes reports whether the pods of the slot crash again and again, and not only a few of them or those on one node.
func (s Slot) crashes() bool {
	return s.Trouble == v1alpha1.ReasonCrashLooping && s.TroubleExtent == ""
}

// blocked reports whether waiting does not help the pods of the slot.
func (s Slot) blocked() bool {
	ofRevision := s.TroubleCause == observev1alpha1.FindingOfRevision && s.TroubleExtent == ""
	return s.crashes() || ofRevision && slices.Contains(incurable, s.Trouble)
}

// waitsFor is why the pods of the slot wait for what the revision cannot give: room, a registry or bucket, another node. It is
// empty where they do not.
func (s Slot) waitsFor() xpv2.ConditionReason {
	switch {
	case outOfRoom(s.Trouble):
		return v1alpha1.ReasonNoCapacity
	case s.TroubleCause == observev1alpha1.FindingOutside:
		return v1alpha1.ReasonSourceUnreachable
	case s.TroubleExtent == observev1alpha1.FindingOnNode:
		return v1alpha1.ReasonNodeFault
	default:
		return ""
	}
}

// onNode is what to do about pods that fail on one node only.
func onNode(s Slot, l Ledger) string {
	return fmt.Sprintf("pods of revision %s fail on one node only: repair or cordon it, and the rollout continues by itself, or name the revision in "+
		"spec.rollout.promote or abort: %s: %s", l.Candidate, s.Trouble, s.TroubleMessage)
}
