// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"encoding/json"
	"math"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	applyautoscalingv2 "k8s.io/client-go/applyconfigurations/autoscaling/v2"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

// targetCPU is the share of the requested CPU that replicas are kept near, in
// percent. What is left covers the time until another replica serves.
const targetCPU = 70

// loadMetrics are the external metrics that tell the load of all replicas of a
// slot together. The platform's recording rules make them of what pods tell.
var loadMetrics = map[string]string{
	string(observev1alpha1.SignalInFlight):    "capstan_inflight",
	string(observev1alpha1.SignalRequestRate): "capstan_requests_per_second",
	string(observev1alpha1.SignalQuery):       "capstan_custom",
}

// latencyMetrics are the external metrics of the latency in milliseconds, by
// percentile.
var latencyMetrics = map[int32]string{
	50: "capstan_latency_p50_ms",
	90: "capstan_latency_p90_ms",
	95: "capstan_latency_p95_ms",
	99: "capstan_latency_p99_ms",
}

// autoscaler of the live slot. It follows the load: how much of it a replica
// bears is known, so that the right number of replicas is too. The latency is its
// guard: load is followed before it shows in the latency, and the latency brings
// more replicas where what was learned about the load is no longer true.
//
// A metric that is lost freezes the number of replicas; an absent one is never
// zero (see package/monitoring).
func (s *state) autoscaler(slot string) error {
	sc := s.spec.Scaling
	if sc == nil {
		return nil
	}

	metrics, known := s.scalingMetrics(slot)
	if !known {
		// What the load is told by is not known yet. Whatever scales goes on by what it
		// went by.
		if metrics, known = s.metricsBefore(slot); !known {
			return nil
		}
	}

	s.ask(autoscalerOf(slot), applyautoscalingv2.HorizontalPodAutoscaler(s.slotName(slot), s.namespace).
		WithLabels(s.slotLabels(slot)).
		WithSpec(applyautoscalingv2.HorizontalPodAutoscalerSpec().
			WithScaleTargetRef(applyautoscalingv2.CrossVersionObjectReference().
				WithAPIVersion("apps/v1").
				WithKind("Deployment").
				WithName(s.slotName(slot))).
			WithMinReplicas(sc.MinReplicas).
			WithMaxReplicas(sc.MaxReplicas).
			WithMetrics(metrics...).
			WithBehavior(behavior(*sc.ScaleDownAfterSeconds))))

	return nil
}

// metricsBefore are those that the observed autoscaler of a slot follows.
func (s *state) metricsBefore(slot string) ([]*applyautoscalingv2.MetricSpecApplyConfiguration, bool) {
	o := s.Observed[autoscalerOf(slot)]
	if o == nil {
		return nil, false
	}

	var ms []*applyautoscalingv2.MetricSpecApplyConfiguration

	raw, err := json.Marshal(compose.List(o.Map(), "spec", "metrics"))
	if err == nil {
		err = json.Unmarshal(raw, &ms)
	}

	return ms, err == nil && len(ms) > 0
}

// behavior grows fast and shrinks slowly.
func behavior(calm int32) *applyautoscalingv2.HorizontalPodAutoscalerBehaviorApplyConfiguration {
	policy := func(kind autoscalingv2.HPAScalingPolicyType, value int32) *applyautoscalingv2.HPAScalingPolicyApplyConfiguration {
		return applyautoscalingv2.HPAScalingPolicy().WithType(kind).WithValue(value).WithPeriodSeconds(60)
	}

	return applyautoscalingv2.HorizontalPodAutoscalerBehavior().
		WithScaleUp(applyautoscalingv2.HPAScalingRules().
			WithStabilizationWindowSeconds(0).
			WithSelectPolicy(autoscalingv2.MaxChangePolicySelect).
			WithPolicies(policy(autoscalingv2.PercentScalingPolicy, 100), policy(autoscalingv2.PodsScalingPolicy, 4))).
		WithScaleDown(applyautoscalingv2.HPAScalingRules().
			WithStabilizationWindowSeconds(calm).
			WithSelectPolicy(autoscalingv2.MaxChangePolicySelect).
			WithPolicies(policy(autoscalingv2.PercentScalingPolicy, 10), policy(autoscalingv2.PodsScalingPolicy, 1)))
}

