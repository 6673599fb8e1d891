// SPDX-License-Identifier: Apache-2.0

// Package kind holds what the controllers of all kinds have in common.
package kind

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	"github.com/crossplane/crossplane-runtime/v2/pkg/statemetrics"
	upjet "github.com/crossplane/upjet/v2/pkg/metrics"
	"github.com/crossplane/upjet/v2/pkg/reconciler/reconciliationpolicy"

	"github.com/capstan-dev/capstan/provider/internal/outside"
)

// Waits after failures in a row, unless a config says otherwise. The longest is
// short enough that what was down is in use again half a minute after it is
// back, and long enough that a thousand objects cause 33 requests a second.
const (
	firstWait   = time.Second
	longestWait = 30 * time.Second
)

// Of says which kind a controller reconciles.
type Of struct {
	// GVK of the kind.
	GVK schema.GroupVersionKind

	// Object of the kind, empty.
	Object client.Object

	// List of the kind, empty.
	List resource.ManagedList
}

// Name of the kind's controller, in logs, events and metrics.
func (k Of) Name() string { return managed.ControllerName(k.GVK.GroupKind().String()) }

// A Watch adds what else a controller watches.
type Watch func(*builder.Builder)

// Setup adds the controller of a kind to mgr: crossplane-runtime's managed
// reconciler with what every kind of this provider wants (management policies, a
// finalizer that follows them, polling, rate limit, back-off, events, metrics,
// change log), and the kind's own options, which win.
func Setup(mgr ctrl.Manager, o controller.Options, k Of, own []managed.ReconcilerOption, watches ...Watch) error {
	waits := reconciliationpolicy.NewExponentialFailureRateLimiter(firstWait, longestWait)

	r, err := reconciler(mgr, o, k, append([]managed.ReconcilerOption{
		managed.WithFinalizer(reconciliationpolicy.NewFinalizer(
			NewFinalizer(mgr.GetClient()), reconciliationpolicy.WithFinalizerRateLimiter(waits))),
	}, own...))
	if err != nil {
		return fmt.Errorf("cannot set up kind %s: %w", k.GVK.Kind, err)
	}

	delays := upjet.NewMetricRecorder(k.GVK, mgr, o.PollInterval)
	if err := mgr.Add(delays); err != nil {
		return fmt.Errorf("cannot measure delays of kind %s: %w", k.GVK.Kind, err)
	}

	options := o.ForControllerRuntime()
	options.RateLimiter = waits

	b := ctrl.NewControllerManagedBy(mgr).Named(k.Name()).WithOptions(options).For(k.Object)
	for _, w := range watches {
		w(b)
	}

	paced := ratelimiter.NewReconciler(k.Name(), &punctual{inner: r, gvk: k.GVK, delays: delays}, o.GlobalRateLimiter)

	if err := b.Complete(reconciliationpolicy.NewReconciler(paced, mgr, k.GVK,
		reconciliationpolicy.WithRateLimiter(waits),
		reconciliationpolicy.WithSource(outside.RetryPolicy))); err != nil {
		return fmt.Errorf("cannot set up kind %s: %w", k.GVK.Kind, err)
	}

	return nil
}

func reconciler(mgr ctrl.Manager, o controller.Options, k Of, own []managed.ReconcilerOption) (*managed.Reconciler, error) {
	// The cache serves only kinds that it was asked to watch. Without this the
	// state metrics could ask before the controller's own watch has begun.
	if _, err := mgr.GetCache().GetInformer(context.Background(), k.Object, cache.BlockUntilSynced(false)); err != nil {
		return nil, fmt.Errorf("cannot watch: %w", err)
	}

	// The runtime's recorder takes recorders of core/v1 events only.
	recorder := event.NewAPIRecorder(mgr.GetEventRecorderFor(k.Name()), o.EventFilterFunctions...)

	opts := []managed.ReconcilerOption{
		managed.WithManagementPolicies(),
		managed.WithPollInterval(o.PollInterval),
		managed.WithPollIntervalHook(Poll),
		managed.WithLogger(o.Logger.WithValues("controller", k.Name())),
		managed.WithRecorder(recorder),
		managed.WithCriticalAnnotationUpdater(&annotator{
			CriticalAnnotationUpdater: managed.NewRetryingCriticalAnnotationUpdater(mgr.GetClient()),
		}),
	}

	if m := o.MetricOptions; m != nil {
		opts = append(opts, managed.WithMetricRecorder(m.MRMetrics))

		states := statemetrics.NewMRStateRecorder(
			mgr.GetClient(), o.Logger, m.MRStateMetrics, k.List, m.PollStateMetricInterval)
		if err := mgr.Add(states); err != nil {
			return nil, fmt.Errorf("cannot count objects: %w", err)
		}
	}

	if c := o.ChangeLogOptions; c != nil {
		opts = append(opts, managed.WithChangeLogger(c.ChangeLogger))
	}

	return managed.NewReconciler(mgr, resource.ManagedKind(k.GVK), append(opts, own...)...), nil
}

// punctual measures how late reconciles are that a poll asked for.
type punctual struct {
	inner  reconcile.Reconciler
	gvk    schema.GroupVersionKind
	delays *upjet.MetricRecorder
}

// Reconcile a request.
func (p *punctual) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	p.delays.ObserveReconcileDelay(p.gvk, req.String())

	res, err := p.inner.Reconcile(ctx, req)
	if err == nil && res.RequeueAfter > 0 {
		p.delays.SetReconcileTime(req.String())
	}

	return res, err //nolint:wrapcheck // It is the inner reconciler's to say.
}
