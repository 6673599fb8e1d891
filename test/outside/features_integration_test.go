// SPDX-License-Identifier: Apache-2.0

//go:build integration

package outside

import (
	"context"
	"crypto/md5"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"
)

const missing = "NotImplemented"

const (
	locked   = "object lock at creation, default retention"
	unlocked = "versioning off with object lock"
	stranger = "a wrong secret"
)

// features lists the response of each S3 server. The table in hack/cluster/README.md has the same content.
func features() []feature {
	return []feature{
		{"versioning on, off, on", versioning, "", ""},
		{"tags", tags, "", ""},
		{locked, objectLock, "", ""},
		{"object lock on a versioned bucket that is there", objectLockLater, "", ""},
		{"policy", policy, "", ""},
		{"CORS", cors, "", ""},
		{"ownership controls", ownership, "", ""},
		{"lifecycle rules", lifecycle, missing, ""},
		{"server-side encryption", encryption, missing, ""},
		{"public access block", publicAccess, missing, ""},
		{"access logs", logging, missing, ""},
		{"replication", replication, missing, "ReplicationConfigurationNotFoundError"},
		{"notifications", notification, missing, ""},
		{"transfer acceleration", acceleration, missing, ""},
		{"requester pays", payment, missing, ""},
		{"multipart uploads: list, abort", uploads, "", ""},
		{"make one's own bucket again", again, "BucketAlreadyOwnedByYou", ""},
		{"delete a bucket with an object in it", deleteFull, "BucketNotEmpty", "BucketNotEmpty"},
		{"delete a bucket with only an upload in it", deleteUploading, "", ""},
		{"a policy that is no JSON", badPolicy, "MalformedPolicy", ""},
		{unlocked, unlock, "InvalidBucketState", ""},
		{stranger, list, "SignatureDoesNotMatch", ""},
	}
}

type feature struct {
	name            string
	probe           func(ctx context.Context, c *s3.Client, bucket *string) error
	versitygw, moto string
}

func (f feature) row() string {
	cell := func(code string) string {
		if code == "" {
			return "yes"
		}
		return "`" + code + "`"
	}
	return fmt.Sprintf("| %s | %s | %s |", f.name, cell(f.versitygw), cell(f.moto))
}

