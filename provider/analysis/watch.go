// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/findings"
)

// Pods is what a cache must hold: the pods of Algorithms, and the fields that findings are made of.
func Pods() (cache.ByObject, error) {
	r, err := labels.NewRequirement(v1alpha1.LabelAlgorithm, selection.Exists, nil)
	if err != nil {
		return cache.ByObject{}, fmt.Errorf("cannot select pods by label %q: %w", v1alpha1.LabelAlgorithm, err)
	}
	return cache.ByObject{Label: labels.NewSelector().Add(*r), Transform: findings.Slim}, nil
}

// settle is how long changes of pods are gathered before an Analysis looks at them. It bounds what a crash loop of many pods can
// cause to one look, and at most one status write, in this time.
const settle = 3 * time.Second

// verdictMayChange lets pass what may change findings. The cache holds only the fields that findings are made of, so any
// difference in them counts.
func verdictMayChange() predicate.Funcs {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		old, ok := e.ObjectOld.(*corev1.Pod)
		if !ok {
			return true
		}
		was := *old
		was.ResourceVersion = e.ObjectNew.GetResourceVersion()
		return !equality.Semantic.DeepEqual(&was, e.ObjectNew)
	}}
}

// observers enqueues the Analyses that look at a pod, all changes of a few seconds at once: a queue that has to add what it
// will add anyway keeps the earlier time.
func observers(kube client.Reader, log logging.Logger) handler.Funcs {
	enqueue := func(ctx context.Context, o client.Object, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		l := &v1alpha1.AnalysisList{}
		if err := kube.List(ctx, l, client.InNamespace(o.GetNamespace())); err != nil {
			log.Info("Cannot list the Analyses that look at a pod, they will see it at their next poll", "error", err)
			return
		}
		for i := range l.Items {
			if a := &l.Items[i]; a.Spec.ForProvider.Algorithm == o.GetLabels()[v1alpha1.LabelAlgorithm] {
				q.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(a)}, settle)
			}
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			enqueue(ctx, e.Object, q)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			enqueue(ctx, e.ObjectNew, q)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			enqueue(ctx, e.Object, q)
		},
	}
}
