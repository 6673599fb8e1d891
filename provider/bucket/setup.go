// SPDX-License-Identifier: Apache-2.0

// Package bucket reconciles Buckets: buckets on S3 servers of any make.
//
// A bucket has one owner, whom a tag names. It is set right after the bucket is
// made, and nothing is changed or deleted without it: not when the name fits, and
// not when an answer could be read that way. Where a server has no tags, the
// Bucket's own record decides.
//
// What a bucket can do is a list of features, each in a file of its own. A feature
// that the spec does not mention is not even asked for, so that a Bucket costs
// HEAD, the tags and one GET for each feature of its spec every time it is looked
// at, and nothing else.
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
		return kind.Setup(mgr, o, buckets(), options(mgr.GetClient(), pool)) //nolint:wrapcheck // It names the kind.
	}
}

func buckets() kind.Of {
	return kind.Of{
		GVK:    v1alpha1.BucketGroupVersionKind,
		Object: &v1alpha1.Bucket{},
		List:   &v1alpha1.BucketList{},
	}
}

func options(kube client.Client, pool clients) []managed.ReconcilerOption {
	return []managed.ReconcilerOption{
		managed.WithInitializers(&namer{kube: kube, pool: pool}),
		kind.Connector(buckets(), outside.Telling(&connector{kube: kube, pool: pool}, s3.Explain)),

		// The name is known beforehand, and whether a bucket of this name is the one
		// that a crashed Create has made can be told.
		managed.WithDeterministicExternalName(true),
	}
}
