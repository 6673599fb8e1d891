// SPDX-License-Identifier: Apache-2.0

package modelalias

import (
	"context"
	"fmt"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"

	"github.com/capstan-dev/capstan/apis/registry/v1alpha1"
	apis "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/kind"
	"github.com/capstan-dev/capstan/provider/internal/mlflow"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/registry"
)

// Observe the alias, with one request: the answer about its model says where it points and whose it is. Its target is read as
// well when there is evidence, which the version has, and before the alias is made or taken over: nothing is claimed, and nothing
// written about a creation, for an alias that cannot be.
func (e *external) Observe(ctx context.Context, cr *v1alpha1.ModelAlias) (managed.ExternalObservation, error) {
	m, err := e.model(ctx, cr)
	if mlflow.IsNotFound(err) {
		cr.Status.AtProvider = v1alpha1.ModelAliasObservation{}
		return managed.ExternalObservation{}, registry.Refuse(cr, err)
	}
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	if kind.OnlyLooks(cr) {
		return e.watch(cr, m)
	}
	s, err := e.owned(cr, m)
	if err != nil {
		return managed.ExternalObservation{}, registry.Refuse(cr, err)
	}
	if meta.WasDeleted(cr) {
		// The tag goes last. What was never taken over is not ours to delete.
		return managed.ExternalObservation{ResourceExists: s.tag != "" && !s.adopt}, nil
	}
	cr.Status.AtProvider.Version = s.version
	said, err := e.said(ctx, cr, s)
	if mlflow.IsNotFound(err) {
		return managed.ExternalObservation{}, registry.Refuse(cr, err)
	}
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	switch {
	case s.version == "":
		registry.Unavailable(cr, "The alias is not there")
	case s.adopt:
		registry.Unavailable(cr, "The alias is not taken over yet; managementPolicies must include Update")
	case s.version != cr.Spec.ForProvider.Version:
		registry.Unavailable(cr, "The alias points to another version")
	default:
		registry.Available(cr)
	}
	return managed.ExternalObservation{
		ResourceExists:   s.version != "",
		ResourceUpToDate: s.version == cr.Spec.ForProvider.Version && !s.adopt && said,
	}, nil
}

// said looks at the version of the spec, when that matters, and reports whether it has just the evidence of the spec. It is an
// error when it is not there.
func (e *external) said(ctx context.Context, cr *v1alpha1.ModelAlias, s sight) (bool, error) {
	p := cr.Spec.ForProvider
	there := s.version == p.Version && hasEvidence(cr)
	if s.version != "" && !s.adopt && !there {
		return true, nil
	}
	v, err := e.client.Version(ctx, p.Model, p.Version)
	if err != nil {
		return false, target(cr, err)
	}
	if !there {
		return true, nil
	}
	_, cr.Status.AtProvider.EvidenceKeys = registry.EvidenceIn(p.Alias, v.Tags)
	return evidence(cr, v).Empty(), nil
}

// watch an alias that is not to be changed.
func (e *external) watch(cr *v1alpha1.ModelAlias, m *mlflow.Model) (managed.ExternalObservation, error) {
	if err := registry.Enter(e.tenant, m.Name, m.Tags[v1alpha1.TagOwner]); err != nil {
		return managed.ExternalObservation{}, registry.Refuse(cr, err)
	}
	p := cr.Spec.ForProvider
	cr.Status.AtProvider = v1alpha1.ModelAliasObservation{Version: m.Alias(p.Alias)}
	if cr.Status.AtProvider.Version == "" {
		return managed.ExternalObservation{}, registry.Refuse(cr, &outside.Failure{
			Reason:  apis.ReasonNotFound,
			Message: fmt.Sprintf("model %q has no alias %q", p.Model, p.Alias),
			Remedy:  "set it, or let managementPolicies include Create",
		})
	}
	registry.Available(cr)
	return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}, nil
}