func TestS3Features(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(repository(t), "hack", "cluster", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	versitygw, moto := SharedS3(t), SharedAWS(t)
	for i, f := range features() {
		t.Run(f.name, func(t *testing.T) {
			for _, srv := range []struct {
				*S3Server

				want string
			}{{versitygw, f.versitygw}, {moto, f.moto}} {
				c, bucket := client(srv.S3Server), aws.String(fmt.Sprintf("feature-%d", i))
				if _, err := c.CreateBucket(t.Context(), &s3.CreateBucketInput{
					Bucket: bucket, ObjectLockEnabledForBucket: aws.Bool(f.name == locked || f.name == unlocked),
				}); err != nil {
					t.Fatalf("%s: %v", srv.name, err)
				}
				if f.name == stranger {
					// An option of a single call is not enough: the SDK would still sign with the client's own secret.
					c = clientOf(srv.Endpoint, srv.CA, srv.AccessKey, "wrong")
				}
				if diff := cmp.Diff(srv.want, code(f.probe(t.Context(), c, bucket))); diff != "" {
					t.Errorf("%s: -want error, +got error:\n%s", srv.name, diff)
				}
			}
			if !strings.Contains(string(readme), f.row()+"\n") {
				t.Errorf("hack/cluster/README.md lacks the line\n%s", f.row())
			}
		})
	}
}

func versioning(ctx context.Context, c *s3.Client, bucket *string) error {
	for _, want := range []types.BucketVersioningStatus{"Enabled", "Suspended", "Enabled"} {
		if _, err := c.PutBucketVersioning(ctx, &s3.PutBucketVersioningInput{
			Bucket: bucket, VersioningConfiguration: &types.VersioningConfiguration{Status: want},
		}); err != nil {
			return err
		}
		got, err := c.GetBucketVersioning(ctx, &s3.GetBucketVersioningInput{Bucket: bucket})
		if err != nil {
			return err
		}
		if got.Status != want {
			return fmt.Errorf("versioning is %q, want %q", got.Status, want)
		}
	}
	return nil
}

func tags(ctx context.Context, c *s3.Client, bucket *string) error {
	if _, err := c.GetBucketTagging(ctx, &s3.GetBucketTaggingInput{Bucket: bucket}); code(err) != "NoSuchTagSet" {
		return fmt.Errorf("without tags: %w", err)
	}
	if _, err := c.PutBucketTagging(ctx, &s3.PutBucketTaggingInput{
		Bucket: bucket, Tagging: &types.Tagging{TagSet: []types.Tag{{Key: aws.String("team"), Value: aws.String("risk")}}},
	}); err != nil {
		return err
	}
	got, err := c.GetBucketTagging(ctx, &s3.GetBucketTaggingInput{Bucket: bucket})
	if err != nil || len(got.TagSet) != 1 {
		return fmt.Errorf("one tag was set, not %v: %w", got, err)
	}
	_, err = c.DeleteBucketTagging(ctx, &s3.DeleteBucketTaggingInput{Bucket: bucket})
	return err
}

func retention() *types.ObjectLockConfiguration {
	return &types.ObjectLockConfiguration{
		ObjectLockEnabled: types.ObjectLockEnabledEnabled,
		Rule: &types.ObjectLockRule{DefaultRetention: &types.DefaultRetention{
			Mode: types.ObjectLockRetentionModeGovernance, Days: aws.Int32(1),
		}},
	}
}

// objectLock shows that a locked version of an object cannot be deleted.
func objectLock(ctx context.Context, c *s3.Client, bucket *string) error {
	if _, err := c.PutObjectLockConfiguration(ctx, &s3.PutObjectLockConfigurationInput{
		Bucket: bucket, ObjectLockConfiguration: retention(),
	}); err != nil {
		return err
	}
	got, err := c.GetObjectLockConfiguration(ctx, &s3.GetObjectLockConfigurationInput{Bucket: bucket})
	if err != nil || aws.ToInt32(got.ObjectLockConfiguration.Rule.DefaultRetention.Days) != 1 {
		return fmt.Errorf("one day was set, not %v: %w", got, err)
	}
	sum := md5.Sum([]byte("x"))
	put, err := c.PutObject(ctx, &s3.PutObjectInput{
		Bucket: bucket, Key: aws.String("x"), Body: strings.NewReader("x"),
		// moto ignores the checksum that the SDK sends after the body.
		ContentMD5: aws.String(base64.StdEncoding.EncodeToString(sum[:])),
	})
	if err != nil {
		return err
	}
	_, err = c.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: bucket, Key: aws.String("x"), VersionId: put.VersionId})
	if code(err) != "AccessDenied" && code(err) != "InvalidRequest" {
		return fmt.Errorf("the deletion of a locked version: %w", err)
	}
	return nil
}

func objectLockLater(ctx context.Context, c *s3.Client, bucket *string) error {
	if err := versioning(ctx, c, bucket); err != nil {
		return err
	}
	_, err := c.PutObjectLockConfiguration(ctx, &s3.PutObjectLockConfigurationInput{Bucket: bucket, ObjectLockConfiguration: retention()})
	return err
}

func unlock(ctx context.Context, c *s3.Client, bucket *string) error {
	_, err := c.PutBucketVersioning(ctx, &s3.PutBucketVersioningInput{
		Bucket: bucket, VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatusSuspended},
	})
	return err
}

