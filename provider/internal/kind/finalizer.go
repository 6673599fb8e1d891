// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// A Finalizer blocks the deletion of a managed resource only while its policies include Delete. Otherwise there is nothing to
// clean up, and neither the resource nor its namespace should wait for a provider that is stopped.
type Finalizer struct {
	resource.Finalizer
}

// NewFinalizer that follows policies.
func NewFinalizer(kube client.Client) *Finalizer {
	return &Finalizer{Finalizer: resource.NewAPIFinalizer(kube, managed.FinalizerName)}
}

// AddFinalizer to o, or take it away when the policies no longer ask for it.
func (f *Finalizer) AddFinalizer(ctx context.Context, o resource.Object) error {
	if mg, ok := o.(resource.Managed); ok && !May(mg, xpv2.ManagementActionDelete) {
		return f.RemoveFinalizer(ctx, o)
	}
	return f.Finalizer.AddFinalizer(ctx, o)
}
