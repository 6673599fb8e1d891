// SPDX-License-Identifier: Apache-2.0

// Package bucket reconciles Buckets: buckets on S3 servers of any make.
//
// A bucket has one owner, named by a tag. The tag is set right after the bucket is created, and nothing is changed or deleted
// without it: not when only the name fits, and not when an answer is ambiguous. Where a server has no tags, the Bucket's own
// record decides.
//
// What a bucket can do is a list of features (package feature). The provider never reads a feature that the spec does not
// mention, so that a Bucket costs HEAD, the tags and one GET for each feature of its spec at each observation.
package bucket

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	"github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/kind"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/s3"
)

// clients of S3 servers: an outside.Pool.
type clients interface {
	Client(ctx context.Context, mg resource.ModernManaged) (*s3.Client, outside.Tenant, error)
}

// Setup returns what adds a controller of Buckets to a manager.
func Setup(pool *outside.Pool[*s3.Client]) func(ctrl.Manager, controller.Options) error {
	return func(mgr ctrl.Manager, o controller.Options) error {
		return kind.Setup(mgr, o, v1alpha1.BucketGroupVersionKind, options(mgr.GetClient(), pool))
	}
}

func options(kube client.Client, pool clients) []managed.ReconcilerOption {
	return []managed.ReconcilerOption{
		managed.WithInitializers(&namer{kube: kube, pool: pool}),
		kind.Connector(v1alpha1.BucketGroupVersionKind, outside.Reporting(&connector{kube: kube, pool: pool}, s3.Explain)),

		// The name is known beforehand, and it can be found out whether an existing bucket is the one that a crashed Create made.
		managed.WithDeterministicExternalName(true),
	}
}