// scalingMetrics of a slot, and whether they are known.
func (s *state) scalingMetrics(slot string) ([]*applyautoscalingv2.MetricSpecApplyConfiguration, bool) {
	sc, load := s.spec.Scaling, s.load()

	var ms []*applyautoscalingv2.MetricSpecApplyConfiguration

	switch name, external := s.loadMetric(load.Signal); {
	case load.Signal == "":
		return nil, false
	case external && load.PerReplica == nil:
		return nil, false
	case external:
		ms = append(ms, s.external(slot, name, applyautoscalingv2.MetricTarget().
			WithType(autoscalingv2.AverageValueMetricType).
			WithAverageValue(quantity(*load.PerReplica))))
	default:
		ms = append(ms, cpuMetric())
	}

	// More replicas do not help against a latency that the load does not cause.
	if sc.TargetLatencyMs != nil && !s.learned().loadIndependent {
		ms = append(ms, s.external(slot, s.latencyMetric(), applyautoscalingv2.MetricTarget().
			WithType(autoscalingv2.ValueMetricType).
			WithValue(quantity(float64(*sc.TargetLatencyMs)))))
	}

	return ms, true
}

// loadMetric of a signal, if it is an external one.
func (s *state) loadMetric(signal string) (string, bool) {
	own := s.ownQueries()

	switch {
	case signal == string(observev1alpha1.SignalInFlight) && own.InFlight != "":
		return "capstan_own_inflight", true
	case signal == string(observev1alpha1.SignalRequestRate) && own.Requests != "":
		return "capstan_own_requests_per_second", true
	}

	name, external := loadMetrics[signal]

	return name, external
}

func (s *state) latencyMetric() string {
	if s.ownQueries().Latency != "" {
		return "capstan_own_latency_ms"
	}

	return latencyMetrics[s.spec.Scaling.Percentile]
}

func cpuMetric() *applyautoscalingv2.MetricSpecApplyConfiguration {
	return applyautoscalingv2.MetricSpec().
		WithType(autoscalingv2.ResourceMetricSourceType).
		WithResource(applyautoscalingv2.ResourceMetricSource().
			WithName(corev1.ResourceCPU).
			WithTarget(applyautoscalingv2.MetricTarget().
				WithType(autoscalingv2.UtilizationMetricType).
				WithAverageUtilization(targetCPU)))
}

func (s *state) external(slot, name string, target *applyautoscalingv2.MetricTargetApplyConfiguration) *applyautoscalingv2.MetricSpecApplyConfiguration {
	return applyautoscalingv2.MetricSpec().
		WithType(autoscalingv2.ExternalMetricSourceType).
		WithExternal(applyautoscalingv2.ExternalMetricSource().
			WithMetric(applyautoscalingv2.MetricIdentifier().
				WithName(name).
				WithSelector(applymetav1.LabelSelector().WithMatchLabels(map[string]string{
					seriesAlgorithm: s.name,
					seriesSlot:      slot,
				}))).
			WithTarget(target))
}

// quantity to three decimals.
func quantity(v float64) resource.Quantity {
	return *resource.NewMilliQuantity(int64(math.Round(v*1000)), resource.DecimalSI)
}

// replicas of the live slot's Deployment, or nil when they are the autoscaler's.
//
// To leave out a field that nobody else owns resets it, here to one replica. So
// the number is given until the autoscaler has written it once by way of the
// scale subresource, which it does when it first wants another number. A size of
// zero would switch the autoscaler off, so that it is never left alone.
func (s *state) replicas(slot string) *int32 {
	sc, r := s.spec.Scaling, s.slots[slot]

	var n int32

	switch {
	case sc == nil:
		n = *s.spec.Replicas
	case !r.exists, s.ledger.Revision == "" && r.size == 0:
		n = min(max(*s.spec.Replicas, sc.MinReplicas), sc.MaxReplicas)
	case r.autoscaled && r.size > 0:
		return nil
	default:
		n = max(int32(r.size), sc.MinReplicas) //nolint:gosec // The API server keeps it in an int32.
	}

	return &n
}
