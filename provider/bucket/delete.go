// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	capstan "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/bucket/content"
	"github.com/capstan-dev/capstan/provider/bucket/feature"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/s3"
)

// Delete the bucket that Observe has found to be ours, if it is empty. Its content is counted first and not left to the server to
// refuse: some delete a bucket with everything in it. With forceDestroy it is emptied first, as far as the time of a reconcile
// allows; the next one continues.
func (e *external) Delete(ctx context.Context, cr *v1alpha1.Bucket) (managed.ExternalDelete, error) {
	cr.SetConditions(xpv2.Deleting())
	if e.found == nil {
		return managed.ExternalDelete{}, nil
	}
	b := content.Bucket{API: e.api, Name: e.name}
	if cr.Spec.ForProvider.ForceDestroy {
		done, kept, err := b.Destroy(ctx)
		switch {
		case err != nil || !done:
			return managed.ExternalDelete{}, err
		case kept > 0:
			return managed.ExternalDelete{}, e.protected(ctx, kept)
		}
	}
	c, err := b.Count(ctx)
	switch {
	case s3.Code(err) == codeNoBucket:
		return managed.ExternalDelete{}, nil
	case err != nil:
		return managed.ExternalDelete{}, err
	case !c.IsZero():
		return managed.ExternalDelete{}, notEmpty(e.name, c, cr.Spec.ForProvider.ForceDestroy)
	}
	_, err = e.api.DeleteBucket(ctx, &awss3.DeleteBucketInput{Bucket: aws.String(e.name)})
	if s3.Code(err) == codeNoBucket {
		return managed.ExternalDelete{}, nil
	}
	return managed.ExternalDelete{}, err
}

// protected is the failure of a bucket whose content cannot all be deleted.
func (e *external) protected(ctx context.Context, kept int) error {
	what := content.Items(kept)
	if locked, err := feature.Locked(ctx, e.found.Bucket); err == nil && locked {
		return &outside.Failure{
			Reason:  capstan.ReasonNotEmpty,
			Message: fmt.Sprintf("bucket %q holds %s under a retention that has not ended, or under a legal hold", e.name, what),
			Remedy:  "wait for the end of the retention, or take Delete out of spec.managementPolicies to keep the bucket",
		}
	}
	return &outside.Failure{
		Reason:  capstan.ReasonForbidden,
		Message: fmt.Sprintf("the server does not let the provider's user delete %s of bucket %q", what, e.name),
		Remedy:  "give the user the rights s3:DeleteObject and s3:DeleteObjectVersion, and see that no policy of the bucket denies them",
	}
}

func notEmpty(name string, c content.Count, forced bool) *outside.Failure {
	f := &outside.Failure{
		Reason:  capstan.ReasonNotEmpty,
		Message: fmt.Sprintf("bucket %q holds %s", name, c),
		Remedy:  "empty it, or set spec.forProvider.forceDestroy to true to delete all of it, or take Delete out of spec.managementPolicies to keep the bucket",
	}
	if forced {
		f.Remedy = "the provider empties it again; see which clients still write to it, or whether it holds names that the server cannot list as they are"
	}
	return f
}
