// SPDX-License-Identifier: Apache-2.0

package autoscaler

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/kind"
)

var (
	_ managed.TypedExternalConnector[*v1alpha1.Autoscaler] = &scaler{}
	_ managed.TypedExternalClient[*v1alpha1.Autoscaler]    = &scaler{}
)

// scalingDisabled is the reason of an autoscaler whose target has zero replicas, which is no failure.
const scalingDisabled = "ScalingDisabled"

// fallen is the part of the reported number below which a smaller one is reported.
const fallen = 0.9

// rounding errors are not rounded up.
const rounding = 1e-6

// ofPod is how an autoscaler names one of many pods, another one at every try.
var ofPod = regexp.MustCompile(`of [Pp]od \S+`)

// A scaler keeps HorizontalPodAutoscalers.
type scaler struct {
	// An autoscaler exists for us before it does (see Observe), and Kubernetes deletes it with its owner.
	kind.Nothing[*v1alpha1.Autoscaler]

	// kube writes.
	kube client.Client

	// seen holds what Setup watches, and direct reads from the API server.
	seen, direct client.Reader
}

// Connect has nothing to connect to: all of it is in the cluster itself.
func (s *scaler) Connect(context.Context, *v1alpha1.Autoscaler) (managed.TypedExternalClient[*v1alpha1.Autoscaler], error) {
	return s, nil
}

// Observe the autoscaler. It exists for us even when there is none yet: Update makes it, without the writes that Crossplane's
// runtime adds to a creation. One that is deleted is the work of Kubernetes.
func (s *scaler) Observe(ctx context.Context, cr *v1alpha1.Autoscaler) (managed.ExternalObservation, error) {
	if meta.WasDeleted(cr) {
		return managed.ExternalObservation{}, nil
	}
	want, err := desired(cr)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	h := &autoscalingv2.HorizontalPodAutoscaler{}
	switch err := s.seen.Get(ctx, client.ObjectKeyFromObject(cr), h); {
	case kerrors.IsNotFound(err):
		cr.Status.AtProvider = v1alpha1.AutoscalerObservation{}
		// A new one says the same: that it is there is no news, and would have Crossplane apply all of the Algorithm again.
		cr.SetConditions(readiness(h).WithObservedGeneration(cr.GetGeneration()))
		return managed.ExternalObservation{ResourceExists: true}, nil
	case err != nil:
		return managed.ExternalObservation{}, fmt.Errorf("cannot get HorizontalPodAutoscaler %q: %w", cr.GetName(), err)
	}
	upToDate, err := kept(h, want)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	cr.Status.AtProvider.Failure = failure(h)
	cr.Status.AtProvider.Needs = needs(cr, h)
	cr.SetConditions(readiness(h).WithObservedGeneration(cr.GetGeneration()))
	return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: upToDate}, nil
}

// active is the condition about whether an autoscaler scales, or nil while it has not looked yet.
func active(h *autoscalingv2.HorizontalPodAutoscaler) *autoscalingv2.HorizontalPodAutoscalerCondition {
	i := slices.IndexFunc(h.Status.Conditions, func(c autoscalingv2.HorizontalPodAutoscalerCondition) bool {
		return c.Type == autoscalingv2.ScalingActive
	})
	if i < 0 {
		return nil
	}
	return &h.Status.Conditions[i]
}

// failure of an autoscaler, or nil while it scales.
func failure(h *autoscalingv2.HorizontalPodAutoscaler) *v1alpha1.AutoscalerFailure {
	c := active(h)
	if c == nil || c.Status != corev1.ConditionFalse || c.Reason == scalingDisabled {
		return nil
	}
	return &v1alpha1.AutoscalerFailure{
		Reason: c.Reason, Message: ofPod.ReplaceAllString(c.Message, "of a pod"), Since: c.LastTransitionTime,
	}
}

// needs is what the status should say of the load. Each change of it has Crossplane apply every object of the Algorithm, so that
// a load that falls by a little is no news.
func needs(cr *v1alpha1.Autoscaler, h *autoscalingv2.HorizontalPodAutoscaler) *float64 {
	if !asked(cr) {
		return nil
	}
	reported, st := cr.Status.AtProvider.Needs, h.Status
	load, known := v1alpha1.ReplicasNeeded(h.Spec.Metrics, st.CurrentMetrics, int64(st.CurrentReplicas), st.CurrentReplicas == st.DesiredReplicas)
	if !known {
		return reported
	}
	// Tenths, because the needs of two revisions are added up: a whole replica more for each would be much for a small Algorithm.
	n := math.Ceil(10*load-rounding) / 10
	if reported != nil && n <= *reported && (n >= fallen**reported || n > *reported-1) {
		return reported
	}
	return &n
}

// asked reports whether an Autoscaler should report the load.
func asked(cr *v1alpha1.Autoscaler) bool {
	return cr.Spec.ForProvider.ReportNeeds != nil && *cr.Spec.ForProvider.ReportNeeds
}

// readiness of an Autoscaler: whether replicas follow the load.
func readiness(h *autoscalingv2.HorizontalPodAutoscaler) xpv2.Condition {
	switch f := failure(h); {
	case f != nil:
		return xpv2.Unavailable().WithMessage(f.Reason + ": " + f.Message)
	case active(h) == nil:
		return xpv2.Unavailable().WithMessage("the autoscaler has not looked at its metrics yet")
	default:
		return xpv2.Available()
	}
}
