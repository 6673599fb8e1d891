// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// Connector is the option for a kind's connector. It measures how long managed resources take to become ready and to be deleted.
func Connector[T resource.Managed](gvk schema.GroupVersionKind, inner managed.TypedExternalConnector[T]) managed.ReconcilerOption {
	return managed.WithTypedExternalConnector(&measuredConnector[T]{TypedExternalConnector: inner, gvk: gvk})
}

type measuredConnector[T resource.Managed] struct {
	managed.TypedExternalConnector[T]

	gvk schema.GroupVersionKind
}

// Connect with what is outside.
func (c *measuredConnector[T]) Connect(ctx context.Context, mg T) (managed.TypedExternalClient[T], error) {
	e, err := c.TypedExternalConnector.Connect(ctx, mg)
	if err != nil {
		return nil, err
	}
	return &measuredClient[T]{TypedExternalClient: e, gvk: c.gvk}, nil
}

type measuredClient[T resource.Managed] struct {
	managed.TypedExternalClient[T]

	gvk schema.GroupVersionKind
}

// Observe what is outside.
func (c *measuredClient[T]) Observe(ctx context.Context, mg T) (managed.ExternalObservation, error) {
	was := ready(mg)
	o, err := c.TypedExternalClient.Observe(ctx, mg)
	switch {
	case err != nil:
	case meta.WasDeleted(mg) && !o.ResourceExists:
		deletion.With(labels(c.gvk)).Observe(time.Since(mg.GetDeletionTimestamp().Time).Seconds())
	case !was && ready(mg):
		timeToReady.With(labels(c.gvk)).Observe(time.Since(mg.GetCreationTimestamp().Time).Seconds())
	}
	return o, err
}

func ready(mg resource.Managed) bool {
	return mg.GetCondition(xpv2.TypeReady).Status == corev1.ConditionTrue
}
