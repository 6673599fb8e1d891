// SPDX-License-Identifier: Apache-2.0

// Package jobhistory reconciles JobHistories: the quiet observers of Pipelines.
//
// Kubernetes makes the Jobs of scheduled runs, so that no composition sees them. A JobHistory lists all Jobs of its Pipeline and their pods
// from a cache, asks the companion in the pod of index 0 of each active run for its State every 15 seconds, and reads its last State from the
// termination message of its container. Kubernetes knows the rest: why a pod does not start, and which container was killed for its memory.
//
// What a companion answers is the text of a tenant. It is bounded and believed for this Pipeline only. The status changes only when a fact
// does (see news.go), because each change has Crossplane apply every object of the Pipeline.
package jobhistory

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/kind"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/podask"
)

// Setup returns what adds a controller of JobHistories to a manager, with a cache of its own for the Jobs and pods of Pipelines. The client
// of the manager must have an API reader that lists Events. The guard decides which addresses the provider asks.
func Setup(guard *outside.Guard) func(ctrl.Manager, controller.Options) error {
	return func(mgr ctrl.Manager, o controller.Options) error {
		seen, err := newCache(mgr)
		if err != nil {
			return err
		}
		obs := newObserver(seen, mgr.GetAPIReader(), podask.Parsed(podask.New(guard.PodDialer), parse), time.Now)
		if err := kind.ServeMetrics("Pipelines", newCounts(mgr.GetClient())); err != nil {
			return err
		}
		w := &watcher{kube: mgr.GetClient(), log: o.Logger, forget: obs.phone.Forget}
		return kind.Setup(mgr, o, v1alpha1.JobHistoryGroupVersionKind, options(obs), func(b *builder.Builder) {
			b.WatchesRawSource(source.Kind[client.Object](seen, &corev1.Pod{}, w.handler()))
			b.WatchesRawSource(source.Kind[client.Object](seen, &batchv1.Job{}, w.handler()))
			b.Watches(&v1alpha1.JobHistory{}, obs.forgetful())
		})
	}
}

func options(obs *observer) []managed.ReconcilerOption {
	return []managed.ReconcilerOption{
		kind.Connector(v1alpha1.JobHistoryGroupVersionKind, obs),
		managed.WithPollIntervalHook(obs.poll),
		// A JobHistory has nothing outside: no name of its own there to keep, and nothing to clean up.
		managed.WithInitializers(),
		kind.NoFinalizer(),
	}
}
