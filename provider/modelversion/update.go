// SPDX-License-Identifier: Apache-2.0

package modelversion

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"

	"github.com/capstan-dev/capstan/apis/registry/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/mlflow"
	"github.com/capstan-dev/capstan/provider/internal/registry"
)

// Update what differs, a call each, because the registry has no call for all of it. The owner comes first. It looks at the
// version once more: what happened since Observe may have made it another owner's.
func (e *external) Update(ctx context.Context, cr *v1alpha1.ModelVersion) (managed.ExternalUpdate, error) {
	v, err := e.find(ctx, cr)
	if err != nil {
		return managed.ExternalUpdate{}, err
	}
	if v == nil {
		return managed.ExternalUpdate{}, missing("the version is gone", "nothing to do: the provider looks again")
	}
	adopt, err := e.claim(cr, v).Manage()
	if err != nil {
		return managed.ExternalUpdate{}, err
	}
	if adopt {
		err := e.client.SetVersionTag(ctx, v.Name, string(v.Version), v1alpha1.TagOwner, e.tenant.Owner(cr.GetName()))
		if err != nil {
			return managed.ExternalUpdate{}, err
		}
	}
	if err := e.change(ctx, cr, v); err != nil {
		return managed.ExternalUpdate{}, err
	}

	// The next look may be a while away, and a key that another program sets until then must not pass for one of ours.
	return managed.ExternalUpdate{}, e.report(ctx, cr, v)
}

// change the version, and v with it.
func (e *external) change(ctx context.Context, cr *v1alpha1.ModelVersion, v *mlflow.Version) error {
	p, number := cr.Spec.ForProvider, string(v.Version)
	if registry.Describe(p.Description, v.Description) {
		if err := e.client.DescribeVersion(ctx, v.Name, number, *p.Description); err != nil {
			return err
		}
		v.Description = *p.Description
	}
	d := registry.DiffTags(p.Tags, v.Tags, cr.Status.AtProvider.TagKeys)
	for _, k := range d.Set {
		if err := e.client.SetVersionTag(ctx, v.Name, number, k, p.Tags[k]); err != nil {
			return err
		}
		v.Tags[k] = p.Tags[k]
	}
	for _, k := range d.Remove {
		if err := e.client.DeleteVersionTag(ctx, v.Name, number, k); err != nil {
			return err
		}
		delete(v.Tags, k)
	}
	return nil
}