func policy(ctx context.Context, c *s3.Client, bucket *string) error {
	if _, err := c.PutBucketPolicy(ctx, &s3.PutBucketPolicyInput{Bucket: bucket, Policy: aws.String(
		`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":"*","Action":"s3:GetObject","Resource":"arn:aws:s3:::` +
			*bucket + `/*"}]}`)}); err != nil {
		return err
	}
	if _, err := c.GetBucketPolicy(ctx, &s3.GetBucketPolicyInput{Bucket: bucket}); err != nil {
		return err
	}
	_, err := c.DeleteBucketPolicy(ctx, &s3.DeleteBucketPolicyInput{Bucket: bucket})
	return err
}

func badPolicy(ctx context.Context, c *s3.Client, bucket *string) error {
	_, err := c.PutBucketPolicy(ctx, &s3.PutBucketPolicyInput{Bucket: bucket, Policy: aws.String(`{"Version":`)})
	return err
}

func cors(ctx context.Context, c *s3.Client, bucket *string) error {
	if _, err := c.PutBucketCors(ctx, &s3.PutBucketCorsInput{Bucket: bucket, CORSConfiguration: &types.CORSConfiguration{
		CORSRules: []types.CORSRule{{AllowedMethods: []string{"GET"}, AllowedOrigins: []string{"https://example.org"}}},
	}}); err != nil {
		return err
	}
	if _, err := c.GetBucketCors(ctx, &s3.GetBucketCorsInput{Bucket: bucket}); err != nil {
		return err
	}
	_, err := c.DeleteBucketCors(ctx, &s3.DeleteBucketCorsInput{Bucket: bucket})
	return err
}

func ownership(ctx context.Context, c *s3.Client, bucket *string) error {
	_, err := c.PutBucketOwnershipControls(ctx, &s3.PutBucketOwnershipControlsInput{
		Bucket: bucket, OwnershipControls: &types.OwnershipControls{
			Rules: []types.OwnershipControlsRule{{ObjectOwnership: types.ObjectOwnershipBucketOwnerEnforced}},
		},
	})
	return err
}

func lifecycle(ctx context.Context, c *s3.Client, bucket *string) error {
	if _, err := c.PutBucketLifecycleConfiguration(ctx, &s3.PutBucketLifecycleConfigurationInput{
		Bucket: bucket, LifecycleConfiguration: &types.BucketLifecycleConfiguration{Rules: []types.LifecycleRule{{
			ID: aws.String("temporary"), Status: types.ExpirationStatusEnabled,
			Filter: &types.LifecycleRuleFilter{Prefix: aws.String("tmp/")}, Expiration: &types.LifecycleExpiration{Days: aws.Int32(3)},
		}}},
	}); err != nil {
		return err
	}
	got, err := c.GetBucketLifecycleConfiguration(ctx, &s3.GetBucketLifecycleConfigurationInput{Bucket: bucket})
	if err != nil || len(got.Rules) != 1 {
		return fmt.Errorf("one rule was set, not %v: %w", got, err)
	}
	_, err = c.DeleteBucketLifecycle(ctx, &s3.DeleteBucketLifecycleInput{Bucket: bucket})
	return err
}

func encryption(ctx context.Context, c *s3.Client, bucket *string) error {
	if _, err := c.PutBucketEncryption(ctx, &s3.PutBucketEncryptionInput{
		Bucket: bucket, ServerSideEncryptionConfiguration: &types.ServerSideEncryptionConfiguration{
			Rules: []types.ServerSideEncryptionRule{{
				ApplyServerSideEncryptionByDefault: &types.ServerSideEncryptionByDefault{SSEAlgorithm: types.ServerSideEncryptionAes256},
			}},
		},
	}); err != nil {
		return err
	}
	if _, err := c.GetBucketEncryption(ctx, &s3.GetBucketEncryptionInput{Bucket: bucket}); err != nil {
		return err
	}
	_, err := c.DeleteBucketEncryption(ctx, &s3.DeleteBucketEncryptionInput{Bucket: bucket})
	return err
}

