// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"time"

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

// Failure is why it cannot scale, and since when. Both are empty if it can.
func (h HorizontalPodAutoscaler) Failure() (message string, since time.Time) {
	c := compose.Condition(h.m, "ScalingActive")
	if compose.Text(c, "status") != string(corev1.ConditionFalse) || compose.Text(c, "reason") == "ScalingDisabled" {
		return "", since
	}
	since, _ = time.Parse(time.RFC3339, compose.Text(c, "lastTransitionTime"))
	return compose.Text(c, "message"), since
}
