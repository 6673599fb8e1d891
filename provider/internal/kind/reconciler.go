// SPDX-License-Identifier: Apache-2.0

// Package kind holds what the controllers of all kinds have in common.
package kind

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	"github.com/crossplane/crossplane-runtime/v2/pkg/statemetrics"
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

// Reconciler of a kind: crossplane-runtime's managed reconciler with what every
// kind of this provider wants (management policies, polling, rate limit, events,
// metrics, change log), and the kind's own options, which win.
func Reconciler(mgr ctrl.Manager, o controller.Options, k Of, own ...managed.ReconcilerOption) (*ratelimiter.Reconciler, error) {
	// The cache serves only kinds that it was asked to watch. Without this the
	// state metrics could ask before the controller's own watch has begun.
	if _, err := mgr.GetCache().GetInformer(context.Background(), k.Object, cache.BlockUntilSynced(false)); err != nil {
		return nil, fmt.Errorf("cannot watch %s: %w", k.GVK.Kind, err)
	}

	// The runtime's recorder takes recorders of core/v1 events only.
	recorder := event.NewAPIRecorder(mgr.GetEventRecorderFor(k.Name()), o.EventFilterFunctions...)

	opts := []managed.ReconcilerOption{
		managed.WithManagementPolicies(),
		managed.WithPollInterval(o.PollInterval),
		managed.WithPollIntervalHook(Poll),
		managed.WithLogger(o.Logger.WithValues("controller", k.Name())),
		managed.WithRecorder(recorder),
	}

	if m := o.MetricOptions; m != nil {
		opts = append(opts, managed.WithMetricRecorder(m.MRMetrics))

		states := statemetrics.NewMRStateRecorder(
			mgr.GetClient(), o.Logger, m.MRStateMetrics, k.List, m.PollStateMetricInterval)
		if err := mgr.Add(states); err != nil {
			return nil, fmt.Errorf("cannot count objects of kind %s: %w", k.GVK.Kind, err)
		}
	}

	if c := o.ChangeLogOptions; c != nil {
		opts = append(opts, managed.WithChangeLogger(c.ChangeLogger))
	}

	r := managed.NewReconciler(mgr, resource.ManagedKind(k.GVK), append(opts, own...)...)

	return ratelimiter.NewReconciler(k.Name(), r, o.GlobalRateLimiter), nil
}
