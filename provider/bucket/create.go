// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"

	"github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	capstan "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/s3"
)

// Create the bucket and set its tag, the two of them right after one another.
//
//  1. It looks once more whether the bucket is there, since the server may answer
//     a second creation as if it were the first (us-east-1 does), and what is there
//     is for Observe to judge.
//  2. It makes the bucket.
//  3. It sets the tag, unless somebody else's is there already.
//  4. It sets the features. What fails of them the next Observe tells.
//
// When the process dies between 2 and 3, or no answer comes, the next Observe
// finds a bucket without a tag. That it is ours can be told from the annotations,
// from when it was made and from its being empty.
func (e *external) Create(ctx context.Context, cr *v1alpha1.Bucket) (managed.ExternalCreation, error) {
	b, err := e.find(ctx)
	if err != nil {
		return managed.ExternalCreation{}, err
	}

	if b != nil {
		return managed.ExternalCreation{}, &outside.Failure{
			Reason:  capstan.ReasonConflict,
			Message: fmt.Sprintf("bucket %q has appeared meanwhile", e.name),
			Remedy:  "nothing to do: the provider looks whose it is",
		}
	}

	in := &awss3.CreateBucketInput{Bucket: aws.String(e.name)}
	if cr.Spec.ForProvider.ObjectLock != nil {
		in.ObjectLockEnabledForBucket = aws.Bool(true)
	}

	if c := e.client.Constraint(cr.Spec.ForProvider.Region); c != "" {
		in.CreateBucketConfiguration = &types.CreateBucketConfiguration{LocationConstraint: types.BucketLocationConstraint(c)}
	}

	if _, err := e.api.CreateBucket(ctx, in); err != nil {
		// Nobody knows what the server did, unless it refused.
		if !s3.Refused(err) {
			creating(cr, e.name)
		}

		return managed.ExternalCreation{}, err
	}

	b = &bucket{api: e.api, name: e.name, region: e.region, own: e.tenant.Owner(cr.GetName()), standing: unmarked}

	if err := b.mark(ctx); err != nil {
		creating(cr, e.name)

		return managed.ExternalCreation{}, err
	}

	if plan, err := planFor(ctx, cr, b); err == nil && e.remember(ctx, cr, plan) == nil {
		plan.carryOut(ctx)
	}

	return managed.ExternalCreation{}, nil
}

// creating records, in an annotation, that the bucket may have been made although
// Create failed. The runtime keeps annotations, and nothing else, of a Create that
// fails.
func creating(cr *v1alpha1.Bucket, name string) {
	meta.AddAnnotations(cr, map[string]string{v1alpha1.AnnotationCreating: name})
}
