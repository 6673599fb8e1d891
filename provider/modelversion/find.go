// SPDX-License-Identifier: Apache-2.0

package modelversion

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/registry/v1alpha1"
	apis "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/mlflow"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/registry"
)

// find the version that cr is about, or nil when it is yet to be made. It takes two requests at most: the model is read only
// when its owner, its aliases or its existence matter.
func (e *external) find(ctx context.Context, cr *v1alpha1.ModelVersion) (*mlflow.Version, error) {
	p := cr.Spec.ForProvider
	number, err := chosen(cr)
	if err != nil {
		return nil, err
	}
	if number != "" && !e.tenant.Shared {
		return e.version(ctx, p.Model, number)
	}
	m, err := e.model(ctx, p.Model)
	if err != nil {
		return nil, err
	}
	if p.Alias != nil {
		if number = m.Alias(*p.Alias); number == "" {
			return nil, missing(fmt.Sprintf("model %q has no alias %q", p.Model, *p.Alias),
				"set it, or choose another; status keeps the version that was seen last")
		}
	}
	if number != "" {
		return e.version(ctx, p.Model, number)
	}
	return e.search(ctx, cr, m)
}

// chosen number of the version, or "" when an alias or the owner tag leads to it.
func chosen(cr *v1alpha1.ModelVersion) (string, error) {
	p := cr.Spec.ForProvider
	if p.Alias != nil {
		return "", nil
	}
	if p.Version != nil {
		return *p.Version, nil
	}
	number := meta.GetExternalName(cr)
	if number == "" {
		return "", nil
	}
	return number, registry.CheckVersion(number)
}

// model that the version is of, if it may be seen.
func (e *external) model(ctx context.Context, name string) (*mlflow.Model, error) {
	m, err := e.client.Model(ctx, name)
	if mlflow.IsNotFound(err) {
		return nil, missing(fmt.Sprintf("there is no model %q", name), "make it, for instance with a RegisteredModel")
	}
	if err != nil {
		return nil, err
	}
	return m, registry.Enter(e.tenant, name, m.Tags[v1alpha1.TagOwner])
}

// version of a number. One that is gone does not come back: its number is never given again, so that making it again would make
// another one.
func (e *external) version(ctx context.Context, model, number string) (*mlflow.Version, error) {
	v, err := e.client.Version(ctx, model, number)
	if mlflow.IsNotFound(err) {
		return nil, missing(fmt.Sprintf("there is no version %s of model %q", number, model),
			"choose another, or remove the annotation crossplane.io/external-name to make a new one")
	}
	return v, err
}

// search for the version that carries the owner tag of cr. Of several the first one counts, so that it is always the same.
func (e *external) search(ctx context.Context, cr *v1alpha1.ModelVersion, m *mlflow.Model) (*mlflow.Version, error) {
	found, err := e.client.VersionsTagged(ctx, m.Name, v1alpha1.TagOwner, e.tenant.Owner(cr.GetName()))
	if err != nil || len(found) == 0 {
		return nil, err
	}
	v := slices.MinFunc(found, func(a, b mlflow.Version) int { return compare(string(a.Version), string(b.Version)) })
	v.Aliases = m.AliasesOf(string(v.Version))
	return &v, nil
}

// compare the numbers of versions.
func compare(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

// remember the number of a version that was found by its tag, so that no search is needed again. The runtime stores what Observe
// changes only under some policies. It fails when cr has changed in the meantime: the API server would answer with the
// new spec, and what was seen for the old one would be reported for it.
func (e *external) remember(ctx context.Context, cr *v1alpha1.ModelVersion, v *mlflow.Version) error {
	number := string(v.Version)
	if meta.GetExternalName(cr) == number {
		return nil
	}
	before := cr.DeepCopy()
	meta.SetExternalName(cr, number)
	if meta.ExternalCreateIncomplete(cr) {
		meta.SetExternalCreateSucceeded(cr, e.now())
	}
	if err := e.kube.Patch(ctx, cr, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("cannot store the number of the version: %w", err)
	}
	return nil
}

// immutable says what of the version is not as the spec says and cannot be changed.
func immutable(cr *v1alpha1.ModelVersion, v *mlflow.Version) error {
	p := cr.Spec.ForProvider
	for _, x := range []struct{ field, want, have string }{
		{"source", ptr.Deref(p.Source, v.Source), v.Source},
		{"runId", ptr.Deref(p.RunID, v.RunID), v.RunID},
	} {
		if x.want != x.have {
			return &outside.Failure{
				Reason: apis.ReasonNameTaken,
				Message: fmt.Sprintf("version %s of model %q is of this ModelVersion and has %s %q, not %q",
					v.Version, v.Name, x.field, x.have, x.want),
				Remedy: "a version never changes; make a ModelVersion of another name",
			}
		}
	}
	return nil
}

func missing(what, remedy string) error {
	return &outside.Failure{Reason: apis.ReasonNotFound, Message: what, Remedy: remedy}
}

// decided reports whether err is what we made of good answers, and so holds until something changes.
func decided(err error) bool {
	f := (*outside.Failure)(nil)
	return errors.As(err, &f) &&
		slices.Contains([]xpv2.ConditionReason{apis.ReasonNotFound, apis.ReasonForbidden, apis.ReasonRejected}, f.Reason)
}
