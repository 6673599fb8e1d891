// SPDX-License-Identifier: Apache-2.0

package autoscaler

import (
	"context"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/seen"
)

// newCache holds the HorizontalPodAutoscalers of Algorithms, and of each what an Autoscaler looks at.
func newCache(mgr ctrl.Manager) (cache.Cache, error) {
	return seen.New(mgr, seen.Objects{Kind: &autoscalingv2.HorizontalPodAutoscaler{}, Having: []string{v1alpha1.LabelAlgorithm}, Slim: slim})
}

// slim leaves of an autoscaler whose it is, what it should do, whether it scales, and the numbers that the load is known by.
func slim(o any) (any, error) {
	h, ok := o.(*autoscalingv2.HorizontalPodAutoscaler)
	if !ok {
		return o, nil
	}
	s := &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: h.Namespace, Name: h.Name, UID: h.UID, ResourceVersion: h.ResourceVersion, DeletionTimestamp: h.DeletionTimestamp,
			Labels: h.Labels, Annotations: h.Annotations, OwnerReferences: h.OwnerReferences,
		},
		Spec: h.Spec,
		Status: autoscalingv2.HorizontalPodAutoscalerStatus{
			CurrentReplicas: h.Status.CurrentReplicas, DesiredReplicas: h.Status.DesiredReplicas, CurrentMetrics: h.Status.CurrentMetrics,
		},
	}
	for _, c := range h.Status.Conditions {
		if c.Type == autoscalingv2.ScalingActive {
			c.Message = ofPod.ReplaceAllString(c.Message, "of a pod")
			s.Status.Conditions = append(s.Status.Conditions, c)
		}
	}
	return s, nil
}

// asksFor reports whether the Autoscaler of an autoscaler reports the load.
func (s *scaler) asksFor(h client.Object) bool {
	cr := &v1alpha1.Autoscaler{}
	return s.kube.Get(context.Background(), client.ObjectKeyFromObject(h), cr) == nil && asked(cr)
}

// matters lets pass what an Autoscaler looks at. The cache holds nothing else, so any difference in it counts, except numbers that
// no Autoscaler should report: they change all the time.
func matters(asksFor func(client.Object) bool) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		old, ok := e.ObjectOld.(*autoscalingv2.HorizontalPodAutoscaler)
		fresh, same := e.ObjectNew.(*autoscalingv2.HorizontalPodAutoscaler)
		if !ok || !same {
			return true
		}
		was := *old
		was.ResourceVersion = fresh.ResourceVersion
		if equality.Semantic.DeepEqual(&was, fresh) {
			return false
		}
		was.Status.CurrentReplicas, was.Status.DesiredReplicas, was.Status.CurrentMetrics = fresh.Status.CurrentReplicas, fresh.Status.DesiredReplicas, fresh.Status.CurrentMetrics
		return !equality.Semantic.DeepEqual(&was, fresh) || asksFor(fresh)
	}}
}
