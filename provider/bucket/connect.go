// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"context"

	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"

	"github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	"github.com/capstan-dev/capstan/provider/bucket/feature"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/s3"
)

var (
	_ managed.TypedExternalConnector[*v1alpha1.Bucket] = &connector{}
	_ managed.TypedExternalClient[*v1alpha1.Bucket]    = &external{}
	_ managed.TypedExternalClient[*v1alpha1.Bucket]    = gone{}
)

type connector struct {
	kube client.Client
	pool clients
}

// Connect to the S3 server, if this Bucket may have a bucket of this name there.
func (c *connector) Connect(
	ctx context.Context, cr *v1alpha1.Bucket,
) (managed.TypedExternalClient[*v1alpha1.Bucket], error) {
	cl, tenant, err := c.pool.Client(ctx, cr)
	if err != nil {
		return nil, err
	}
	name := meta.GetExternalName(cr)
	if f := permitted(cr, name, tenant); f != nil {
		// The deletion of a Bucket leaves no bucket behind that it must not have.
		if meta.WasDeleted(cr) && !cr.Status.AtProvider.Owned {
			return gone{}, nil
		}
		return nil, refuse(cr, f)
	}
	region := cl.Region
	if r := cr.Spec.ForProvider.Region; r != nil {
		region = *r
	}
	return &external{
		kube: c.kube, client: cl, api: cl.In(region), tenant: tenant, name: name, region: region, owner: tenant.Owner(cr.GetName()),
	}, nil
}

// external is the bucket of a Bucket during one reconcile.
type external struct {
	kube   client.Client
	client *s3.Client
	api    *awss3.Client
	tenant outside.Tenant

	// name of the bucket, the region that it should be in, and what its owner tag has to say.
	name, region, owner string

	// found is the bucket that Observe has seen, and plan what to do with it. Both are for the call that follows at once.
	found *found
	plan  *feature.Plan
}

// Disconnect does nothing: others use the same client.
func (e *external) Disconnect(context.Context) error { return nil }

// gone is a bucket that does not exist.
type gone struct{}

// Observe nothing.
func (gone) Observe(context.Context, *v1alpha1.Bucket) (managed.ExternalObservation, error) {
	return managed.ExternalObservation{}, nil
}

// Create nothing.
func (gone) Create(context.Context, *v1alpha1.Bucket) (managed.ExternalCreation, error) {
	return managed.ExternalCreation{}, nil
}

// Update nothing.
func (gone) Update(context.Context, *v1alpha1.Bucket) (managed.ExternalUpdate, error) {
	return managed.ExternalUpdate{}, nil
}

// Delete nothing.
func (gone) Delete(context.Context, *v1alpha1.Bucket) (managed.ExternalDelete, error) {
	return managed.ExternalDelete{}, nil
}

// Disconnect from nothing.
func (gone) Disconnect(context.Context) error { return nil }
