// SPDX-License-Identifier: Apache-2.0

package modelversion

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"

	"github.com/capstan-dev/capstan/apis/registry/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/mlflow"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/registry"
)

var _ managed.TypedExternalClient[*v1alpha1.ModelVersion] = &external{}

// external is the version of a ModelVersion.
type external struct {
	kube     client.Client
	client   *mlflow.Client
	tenant   outside.Tenant
	now      func() time.Time
	refusals *refusals
}

func maker(
	kube client.Client, now func() time.Time,
) func(*mlflow.Client, outside.Tenant) managed.TypedExternalClient[*v1alpha1.ModelVersion] {
	r := &refusals{}
	return func(c *mlflow.Client, t outside.Tenant) managed.TypedExternalClient[*v1alpha1.ModelVersion] {
		return &external{kube: kube, client: c, tenant: t, now: now, refusals: r}
	}
}

// Disconnect does nothing: the pool keeps connections.
func (e *external) Disconnect(context.Context) error { return nil }

func (e *external) claim(cr *v1alpha1.ModelVersion, v *mlflow.Version) registry.Claim {
	return registry.Claim{
		Tenant: e.tenant,
		Name:   cr.GetName(),
		What:   fmt.Sprintf("version %s of model %q", v.Version, v.Name),
		Tag:    v.Tags[v1alpha1.TagOwner],
		Adopt:  cr.Spec.ForProvider.Adopt,
	}
}
