// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"slices"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	applyautoscalingv2 "k8s.io/client-go/applyconfigurations/autoscaling/v2"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

// An Autoscaler is the view of what scales a slot: an Autoscaler, a HorizontalPodAutoscaler that is composed directly, or nothing.
type Autoscaler struct {
	// Exists reports whether there is one.
	Exists bool

	// spec of the HorizontalPodAutoscaler, which managed keeps or direct is.
	spec, managed, direct map[string]any
}

// NewAutoscaler is the view of an observed Autoscaler and of a HorizontalPodAutoscaler, which both may be nil. There are both until
// the provider has taken over what an earlier version composed.
func NewAutoscaler(managed, direct compose.Object) Autoscaler {
	a := Autoscaler{Exists: managed != nil || direct != nil}
	if direct != nil {
		a.direct = direct.Map()
		a.spec = compose.Map(a.direct, "spec")
	}
	if managed != nil {
		a.managed = managed.Map()
		a.spec = compose.Map(a.managed, "spec", "forProvider", "autoscaler")
	}
	return a
}

// MinReplicas that it never goes below.
func (a Autoscaler) MinReplicas() int64 { return compose.Number(a.spec, 1, "minReplicas") }

// Metrics that it follows.
func (a Autoscaler) Metrics() []*applyautoscalingv2.MetricSpecApplyConfiguration {
	ms, _ := decode[[]*applyautoscalingv2.MetricSpecApplyConfiguration](compose.List(a.spec, "metrics"))
	return ms
}

// Needs is the number of replicas of a Deployment that the load asked for when the autoscaler looked last, without its bounds, and
// zero while that is unknown. The provider reports it of an autoscaler that it keeps.
func (a Autoscaler) Needs(d Deployment) float64 {
	if !a.Exists {
		return 0
	}
	if a.managed != nil {
		seen, _ := decode[observev1alpha1.AutoscalerObservation](compose.Map(a.managed, "status", "atProvider"))
		switch {
		case seen.Needs == nil:
			return 0
		case d.Available < d.Total && slices.ContainsFunc(a.Metrics(), ofResource):
			// The use of a resource is a mean over the pods that are ready, and the provider does not know how many are.
			return 0
		case d.Total < d.Size:
			// It counts pods that were never made, and the load is a mean over those that were.
			return *seen.Needs * float64(d.Total) / float64(d.Size)
		default:
			return *seen.Needs
		}
	}
	spec, _ := decode[autoscalingv2.HorizontalPodAutoscalerSpec](compose.Map(a.direct, "spec"))
	status, _ := decode[autoscalingv2.HorizontalPodAutoscalerStatus](compose.Map(a.direct, "status"))
	replicas := min(int64(status.CurrentReplicas), d.Total)
	needs, _ := observev1alpha1.ReplicasNeeded(spec.Metrics, status.CurrentMetrics, replicas, d.Available >= replicas)
	return needs
}

// ofResource reports whether a metric is the use of a resource.
func ofResource(m *applyautoscalingv2.MetricSpecApplyConfiguration) bool { return m.Resource != nil }

// Failure is why it cannot scale, and since when. Both are empty if it can.
func (a Autoscaler) Failure() (message string, since time.Time) {
	if f := compose.Map(a.managed, "status", "atProvider", "failure"); f != nil {
		return compose.Text(f, "message"), timeAt(f, "since")
	}
	c := compose.Condition(a.direct, "ScalingActive")
	if compose.Text(c, "status") != string(corev1.ConditionFalse) || compose.Text(c, "reason") == "ScalingDisabled" {
		return "", since
	}
	return compose.Text(c, "message"), timeAt(c, "lastTransitionTime")
}

// Unapplied is why the provider has not applied it as it should be, and since when. Both are empty if it has.
func (a Autoscaler) Unapplied() (message string, since time.Time) {
	c := compose.Condition(a.managed, string(xpv2.TypeSynced))
	switch {
	case a.managed == nil, compose.Text(c, "status") == string(corev1.ConditionTrue):
		return "", since
	case c == nil:
		return "the provider has not looked at it", timeAt(compose.Map(a.managed, "metadata"), "creationTimestamp")
	default:
		return compose.Text(c, "message"), timeAt(c, "lastTransitionTime")
	}
}

// timeAt a field, or zero.
func timeAt(m map[string]any, field string) time.Time {
	t, _ := time.Parse(time.RFC3339, compose.Text(m, field))
	return t
}
