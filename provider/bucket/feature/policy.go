// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	capstan "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/bucket/policy"
	"github.com/capstan-dev/capstan/provider/internal/outside"
)

// A document is a policy as it is sent, and what it means.
type document struct {
	text, meaning string
}

// policyFeature says who may do what with the bucket.
func policyFeature() feature {
	return unit[document]{
		field:     "policy",
		asks:      func(p *v1alpha1.BucketParameters) bool { return p.Policy != nil },
		want:      func(p *v1alpha1.BucketParameters) (document, error) { return wantedPolicy(aws.ToString(p.Policy)) },
		observe:   policyOf,
		same:      func(want, got document) bool { return want.meaning == got.meaning },
		removable: func(got document, _ *v1alpha1.BucketParameters) bool { return got.text != "" },
		apply: func(ctx context.Context, b Bucket, want, _ document) error {
			_, err := b.API.PutBucketPolicy(ctx, &awss3.PutBucketPolicyInput{Bucket: aws.String(b.Name), Policy: aws.String(want.text)})
			return err
		},
		remove: func(ctx context.Context, b Bucket, _ document) error {
			_, err := b.API.DeleteBucketPolicy(ctx, &awss3.DeleteBucketPolicyInput{Bucket: aws.String(b.Name)})
			return err
		},
	}
}

func wantedPolicy(written string) (document, error) {
	text, err := policy.Spelled(written)
	if err == nil {
		written, err = policy.Normalise(text)
	}
	if err != nil {
		return document{}, &outside.Failure{
			Reason:  capstan.ReasonRejected,
			Message: "the policy cannot be read: " + err.Error(),
			Remedy:  "correct spec.forProvider.policy",
			Cause:   err,
		}
	}
	return document{text: text, meaning: written}, nil
}

func policyOf(ctx context.Context, b Bucket) (document, error) {
	out, err := b.API.GetBucketPolicy(ctx, &awss3.GetBucketPolicyInput{Bucket: aws.String(b.Name)})
	if isNone(err, "NoSuchBucketPolicy", "NoSuchPolicy") {
		return document{}, nil
	}
	if err != nil {
		return document{}, err
	}
	text := aws.ToString(out.Policy)
	meaning, err := policy.Normalise(text)
	if err != nil {
		return document{}, fmt.Errorf("cannot read the policy of the bucket: %w", err)
	}
	return document{text: text, meaning: meaning}, nil
}
