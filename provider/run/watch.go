// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/jobhealth"
)

// settle is how long events are gathered before a Run looks: the pods of a run start and end together.
const settle = time.Second

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// A watcher has Runs look when their pods change.
type watcher struct {
	kube client.Reader
	log  logging.Logger
}

func (w *watcher) handler() handler.Funcs {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { w.wake(ctx, e.Object, q) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { w.wake(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if jobhealth.Differ(e.ObjectOld, e.ObjectNew) {
				w.wake(ctx, e.ObjectNew, q)
			}
		},
	}
}

// wake the Run that looks at a pod.
func (w *watcher) wake(ctx context.Context, pod client.Object, q queue) {
	l := &v1alpha1.RunList{}
	if err := w.kube.List(ctx, l, client.InNamespace(pod.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		w.log.Info("Cannot list Runs that a pod has changed for, they will see it at their next poll", "error", err)
		return
	}
	for i := range l.Items {
		if r := &l.Items[i]; r.Spec.ForProvider.Job == pod.GetLabels()[batchv1.JobNameLabel] {
			q.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(r)}, settle)
		}
	}
}

// forgetful forgets deleted Runs. They have no finalizer, so no reconcile sees them go.
func (o *observer) forgetful() handler.Funcs {
	return handler.Funcs{DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ queue) { o.phone.Forget(e.Object.GetUID()) }}
}
