// SPDX-License-Identifier: Apache-2.0

package modelalias

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"

	"github.com/capstan-dev/capstan/apis/registry/v1alpha1"
)

// Create the alias. It may be repeated. It looks once more: what happened since Observe may have made the alias another owner's.
func (e *external) Create(ctx context.Context, cr *v1alpha1.ModelAlias) (managed.ExternalCreation, error) {
	s, err := e.look(ctx, cr)
	if err != nil {
		return managed.ExternalCreation{}, err
	}
	_, err = e.point(ctx, cr, s)
	return managed.ExternalCreation{}, err
}
