// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/capstan-dev/capstan/images/companion/internal/failure"
	"github.com/capstan-dev/capstan/images/companion/internal/model"
	"github.com/capstan-dev/capstan/images/companion/internal/transfer"
	"github.com/capstan-dev/capstan/internal/s3options"
)

// mainRegion is what servers of other makes call theirs by default.
const mainRegion = "us-east-1"

// bucketOf is a set of objects of a bucket.
type bucketOf struct {
	api *s3.Client
	// bucket and key, or prefix of keys, of a URI.
	bucket, key string
	// opened is the bucket that the credentials are for, if they say so.
	opened string
}

// newS3 returns the objects that a URI as in s3://bucket/prefix names: all below the prefix and a slash, or the one object of
// that name.
func newS3(ctx context.Context, uri string, o Options) (Source, error) {
	bucket, key, _ := strings.Cut(strings.TrimPrefix(uri, "s3://"), "/")
	if !strings.HasPrefix(uri, "s3://") || bucket == "" {
		return nil, invalid(uri, "it should look like s3://bucket/prefix")
	}
	options, err := s3Options(ctx, o)
	if err != nil {
		return nil, err
	}
	// Checksums are compared when a file is complete, also if it came in parts.
	b := &bucketOf{api: s3.New(options, s3options.AnyMake), bucket: bucket, key: strings.TrimRight(key, "/"), opened: o.Credentials.Bucket}
	return &files{o: o.Options, list: b.all}, nil
}

func s3Options(ctx context.Context, o Options) (s3.Options, error) {
	c := &o.Credentials
	transport, err := newTransport(c, time.Minute)
	if err != nil {
		return s3.Options{}, err
	}
	options := s3.Options{
		HTTPClient: &smithyClient{transport: transport},
		// Streams try again by themselves, where they broke off.
		Retryer: aws.NopRetryer{},
	}
	for _, endpoint := range []string{c.Endpoint, o.Endpoint} {
		if endpoint == "" {
			continue
		}
		if !strings.HasPrefix(endpoint, "https://") && !strings.HasPrefix(endpoint, "http://") {
			return options, failure.New(failure.Invalid, fmt.Sprintf("endpoint %s is no URL", strconv.Quote(endpoint)),
				"begin the endpoint with https:// or http://")
		}
		options.BaseEndpoint, options.UsePathStyle = aws.String(strings.TrimRight(endpoint, "/")), true
	}
	if o.google {
		options.APIOptions = append(options.APIOptions, signWithoutEncoding)
	}
	options.Region = c.Region
	if o.Region != "" {
		options.Region = o.Region
	}
	if c.AccessKeyID != "" {
		options.Credentials = credentials.NewStaticCredentialsProvider(c.AccessKeyID, c.SecretAccessKey, c.SessionToken)
	} else if err := ownIdentity(ctx, &options); err != nil {
		return options, err
	}
	if options.Region == "" {
		options.Region = mainRegion
	}
	return options, nil
}

// ownIdentity lets a pod be who its ServiceAccount or its node is to AWS, and no user elsewhere.
func ownIdentity(ctx context.Context, options *s3.Options) error {
	given := false
	for _, name := range []string{
		"AWS_ROLE_ARN", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_ACCESS_KEY_ID",
	} {
		given = given || os.Getenv(name) != ""
	}
	options.Credentials = aws.AnonymousCredentials{}
	if !given && options.BaseEndpoint != nil {
		return nil
	}
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return fmt.Errorf("cannot find out who the pod is to AWS: %w", err)
	}
	if options.Region == "" {
		options.Region = cfg.Region
	}
	limit, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	if _, err := cfg.Credentials.Retrieve(limit); err != nil {
		if given {
			return &failure.Failure{
				Reason: failure.Forbidden, Cause: "AWS does not give the pod's ServiceAccount credentials", Err: err,
				Remedy: "correct its role, or name a Secret in spec.model.credentials",
			}
		}
		return nil
	}
	options.Credentials = cfg.Credentials
	return nil
}

// all objects of the model.
func (b *bucketOf) all(ctx context.Context) ([]transfer.File, error) {
	found, refusal := b.below(ctx)
	if refusal != nil && !failure.Is(refusal, failure.Forbidden) || len(found) > 0 {
		return found, refusal
	}
	// A user that may not list may still get an object by its name.
	one, err := b.object(ctx)
	switch {
	case err == nil:
		return []transfer.File{one}, nil
	case refusal != nil:
		return nil, refusal
	}
	return nil, err
}

