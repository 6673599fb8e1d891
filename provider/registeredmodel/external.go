// SPDX-License-Identifier: Apache-2.0

package registeredmodel

import (
	"context"
	"fmt"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"

	"github.com/capstan-dev/capstan/apis/registry/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/mlflow"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/registry"
)

var _ managed.TypedExternalClient[*v1alpha1.RegisteredModel] = &external{}

// external is the model of a RegisteredModel.
type external struct {
	client *mlflow.Client
	tenant outside.Tenant
}

func newExternal(c *mlflow.Client, t outside.Tenant) managed.TypedExternalClient[*v1alpha1.RegisteredModel] {
	return &external{client: c, tenant: t}
}

// Disconnect does nothing: the pool keeps connections.
func (e *external) Disconnect(context.Context) error { return nil }

// owned looks at the model and decides what the managed resource may do with it:
// change it, after taking it over if adopt is true, or nothing.
func (e *external) owned(ctx context.Context, cr *v1alpha1.RegisteredModel) (m *mlflow.Model, adopt bool, err error) {
	m, err = e.client.Model(ctx, meta.GetExternalName(cr))
	if err != nil {
		return nil, false, err
	}
	adopt, err = e.claim(cr, m).Manage()
	return m, adopt, err
}

func (e *external) claim(cr *v1alpha1.RegisteredModel, m *mlflow.Model) registry.Claim {
	return registry.Claim{
		Tenant: e.tenant,
		Name:   cr.GetName(),
		What:   fmt.Sprintf("model %q", m.Name),
		Tag:    m.Tags[v1alpha1.TagOwner],
		Adopt:  cr.Spec.ForProvider.Adopt,
	}
}
