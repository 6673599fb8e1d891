// SPDX-License-Identifier: Apache-2.0

// Package topology reconciles Topologies: the quiet observers of Databases.
//
// Members of a Database report everything that they know of each other in the API server, in annotations of ConfigMaps, and in
// annotations and labels of their pods. Package members has the form, which is Patroni's. Patroni writes there every few seconds,
// because that is how it keeps the leader's lock; members of MySQL write when something changes. A Topology turns this into facts that stay the same as long as nothing
// happens: which member is the leader, how closely the standbys follow, and where they run.
//
// Events are handled in few steps. The cache keeps only the part of each object that facts are made of, and numbers that only
// grow apart from the rest. Most events end where they are compared with the object before. Positions in the write-ahead log go
// to a memory that knows classes of lag and wakes the Topology when a class changes. Changes that come with a starting member
// wait some seconds for the rest (see gather.go).
package topology

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/kind"
	"github.com/capstan-dev/capstan/provider/internal/signals"
)

// Setup returns what adds a controller of Topologies to a manager, with a cache of its own for what members keep in the API server. The
// client of the manager must read Secrets, Events and ConfigMaps from the API server. The board has the Signals to Databases.
func Setup(board *signals.Board) func(ctrl.Manager, controller.Options) error {
	return func(mgr ctrl.Manager, o controller.Options) error { return setup(mgr, o, board) }
}

func setup(mgr ctrl.Manager, o controller.Options, board *signals.Board) error {
	seen, err := newCache(mgr)
	if err != nil {
		return err
	}
	records, err := newRecords(mgr)
	if err != nil {
		return err
	}
	obs := &observer{
		kube:   mgr.GetClient(),
		seen:   seen,
		direct: mgr.GetAPIReader(),
		now:    time.Now,
		memory: newMemory(time.Now),
		counts: newCounts(mgr.GetClient(), records, o.Logger),
		gather: newGathering(),
		board:  board,
	}
	if err := obs.counts.register(); err != nil {
		return err
	}
	w := &watcher{kube: mgr.GetClient(), seen: seen, memory: obs.memory, log: o.Logger}
	return kind.Setup(mgr, o, v1alpha1.TopologyGroupVersionKind, options(obs), func(b *builder.Builder) {
		for _, of := range watched() {
			b.WatchesRawSource(source.Kind(seen, of, w.handler(), changed()))
		}
		b.Watches(&v1alpha1.Topology{}, obs.forgetful())
		b.WatchesRawSource(source.Func(func(ctx context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			obs.again = func(of types.NamespacedName, after time.Duration) {
				q.AddAfter(reconcile.Request{NamespacedName: of}, after)
			}
			board.OnChange(func(t signals.Target) { w.signalled(ctx, t, q) })
			go w.sweep(ctx, q, obs.direct)
			return nil
		}))
	})
}

// watched kinds.
func watched() []client.Object {
	return []client.Object{&corev1.Pod{}, configMap(), &corev1.PersistentVolumeClaim{}, &corev1.Node{}}
}

// changed lets every event pass: irrelevant events are dropped where objects are compared, because positions are recorded on the
// way.
func changed() predicate.TypedPredicate[client.Object] {
	return predicate.NewTypedPredicateFuncs(func(client.Object) bool { return true })
}

func options(obs *observer) []managed.ReconcilerOption {
	return []managed.ReconcilerOption{
		kind.Connector(v1alpha1.TopologyGroupVersionKind, obs),
		managed.WithPollIntervalHook(obs.poll),

		// A Topology has no external resource that could have a name.
		managed.WithInitializers(),
	}
}

// forgetful forgets deleted Topologies.
func (o *observer) forgetful() handler.Funcs {
	return handler.Funcs{DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ queue) {
		if cr, ok := e.Object.(*v1alpha1.Topology); ok {
			o.memory.forget(cr.GetNamespace(), cr.Spec.ForProvider.Scope)
			o.gather.forget(client.ObjectKeyFromObject(cr))
		}
	}}
}
