// SPDX-License-Identifier: Apache-2.0

// Package quiet keeps controllers from writing what the API server already has.
//
// The managed reconciler of crossplane-runtime writes status at the end of every reconcile, changed or not. Each such write is a
// revision in etcd and an event for every watcher, so that an idle control plane would never be idle.
package quiet

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NewClient is a client.NewClientFunc: it makes a Client that talks to the API server of cfg.
func NewClient(cfg *rest.Config, o client.Options) (client.Client, error) {
	c, err := client.New(cfg, o)
	if err != nil {
		return nil, fmt.Errorf("cannot make a client: %w", err)
	}
	return Wrap(c), nil
}

// A Client leaves out status updates that would change nothing. Everything else it passes on.
type Client struct {
	client.Client
}

// Wrap a client, which should read from a cache: every status update is compared with a read of the same object.
func Wrap(c client.Client) *Client { return &Client{Client: c} }

// Whole returns a client that leaves out updates of objects that would change nothing, and of statuses. It is for kinds that the cache holds:
// any other is read from the API server for each update.
func Whole(c client.Client) client.Client { return &whole{Client: Wrap(c)} }

type whole struct{ *Client }

// Update o, unless it is what is known already.
func (w *whole) Update(ctx context.Context, o client.Object, opts ...client.UpdateOption) error {
	if known(ctx, w.Client, o) {
		return nil
	}
	return w.Client.Update(ctx, o, opts...)
}

// Status is a writer of statuses that leaves out updates that would change nothing.
func (c *Client) Status() client.SubResourceWriter {
	return &statusWriter{SubResourceWriter: c.Client.Status(), kube: c.Client}
}

type statusWriter struct {
	client.SubResourceWriter

	kube client.Client
}

// Update the status of o, unless it is what is known already.
func (w *statusWriter) Update(ctx context.Context, o client.Object, opts ...client.SubResourceUpdateOption) error {
	if known(ctx, w.kube, o) {
		return nil
	}
	return w.SubResourceWriter.Update(ctx, o, opts...)
}

// known reports whether o equals what the cache holds, resource version included. When in doubt (not cached, another version) it
// is not known, and the API server decides.
//
// A cache that lags behind may hold a version that is no longer the newest and happens to equal o. Then the newer version is
// still to arrive, and its event makes the controller reconcile and compare again: controllers that use this client must not
// filter out events of status changes.
func known(ctx context.Context, kube client.Client, o client.Object) bool {
	gvk, err := kube.GroupVersionKindFor(o)
	if err != nil {
		return false
	}
	fresh, err := kube.Scheme().New(gvk)
	if err != nil {
		return false
	}
	was, ok := fresh.(client.Object)
	if !ok {
		return false
	}
	if err := kube.Get(ctx, client.ObjectKeyFromObject(o), was); err != nil {
		return false
	}
	is, ok := o.DeepCopyObject().(client.Object)
	if !ok {
		return false
	}

	// The cache strips managed fields, an answer of the API server has them.
	for _, x := range []client.Object{was, is} {
		x.SetManagedFields(nil)
		x.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	return equality.Semantic.DeepEqual(was, is)
}
