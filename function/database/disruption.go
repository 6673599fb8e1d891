// SPDX-License-Identifier: Apache-2.0

package database

import (
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	applypolicyv1 "k8s.io/client-go/applyconfigurations/policy/v1"

	"github.com/capstan-dev/capstan/function/compose"
)

// disruptionBudget keeps drains from taking more than one member at a time. It is over all of them, whatever they do: one over
// the leader alone would let the last follower go. A single member gets none, because its node could never be drained.
func disruptionBudget(d *compose.Draft, s *decision) {
	if s.headcount(s.holds) < 2 {
		d.Remove(nameBudget)
		return
	}
	d.Require(nameBudget, applypolicyv1.PodDisruptionBudget(s.called(suffixOfMembers), s.namespace).
		WithLabels(s.labels()).
		WithSpec(applypolicyv1.PodDisruptionBudgetSpec().
			WithMaxUnavailable(intstr.FromInt32(1)).
			WithUnhealthyPodEvictionPolicy(policyv1.IfHealthyBudget).
			WithSelector(applymetav1.LabelSelector().WithMatchLabels(s.selector()))))
}
