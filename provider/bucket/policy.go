// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	capstan "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
)

// A policy is a document as it is sent, and what it means.
type policy struct {
	text, meaning string
}

// policyFeature says who may do what with the bucket.
func policyFeature() feature {
	return unit[policy]{
		field:     "policy",
		asks:      func(p *v1alpha1.BucketParameters) bool { return p.Policy != nil },
		want:      func(p *v1alpha1.BucketParameters) (policy, error) { return wantedPolicy(aws.ToString(p.Policy)) },
		observe:   policyOf,
		same:      func(want, got policy) bool { return want.meaning == got.meaning },
		removable: func(got policy, _ *v1alpha1.BucketParameters) bool { return got.text != "" },
		apply: func(ctx context.Context, b *bucket, want, _ policy) error {
			_, err := b.api.PutBucketPolicy(ctx, &awss3.PutBucketPolicyInput{Bucket: aws.String(b.name), Policy: aws.String(want.text)})

			return err
		},
		remove: func(ctx context.Context, b *bucket, _ policy) error {
			_, err := b.api.DeleteBucketPolicy(ctx, &awss3.DeleteBucketPolicyInput{Bucket: aws.String(b.name)})

			return err
		},
	}
}

func wantedPolicy(written string) (policy, error) {
	text, err := spelled(written)
	if err == nil {
		written, err = normalise(text)
	}

	if err != nil {
		return policy{}, &outside.Failure{
			Reason:  capstan.ReasonRejected,
			Message: "the policy cannot be read: " + err.Error(),
			Remedy:  "correct spec.forProvider.policy",
			Cause:   err,
		}
	}

	return policy{text: text, meaning: written}, nil
}

func policyOf(ctx context.Context, b *bucket) (policy, error) {
	out, err := b.api.GetBucketPolicy(ctx, &awss3.GetBucketPolicyInput{Bucket: aws.String(b.name)})
	if isNone(err, "NoSuchBucketPolicy", "NoSuchPolicy") {
		return policy{}, nil
	}

	if err != nil {
		return policy{}, err
	}

	text := aws.ToString(out.Policy)

	meaning, err := normalise(text)
	if err != nil {
		return policy{}, fmt.Errorf("cannot read the policy of the bucket: %w", err)
	}

	return policy{text: text, meaning: meaning}, nil
}
