// SPDX-License-Identifier: Apache-2.0

// Package topology reconciles Topologies: the quiet observers of Databases.
//
// Members of a Database tell all that they know of each other in the API server:
// Patroni in annotations of its ConfigMaps and of the members' pods, the members
// themselves in an annotation and labels. Patroni writes there every few seconds,
// because that is how it holds the lead. A Topology turns this into facts that stay
// the same as long as nothing happens: who leads, who follows how closely, where.
//
// So the way of an event is short. The cache keeps of each object what facts are
// made of, with numbers that only grow apart from the rest. Most events end where
// they are compared with the object before; positions in the write-ahead log go to
// a memory that knows classes of lag and wakes the Topology when a class changes. What
// comes with a member that comes up waits some seconds for the rest (see gather.go).
package topology

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/kind"
)

// Setup adds a controller of Topologies to mgr, with a cache of its own for what
// members keep in the API server. The client of mgr must read Secrets, Events and
// ConfigMaps from the API server.
func Setup(mgr ctrl.Manager, o controller.Options) error {
	seen, err := newCache(mgr)
	if err != nil {
		return err
	}

	if err := mgr.Add(seen); err != nil {
		return fmt.Errorf("cannot add the cache of members: %w", err)
	}

	obs := &observer{
		kube:   mgr.GetClient(),
		seen:   seen,
		direct: mgr.GetAPIReader(),
		now:    time.Now,
		memory: newMemory(time.Now),
		counts: newCounts(mgr.GetClient(), o.Logger),
		gather: newGathering(),
	}

	if err := obs.counts.register(); err != nil {
		return err
	}

	w := &watcher{kube: mgr.GetClient(), seen: seen, memory: obs.memory, log: o.Logger}

	return kind.Setup(mgr, o, topologies(), options(mgr.GetClient(), obs), func(b *builder.Builder) {
		for _, of := range watched() {
			b.WatchesRawSource(source.Kind(seen, of, w.handler(), changed()))
		}

		b.Watches(&v1alpha1.Topology{}, obs.forgetful())
		b.WatchesRawSource(source.Func(func(ctx context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			obs.again = func(of types.NamespacedName, after time.Duration) {
				q.AddAfter(reconcile.Request{NamespacedName: of}, after)
			}

			go w.sweep(ctx, q, obs.direct)

			return nil
		}))
	})
}

// watched kinds.
func watched() []client.Object {
	return []client.Object{&corev1.Pod{}, configMap(), &corev1.PersistentVolumeClaim{}, &corev1.Node{}}
}

// changed lets everything pass: what does not matter is dropped where the objects
// are compared, because positions are taken down on the way.
func changed() predicate.TypedPredicate[client.Object] {
	return predicate.NewTypedPredicateFuncs(func(client.Object) bool { return true })
}

func topologies() kind.Of {
	return kind.Of{
		GVK:    v1alpha1.TopologyGroupVersionKind,
		Object: &v1alpha1.Topology{},
		List:   &v1alpha1.TopologyList{},
	}
}

func options(kube client.Client, obs *observer) []managed.ReconcilerOption {
	return []managed.ReconcilerOption{
		kind.Connector(topologies(), obs),
		managed.WithFinalizer(kind.NewFinalizer(kube)),
		managed.WithPollIntervalHook(obs.poll),

		// There is nothing outside that could have a name of its own.
		managed.WithInitializers(),
	}
}
