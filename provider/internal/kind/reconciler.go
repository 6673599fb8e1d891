// SPDX-License-Identifier: Apache-2.0

// Package kind holds what the controllers of all kinds have in common.
package kind

import (
	"context"
	"errors"
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

	"github.com/capstan-dev/capstan/provider/internal/outside"
)

// A Watch adds what else a controller watches.
type Watch func(*builder.Builder)

// Setup adds the controller of a kind to mgr: crossplane-runtime's managed reconciler with everything that all kinds of this
// provider need (management policies, a finalizer that follows them, polling, rate limit, back-off, events, metrics, change log),
// and the kind's own options, which win. The kind and its list must be in the scheme of mgr.
func Setup(mgr ctrl.Manager, o controller.Options, gvk schema.GroupVersionKind, own []managed.ReconcilerOption, watches ...Watch) error {
	k := &controlled{
		name:     managed.ControllerName(gvk.GroupKind().String()),
		gvk:      gvk,
		kube:     mgr.GetClient(),
		waits:    newBackoff(),
		schedule: newSchedule(),
	}
	if err := k.setup(mgr, o, own, watches); err != nil {
		return fmt.Errorf("cannot set up kind %s: %w", gvk.Kind, err)
	}
	return nil
}

// A controlled kind, and how its requests are going.
type controlled struct {
	name     string
	gvk      schema.GroupVersionKind
	kube     client.Client
	inner    reconcile.Reconciler
	waits    *backoff
	schedule *schedule
}

func (k *controlled) setup(mgr ctrl.Manager, o controller.Options, own []managed.ReconcilerOption, watches []Watch) error {
	list, ok := resource.MustCreateObject(k.gvk.GroupVersion().WithKind(k.gvk.Kind+"List"), mgr.GetScheme()).(resource.ManagedList)
	if !ok {
		return errors.New("it has no list of managed resources")
	}
	object := k.object()
	// The cache serves only kinds that it watches. Without this the state metrics could ask before the controller's own watch has
	// begun.
	if _, err := mgr.GetCache().GetInformer(context.Background(), object, cache.BlockUntilSynced(false)); err != nil {
		return fmt.Errorf("cannot watch: %w", err)
	}
	// The runtime's recorder takes recorders of core/v1 events only.
	recorder := event.NewAPIRecorder(mgr.GetEventRecorderFor(k.name), o.EventFilterFunctions...)
	opts := []managed.ReconcilerOption{
		managed.WithManagementPolicies(),
		managed.WithFinalizer(NewFinalizer(k.kube)),
		managed.WithPollInterval(o.PollInterval),
		managed.WithPollIntervalHook(Poll),
		managed.WithLogger(o.Logger.WithValues("controller", k.name)),
		managed.WithRecorder(recorder),
		managed.WithCriticalAnnotationUpdater(&annotator{
			CriticalAnnotationUpdater: managed.NewRetryingCriticalAnnotationUpdater(k.kube),
		}),
	}
	if m := o.MetricOptions; m != nil {
		opts = append(opts, managed.WithMetricRecorder(m.MRMetrics))
		states := statemetrics.NewMRStateRecorder(k.kube, o.Logger, m.MRStateMetrics, list, m.PollStateMetricInterval)
		if err := mgr.Add(states); err != nil {
			return fmt.Errorf("cannot count objects: %w", err)
		}
	}
	if c := o.ChangeLogOptions; c != nil {
		opts = append(opts, managed.WithChangeLogger(c.ChangeLogger))
	}
	k.inner = managed.NewReconciler(mgr, resource.ManagedKind(k.gvk), append(opts, own...)...)
	options := o.ForControllerRuntime()
	options.RateLimiter = k.waits
	b := ctrl.NewControllerManagedBy(mgr).Named(k.name).WithOptions(options).For(object)
	for _, w := range watches {
		w(b)
	}
	return b.Complete(ratelimiter.NewReconciler(k.name, k, o.GlobalRateLimiter))
}

// object of the kind, empty. The provider's kinds are managed resources.
func (k *controlled) object() resource.Managed {
	return resource.MustCreateObject(k.gvk, k.kube.Scheme()).(resource.Managed) //nolint:forcetypeassert,errcheck // As said.
}

// Reconcile a request. The waits after failures come from its config, and the delay of a poll is measured.
func (k *controlled) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	if late, ok := k.schedule.start(req, time.Now()); ok {
		pollDelay.With(labels(k.gvk)).Observe(late.Seconds())
	}
	mg := k.object()
	if err := k.kube.Get(ctx, req.NamespacedName, mg); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("cannot get the object: %w", err)
	}
	retry, err := outside.Retry(ctx, k.kube, mg)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("cannot get the waits after failures: %w", err)
	}
	k.waits.set(req, retry)
	res, err := k.inner.Reconcile(ctx, req)
	if err == nil && res.RequeueAfter > 0 {
		k.schedule.poll(req, time.Now().Add(res.RequeueAfter))
	}
	return res, err
}
