// SPDX-License-Identifier: Apache-2.0

// Package analysis reconciles Analyses: the quiet observers of Algorithms.
//
// Pods that do not become ready change all the time: they start, crash, back off and are replaced, each with its own name and
// times. An Analysis turns that into a few findings that stay the same as long as the cause does. Those that serve have other
// numbers in each moment: an Analysis turns these into verdicts, and into the load that a replica bears, which stay the same as
// long as chance explains the difference.
package analysis

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"

	eventsv1alpha1 "github.com/capstan-dev/capstan/apis/events/v1alpha1"
	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/kind"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/prometheus"
	"github.com/capstan-dev/capstan/provider/internal/promq"
	"github.com/capstan-dev/capstan/provider/internal/secretwatch"
	"github.com/capstan-dev/capstan/provider/internal/signals"
)

// A Pool of clients of Prometheus.
type Pool = outside.Pool[*prometheus.Client]

// Setup returns what adds a controller of Analyses to a manager, whose cache must hold pods as Pods has it and whose client must
// read Secrets from the API server. The board has the Signals to Algorithms.
func Setup(pool *Pool, board *signals.Board) func(ctrl.Manager, controller.Options) error {
	return func(mgr ctrl.Manager, o controller.Options) error {
		c, err := metadata.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
		if err != nil {
			return fmt.Errorf("cannot make a client that watches Secrets: %w", err)
		}
		if err := kind.ServeMetrics("rollouts", newRollouts(mgr.GetClient())); err != nil {
			return err
		}
		obs := &observer{
			kube:    mgr.GetClient(),
			now:     time.Now,
			memory:  newMemory(),
			secrets: secretwatch.New(mgr.GetClient(), secretwatch.Metadata(c)),
			board:   board,
		}
		return kind.Setup(mgr, o, v1alpha1.AnalysisGroupVersionKind, options(obs), func(b *builder.Builder) {
			b.Watches(&corev1.Pod{}, observers(mgr.GetClient(), o.Logger), builder.WithPredicates(verdictMayChange()))
			b.Watches(&v1alpha1.Analysis{}, obs.forgetful())
			b.WatchesRawSource(obs.awake(connected(pool)))
		})
	}
}

// connected gives clients of a pool.
func connected(pool *Pool) connect {
	return func(ctx context.Context, cr *v1alpha1.Analysis) (promq.Querier, outside.Tenant, error) {
		c, t, err := pool.Client(ctx, cr)
		if err != nil {
			return nil, t, err
		}
		return c, t, nil
	}
}

// awake lets what runs beside reconciles have Analyses reconciled.
func (o *observer) awake(c connect) source.Func {
	return func(ctx context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		o.looker = newLooker(c, o.now, func(of types.NamespacedName) { q.Add(reconcile.Request{NamespacedName: of}) })
		o.board.OnChange(func(t signals.Target) {
			if t.Kind == eventsv1alpha1.TargetAlgorithm {
				q.Add(reconcile.Request{NamespacedName: t.NamespacedName}) // An Analysis has the name of its Algorithm.
			}
		})
		o.secrets.Start(ctx, func(of types.NamespacedName) { q.AddAfter(reconcile.Request{NamespacedName: of}, settle) })
		return nil
	}
}

// forgetful forgets Analyses that are gone. They have no finalizer, so no reconcile sees them go.
func (o *observer) forgetful() handler.Funcs {
	return handler.Funcs{DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		o.memory.forget(e.Object.GetUID())
		o.secrets.Forget(e.Object.GetUID())
	}}
}

func options(obs *observer) []managed.ReconcilerOption {
	return []managed.ReconcilerOption{
		kind.Connector(v1alpha1.AnalysisGroupVersionKind, obs),
		managed.WithPollIntervalHook(obs.poll),
		// An Analysis has nothing outside: no name of its own there to keep, and nothing to clean up. So it costs no write but
		// its status, and goes at once when its Algorithm goes, even while the provider is stopped.
		managed.WithInitializers(),
		kind.NoFinalizer(),
	}
}
