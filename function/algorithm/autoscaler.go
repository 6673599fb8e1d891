// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	applyautoscalingv2 "k8s.io/client-go/applyconfigurations/autoscaling/v2"
)

// targetCPU is the share of the requested CPU that replicas are kept near, in
// percent. What is left covers the time until another replica serves.
const targetCPU = 70

// autoscaler that follows the CPU use. It grows at once and shrinks by half a
// minute at the most, after five minutes without need: starting a replica costs
// far more than keeping one.
func autoscaler(s *state) error {
	sc := s.spec.Scaling
	if sc == nil {
		return nil
	}

	s.ask(nameAutoscaler, applyautoscalingv2.HorizontalPodAutoscaler(s.slotName(), s.namespace).
		WithLabels(s.slotLabels()).
		WithSpec(applyautoscalingv2.HorizontalPodAutoscalerSpec().
			WithScaleTargetRef(applyautoscalingv2.CrossVersionObjectReference().
				WithAPIVersion("apps/v1").
				WithKind("Deployment").
				WithName(s.slotName())).
			WithMinReplicas(sc.MinReplicas).
			WithMaxReplicas(sc.MaxReplicas).
			WithMetrics(applyautoscalingv2.MetricSpec().
				WithType(autoscalingv2.ResourceMetricSourceType).
				WithResource(applyautoscalingv2.ResourceMetricSource().
					WithName(corev1.ResourceCPU).
					WithTarget(applyautoscalingv2.MetricTarget().
						WithType(autoscalingv2.UtilizationMetricType).
						WithAverageUtilization(targetCPU)))).
			WithBehavior(applyautoscalingv2.HorizontalPodAutoscalerBehavior().
				WithScaleDown(applyautoscalingv2.HPAScalingRules().
					WithStabilizationWindowSeconds(300).
					WithPolicies(applyautoscalingv2.HPAScalingPolicy().
						WithType(autoscalingv2.PercentScalingPolicy).
						WithValue(50).
						WithPeriodSeconds(60))))))

	return nil
}

// replicas of the Deployment, or nil when they are the autoscaler's.
//
// To leave out a field that nobody else owns resets it, here to one replica. So
// the number is given until the autoscaler has written it once by way of the
// scale subresource, which it does when it first wants another number. A size of
// zero would switch the autoscaler off, so that it is never left alone.
func (s *state) replicas() *int32 {
	sc, r := s.spec.Scaling, s.running

	var n int32

	switch {
	case sc == nil:
		n = *s.spec.Replicas
	case !r.exists:
		n = min(max(*s.spec.Replicas, sc.MinReplicas), sc.MaxReplicas)
	case r.autoscaled && r.size > 0:
		return nil
	default:
		n = max(int32(r.size), sc.MinReplicas) //nolint:gosec // The API server keeps it in an int32.
	}

	return &n
}
