// SPDX-License-Identifier: Apache-2.0

package compose

import (
	corev1 "k8s.io/api/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// NewCondition of a composite resource. No message may hold what changes by itself, such as a number of pods: each write of one
// wakes the composite resource up again.
func NewCondition(t xpv2.ConditionType, status corev1.ConditionStatus, reason xpv2.ConditionReason, message string) xpv2.Condition {
	return xpv2.Condition{Type: t, Status: status, Reason: reason, Message: message}
}

// True is a condition with that status.
func True(t xpv2.ConditionType, reason xpv2.ConditionReason, message string) xpv2.Condition {
	return NewCondition(t, corev1.ConditionTrue, reason, message)
}

// False is a condition with that status.
func False(t xpv2.ConditionType, reason xpv2.ConditionReason, message string) xpv2.Condition {
	return NewCondition(t, corev1.ConditionFalse, reason, message)
}

// Unknown is a condition with that status.
func Unknown(t xpv2.ConditionType, reason xpv2.ConditionReason, message string) xpv2.Condition {
	return NewCondition(t, corev1.ConditionUnknown, reason, message)
}

// Unchanged conditions of the given types, as the composite resource has them, if it does.
func Unchanged(xr map[string]any, types ...xpv2.ConditionType) []xpv2.Condition {
	var cs []xpv2.Condition
	for _, t := range types {
		if c := Condition(xr, string(t)); c != nil {
			cs = append(cs, NewCondition(t, corev1.ConditionStatus(Text(c, "status")), xpv2.ConditionReason(Text(c, "reason")), Text(c, "message")))
		}
	}
	return cs
}
