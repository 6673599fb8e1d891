// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"fmt"
	"math"
	"slices"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	applyautoscalingv2 "k8s.io/client-go/applyconfigurations/autoscaling/v2"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// Labels of the series that Prometheus has of pods.
const (
	SeriesAlgorithm = "algorithm"
	SeriesSlot      = "slot"
)

// targetCPU is the share of the requested CPU that replicas are kept near, in percent. What is left covers the time until another
// replica serves.
const targetCPU = 70

// loadMetrics are the external metrics of the load of all replicas of a slot together. The platform's recording rules make them
// of what pods report.
var loadMetrics = map[string]string{
	string(observev1alpha1.SignalInFlight):    "capstan_inflight",
	string(observev1alpha1.SignalRequestRate): "capstan_requests_per_second",
	string(observev1alpha1.SignalQuery):       "capstan_custom",
}

// latencyMetrics are the external metrics of the latency in milliseconds, by percentile.
var latencyMetrics = map[int32]string{
	50: "capstan_latency_p50_ms",
	90: "capstan_latency_p90_ms",
	95: "capstan_latency_p95_ms",
	99: "capstan_latency_p99_ms",
}

// ownQueries are those in place of the ones that the platform's rules record.
func ownQueries(m *v1alpha1.Metrics) observev1alpha1.Queries {
	return observev1alpha1.Queries{
		Requests: m.Query(v1alpha1.QueryRequests), Failures: m.Query(v1alpha1.QueryFailures),
		Latency: m.Query(v1alpha1.QueryLatency), InFlight: m.Query(v1alpha1.QueryInFlight),
	}
}

// loadQuery of signal Query, or empty for another signal.
func loadQuery(spec *v1alpha1.AlgorithmSpec) string {
	if spec.Scaling.Signal != string(observev1alpha1.SignalQuery) {
		return ""
	}
	return spec.Metrics.Query(v1alpha1.QueryLoad)
}

// RecordsOwn reports whether the autoscaler follows a query of the spec, which has to be recorded for it.
func RecordsOwn(spec *v1alpha1.AlgorithmSpec) bool {
	sc, own := spec.Scaling, ownQueries(spec.Metrics)
	if sc == nil || spec.Metrics == nil {
		return false
	}
	latency := sc.TargetLatencyMs != nil && own.Latency != ""
	load := sc.Signal != string(observev1alpha1.SignalCPU) && (own.InFlight != "" || own.Requests != "")
	return sc.Signal == string(observev1alpha1.SignalQuery) || latency || load
}

// RecordsLatency reports whether a query of the spec for the latency has to be recorded for an alert about the objective. The
// autoscaler's own recording serves both.
func RecordsLatency(spec *v1alpha1.AlgorithmSpec) bool {
	return spec.Objectives.LatencyMs != nil && spec.Metrics.Query(v1alpha1.QueryLatency) != "" && (spec.Scaling == nil || spec.Scaling.TargetLatencyMs == nil)
}

// Load that the autoscaler follows. Its signal is empty as long as it is unknown. Without an Analysis only the CPU is known, which
// replicas with a GPU are scaled by only where the spec says so: it is busy with feeding the GPU, however much that has to do.
func Load(spec *v1alpha1.AlgorithmSpec, learned observev1alpha1.ScalingObservation, observes bool) v1alpha1.ScalingStatus {
	sc := spec.Scaling
	switch {
	case NoSignal(spec, learned, observes):
		return v1alpha1.ScalingStatus{}
	case sc.PerReplica != nil:
		return v1alpha1.ScalingStatus{Signal: sc.Signal, PerReplica: sc.PerReplica}
	case sc.Signal == string(observev1alpha1.SignalCPU), !observes, learned.Signal == observev1alpha1.SignalCPU:
		return v1alpha1.ScalingStatus{Signal: string(observev1alpha1.SignalCPU), PerReplica: new(float64(targetCPU))}
	default:
		return v1alpha1.ScalingStatus{Signal: string(learned.Signal), PerReplica: learned.PerReplica}
	}
}

// NoSignal reports whether nothing says how much load replicas with a GPU have. Then their number stays as it is.
func NoSignal(spec *v1alpha1.AlgorithmSpec, learned observev1alpha1.ScalingObservation, observes bool) bool {
	sc := spec.Scaling
	if sc == nil || !spec.Resources.Accelerated() || sc.Signal == string(observev1alpha1.SignalCPU) || sc.PerReplica != nil {
		return false
	}
	return sc.Signal == "" || !observes || learned.Signal == observev1alpha1.SignalCPU
}

