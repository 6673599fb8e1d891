// SPDX-License-Identifier: Apache-2.0

package network

import (
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	applypolicyv1 "k8s.io/client-go/applyconfigurations/policy/v1"

	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/decision"
	"github.com/capstan-dev/capstan/function/database/names"
)

// DisruptionBudget keeps drains from taking more than one member at a time. It covers all of them: a budget of the leader alone
// would allow a drain to take the last standby. A single member gets none, because its node could never be drained.
func DisruptionBudget(d *compose.Draft, s *decision.Decision) {
	if s.Headcount(s.Holds) < 2 {
		d.Remove(names.Budget)
		return
	}
	d.Require(names.Budget, applypolicyv1.PodDisruptionBudget(s.Called(names.SuffixOfMembers), s.Namespace).
		WithLabels(s.Labels()).
		WithSpec(applypolicyv1.PodDisruptionBudgetSpec().
			WithMaxUnavailable(intstr.FromInt32(1)).
			WithUnhealthyPodEvictionPolicy(policyv1.IfHealthyBudget).
			WithSelector(applymetav1.LabelSelector().WithMatchLabels(s.Selector()))))
}
