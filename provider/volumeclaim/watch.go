// SPDX-License-Identifier: Apache-2.0

package volumeclaim

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/storage/v1alpha1"
)

// arriving is how long a claim that comes up waits for others. Claims of a new Database are made and bound one after the other,
// within seconds; each status wakes the Database, and Crossplane stops listening to one that is woken too often.
const arriving = 5 * time.Second

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// A watcher turns events of claims and StorageClasses into looks of VolumeClaims.
type watcher struct {
	kube client.Reader
	log  logging.Logger
}

func (w *watcher) handler() handler.Funcs {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { w.wake(ctx, e.Object, after(e.Object), q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			w.wake(ctx, e.ObjectNew, after(e.ObjectOld), q)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { w.wake(ctx, e.Object, 0, q) },
	}
}

// after is how long what happened to an object may wait: one that grows does not.
func after(was client.Object) time.Duration {
	if c, ok := was.(*corev1.PersistentVolumeClaim); ok && c.Status.Phase != corev1.ClaimBound {
		return arriving
	}
	return 0
}

// wake the VolumeClaims of a claim's Database, or of all Databases for a StorageClass.
func (w *watcher) wake(ctx context.Context, o client.Object, after time.Duration, q queue) {
	l := &v1alpha1.VolumeClaimList{}
	if err := w.kube.List(ctx, l, client.InNamespace(o.GetNamespace())); err != nil {
		w.log.Info("Cannot list VolumeClaims that something has changed for, they will see it at their next poll", "error", err)
		return
	}
	database := o.GetLabels()[observev1alpha1.LabelDatabase]
	for i := range l.Items {
		if v := &l.Items[i]; database == "" || v.Spec.ForProvider.Database == database {
			q.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(v)}, after)
		}
	}
}
