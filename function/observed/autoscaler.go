// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	applyautoscalingv2 "k8s.io/client-go/applyconfigurations/autoscaling/v2"

	"github.com/capstan-dev/capstan/function/compose"
)

// A HorizontalPodAutoscaler is the view of one, which may not exist.
type HorizontalPodAutoscaler struct {
	// Exists reports whether there is one.
	Exists bool

	m map[string]any
}

// NewHorizontalPodAutoscaler is the view of an observed autoscaler, which may be nil.
func NewHorizontalPodAutoscaler(o compose.Object) HorizontalPodAutoscaler {
	if o == nil {
		return HorizontalPodAutoscaler{}
	}
	return HorizontalPodAutoscaler{Exists: true, m: o.Map()}
}

// MinReplicas that it never goes below.
func (h HorizontalPodAutoscaler) MinReplicas() int64 {
	return compose.Number(h.m, 1, "spec", "minReplicas")
}

// Metrics that it follows.
func (h HorizontalPodAutoscaler) Metrics() []*applyautoscalingv2.MetricSpecApplyConfiguration {
	ms, _ := decode[[]*applyautoscalingv2.MetricSpecApplyConfiguration](compose.List(h.m, "spec", "metrics"))
	return ms
}

// Needs is the number of replicas that the load asked for when the autoscaler looked last, without its bounds, and zero while
// that is unknown. The Deployment has total pods, and so many of them are available: the load is a mean over all, and the use of
// a resource one over those that are ready. A metric with a fixed value, as a latency has, is no load.
func (h HorizontalPodAutoscaler) Needs(total, available int64) float64 {
	replicas := min(compose.Number(h.m, 0, "status", "currentReplicas"), total)
	if !h.Exists || replicas == 0 {
		return 0
	}
	specs, _ := decode[[]autoscalingv2.MetricSpec](compose.List(h.m, "spec", "metrics"))
	seen, _ := decode[[]autoscalingv2.MetricStatus](compose.List(h.m, "status", "currentMetrics"))
	most := 0.0
	for i := range min(len(specs), len(seen)) {
		s, now := specs[i], seen[i]
		switch {
		case s.Type != now.Type:
		case s.External != nil && now.External != nil && s.External.Target.AverageValue != nil && now.External.Current.AverageValue != nil:
			most = max(most, float64(replicas)*now.External.Current.AverageValue.AsApproximateFloat64()/s.External.Target.AverageValue.AsApproximateFloat64())
		case available >= replicas && s.Resource != nil && now.Resource != nil && s.Resource.Target.AverageUtilization != nil && now.Resource.Current.AverageUtilization != nil:
			most = max(most, float64(replicas)*float64(*now.Resource.Current.AverageUtilization)/float64(*s.Resource.Target.AverageUtilization))
		}
	}
	return most
}

// Failure is why it cannot scale, and since when. Both are empty if it can.
func (h HorizontalPodAutoscaler) Failure() (message string, since time.Time) {
	c := compose.Condition(h.m, "ScalingActive")
	if compose.Text(c, "status") != string(corev1.ConditionFalse) || compose.Text(c, "reason") == "ScalingDisabled" {
		return "", since
	}
	since, _ = time.Parse(time.RFC3339, compose.Text(c, "lastTransitionTime"))
	return compose.Text(c, "message"), since
}
