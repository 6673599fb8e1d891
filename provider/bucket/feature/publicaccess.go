// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/capstan-dev/capstan/apis/storage/v1alpha1"
)

// A publicAccess is what is forbidden of what would make a bucket public.
type publicAccess struct {
	blockACLs, ignoreACLs, blockPolicy, restrict bool
}

// publicAccessFeature forbids what would make the bucket public.
func publicAccessFeature() feature {
	return unit[publicAccess]{
		field: "publicAccessBlock",
		asks:  func(p *v1alpha1.BucketParameters) bool { return p.PublicAccessBlock != nil },
		want: func(p *v1alpha1.BucketParameters) (publicAccess, error) {
			return wantedAccess(p.PublicAccessBlock), nil
		},
		observe:   accessOf,
		same:      func(want, got publicAccess) bool { return want == got },
		removable: func(got publicAccess, _ *v1alpha1.BucketParameters) bool { return got != publicAccess{} },
		apply:     setAccess,
		remove: func(ctx context.Context, b Bucket, _ publicAccess) error {
			_, err := b.API.DeletePublicAccessBlock(ctx, &awss3.DeletePublicAccessBlockInput{Bucket: aws.String(b.Name)})
			return err
		},
	}
}

// wantedAccess forbids what is left out, as the schema does.
func wantedAccess(p *v1alpha1.PublicAccessBlock) publicAccess {
	on := func(b *bool) bool { return b == nil || *b }
	return publicAccess{
		blockACLs:   on(p.BlockPublicACLs),
		ignoreACLs:  on(p.IgnorePublicACLs),
		blockPolicy: on(p.BlockPublicPolicy),
		restrict:    on(p.RestrictPublicBuckets),
	}
}

func accessOf(ctx context.Context, b Bucket) (publicAccess, error) {
	out, err := b.API.GetPublicAccessBlock(ctx, &awss3.GetPublicAccessBlockInput{Bucket: aws.String(b.Name)})
	if isNone(err, "NoSuchPublicAccessBlockConfiguration") {
		return publicAccess{}, nil
	}
	if err != nil {
		return publicAccess{}, err
	}
	return observedAccess(out.PublicAccessBlockConfiguration), nil
}

func observedAccess(c *types.PublicAccessBlockConfiguration) publicAccess {
	if c == nil {
		return publicAccess{}
	}
	return publicAccess{
		blockACLs:   aws.ToBool(c.BlockPublicAcls),
		ignoreACLs:  aws.ToBool(c.IgnorePublicAcls),
		blockPolicy: aws.ToBool(c.BlockPublicPolicy),
		restrict:    aws.ToBool(c.RestrictPublicBuckets),
	}
}

func setAccess(ctx context.Context, b Bucket, want, _ publicAccess) error {
	_, err := b.API.PutPublicAccessBlock(ctx, &awss3.PutPublicAccessBlockInput{
		Bucket: aws.String(b.Name),
		PublicAccessBlockConfiguration: &types.PublicAccessBlockConfiguration{
			BlockPublicAcls:       aws.Bool(want.blockACLs),
			IgnorePublicAcls:      aws.Bool(want.ignoreACLs),
			BlockPublicPolicy:     aws.Bool(want.blockPolicy),
			RestrictPublicBuckets: aws.Bool(want.restrict),
		},
	})
	return err
}
