// SPDX-License-Identifier: Apache-2.0

package modelalias

import (
	"context"

	"github.com/capstan-dev/capstan/apis/registry/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/mlflow"
	"github.com/capstan-dev/capstan/provider/internal/registry"
)

// hasEvidence reports whether there is evidence to write or to remove. If not, the version need not be read.
func hasEvidence(cr *v1alpha1.ModelAlias) bool {
	return len(cr.Spec.ForProvider.Evidence)+len(cr.Status.AtProvider.EvidenceKeys) > 0
}

// evidence is what has to be done so that v has just the evidence of the spec. It does not matter who wrote what is there: the
// alias is ours, and so is all that is said of it.
func evidence(cr *v1alpha1.ModelAlias, v *mlflow.Version) registry.TagDiff {
	p := cr.Spec.ForProvider
	there, _ := registry.EvidenceIn(p.Alias, v.Tags)
	return registry.DiffTags(registry.Evidence(p.Alias, p.Evidence), v.Tags, there)
}

// testify writes the evidence to the version of the spec, a call each, and removes what else was said there. It returns the keys
// that the version has then.
func (e *external) testify(ctx context.Context, cr *v1alpha1.ModelAlias) ([]string, error) {
	p := cr.Spec.ForProvider
	v, err := e.client.Version(ctx, p.Model, p.Version)
	if err != nil {
		return nil, target(cr, err)
	}
	tags, d := registry.Evidence(p.Alias, p.Evidence), evidence(cr, v)
	for _, k := range d.Set {
		if err := e.client.SetVersionTag(ctx, p.Model, p.Version, k, tags[k]); err != nil {
			return nil, target(cr, err)
		}
	}
	for _, k := range d.Remove {
		if err := e.client.DeleteVersionTag(ctx, p.Model, p.Version, k); err != nil {
			return nil, target(cr, err)
		}
	}
	_, keys := registry.EvidenceIn(p.Alias, tags)
	return keys, nil
}
