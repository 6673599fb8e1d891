// SPDX-License-Identifier: Apache-2.0

package registeredmodel

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"

	"github.com/capstan-dev/capstan/apis/registry/v1alpha1"
	apis "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/mlflow"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/registry"
)

// Delete the model with all of its versions. It is called only when the management policies include Delete. A model in which
// other namespaces have versions or aliases of their own stays: they are not ours to delete.
func (e *external) Delete(ctx context.Context, cr *v1alpha1.RegisteredModel) (managed.ExternalDelete, error) {
	m, adopt, err := e.owned(ctx, cr)
	if mlflow.IsNotFound(err) || adopt {
		return managed.ExternalDelete{}, nil
	}
	if err != nil {
		return managed.ExternalDelete{}, err
	}
	versions, err := e.client.Versions(ctx, m.Name)
	if err != nil {
		return managed.ExternalDelete{}, err
	}
	if what := e.others(m, versions); what != "" {
		return managed.ExternalDelete{}, &outside.Failure{
			Reason:  apis.ReasonNotEmpty,
			Message: fmt.Sprintf("model %q holds %s of another owner", m.Name, what),
			Remedy:  "let them be deleted first, or take Delete out of managementPolicies to keep the model",
		}
	}
	if err := e.client.DeleteModel(ctx, m.Name); err != nil && !mlflow.IsNotFound(err) {
		return managed.ExternalDelete{}, err
	}
	return managed.ExternalDelete{}, nil
}

// others than this namespace own what this returns, or "".
func (e *external) others(m *mlflow.Model, versions []mlflow.Version) string {
	foreign := func(tag string) bool { return registry.Stand(e.tenant, "", tag) == registry.Foreign }
	for _, k := range slices.Sorted(maps.Keys(m.Tags)) {
		if a, ok := strings.CutPrefix(k, v1alpha1.TagAliasPrefix); ok && foreign(m.Tags[k]) {
			return fmt.Sprintf("alias %q", a)
		}
	}
	for _, v := range versions {
		if foreign(v.Tags[v1alpha1.TagOwner]) {
			return "version " + string(v.Version)
		}
	}
	return ""
}