func publicAccess(ctx context.Context, c *s3.Client, bucket *string) error {
	if _, err := c.PutPublicAccessBlock(ctx, &s3.PutPublicAccessBlockInput{
		Bucket: bucket, PublicAccessBlockConfiguration: &types.PublicAccessBlockConfiguration{BlockPublicAcls: aws.Bool(true)},
	}); err != nil {
		return err
	}
	if _, err := c.GetPublicAccessBlock(ctx, &s3.GetPublicAccessBlockInput{Bucket: bucket}); err != nil {
		return err
	}
	_, err := c.DeletePublicAccessBlock(ctx, &s3.DeletePublicAccessBlockInput{Bucket: bucket})
	return err
}

func logging(ctx context.Context, c *s3.Client, bucket *string) error {
	_, err := c.GetBucketLogging(ctx, &s3.GetBucketLoggingInput{Bucket: bucket})
	return err
}

func replication(ctx context.Context, c *s3.Client, bucket *string) error {
	_, err := c.GetBucketReplication(ctx, &s3.GetBucketReplicationInput{Bucket: bucket})
	return err
}

func notification(ctx context.Context, c *s3.Client, bucket *string) error {
	_, err := c.GetBucketNotificationConfiguration(ctx, &s3.GetBucketNotificationConfigurationInput{Bucket: bucket})
	return err
}

func acceleration(ctx context.Context, c *s3.Client, bucket *string) error {
	_, err := c.GetBucketAccelerateConfiguration(ctx, &s3.GetBucketAccelerateConfigurationInput{Bucket: bucket})
	return err
}

func payment(ctx context.Context, c *s3.Client, bucket *string) error {
	_, err := c.GetBucketRequestPayment(ctx, &s3.GetBucketRequestPaymentInput{Bucket: bucket})
	return err
}

func uploads(ctx context.Context, c *s3.Client, bucket *string) error {
	started, err := c.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: bucket, Key: aws.String("x")})
	if err != nil {
		return err
	}
	got, err := c.ListMultipartUploads(ctx, &s3.ListMultipartUploadsInput{Bucket: bucket})
	if err != nil || len(got.Uploads) != 1 {
		return fmt.Errorf("one upload was started, not %v: %w", got, err)
	}
	_, err = c.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: bucket, Key: aws.String("x"), UploadId: started.UploadId})
	return err
}

func again(ctx context.Context, c *s3.Client, bucket *string) error {
	_, err := c.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: bucket})
	return err
}

func deleteFull(ctx context.Context, c *s3.Client, bucket *string) error {
	if _, err := c.PutObject(ctx, &s3.PutObjectInput{Bucket: bucket, Key: aws.String("x"), Body: strings.NewReader("x")}); err != nil {
		return err
	}
	_, err := c.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: bucket})
	return err
}

func deleteUploading(ctx context.Context, c *s3.Client, bucket *string) error {
	if _, err := c.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: bucket, Key: aws.String("x")}); err != nil {
		return err
	}
	_, err := c.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: bucket})
	return err
}

func list(ctx context.Context, c *s3.Client, bucket *string) error {
	_, err := c.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: bucket})
	return err
}

func client(s *S3Server) *s3.Client { return clientOf(s.Endpoint, s.CA, s.AccessKey, s.SecretKey) }

func clientOf(endpoint string, authority []byte, access, secret string) *s3.Client {
	return s3.New(s3.Options{
		BaseEndpoint: aws.String(endpoint), Region: region, UsePathStyle: true, RetryMaxAttempts: 1,
		HTTPClient:  Client(authority),
		Credentials: credentials.NewStaticCredentialsProvider(access, secret, ""),
	})
}

// code is a server's error code, or its whole message without a code.
func code(err error) string {
	var api smithy.APIError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &api):
		return api.ErrorCode()
	}
	return err.Error()
}