// ScalingMetrics that the autoscaler of a slot follows, or none while they are unknown. The latency is a guard beside the load:
// more replicas do not help against one that the load does not cause. It is the recorded guard where there is one.
func ScalingMetrics(
	spec *v1alpha1.AlgorithmSpec, load v1alpha1.ScalingStatus, loadIndependent, recorded bool, algorithm, slot string,
) []*applyautoscalingv2.MetricSpecApplyConfiguration {
	external := func(name string, target *applyautoscalingv2.MetricTargetApplyConfiguration) *applyautoscalingv2.MetricSpecApplyConfiguration {
		return applyautoscalingv2.MetricSpec().
			WithType(autoscalingv2.ExternalMetricSourceType).
			WithExternal(applyautoscalingv2.ExternalMetricSource().
				WithMetric(applyautoscalingv2.MetricIdentifier().
					WithName(name).
					WithSelector(applymetav1.LabelSelector().WithMatchLabels(map[string]string{SeriesAlgorithm: algorithm, SeriesSlot: slot}))).
				WithTarget(target))
	}
	var ms []*applyautoscalingv2.MetricSpecApplyConfiguration
	switch name := loadMetric(ownQueries(spec.Metrics), load.Signal); {
	case load.Signal == "", name != "" && load.PerReplica == nil:
		return nil
	case name != "":
		ms = append(ms, external(name, applyautoscalingv2.MetricTarget().
			WithType(autoscalingv2.AverageValueMetricType).
			WithAverageValue(quantity(*load.PerReplica))))
	default:
		ms = append(ms, applyautoscalingv2.MetricSpec().
			WithType(autoscalingv2.ResourceMetricSourceType).
			WithResource(applyautoscalingv2.ResourceMetricSource().
				WithName(corev1.ResourceCPU).
				WithTarget(applyautoscalingv2.MetricTarget().
					WithType(autoscalingv2.UtilizationMetricType).
					WithAverageUtilization(targetCPU))))
	}
	if target := spec.Scaling.TargetLatencyMs; target != nil && !loadIndependent {
		name := LatencyMetric(spec)
		if recorded {
			name = guardMetric
		}
		ms = append(ms, external(name, applyautoscalingv2.MetricTarget().
			WithType(autoscalingv2.ValueMetricType).
			WithValue(quantity(float64(*target)))))
	}
	return ms
}

// Kept are the metrics that an autoscaler has, and keeps while the metric of the load is unknown. Replicas with a GPU may have been
// without one before.
func Kept(spec *v1alpha1.AlgorithmSpec, metrics []*applyautoscalingv2.MetricSpecApplyConfiguration) []*applyautoscalingv2.MetricSpecApplyConfiguration {
	if !spec.Resources.Accelerated() || spec.Scaling.Signal == string(observev1alpha1.SignalCPU) {
		return metrics
	}
	return slices.DeleteFunc(metrics, func(m *applyautoscalingv2.MetricSpecApplyConfiguration) bool {
		return m.Type != nil && *m.Type == autoscalingv2.ResourceMetricSourceType
	})
}

// loadMetric of a signal, or empty for one that is no external metric.
func loadMetric(own observev1alpha1.Queries, signal string) string {
	switch {
	case signal == string(observev1alpha1.SignalInFlight) && own.InFlight != "":
		return "capstan_own_inflight"
	case signal == string(observev1alpha1.SignalRequestRate) && own.Requests != "":
		return "capstan_own_requests_per_second"
	default:
		return loadMetrics[signal]
	}
}

// LatencyMetric that guards the target.
func LatencyMetric(spec *v1alpha1.AlgorithmSpec) string {
	if spec.Metrics.Query(v1alpha1.QueryLatency) != "" {
		return "capstan_own_latency_ms"
	}
	return latencyMetrics[spec.Objectives.LatencyPercentile]
}

// guardMetric is the recorded guard of the latency.
const guardMetric = "capstan_latency_guard_ms"

// excused is how far above its target a latency does not bring more replicas.
const excused = 1.05

// Guard is the series of the guard, and the expression that records it for the pods that a selector names: the latency while it
// is above the target, and zero while it is not. An autoscaler takes a value near its target for a reason to keep every replica.
// So a latency that is just below it would keep the replicas of a peak for ever.
func Guard(spec *v1alpha1.AlgorithmSpec, selector string) (series, expression string) {
	latency := strings.Replace(LatencyMetric(spec), "_", ":", 1) + selector
	return strings.Replace(guardMetric, "_", ":", 1),
		fmt.Sprintf("%s > %g or 0 * %s", latency, math.Round(excused*float64(*spec.Scaling.TargetLatencyMs)*100)/100, latency)
}

// quantity to three decimals.
func quantity(v float64) resource.Quantity {
	return *resource.NewMilliQuantity(int64(math.Round(v*1000)), resource.DecimalSI)
}
