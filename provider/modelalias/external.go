// SPDX-License-Identifier: Apache-2.0

package modelalias

import (
	"context"
	"fmt"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"

	"github.com/capstan-dev/capstan/apis/registry/v1alpha1"
	apis "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/mlflow"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/registry"
)

var _ managed.TypedExternalClient[*v1alpha1.ModelAlias] = &external{}

// external is the alias of a ModelAlias.
type external struct {
	client *mlflow.Client
	tenant outside.Tenant
}

func newExternal(c *mlflow.Client, t outside.Tenant) managed.TypedExternalClient[*v1alpha1.ModelAlias] {
	return &external{client: c, tenant: t}
}

// Disconnect does nothing: the pool keeps connections.
func (e *external) Disconnect(context.Context) error { return nil }

// A sight is what there is of an alias.
type sight struct {
	// version that it points to, or "" when it is not there.
	version string

	// tag that names its owner, or "".
	tag string

	// adopt means that it has to be taken over before it is changed.
	adopt bool
}

// model of the alias.
func (e *external) model(ctx context.Context, cr *v1alpha1.ModelAlias) (*mlflow.Model, error) {
	name := cr.Spec.ForProvider.Model
	m, err := e.client.Model(ctx, name)
	if mlflow.IsNotFound(err) {
		return nil, &outside.Failure{
			Reason:  apis.ReasonNotFound,
			Message: fmt.Sprintf("there is no model %q", name),
			Remedy:  "make it, for instance with a RegisteredModel",
			Cause:   err,
		}
	}
	return m, err
}

// owned decides what the managed resource may do with its alias of m. It is an error when that is nothing.
func (e *external) owned(cr *v1alpha1.ModelAlias, m *mlflow.Model) (sight, error) {
	p := cr.Spec.ForProvider
	s := sight{version: m.Alias(p.Alias), tag: m.Tags[tagOf(cr)]}
	if err := registry.Enter(e.tenant, m.Name, m.Tags[v1alpha1.TagOwner]); err != nil {
		return s, err
	}

	// What is not there and has no owner is free.
	if s.version == "" && s.tag == "" {
		return s, nil
	}
	var err error
	s.adopt, err = registry.Claim{
		Tenant: e.tenant,
		Name:   cr.GetName(),
		What:   fmt.Sprintf("alias %q of model %q", p.Alias, m.Name),
		Tag:    s.tag,
		Adopt:  p.Adopt,
	}.Manage()
	return s, err
}

// look at model and alias, and decide.
func (e *external) look(ctx context.Context, cr *v1alpha1.ModelAlias) (sight, error) {
	m, err := e.model(ctx, cr)
	if err != nil {
		return sight{}, err
	}
	return e.owned(cr, m)
}

// point the alias to the version of the spec, which must exist, and return the keys of the evidence that the version has. The tag
// of the model names the owner before anything of the alias is there, and gives the right to all the rest. The evidence comes
// next: clients of the alias find it. If anything happens between two calls, the next reconcile sees what is missing.
func (e *external) point(ctx context.Context, cr *v1alpha1.ModelAlias, s sight) ([]string, error) {
	p := cr.Spec.ForProvider
	if owner := e.tenant.Owner(cr.GetName()); s.tag != owner {
		if err := e.client.SetModelTag(ctx, p.Model, tagOf(cr), owner); err != nil {
			return nil, err
		}
	}
	var keys []string
	if hasEvidence(cr) {
		var err error
		if keys, err = e.testify(ctx, cr); err != nil {
			return nil, err
		}
	}
	if s.version == p.Version {
		return keys, nil
	}
	return keys, target(cr, e.client.SetAlias(ctx, p.Model, p.Alias, p.Version))
}

// target of an alias is missing, if err says so.
func target(cr *v1alpha1.ModelAlias, err error) error {
	if !mlflow.IsNotFound(err) {
		return err
	}
	p := cr.Spec.ForProvider
	return &outside.Failure{
		Reason:  apis.ReasonNotFound,
		Message: fmt.Sprintf("there is no version %s of model %q", p.Version, p.Model),
		Remedy:  "make it, or set spec.forProvider.version to one that there is",
		Cause:   err,
	}
}

func tagOf(cr *v1alpha1.ModelAlias) string {
	return v1alpha1.TagAliasPrefix + cr.Spec.ForProvider.Alias
}
