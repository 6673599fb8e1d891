// SPDX-License-Identifier: Apache-2.0

// Package run reconciles Runs: the quiet observers of Trainings.
//
// The companion of index 0 coordinates the pods of a run. It knows how far the ranks are, which member is missing, and why an attempt
// ended. A Run asks it for its State every 15 seconds, and reads its last State from the termination message of its container. Kubernetes
// knows the rest: why a pod does not start, which container was killed for its memory, which node a pod was on.
//
// What the coordinator answers is the text of a tenant. It is bounded and believed for this Training only.
//
// The State has other numbers in each answer. The status of a Run changes at once when a fact changes, and for numbers that only grow in
// intervals (see news.go), because each change has Crossplane apply every object of the Training.
package run

import (
	"time"

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
)

// Setup returns what adds a controller of Runs to a manager, with a cache of its own for the pods of Trainings. The client of the manager
// must have an API reader that lists Events. The guard decides which addresses the provider asks.
func Setup(guard *outside.Guard) func(ctrl.Manager, controller.Options) error {
	return func(mgr ctrl.Manager, o controller.Options) error {
		seen, err := newCache(mgr)
		if err != nil {
			return err
		}
		obs := &observer{
			seen: seen, direct: mgr.GetAPIReader(), now: time.Now,
			phone:  newPhone(newAsker(guard.PodDialer), time.Now),
			counts: newCounts(mgr.GetClient()),
		}
		if err := kind.ServeMetrics("Trainings", obs.counts, obs.counts.faults); err != nil {
			return err
		}
		w := &watcher{kube: mgr.GetClient(), log: o.Logger}
		return kind.Setup(mgr, o, v1alpha1.RunGroupVersionKind, options(obs), func(b *builder.Builder) {
			b.WatchesRawSource(source.Kind[client.Object](seen, &corev1.Pod{}, w.handler()))
			b.Watches(&v1alpha1.Run{}, obs.forgetful())
		})
	}
}

func options(obs *observer) []managed.ReconcilerOption {
	return []managed.ReconcilerOption{
		kind.Connector(v1alpha1.RunGroupVersionKind, obs),
		managed.WithPollIntervalHook(obs.poll),
		// A Run has nothing outside: no name of its own there to keep, and nothing to clean up.
		managed.WithInitializers(),
		kind.NoFinalizer(),
	}
}
