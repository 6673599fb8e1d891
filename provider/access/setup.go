// SPDX-License-Identifier: Apache-2.0

// Package access reconciles Accesses: databases, logins and grants in a server of PostgreSQL or MySQL.
//
// A server is compared with the spec, and steps make it what the spec says; a step is only SQL. Package engine decides when a step
// is due, and the package of an engine what it does. Whether a password fits is found out by logging in with it: nothing else
// proves that clients can.
package access

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"

	"github.com/capstan-dev/capstan/apis/access/v1alpha1"
	credentialsv1alpha1 "github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
	"github.com/capstan-dev/capstan/apis/members"
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/kind"
	"github.com/capstan-dev/capstan/provider/internal/outside"
)

// settle is how long to wait after something has changed elsewhere.
const settle = time.Second

// Setup returns what adds a controller of Accesses to a manager, whose client must read Secrets from the API server. The guard
// decides which addresses it may connect with.
func Setup(guard *outside.Guard) func(ctrl.Manager, controller.Options) error {
	return func(mgr ctrl.Manager, o controller.Options) error {
		c := newConnector(mgr.GetClient(), guard)
		w := &watcher{kube: mgr.GetClient()}
		return kind.Setup(mgr, o, v1alpha1.AccessGroupVersionKind, options(c), func(b *builder.Builder) {
			b.Watches(&v1alpha1.Access{}, c.forgetful())
			b.WatchesRawSource(served(o.Gate, credentialsv1alpha1.CredentialGroupVersionKind,
				source.Kind[client.Object](mgr.GetCache(), &credentialsv1alpha1.Credential{}, changes(w.credential))))
			b.WatchesRawSource(served(o.Gate, observev1alpha1.TopologyGroupVersionKind,
				source.Kind[client.Object](mgr.GetCache(), &observev1alpha1.Topology{}, changes(w.topology))))
		})
	}
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// served starts a source once the CRD of its kind is there: Crossplane creates the CRD of a kind when it is activated, in no
// order, and a controller does not start while one of its sources waits.
func served(gate controller.Gate, gvk schema.GroupVersionKind, s source.Source) source.Func {
	return func(ctx context.Context, q queue) error {
		gate.Register(func() {
			if err := s.Start(ctx, q); err != nil {
				ctrl.LoggerFrom(ctx).Error(err, "Cannot watch", "kind", gvk.Kind)
			}
		}, gvk)
		return nil
	}
}

// changes passes objects that were created (was is nil) or changed.
func changes(changed func(ctx context.Context, was, is client.Object, q queue)) handler.Funcs {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { changed(ctx, nil, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { changed(ctx, e.ObjectOld, e.ObjectNew, q) },
	}
}

func options(c *connector) []managed.ReconcilerOption {
	return []managed.ReconcilerOption{
		kind.Connector(v1alpha1.AccessGroupVersionKind, outside.Reporting(c, explain)),
		managed.WithPollIntervalHook(poll),

		// An Access is many objects in the server; none has its name.
		managed.WithInitializers(),
	}
}

// A watcher wakes Accesses when what they depend on has changed.
type watcher struct {
	kube client.Reader
}

// credential has changed, perhaps a password: the Secret is written before the status.
func (w *watcher) credential(ctx context.Context, was, is client.Object, q queue) {
	c, ok := is.(*credentialsv1alpha1.Credential)
	if !ok || c.Status.AtProvider.SecretName == "" {
		return
	}
	if old, ok := was.(*credentialsv1alpha1.Credential); ok && equality.Semantic.DeepEqual(old.Status.AtProvider, c.Status.AtProvider) {
		return
	}
	w.wake(ctx, c.GetNamespace(), q, func(p v1alpha1.AccessParameters) bool {
		return names(p, c.Status.AtProvider.SecretName)
	})
}

// names reports whether a Secret holds one of the passwords.
func names(p v1alpha1.AccessParameters, secret string) bool {
	if p.Server.PasswordSecretRef.Name == secret {
		return true
	}
	for _, l := range p.Logins {
		if l.PasswordSecretRef.Name == secret {
			return true
		}
	}
	return false
}

// topology has changed: there may be a leader now.
func (w *watcher) topology(ctx context.Context, was, is client.Object, q queue) {
	t, ok := is.(*observev1alpha1.Topology)
	if !ok || t.Status.AtProvider.Leader == "" {
		return
	}
	if old, ok := was.(*observev1alpha1.Topology); ok && old.Status.AtProvider.Leader == t.Status.AtProvider.Leader {
		return
	}
	w.wake(ctx, t.GetNamespace(), q, func(p v1alpha1.AccessParameters) bool {
		return p.Server.Host == members.ServiceReadWrite(t.Spec.ForProvider.Database)+"."+t.GetNamespace()+".svc"
	})
}

func (w *watcher) wake(ctx context.Context, namespace string, q queue, which func(v1alpha1.AccessParameters) bool) {
	l := &v1alpha1.AccessList{}
	if err := w.kube.List(ctx, l, client.InNamespace(namespace)); err != nil {
		return // The next poll sees it.
	}
	for i := range l.Items {
		if which(l.Items[i].Spec.ForProvider) {
			r := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&l.Items[i])}

			// Earlier failures mean nothing now. A server that begins to accept writes may still refuse for a second; it must not
			// be left alone for 30 s then.
			q.Forget(r)
			q.AddAfter(r, settle)
		}
	}
}

// forgetful forgets deleted Accesses.
func (c *connector) forgetful() handler.Funcs {
	return handler.Funcs{DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ queue) {
		c.proofs.forget(e.Object.GetUID())
		c.idle.forget(e.Object.GetUID())
	}}
}
