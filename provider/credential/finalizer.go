// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
)

// A finalizer holds up the deletion of a Credential only while its policies
// include Delete. By default there is nothing to do when a Credential goes, and
// neither it nor its namespace should wait for a provider that is stopped.
type finalizer struct {
	resource.Finalizer
}

func newFinalizer(kube client.Client) *finalizer {
	return &finalizer{Finalizer: resource.NewAPIFinalizer(kube, managed.FinalizerName)}
}

// AddFinalizer to o, or take it away when the policies no longer ask for it.
func (f *finalizer) AddFinalizer(ctx context.Context, o resource.Object) error {
	cr, ok := o.(*v1alpha1.Credential)
	if ok && !slices.ContainsFunc(cr.GetManagementPolicies(), deletes) {
		return f.RemoveFinalizer(ctx, o)
	}

	return f.Finalizer.AddFinalizer(ctx, o)
}

func deletes(a xpv2.ManagementAction) bool {
	return a == xpv2.ManagementActionDelete || a == xpv2.ManagementActionAll
}
