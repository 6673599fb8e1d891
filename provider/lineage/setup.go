// SPDX-License-Identifier: Apache-2.0

// Package lineage reconciles Lineages: the events about runs for a server of OpenLineage.
//
// An event is sent at least once: what became of it is known to the API server after it was sent. The ID of a run, and type and time of its
// events, are the same each time, so that a server takes a repeated one for the same. Nothing of a run depends on a Lineage: a server that
// does not answer keeps none but the Lineage waiting, and a run that leaves the spec meanwhile is not reported.
package lineage

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/kind"
	"github.com/capstan-dev/capstan/provider/internal/openlineage"
	"github.com/capstan-dev/capstan/provider/internal/outside"
)

// A Pool of clients of servers for OpenLineage.
type Pool = outside.Pool[*openlineage.Client]

// Setup returns what adds a controller of Lineages to a manager.
func Setup(pool *Pool) func(ctrl.Manager, controller.Options) error {
	return func(mgr ctrl.Manager, o controller.Options) error {
		return kind.Setup(mgr, o, v1alpha1.LineageGroupVersionKind, []managed.ReconcilerOption{
			kind.Connector(v1alpha1.LineageGroupVersionKind, newConnector(pool)),
			// It has no name outside, and nothing to clean up.
			managed.WithInitializers(),
			kind.NoFinalizer(),
		})
	}
}

// newConnector reports in the condition Connected how the server answers.
func newConnector(pool *Pool) managed.TypedExternalConnector[*v1alpha1.Lineage] {
	return outside.Reporting[*v1alpha1.Lineage](&connector{pool: pool}, openlineage.Explain)
}

type connector struct{ pool *Pool }

// Connect with the server that a Lineage names.
func (c *connector) Connect(ctx context.Context, cr *v1alpha1.Lineage) (managed.TypedExternalClient[*v1alpha1.Lineage], error) {
	client, tenant, err := c.pool.Client(ctx, cr)
	if err != nil {
		return nil, err //nolint:wrapcheck // It says why.
	}
	return &external{client: client, cluster: tenant.Cluster}, nil
}
