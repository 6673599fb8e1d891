// SPDX-License-Identifier: Apache-2.0

// Package access reconciles Accesses: databases, roles and grants in a PostgreSQL
// server.
//
// The provider is no superuser there. It makes roles, and changes only those that
// carry its comment: nobody but a superuser and itself can write it. Each database
// has a role that owns it and all in it and one that reads it, which cannot log in;
// logins are members of one of them. What a ReadWrite login makes belongs to the
// owner, because its sessions begin as the owner; so a login can go, or another one
// take its place, and nothing changes hands.
//
// look asks the server what is there, plan compares it with what is asked and gives
// steps, and applying them is nothing but SQL. Whether a password fits is found out
// by logging in with it, the only way that shows that consumers can.
package access

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"

	"github.com/capstan-dev/capstan/apis/access/v1alpha1"
	credentialsv1alpha1 "github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/kind"
	"github.com/capstan-dev/capstan/provider/internal/late"
	"github.com/capstan-dev/capstan/provider/internal/outside"
)

// settle is how long to wait after something has changed elsewhere.
const settle = time.Second

// Setup returns what adds a controller of Accesses to a manager, whose client must
// read Secrets from the API server. The guard decides which addresses it may connect
// with.
func Setup(guard *outside.Guard) func(ctrl.Manager, controller.Options) error {
	return func(mgr ctrl.Manager, o controller.Options) error {
		c := newConnector(mgr.GetClient(), guard)
		w := &watcher{kube: mgr.GetClient()}

		return kind.Setup(mgr, o, accesses(), options(mgr.GetClient(), c), func(b *builder.Builder) {
			b.Watches(&v1alpha1.Access{}, c.forgetful())
			b.WatchesRawSource(late.Source(mgr, credentialsv1alpha1.CredentialGroupVersionKind,
				&credentialsv1alpha1.Credential{}, w.credential))
			b.WatchesRawSource(late.Source(mgr, observev1alpha1.TopologyGroupVersionKind,
				&observev1alpha1.Topology{}, w.topology))
		})
	}
}

func accesses() kind.Of {
	return kind.Of{
		GVK:    v1alpha1.AccessGroupVersionKind,
		Object: &v1alpha1.Access{},
		List:   &v1alpha1.AccessList{},
	}
}

func options(kube client.Client, c *connector) []managed.ReconcilerOption {
	return []managed.ReconcilerOption{
		kind.Connector(accesses(), outside.Telling(c, explain)),
		managed.WithFinalizer(kind.NewFinalizer(kube)),
		managed.WithPollIntervalHook(poll),

		// It is many things in the server, none of which has its name.
		managed.WithInitializers(),
	}
}

// A watcher wakes Accesses when what they depend on has changed.
type watcher struct {
	kube client.Reader
}

// credential has changed, perhaps a password: the Secret is written before the
// status.
func (w *watcher) credential(ctx context.Context, was, is client.Object, q late.Queue) {
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

// names tells whether a Secret is one of those that passwords are in.
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

// topology has changed, perhaps there is a leader at last.
func (w *watcher) topology(ctx context.Context, was, is client.Object, q late.Queue) {
	t, ok := is.(*observev1alpha1.Topology)
	if !ok || t.Status.AtProvider.Leader == "" {
		return
	}

	if old, ok := was.(*observev1alpha1.Topology); ok && old.Status.AtProvider.Leader == t.Status.AtProvider.Leader {
		return
	}

	w.wake(ctx, t.GetNamespace(), q, func(p v1alpha1.AccessParameters) bool {
		return p.Server.Host == t.Spec.ForProvider.Database+"-rw."+t.GetNamespace()+".svc"
	})
}

func (w *watcher) wake(ctx context.Context, namespace string, q late.Queue, which func(v1alpha1.AccessParameters) bool) {
	l := &v1alpha1.AccessList{}
	if err := w.kube.List(ctx, l, client.InNamespace(namespace)); err != nil {
		return // The next poll sees it.
	}

	for i := range l.Items {
		if which(l.Items[i].Spec.ForProvider) {
			r := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&l.Items[i])}

			// How often it failed before says nothing any more. A server that begins to
			// take writes may yet refuse for a second, and is not left alone for 30 then.
			q.Forget(r)
			q.AddAfter(r, settle)
		}
	}
}

// forgetful forgets Accesses that are gone.
func (c *connector) forgetful() handler.Funcs {
	return handler.Funcs{DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ late.Queue) {
		c.proofs.forget(e.Object.GetUID())
		c.idle.forget(e.Object.GetUID())
	}}
}
