// SPDX-License-Identifier: Apache-2.0

package feature

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

// lockFeature protects versions of objects. It is set when the bucket is made, and cannot be removed: removing it removes the
// default retention.
func lockFeature() feature {
	return unit[objectLock]{
		field:     "objectLock",
		asks:      func(p *v1alpha1.BucketParameters) bool { return p.ObjectLock != nil },
		want:      func(p *v1alpha1.BucketParameters) (objectLock, error) { return wantedLock(p.ObjectLock), nil },
		observe:   lockOf,
		same:      func(want, got objectLock) bool { return want == got },
		removable: func(got objectLock, _ *v1alpha1.BucketParameters) bool { return got.mode != "" },
		apply:     setLock,
		remove: func(ctx context.Context, b Bucket, got objectLock) error {
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

func lockOf(ctx context.Context, b Bucket) (objectLock, error) {
	out, err := b.API.GetObjectLockConfiguration(ctx, &awss3.GetObjectLockConfigurationInput{Bucket: aws.String(b.Name)})
	if isNone(err, "ObjectLockConfigurationNotFoundError", "ObjectLockConfigurationNotFound") {
		return objectLock{}, nil
	}
	if err != nil {
		return objectLock{}, err
	}
	return observedLock(out.ObjectLockConfiguration), nil
}

// Locked reports whether versions of objects can be protected in a bucket.
func Locked(ctx context.Context, b Bucket) (bool, error) {
	l, err := lockOf(ctx, b)
	return l.enabled, err
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

// setLock also locks a bucket that was made without it and taken over, if the server can. That needs versioning.
func setLock(ctx context.Context, b Bucket, want, got objectLock) error {
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
	_, err := b.API.PutObjectLockConfiguration(ctx, &awss3.PutObjectLockConfigurationInput{
		Bucket: aws.String(b.Name), ObjectLockConfiguration: c,
	})
	return err
}