// below returns the objects whose keys begin with the model's and a slash.
func (b *bucketOf) below(ctx context.Context) ([]transfer.File, error) {
	prefix := b.key
	if prefix != "" {
		prefix += "/"
	}
	var found []transfer.File
	pages := s3.NewListObjectsV2Paginator(b.api, &s3.ListObjectsV2Input{Bucket: &b.bucket, Prefix: aws.String(prefix)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, b.explain(b.key, err)
		}
		for i := range page.Contents {
			key := aws.ToString(page.Contents[i].Key)
			name := strings.TrimPrefix(key, prefix)
			if strings.HasSuffix(key, "/") && aws.ToInt64(page.Contents[i].Size) == 0 {
				continue // consoles make an object for a folder
			}
			if err := model.ValidPath(name); err != nil || !strings.HasPrefix(key, prefix) {
				return nil, failure.New(failure.Invalid,
					fmt.Sprintf("object %s cannot be a file of the model: a step is empty, . or .., or has a control character or a backslash", strconv.Quote(key)),
					"rename or delete it")
			}
			found = append(found, b.file(key, name, aws.ToInt64(page.Contents[i].Size), page.Contents[i].ETag))
		}
		if err := model.Countable(len(found)); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// object returns the one that is called as the model is.
func (b *bucketOf) object(ctx context.Context) (transfer.File, error) {
	missing := failure.New(failure.NotFound, fmt.Sprintf("bucket %q has no object %q and none below it", b.bucket, b.key),
		"correct the URI, or upload the model")
	name := path.Base(b.key)
	if model.ValidPath(name) != nil {
		return transfer.File{}, missing
	}
	head, err := b.api.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &b.bucket, Key: &b.key})
	if err != nil {
		if err = b.explain(b.key, err); failure.Is(err, failure.NotFound) {
			return transfer.File{}, missing
		}
		return transfer.File{}, err
	}
	return b.file(b.key, name, aws.ToInt64(head.ContentLength), head.ETag), nil
}

// file returns how to download an object that was seen with this size and entity tag, and no other.
func (b *bucketOf) file(key, name string, size int64, etag *string) transfer.File {
	var checks atomic.Pointer[[]transfer.Check]
	get := func(ctx context.Context, span string, length int64) (io.ReadCloser, error) {
		in := &s3.GetObjectInput{Bucket: &b.bucket, Key: &key, IfMatch: etag}
		if span != "" {
			in.Range = &span
		}
		out, err := b.api.GetObject(ctx, in, withChecksums)
		if err != nil {
			return nil, b.explain(key, err)
		}
		if out.ContentLength != nil && *out.ContentLength != length {
			_ = out.Body.Close()
			return nil, changed(fmt.Sprintf("object %q", key))
		}
		if span == "" {
			list := checksOf(out.ChecksumType, out.ChecksumSHA256, out.ChecksumCRC64NVME, out.ChecksumCRC32C, out.ChecksumCRC32, out.ChecksumSHA1)
			checks.Store(&list)
		}
		return out.Body, nil
	}
	return transfer.File{
		Path: name, Size: size, Parts: true,
		Open: func(ctx context.Context, offset int64) (io.ReadCloser, error) {
			if offset == 0 {
				return get(ctx, "", size)
			}
			return get(ctx, fmt.Sprintf("bytes=%d-", offset), size-offset)
		},
		OpenPart: func(ctx context.Context, offset, length int64) (io.ReadCloser, error) {
			return get(ctx, fmt.Sprintf("bytes=%d-%d", offset, offset+length-1), length)
		},
		// An answer to a part has no checksum of the whole.
		Prepare: func(ctx context.Context) error {
			head, err := b.api.HeadObject(ctx, &s3.HeadObjectInput{
				Bucket: &b.bucket, Key: &key, IfMatch: etag, ChecksumMode: types.ChecksumModeEnabled,
			})
			if err != nil {
				return b.explain(key, err)
			}
			list := checksOf(head.ChecksumType, head.ChecksumSHA256, head.ChecksumCRC64NVME, head.ChecksumCRC32C, head.ChecksumCRC32, head.ChecksumSHA1)
			checks.Store(&list)
			return nil
		},
		Checks: func() []transfer.Check {
			if list := checks.Load(); list != nil {
				return *list
			}
			return nil
		},
	}
}

// withChecksums asks for an object's checksums, and leaves it to us to compare them.
func withChecksums(o *s3.Options) {
	o.APIOptions = append(o.APIOptions, func(s *middleware.Stack) error {
		return smithyhttp.SetHeaderValue("X-Amz-Checksum-Mode", string(types.ChecksumModeEnabled))(s)
	})
}

// signWithoutEncoding leaves out a header that Google changes on the way, so that a signature with it never fits.
func signWithoutEncoding(s *middleware.Stack) error {
	return s.Finalize.Insert(middleware.FinalizeMiddlewareFunc("SignWithoutEncoding",
		func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
			if r, ok := in.Request.(*smithyhttp.Request); ok {
				r.Header.Del("Accept-Encoding")
			}
			return next.HandleFinalize(ctx, in)
		}), "Signing", middleware.Before)
}
