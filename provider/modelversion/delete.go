// SPDX-License-Identifier: Apache-2.0

package modelversion

import (
	"context"
	"fmt"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"

	"github.com/capstan-dev/capstan/apis/registry/v1alpha1"
	apis "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/mlflow"
	"github.com/capstan-dev/capstan/provider/internal/outside"
)

// Delete the version. It is called only when the management policies include Delete. One that an alias points to stays: the
// registry would leave the alias behind, pointing to nothing, and the Algorithm that serves it would fail.
func (e *external) Delete(ctx context.Context, cr *v1alpha1.ModelVersion) (managed.ExternalDelete, error) {
	v, err := e.find(ctx, cr)
	if v == nil && (err == nil || decided(err)) {
		return managed.ExternalDelete{}, nil
	}
	if err != nil {
		return managed.ExternalDelete{}, err
	}
	if adopt, err := e.claim(cr, v).Manage(); err != nil || adopt {
		return managed.ExternalDelete{}, err
	}
	if len(v.Aliases) > 0 {
		return managed.ExternalDelete{}, &outside.Failure{
			Reason: apis.ReasonNotEmpty,
			Message: fmt.Sprintf("version %s of model %q is what the aliases %s point to",
				v.Version, v.Name, strings.Join(v.Aliases, ", ")),
			Remedy: "move or delete them first, or take Delete out of managementPolicies to keep the version",
		}
	}
	if err := e.client.DeleteVersion(ctx, v.Name, string(v.Version)); err != nil && !mlflow.IsNotFound(err) {
		return managed.ExternalDelete{}, err
	}
	return managed.ExternalDelete{}, nil
}
