// SPDX-License-Identifier: Apache-2.0

package modelalias

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"

	"github.com/capstan-dev/capstan/apis/registry/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/mlflow"
)

// Delete the alias, wherever it points, and then the tag that names its owner. It
// is called only when the management policies include Delete. The evidence stays:
// it is the history of its version.
func (e *external) Delete(ctx context.Context, cr *v1alpha1.ModelAlias) (managed.ExternalDelete, error) {
	s, err := e.look(ctx, cr)
	if mlflow.IsNotFound(err) || err == nil && (s.tag == "" || s.adopt) {
		return managed.ExternalDelete{}, nil
	}
	if err != nil {
		return managed.ExternalDelete{}, err
	}
	p := cr.Spec.ForProvider

	// The model, and so all of its aliases, may go in the meantime.
	if err := e.client.DeleteAlias(ctx, p.Model, p.Alias); err != nil && !mlflow.IsNotFound(err) {
		return managed.ExternalDelete{}, err
	}
	if err := e.client.DeleteModelTag(ctx, p.Model, tagOf(cr)); err != nil && !mlflow.IsNotFound(err) {
		return managed.ExternalDelete{}, err
	}
	return managed.ExternalDelete{}, nil
}
