// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	"github.com/capstan-dev/capstan/provider/internal/mlflow"
	"github.com/capstan-dev/capstan/provider/internal/outside"
)

// A Pool of clients.
type Pool = outside.Pool[*mlflow.Client]

// Connector of a kind: it finds the client that a managed resource's config leads to, and reports in the condition Connected how
// the registry answers.
func Connector[T resource.ModernManaged](
	pool *Pool, external func(*mlflow.Client, outside.Tenant) managed.TypedExternalClient[T],
) managed.TypedExternalConnector[T] {
	return outside.Reporting[T](&connector[T]{pool: pool, external: external}, mlflow.Explain)
}

type connector[T resource.ModernManaged] struct {
	pool     *Pool
	external func(*mlflow.Client, outside.Tenant) managed.TypedExternalClient[T]
}

// Connect with the registry of mg.
func (c *connector[T]) Connect(ctx context.Context, mg T) (managed.TypedExternalClient[T], error) {
	cl, t, err := c.pool.Client(ctx, mg)
	if err != nil {
		return nil, err
	}
	return c.external(cl, t), nil
}
