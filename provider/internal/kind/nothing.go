// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
)

// Nothing is embedded by an external client: it does nothing where the kind has nothing to do.
type Nothing[T resource.Managed] struct{}

// Create nothing.
func (Nothing[T]) Create(context.Context, T) (managed.ExternalCreation, error) {
	return managed.ExternalCreation{}, nil
}

// Update nothing.
func (Nothing[T]) Update(context.Context, T) (managed.ExternalUpdate, error) {
	return managed.ExternalUpdate{}, nil
}

// Delete nothing.
func (Nothing[T]) Delete(context.Context, T) (managed.ExternalDelete, error) {
	return managed.ExternalDelete{}, nil
}

// Disconnect from nothing.
func (Nothing[T]) Disconnect(context.Context) error { return nil }

// NoFinalizer is the option for a kind that has nothing to clean up.
func NoFinalizer() managed.ReconcilerOption {
	nothing := func(context.Context, resource.Object) error { return nil }
	return managed.WithFinalizer(resource.FinalizerFns{AddFinalizerFn: nothing, RemoveFinalizerFn: nothing})
}
