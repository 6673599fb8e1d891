// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/capstan-dev/capstan/apis/storage/v1alpha1"
)

// An objectLock is whether versions can be protected, and how long new ones are.
type objectLock struct {
	enabled bool

	mode        string
	days, years int32
}

// lockFeature protects versions of objects. It is asked for when the bucket is
// made, and never goes away again: to remove it is to remove the default retention.
func lockFeature() feature {
	return unit[objectLock]{
		field:     "objectLock",
		asks:      func(p *v1alpha1.BucketParameters) bool { return p.ObjectLock != nil },
		want:      func(p *v1alpha1.BucketParameters) (objectLock, error) { return wantedLock(p.ObjectLock), nil },
		observe:   lockOf,
		same:      func(want, got objectLock) bool { return want == got },
		removable: func(got objectLock, _ *v1alpha1.BucketParameters) bool { return got.mode != "" },
		apply:     setLock,
		remove: func(ctx context.Context, b *bucket, got objectLock) error {
			return setLock(ctx, b, objectLock{enabled: true}, got)
		},
	}
}

func wantedLock(l *v1alpha1.ObjectLock) objectLock {
	want := objectLock{enabled: true}
	if r := l.DefaultRetention; r != nil {
		want.mode, want.days, want.years = strings.ToUpper(r.Mode), aws.ToInt32(r.Days), aws.ToInt32(r.Years)
	}

	return want
}

func lockOf(ctx context.Context, b *bucket) (objectLock, error) {
	out, err := b.api.GetObjectLockConfiguration(ctx, &awss3.GetObjectLockConfigurationInput{Bucket: aws.String(b.name)})
	if isNone(err, "ObjectLockConfigurationNotFoundError", "ObjectLockConfigurationNotFound") {
		return objectLock{}, nil
	}

	if err != nil {
		return objectLock{}, err
	}

	return observedLock(out.ObjectLockConfiguration), nil
}

func observedLock(c *types.ObjectLockConfiguration) objectLock {
	if c == nil {
		return objectLock{}
	}

	got := objectLock{enabled: c.ObjectLockEnabled == types.ObjectLockEnabledEnabled}
	if c.Rule != nil && c.Rule.DefaultRetention != nil {
		r := c.Rule.DefaultRetention
		got.mode, got.days, got.years = string(r.Mode), aws.ToInt32(r.Days), aws.ToInt32(r.Years)
	}

	return got
}

// setLock also locks a bucket that was made without it and taken over, if the
// server can. That needs versioning.
func setLock(ctx context.Context, b *bucket, want, got objectLock) error {
	if !got.enabled {
		if err := setVersioning(ctx, b, versioningEnabled); err != nil {
			return err
		}
	}

	c := &types.ObjectLockConfiguration{ObjectLockEnabled: types.ObjectLockEnabledEnabled}

	if want.mode != "" {
		r := &types.DefaultRetention{Mode: types.ObjectLockRetentionMode(want.mode)}
		if want.days > 0 {
			r.Days = aws.Int32(want.days)
		}

		if want.years > 0 {
			r.Years = aws.Int32(want.years)
		}

		c.Rule = &types.ObjectLockRule{DefaultRetention: r}
	}

	_, err := b.api.PutObjectLockConfiguration(ctx, &awss3.PutObjectLockConfigurationInput{
		Bucket: aws.String(b.name), ObjectLockConfiguration: c,
	})

	return err
}
