// SPDX-License-Identifier: Apache-2.0

package registeredmodel

import (
	"context"
	"maps"

	"k8s.io/utils/ptr"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"

	"github.com/capstan-dev/capstan/apis/registry/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/mlflow"
)

// Create the model, with its owner in the same call. That one of this name exists
// is an error, also when it could be our own from a call whose answer was lost:
// the next Observe looks whose it is.
func (e *external) Create(ctx context.Context, cr *v1alpha1.RegisteredModel) (managed.ExternalCreation, error) {
	p := cr.Spec.ForProvider
	m := mlflow.Model{
		Name:        meta.GetExternalName(cr),
		Description: ptr.Deref(p.Description, ""),
		Tags:        mlflow.Tags{},
	}
	maps.Copy(m.Tags, p.Tags)
	m.Tags[v1alpha1.TagOwner] = e.tenant.Owner(cr.GetName())
	return managed.ExternalCreation{}, e.client.CreateModel(ctx, m)
}
