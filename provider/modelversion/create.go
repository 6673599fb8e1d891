// SPDX-License-Identifier: Apache-2.0

package modelversion

import (
	"context"
	"fmt"
	"maps"

	"k8s.io/utils/ptr"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"

	"github.com/capstan-dev/capstan/apis/registry/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/mlflow"
	"github.com/capstan-dev/capstan/provider/internal/registry"
)

// Create the version, with its owner in the same call. Observe has searched for one of this owner just before.
func (e *external) Create(ctx context.Context, cr *v1alpha1.ModelVersion) (managed.ExternalCreation, error) {
	number, err := e.create(ctx, cr)
	if err == nil {
		meta.SetExternalName(cr, number)
	} else if refused(err) {
		e.refusals.remember(cr)
	}
	return managed.ExternalCreation{}, err
}

// source is an error when a version must not be made of it.
func (e *external) source(cr *v1alpha1.ModelVersion) error {
	return registry.CheckSource(e.tenant, ptr.Deref(cr.Spec.ForProvider.Source, ""), e.client.AllowedSources)
}

func (e *external) create(ctx context.Context, cr *v1alpha1.ModelVersion) (string, error) {
	p := cr.Spec.ForProvider
	v := mlflow.Version{
		Name:        p.Model,
		Source:      ptr.Deref(p.Source, ""),
		RunID:       ptr.Deref(p.RunID, ""),
		Description: ptr.Deref(p.Description, ""),
		Tags:        mlflow.Tags{},
	}
	if err := e.source(cr); err != nil {
		return "", err
	}
	maps.Copy(v.Tags, p.Tags)
	v.Tags[v1alpha1.TagOwner] = e.tenant.Owner(cr.GetName())
	number, err := e.client.CreateVersion(ctx, v)
	if mlflow.IsNotFound(err) {
		return "", missing(fmt.Sprintf("there is no model %q, or what its new version refers to", p.Model),
			"check model, source and runId")
	}
	return number, err
}
