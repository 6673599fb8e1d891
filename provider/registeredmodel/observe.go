// SPDX-License-Identifier: Apache-2.0

package registeredmodel

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"

	"github.com/capstan-dev/capstan/apis/registry/v1alpha1"
	apis "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/kind"
	"github.com/capstan-dev/capstan/provider/internal/mlflow"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/registry"
)

// Observe the model, with one request. One that is another owner's is reported and left alone; on shared ground nothing of it is reported
// but that it exists.
func (e *external) Observe(ctx context.Context, cr *v1alpha1.RegisteredModel) (managed.ExternalObservation, error) {
	name := meta.GetExternalName(cr)
	if err := registry.CheckModelName(name); err != nil {
		return managed.ExternalObservation{}, registry.Refuse(cr, err)
	}
	m, err := e.client.Model(ctx, name)
	if mlflow.IsNotFound(err) {
		cr.Status.AtProvider = v1alpha1.RegisteredModelObservation{}
		return managed.ExternalObservation{}, absent(cr, name)
	}
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	if kind.OnlyLooks(cr) {
		return e.look(cr, m)
	}
	adopt, err := e.claim(cr, m).Manage()
	if err != nil {
		return managed.ExternalObservation{}, registry.Refuse(cr, err)
	}

	// What was never taken over is not ours to delete.
	if adopt && meta.WasDeleted(cr) {
		return managed.ExternalObservation{}, nil
	}
	report(cr, m)
	if adopt {
		registry.Unavailable(cr, "The model is not taken over yet; managementPolicies must include Update")
		return managed.ExternalObservation{ResourceExists: true}, nil
	}
	registry.Available(cr)
	return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: upToDate(cr, m)}, nil
}

// absent is an error when no reconcile will create the model.
func absent(cr *v1alpha1.RegisteredModel, name string) error {
	if !kind.OnlyLooks(cr) {
		return nil
	}
	return registry.Refuse(cr, &outside.Failure{
		Reason:  apis.ReasonNotFound,
		Message: fmt.Sprintf("there is no model %q", name),
		Remedy:  "make it, or let managementPolicies include Create",
	})
}

// look at a model that is not to be changed.
func (e *external) look(cr *v1alpha1.RegisteredModel, m *mlflow.Model) (managed.ExternalObservation, error) {
	if err := registry.Enter(e.tenant, m.Name, m.Tags[v1alpha1.TagOwner]); err != nil {
		return managed.ExternalObservation{}, registry.Refuse(cr, err)
	}
	report(cr, m)
	registry.Available(cr)
	return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}, nil
}

// report sets the status of cr.
func report(cr *v1alpha1.RegisteredModel, m *mlflow.Model) {
	at := v1alpha1.RegisteredModelObservation{
		Name:        m.Name,
		Description: m.Description,
		TagKeys:     registry.OwnKeys(cr.Spec.ForProvider.Tags, m.Tags, cr.Status.AtProvider.TagKeys),
	}
	if kind.OnlyLooks(cr) {
		at.TagKeys = nil
	}
	for _, a := range m.Aliases {
		at.Aliases = append(at.Aliases, v1alpha1.AliasObservation{Alias: a.Alias, Version: string(a.Version)})
	}
	slices.SortFunc(at.Aliases, func(a, b v1alpha1.AliasObservation) int { return strings.Compare(a.Alias, b.Alias) })
	cr.Status.AtProvider = at
}

// upToDate reports whether description and tags are as the spec wants them.
func upToDate(cr *v1alpha1.RegisteredModel, m *mlflow.Model) bool {
	p := cr.Spec.ForProvider
	return !registry.Describe(p.Description, m.Description) &&
		registry.DiffTags(p.Tags, m.Tags, cr.Status.AtProvider.TagKeys).Empty()
}
