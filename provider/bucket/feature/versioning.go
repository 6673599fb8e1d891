// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/capstan-dev/capstan/apis/storage/v1alpha1"
)

const (
	versioningEnabled   = string(types.BucketVersioningStatusEnabled)
	versioningSuspended = string(types.BucketVersioningStatusSuspended)
)

// versioningFeature keeps old versions. A bucket never gets rid of it again: to remove it is to suspend it.
func versioningFeature() feature {
	return unit[string]{
		field:     "versioning",
		asks:      func(p *v1alpha1.BucketParameters) bool { return p.Versioning != nil },
		want:      func(p *v1alpha1.BucketParameters) (string, error) { return aws.ToString(p.Versioning), nil },
		observe:   versioningOf,
		same:      sameVersioning,
		removable: versioningRemovable,
		apply: func(ctx context.Context, b Bucket, want, _ string) error {
			return setVersioning(ctx, b, want)
		},
		remove: func(ctx context.Context, b Bucket, _ string) error {
			return setVersioning(ctx, b, versioningSuspended)
		},
	}
}

func versioningOf(ctx context.Context, b Bucket) (string, error) {
	out, err := b.API.GetBucketVersioning(ctx, &awss3.GetBucketVersioningInput{Bucket: aws.String(b.Name)})
	if err != nil {
		return "", err
	}
	return string(out.Status), nil
}

func setVersioning(ctx context.Context, b Bucket, status string) error {
	_, err := b.API.PutBucketVersioning(ctx, &awss3.PutBucketVersioningInput{
		Bucket:                  aws.String(b.Name),
		VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatus(status)},
	})
	return err
}

// sameVersioning takes versioning that was never on for suspended: neither keeps versions.
func sameVersioning(want, got string) bool {
	return want == got || want == versioningSuspended && got == ""
}

// versioningRemovable leaves it on under an object lock, which needs it.
func versioningRemovable(got string, p *v1alpha1.BucketParameters) bool {
	return got == versioningEnabled && p.ObjectLock == nil
}
