// SPDX-License-Identifier: Apache-2.0

package jobhistory

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/runner"
	"github.com/capstan-dev/capstan/provider/internal/jobhealth"
)

// settle is how long events are gathered before a JobHistory looks: a Job and its pods change together.
const settle = time.Second

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// A watcher has JobHistories look when their Jobs or pods change.
type watcher struct {
	kube   client.Reader
	log    logging.Logger
	forget func(types.UID)
}

func (w *watcher) handler() handler.Funcs {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { w.wake(ctx, e.Object, q) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			w.forget(e.Object.GetUID())
			w.wake(ctx, e.Object, q)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if jobhealth.Differ(e.ObjectOld, e.ObjectNew) {
				w.wake(ctx, e.ObjectNew, q)
			}
		},
	}
}

// wake the JobHistory that looks at an object.
func (w *watcher) wake(ctx context.Context, o client.Object, q queue) {
	l := &v1alpha1.JobHistoryList{}
	if err := w.kube.List(ctx, l, client.InNamespace(o.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		w.log.Info("Cannot list JobHistories that a Job has changed for, they will see it at their next poll", "error", err)
		return
	}
	for i := range l.Items {
		if h := &l.Items[i]; h.Spec.ForProvider.Pipeline == o.GetLabels()[runner.LabelPipeline] {
			q.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(h)}, settle)
		}
	}
}

// forgetful forgets deleted JobHistories. They have no finalizer, so no reconcile sees them go.
func (o *observer) forgetful() handler.Funcs {
	return handler.Funcs{DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ queue) {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.writes, e.Object.GetUID())
	}}
}
