// SPDX-License-Identifier: Apache-2.0

package modelversion

import (
	"context"
	"fmt"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"

	"github.com/capstan-dev/capstan/apis/registry/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/kind"
	"github.com/capstan-dev/capstan/provider/internal/mlflow"
	"github.com/capstan-dev/capstan/provider/internal/registry"
)

// Observe the version. What cannot be found or must not be seen leaves the status as it was: an Algorithm that serves the version
// seen last continues to serve it.
func (e *external) Observe(ctx context.Context, cr *v1alpha1.ModelVersion) (managed.ExternalObservation, error) {
	v, err := e.find(ctx, cr)
	if decided(err) {
		return managed.ExternalObservation{}, lost(cr, err)
	}
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	if v == nil {
		return managed.ExternalObservation{}, e.absent(cr)
	}
	e.refusals.forget(cr)
	if kind.OnlyLooks(cr) {
		return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}, e.report(ctx, cr, v)
	}
	adopt, err := e.claim(cr, v).Manage()
	if err != nil {
		return managed.ExternalObservation{}, registry.Refuse(cr, err)
	}
	if meta.WasDeleted(cr) {
		// What was never taken over is not ours to delete.
		return managed.ExternalObservation{ResourceExists: !adopt}, e.remember(ctx, cr, v)
	}
	if err := immutable(cr, v); err != nil {
		return managed.ExternalObservation{}, registry.Refuse(cr, err)
	}
	if err := e.remember(ctx, cr, v); err != nil {
		return managed.ExternalObservation{}, err
	}
	if err := e.report(ctx, cr, v); err != nil {
		return managed.ExternalObservation{}, err
	}
	if adopt {
		registry.Unavailable(cr, "The version is not taken over yet; managementPolicies must include Update")
	}
	return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: !adopt && upToDate(cr, v)}, nil
}

// lost is what becomes of a ModelVersion whose version cannot be found or seen. One that only looks stays ready with what it saw
// last.
func lost(cr *v1alpha1.ModelVersion, err error) error {
	if kind.OnlyLooks(cr) && cr.Status.AtProvider.Version != "" {
		return err
	}
	return registry.Refuse(cr, err)
}

// absent is an error unless it is certain that there is no version, and it may be made.
func (e *external) absent(cr *v1alpha1.ModelVersion) error {
	if kind.OnlyLooks(cr) {
		return lost(cr, missing(fmt.Sprintf("model %q has no version of this ModelVersion", cr.Spec.ForProvider.Model),
			"choose one by version or alias, or let managementPolicies include Create"))
	}

	// An object that is being deleted waits as well: what the registry is still making would stay behind.
	if err := e.settled(cr); err != nil {
		return err
	}
	cr.Status.AtProvider = v1alpha1.ModelVersionObservation{}
	if meta.WasDeleted(cr) {
		e.refusals.forget(cr)
		return nil
	}

	// Create checks it, too. Here nothing has been written about a creation yet.
	if err := e.source(cr); err != nil {
		return registry.Refuse(cr, err)
	}
	return nil
}

// report sets the status of cr, and whether it is ready.
func (e *external) report(ctx context.Context, cr *v1alpha1.ModelVersion, v *mlflow.Version) error {
	was := cr.Status.AtProvider
	at := v1alpha1.ModelVersionObservation{
		Model:   v.Name,
		Version: string(v.Version),
		Source:  v.Source,
		Digest:  digest(v),
		RunID:   v.RunID,
		Status:  v.Status,
		Aliases: slices.Sorted(slices.Values(v.Aliases)),
	}
	if !kind.OnlyLooks(cr) {
		at.TagKeys = registry.OwnKeys(cr.Spec.ForProvider.Tags, v.Tags, was.TagKeys)
	}

	// Where the files are does not change, so that it is read once.
	if at.Model == was.Model && at.Version == was.Version && at.Source == was.Source && at.RunID == was.RunID {
		at.ArtifactURI = was.ArtifactURI
	}
	if at.ArtifactURI == "" {
		uri, err := e.client.ArtifactURI(ctx, v.Name, at.Version)
		if err != nil {
			return err
		}
		at.ArtifactURI = uri
	}
	cr.Status.AtProvider = at
	judge(cr, v)
	return nil
}

// judge whether the version can be used. Servers that know no states leave it out.
func judge(cr *v1alpha1.ModelVersion, v *mlflow.Version) {
	switch v.Status {
	case mlflow.StatusReady, "":
		registry.Available(cr, remarks(v)...)
	case mlflow.StatusFailed:
		registry.Unavailable(cr, "The registry could not register the version; its own message says why")
	case mlflow.StatusPending:
		registry.Unavailable(cr, "The registry is registering the version")
	default:
		registry.Unavailable(cr, "The version is in a state that the provider does not know")
	}
}

// upToDate reports whether description and tags are as the spec wants them.
func upToDate(cr *v1alpha1.ModelVersion, v *mlflow.Version) bool {
	p := cr.Spec.ForProvider
	return !registry.Describe(p.Description, v.Description) &&
		registry.DiffTags(p.Tags, v.Tags, cr.Status.AtProvider.TagKeys).Empty()
}
