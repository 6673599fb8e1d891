// SPDX-License-Identifier: Apache-2.0

package modelalias

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"

	"github.com/capstan-dev/capstan/apis/registry/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/registry"
)

// Update where the alias points and what is said of it, also when another client has changed it. It looks once more: what
// happened since Observe may have made the alias another owner's.
func (e *external) Update(ctx context.Context, cr *v1alpha1.ModelAlias) (managed.ExternalUpdate, error) {
	s, err := e.look(ctx, cr)
	if err != nil {
		return managed.ExternalUpdate{}, err
	}
	keys, err := e.point(ctx, cr, s)
	if err != nil {
		return managed.ExternalUpdate{}, err
	}
	cr.Status.AtProvider = v1alpha1.ModelAliasObservation{Version: cr.Spec.ForProvider.Version, EvidenceKeys: keys}
	registry.Available(cr)
	return managed.ExternalUpdate{}, nil
}
