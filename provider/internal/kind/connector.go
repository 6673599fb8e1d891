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
	upjet "github.com/crossplane/upjet/v2/pkg/metrics"
)

// Connector is the option for a kind's connector. It measures how long managed
// resources take to become ready and to go, under the names that dashboards for
// upjet providers know.
func Connector[T resource.Managed](k Of, inner managed.TypedExternalConnector[T]) managed.ReconcilerOption {
	return managed.WithTypedExternalConnector(&measuredConnector[T]{TypedExternalConnector: inner, gvk: k.GVK})
}

type measuredConnector[T resource.Managed] struct {
	managed.TypedExternalConnector[T]

	gvk schema.GroupVersionKind
}

// Connect with what is outside.
func (c *measuredConnector[T]) Connect(ctx context.Context, mg T) (managed.TypedExternalClient[T], error) {
	e, err := c.TypedExternalConnector.Connect(ctx, mg)
	if err != nil {
		return nil, err //nolint:wrapcheck // It is the kind's to say.
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
		upjet.DeletionTime.WithLabelValues(c.gvk.Group, c.gvk.Version, c.gvk.Kind).
			Observe(time.Since(mg.GetDeletionTimestamp().Time).Seconds())
	case !was && ready(mg):
		upjet.TTRMeasurements.WithLabelValues(c.gvk.Group, c.gvk.Version, c.gvk.Kind).
			Observe(time.Since(mg.GetCreationTimestamp().Time).Seconds())
	}

	return o, err //nolint:wrapcheck // It is the kind's to say.
}

func ready(mg resource.Managed) bool {
	return mg.GetCondition(xpv2.TypeReady).Status == corev1.ConditionTrue
}
