// SPDX-License-Identifier: Apache-2.0

// Package late watches kinds that may be served later than the controller starts
// that wants to know of them, or never: Crossplane makes the CRD of a kind when
// somebody activates it, in no order.
package late

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Every is how often one looks whether the kind is served.
const every = 10 * time.Second

// A Queue of requests.
type Queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Changed is told of an object that was made (was is nil then) or changed.
type Changed func(ctx context.Context, was, is client.Object, q Queue)

// Source of what happens to objects of a kind, in the cache of mgr, from the time on
// that the kind is served.
func Source(mgr ctrl.Manager, gvk schema.GroupVersionKind, of client.Object, tell Changed) source.Func {
	return func(ctx context.Context, q Queue) error {
		go func() {
			t := time.NewTicker(every)
			defer t.Stop()

			for {
				if err := watch(ctx, mgr, gvk, of, tell, q); err == nil {
					return
				}

				select {
				case <-ctx.Done():
					return
				case <-t.C:
				}
			}
		}()

		return nil
	}
}

func watch(ctx context.Context, mgr ctrl.Manager, gvk schema.GroupVersionKind, of client.Object, tell Changed, q Queue) error {
	if _, err := mgr.GetRESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version); err != nil {
		return fmt.Errorf("cannot watch %s: %w", gvk.Kind, err)
	}

	i, err := mgr.GetCache().GetInformer(ctx, of)
	if err != nil {
		return fmt.Errorf("cannot watch %s: %w", gvk.Kind, err)
	}

	_, err = i.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) {
			if is, ok := o.(client.Object); ok {
				tell(ctx, nil, is, q)
			}
		},
		UpdateFunc: func(old, o any) {
			was, ok := old.(client.Object)
			if !ok {
				return
			}

			if is, ok := o.(client.Object); ok {
				tell(ctx, was, is, q)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("cannot watch %s: %w", gvk.Kind, err)
	}

	return nil
}
