// SPDX-License-Identifier: Apache-2.0

// Package signal reconciles Signals: requests from outside that end by themselves. It wakes the observers of the objects that they are
// for, and deletes them an hour after their end.
package signal

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/events/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/kind"
	"github.com/capstan-dev/capstan/provider/internal/signals"
)

// keptFor is how long a Signal stays after its end.
const keptFor = time.Hour

// ReasonEnded of the condition Ready: the time of the Signal is over.
const ReasonEnded xpv2.ConditionReason = "Ended"

// Setup returns what adds a controller of Signals to a manager. It opens the board.
func Setup(board *signals.Board) func(ctrl.Manager, controller.Options) error {
	return func(mgr ctrl.Manager, o controller.Options) error {
		w := &watcher{kube: mgr.GetClient(), board: board, now: time.Now}
		if err := kind.Setup(mgr, o, v1alpha1.SignalGroupVersionKind, options(w), func(b *builder.Builder) {
			b.Watches(&v1alpha1.Signal{}, w.onDelete())
		}); err != nil {
			return err
		}
		return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { return w.open(ctx, mgr) }))
	}
}

func options(w *watcher) []managed.ReconcilerOption {
	return []managed.ReconcilerOption{
		kind.Connector(v1alpha1.SignalGroupVersionKind, w),
		managed.WithPollIntervalHook(w.poll),
		// A Signal has nothing outside: no name of its own there to keep, and nothing to clean up.
		managed.WithInitializers(),
		kind.NoFinalizer(),
	}
}

// A watcher of Signals.
type watcher struct {
	kind.Nothing[*v1alpha1.Signal]

	kube  client.Client
	board *signals.Board
	now   func() time.Time
}

// open the board as soon as the cache has all Signals, and wake the observers of all targets.
func (w *watcher) open(ctx context.Context, mgr ctrl.Manager) error {
	if _, err := mgr.GetCache().GetInformer(ctx, &v1alpha1.Signal{}); err != nil {
		return fmt.Errorf("cannot watch Signals: %w", err)
	}
	w.board.Open(w.kube)
	l := &v1alpha1.SignalList{}
	if err := w.kube.List(ctx, l); err != nil {
		return fmt.Errorf("cannot list Signals: %w", err)
	}
	for i := range l.Items {
		w.board.Changed(signals.TargetOf(&l.Items[i]))
	}
	return nil
}

// onDelete wakes the observers of the target of a Signal that was deleted. It has no finalizer, so no reconcile sees it go.
func (w *watcher) onDelete() handler.Funcs {
	return handler.Funcs{DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		if s, ok := e.Object.(*v1alpha1.Signal); ok {
			w.board.Changed(signals.TargetOf(s))
		}
	}}
}

// Connect has nothing to connect to.
func (w *watcher) Connect(context.Context, *v1alpha1.Signal) (managed.TypedExternalClient[*v1alpha1.Signal], error) {
	return w, nil
}

// Observe whether the Signal is in force, and delete it when its time has been over for long enough.
func (w *watcher) Observe(ctx context.Context, cr *v1alpha1.Signal) (managed.ExternalObservation, error) {
	now, end := w.now(), signals.End(cr)
	was := cr.GetCondition(xpv2.TypeReady)
	ready := xpv2.Available()
	if !now.Before(end) {
		ready = xpv2.Condition{
			Type: xpv2.TypeReady, Status: corev1.ConditionFalse, Reason: ReasonEnded, LastTransitionTime: xpv2.Available().LastTransitionTime,
			Message: fmt.Sprintf("it ended at %s, and is deleted an hour later", end.UTC().Format(time.RFC3339)),
		}
	}
	cr.SetConditions(ready.WithObservedGeneration(cr.GetGeneration()))
	if was.Reason != ready.Reason || was.ObservedGeneration != cr.GetGeneration() {
		w.board.Changed(signals.TargetOf(cr))
	}
	if now.Sub(end) >= keptFor {
		// Not one that was extended since it was read.
		uid, version := cr.GetUID(), cr.GetResourceVersion()
		if err := w.kube.Delete(ctx, cr.DeepCopy(), client.Preconditions{UID: &uid, ResourceVersion: &version}); client.IgnoreNotFound(err) != nil {
			return managed.ExternalObservation{}, fmt.Errorf("cannot delete a Signal that has ended: %w", err)
		}
	}
	return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}, nil
}

// poll again when the Signal ends, and when it is time to delete it.
func (w *watcher) poll(mg resource.Managed, every time.Duration) time.Duration {
	cr, ok := mg.(*v1alpha1.Signal)
	if !ok {
		return every
	}
	end, now := signals.End(cr), w.now()
	next := end.Sub(now)
	if next <= 0 {
		next = end.Add(keptFor).Sub(now)
	}
	return max(next, time.Second)
}
