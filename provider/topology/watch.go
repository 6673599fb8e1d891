// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"context"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

const (
	// settle is how long events are gathered before a Topology looks: a failover changes several objects in one second.
	settle = time.Second

	// sweepEvery is how often locks are checked that are not renewed.
	sweepEvery = 5 * time.Second
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// A watcher turns events of members into looks of Topologies.
type watcher struct {
	kube   client.Reader
	seen   cache.Cache
	memory *memory
	log    logging.Logger
}

func (w *watcher) handler() handler.Funcs {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			w.note(e.Object, false)
			w.wake(ctx, e.Object, q)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			// Call both, even if the first returns true.
			known := w.note(e.ObjectNew, false)
			if differ(e.ObjectOld, e.ObjectNew) || known {
				w.wake(ctx, e.ObjectNew, q)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			w.note(e.Object, true)
			w.wake(ctx, e.Object, q)
		},
	}
}

// note what an object reports that is not a fact yet, and report whether it makes one.
func (w *watcher) note(o client.Object, gone bool) bool {
	switch o := o.(type) {
	case *corev1.Pod:
		return w.memory.pod(o, gone)
	case *metav1.PartialObjectMetadata:
		switch suffixOf(o) {
		case members.SuffixLeader:
			if !gone {
				return w.memory.lead(o)
			}
		case members.SuffixFailover:
			w.memory.asked(o)
		}
		if gone {
			w.memory.lose(o)
		}
	}
	return false
}

// differ reports whether two versions of an object in the cache have different facts.
func differ(was, is client.Object) bool {
	a, ok := was.DeepCopyObject().(client.Object)
	if !ok {
		return true
	}
	b, ok := is.DeepCopyObject().(client.Object)
	if !ok {
		return true
	}
	for _, o := range []client.Object{a, b} {
		o.SetResourceVersion("")

		// The memory has these.
		maps.DeleteFunc(o.GetAnnotations(), func(key, _ string) bool {
			return key == annotationPosition || suffixOf(o) == members.SuffixLeader &&
				(key == annotationRenewed || key == annotationWritten)
		})
	}
	return !equality.Semantic.DeepEqual(a, b)
}

// wake the Topologies that look at an object.
func (w *watcher) wake(ctx context.Context, o client.Object, q queue) {
	database, ok := o.GetLabels()[v1alpha1.LabelDatabase]
	if !ok {
		if _, ok := o.(*corev1.Node); !ok {
			return
		}
	}
	w.wakeAll(ctx, o.GetNamespace(), database, q)
}

// wakeAll Topologies of a namespace and a database, "" being all.
func (w *watcher) wakeAll(ctx context.Context, namespace, database string, q queue) {
	l := &v1alpha1.TopologyList{}
	if err := w.kube.List(ctx, l, client.InNamespace(namespace)); err != nil {
		w.log.Info("Cannot list Topologies that something has changed for, they will see it at their next poll", "error", err)
		return
	}
	for i := range l.Items {
		if t := &l.Items[i]; database == "" || t.Spec.ForProvider.Database == database {
			q.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(t)}, settle)
		}
	}
}

// sweep looks for expired locks until ctx ends. That no event comes may also mean that none reaches the provider, so it asks the
// API server, now and some seconds later.
func (w *watcher) sweep(ctx context.Context, q queue, direct client.Reader) {
	t := time.NewTicker(sweepEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		for _, o := range w.memory.overdue() {
			m := configMap()
			if err := direct.Get(ctx, client.ObjectKey{Namespace: o.scope.Namespace, Name: o.scope.Name + "-" + members.SuffixLeader}, m); err != nil {
				continue // It is gone, which an event reports, or nothing is known.
			}
			if m.GetAnnotations()[annotationRenewed] == o.renewed && w.memory.confirm(o) {
				w.wakeAll(ctx, o.scope.Namespace, o.database, q)
			}
		}
	}
}
