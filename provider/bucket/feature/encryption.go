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

// An encryption is how the server encrypts new objects.
type encryption struct {
	algorithm, key string
	bucketKey      bool

	// blocked is what we do not set and must not take away.
	blocked *types.BlockedEncryptionTypes
}

// encryptionFeature encrypts new objects.
func encryptionFeature() feature {
	return unit[encryption]{
		field:     "encryption",
		asks:      func(p *v1alpha1.BucketParameters) bool { return p.Encryption != nil },
		want:      func(p *v1alpha1.BucketParameters) (encryption, error) { return wantedEncryption(p.Encryption), nil },
		observe:   encryptionOf,
		same:      sameEncryption,
		removable: func(got encryption, _ *v1alpha1.BucketParameters) bool { return got.algorithm != "" },
		apply:     setEncryption,
		remove: func(ctx context.Context, b Bucket, _ encryption) error {
			_, err := b.API.DeleteBucketEncryption(ctx, &awss3.DeleteBucketEncryptionInput{Bucket: aws.String(b.Name)})
			return err
		},
	}
}

func wantedEncryption(e *v1alpha1.Encryption) encryption {
	return encryption{algorithm: e.Algorithm, key: aws.ToString(e.KMSKeyID), bucketKey: aws.ToBool(e.BucketKey)}
}

func encryptionOf(ctx context.Context, b Bucket) (encryption, error) {
	out, err := b.API.GetBucketEncryption(ctx, &awss3.GetBucketEncryptionInput{Bucket: aws.String(b.Name)})
	if isNone(err, "ServerSideEncryptionConfigurationNotFoundError", "NoSuchServerSideEncryptionConfiguration") {
		return encryption{}, nil
	}
	if err != nil {
		return encryption{}, err
	}
	return observedEncryption(out.ServerSideEncryptionConfiguration), nil
}

func observedEncryption(c *types.ServerSideEncryptionConfiguration) encryption {
	if c == nil || len(c.Rules) == 0 {
		return encryption{}
	}
	r := c.Rules[0]
	got := encryption{bucketKey: aws.ToBool(r.BucketKeyEnabled), blocked: r.BlockedEncryptionTypes}
	if d := r.ApplyServerSideEncryptionByDefault; d != nil {
		got.algorithm, got.key = string(d.SSEAlgorithm), aws.ToString(d.KMSMasterKeyID)
	}
	return got
}

// sameEncryption takes a key's ARN for the key, and leaves the key to the server when the spec names none: it may fill one in.
func sameEncryption(want, got encryption) bool {
	if want.algorithm != got.algorithm || want.bucketKey != got.bucketKey {
		return false
	}

	// A key follows ":key/" in an ARN, and an alias says itself that it is one.
	return want.key == "" || want.key == got.key ||
		strings.HasPrefix(got.key, "arn:") && (strings.HasSuffix(got.key, "/"+want.key) || strings.HasSuffix(got.key, ":"+want.key))
}

func setEncryption(ctx context.Context, b Bucket, want, got encryption) error {
	d := &types.ServerSideEncryptionByDefault{SSEAlgorithm: types.ServerSideEncryption(want.algorithm)}
	r := types.ServerSideEncryptionRule{ApplyServerSideEncryptionByDefault: d, BlockedEncryptionTypes: got.blocked}
	if want.key != "" {
		d.KMSMasterKeyID = aws.String(want.key)
	} else if want.algorithm == got.algorithm && got.key != "" {
		d.KMSMasterKeyID = aws.String(got.key)
	}

	// What a server may not know is said only when it matters.
	if want.bucketKey || got.bucketKey {
		r.BucketKeyEnabled = aws.Bool(want.bucketKey)
	}
	_, err := b.API.PutBucketEncryption(ctx, &awss3.PutBucketEncryptionInput{
		Bucket: aws.String(b.Name),
		ServerSideEncryptionConfiguration: &types.ServerSideEncryptionConfiguration{
			Rules: []types.ServerSideEncryptionRule{r},
		},
	})
	return err
}
