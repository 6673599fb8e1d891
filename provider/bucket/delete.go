// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	capstan "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/s3"
)

const (
	// countMost is where counting what hinders a deletion ends.
	countMost = 10_000

	// reserve is the time of a reconcile that is left for its end when a bucket is
	// being emptied.
	reserve = 20 * time.Second
)

// Delete the bucket that Observe has found to be ours, if it is empty. What is in
// it is counted first and not left to the server to refuse: some delete a bucket
// with all that is in it. With forceDestroy it is emptied first, as far as the time
// goes; the next reconcile goes on.
func (e *external) Delete(ctx context.Context, cr *v1alpha1.Bucket) (managed.ExternalDelete, error) {
	cr.SetConditions(xpv2.Deleting())

	b := e.found
	if b == nil {
		return managed.ExternalDelete{}, nil
	}

	if cr.Spec.ForProvider.ForceDestroy {
		done, err := b.destroyContent(ctx)
		if err != nil || !done {
			return managed.ExternalDelete{}, err
		}
	}

	c, err := b.count(ctx, countMost)
	if s3.Code(err) == codeNoBucket {
		return managed.ExternalDelete{}, nil
	}

	if err != nil {
		return managed.ExternalDelete{}, err
	}

	if c != (content{}) {
		return managed.ExternalDelete{}, notEmpty(b.name, c, cr.Spec.ForProvider.ForceDestroy)
	}

	_, err = b.api.DeleteBucket(ctx, &awss3.DeleteBucketInput{Bucket: aws.String(b.name)})
	if s3.Code(err) == codeNoBucket {
		return managed.ExternalDelete{}, nil
	}

	return managed.ExternalDelete{}, err
}

func notEmpty(name string, c content, forced bool) *outside.Failure {
	f := &outside.Failure{
		Reason:  capstan.ReasonNotEmpty,
		Message: fmt.Sprintf("bucket %q holds %s", name, c),
		Remedy:  "empty it, or set spec.forProvider.forceDestroy to true to delete all of it, or take Delete out of spec.managementPolicies to keep the bucket",
	}

	if forced {
		f.Remedy = "the provider empties it again; see who goes on writing to it, or whether it holds names that the server cannot list as they are"
	}

	return f
}
