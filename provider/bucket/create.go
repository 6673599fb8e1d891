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
	"github.com/capstan-dev/capstan/provider/bucket/feature"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/s3"
)

// Create the bucket, and set its tag right after.
//
//  1. It checks once more that there is no bucket, because the server may answer a second creation as if it were the first (us-east-1
//     does). An existing bucket is for Observe to judge.
//  2. It makes the bucket.
//  3. It sets the tag, unless another owner's is there already.
//  4. It sets the features. The next Observe reports those that fail.
//
// When the process dies between 2 and 3, or no answer comes, the next Observe finds a bucket without a tag. The annotations, the
// time when it was made and that it is empty show that it is ours.
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
		// Unless the server refused, it is unknown what it did.
		if !s3.Refused(err) {
			creating(cr, e.name)
		}
		return managed.ExternalCreation{}, err
	}
	made := found{Bucket: feature.Bucket{API: e.api, Name: e.name, Owner: e.owner}, region: e.region, standing: unmarked}
	made, err = made.marked(ctx)
	if err != nil {
		creating(cr, e.name)
		return managed.ExternalCreation{}, err
	}
	p, err := feature.NewPlan(ctx, made.Bucket, &cr.Spec.ForProvider, record(cr.Status.AtProvider))
	if err == nil && e.remember(ctx, cr, p) == nil {
		p.Run(ctx)
	}
	return managed.ExternalCreation{}, nil
}

// creating records in an annotation that the bucket may have been made although Create failed. The runtime keeps annotations, and
// nothing else, of a Create that fails.
func creating(cr *v1alpha1.Bucket, name string) {
	meta.AddAnnotations(cr, map[string]string{v1alpha1.AnnotationCreating: name})
}
