// SPDX-License-Identifier: Apache-2.0

package providerconfig

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/providerconfig"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/quiet"
)

// counted is how long a user that comes or goes waits to be counted with others. All of a thousand Algorithms use one config: each count
// lists them, and writes the config's status.
const counted = 2 * time.Second

// accounts of the users of a kind of config. Of a config that is as it should be only the status is written.
func accounts(mgr ctrl.Manager, gvk schema.GroupVersionKind, o ...providerconfig.ReconcilerOption) reconcile.Reconciler {
	return providerconfig.NewReconciler(quietly{mgr}, resource.ProviderConfigKinds{
		Config:    gvk,
		Usage:     v1alpha1.ProviderConfigUsageGroupVersionKind,
		UsageList: v1alpha1.ProviderConfigUsageListGroupVersionKind,
	}, o...)
}

// quietly is a manager whose client leaves out updates that would change nothing.
type quietly struct{ ctrl.Manager }

// GetClient returns that client.
func (m quietly) GetClient() client.Client { return quiet.Whole(m.Manager.GetClient()) }

// A queue of configs.
type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// users returns a handler of usages that has their config reconciled a moment later, once for all that come meanwhile.
func users(gvk schema.GroupVersionKind) handler.EventHandler {
	at := &resource.EnqueueRequestForProviderConfig{Kind: gvk.Kind}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { at.Create(ctx, e, later{q}) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { at.Update(ctx, e, later{q}) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { at.Delete(ctx, e, later{q}) },
	}
}

// later is a queue to which all is added with a delay.
type later struct{ queue }

// Add a config after the delay.
func (l later) Add(r reconcile.Request) { l.AddAfter(r, counted) }
