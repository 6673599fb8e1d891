// SPDX-License-Identifier: Apache-2.0

package registeredmodel

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"

	"github.com/capstan-dev/capstan/apis/registry/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/mlflow"
	"github.com/capstan-dev/capstan/provider/internal/registry"
)

// Update what differs, a call each, because the registry has no call for all of it. The owner comes first. It looks at the model
// once more: what happened since Observe may have made it another owner's.
func (e *external) Update(ctx context.Context, cr *v1alpha1.RegisteredModel) (managed.ExternalUpdate, error) {
	m, adopt, err := e.owned(ctx, cr)
	if err != nil {
		return managed.ExternalUpdate{}, err
	}
	if adopt {
		if err := e.client.SetModelTag(ctx, m.Name, v1alpha1.TagOwner, e.tenant.Owner(cr.GetName())); err != nil {
			return managed.ExternalUpdate{}, err
		}
	}
	if err := e.change(ctx, cr, m); err != nil {
		return managed.ExternalUpdate{}, err
	}

	// The next look may be a while away, and a key that another program sets until then must not pass for one of ours.
	report(cr, m)
	registry.Available(cr)
	return managed.ExternalUpdate{}, nil
}

// change the model, and m with it.
func (e *external) change(ctx context.Context, cr *v1alpha1.RegisteredModel, m *mlflow.Model) error {
	p := cr.Spec.ForProvider
	if registry.Describe(p.Description, m.Description) {
		if err := e.client.DescribeModel(ctx, m.Name, *p.Description); err != nil {
			return err
		}
		m.Description = *p.Description
	}
	d := registry.DiffTags(p.Tags, m.Tags, cr.Status.AtProvider.TagKeys)
	for _, k := range d.Set {
		if err := e.client.SetModelTag(ctx, m.Name, k, p.Tags[k]); err != nil {
			return err
		}
		m.Tags[k] = p.Tags[k]
	}
	for _, k := range d.Remove {
		if err := e.client.DeleteModelTag(ctx, m.Name, k); err != nil {
			return err
		}
		delete(m.Tags, k)
	}
	return nil
}
