// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	policyv1 "k8s.io/api/policy/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	applypolicyv1 "k8s.io/client-go/applyconfigurations/policy/v1"
)

// disruptionBudget keeps node drains from taking too many replicas of the live
// slot at a time; those of the other serve nobody yet, or finish what they have
// wherever they are. It goes over to another slot together with callers. A single replica gets none, because its node could never be drained. It
// counts the missing ones, since a minimum equal to the size would block drains
// as well, and pods that do not serve may always go.
func disruptionBudget(s *state) error {
	slot := s.decision.live.slot

	most := *s.spec.Replicas
	if s.spec.Scaling != nil {
		most = s.spec.Scaling.MaxReplicas
	}

	if most <= 1 {
		return nil
	}

	s.ask(nameBudget, applypolicyv1.PodDisruptionBudget(s.name, s.namespace).
		WithLabels(s.labels()).
		WithSpec(applypolicyv1.PodDisruptionBudgetSpec().
			WithMaxUnavailable(*s.spec.Availability.MaxUnavailable).
			WithUnhealthyPodEvictionPolicy(policyv1.AlwaysAllow).
			WithSelector(applymetav1.LabelSelector().WithMatchLabels(s.selector(slot)))))

	return nil
}
