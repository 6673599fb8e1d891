// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	capstan "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/bucket/content"
	"github.com/capstan-dev/capstan/provider/bucket/feature"
	"github.com/capstan-dev/capstan/provider/internal/s3"
)

// codeNoBucket is of answers that say that there is no bucket of the name.
const codeNoBucket = "NoSuchBucket"

// A found bucket, as it was read from its server. Its tags and standing are unknown for a Bucket that only observes.
type found struct {
	feature.Bucket

	region, endpoint string
	standing         standing
}

// find the bucket, or nil when the server says explicitly that there is none. The answer to HEAD has no body: after any answer
// but yes it sends a request whose answer has one, and that needs the same right. A proxy's 404 is then an error and not a
// deleted bucket.
func (e *external) find(ctx context.Context) (*found, error) {
	b := &found{Bucket: feature.Bucket{API: e.api, Name: e.name, Owner: e.owner}, region: e.region}
	head, err := e.api.HeadBucket(ctx, &awss3.HeadBucketInput{Bucket: aws.String(e.name)})
	if err == nil {
		if r := aws.ToString(head.BucketRegion); r != "" {
			b.region = r
		}
		return b, nil
	}
	// There was no answer, or a redirect that names the region.
	if f := s3.Explain(err); f == nil || f.Reason == capstan.ReasonRejected && s3.Code(err) != "BadRequest" {
		return nil, err
	}
	_, err = e.api.ListObjectsV2(ctx, &awss3.ListObjectsV2Input{Bucket: aws.String(e.name), MaxKeys: aws.Int32(1)})
	if s3.Code(err) == codeNoBucket {
		return nil, nil //nolint:nilnil // There is none, which is no error.
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}

// assess who owns a bucket. consent says whether the Bucket may take it over.
func (e *external) assess(ctx context.Context, cr *v1alpha1.Bucket, b found, consent bool) (found, error) {
	var err error
	if b.Tags, err = feature.ReadTags(ctx, e.api, e.name); err != nil {
		return b, err
	}
	ev := evidence{
		owner:    b.Tags.Values[v1alpha1.TagOwner],
		taggable: b.Tags.Supported,
		recorded: recorded(cr, e.tenant.Shared),
		consent:  consent && cr.Spec.ForProvider.Adopt && e.tenant.Adoption,
		shared:   e.tenant.Shared,
	}
	if ev.owner == "" {
		ev.began = began(cr, e.name, ev.taggable, e.tenant.Shared)
	}
	if !ev.began.IsZero() {
		if ev.empty, err = (content.Bucket{API: e.api, Name: e.name}).IsEmpty(ctx); err != nil {
			return b, err
		}
		if ev.made, err = e.made(ctx); err != nil {
			return b, err
		}
	}
	b.standing = judge(e.owner, ev)
	return b, nil
}

// marked is the bucket with our tag. Where there are no tags, the status of the Bucket is the mark.
func (b found) marked(ctx context.Context) (found, error) {
	tags, err := b.Retag(ctx, func(tags map[string]string) { tags[v1alpha1.TagOwner] = b.Owner })
	if err != nil {
		return b, err
	}
	b.Tags, b.standing = tags, ours
	return b, nil
}

// pagesOfBuckets that are searched for when a bucket was made, a thousand on each.
const pagesOfBuckets = 100

// made is when the bucket was made, zero when the server does not say.
func (e *external) made(ctx context.Context) (time.Time, error) {
	in := &awss3.ListBucketsInput{Prefix: aws.String(e.name), MaxBuckets: aws.Int32(1000)}
	for range pagesOfBuckets {
		out, err := e.api.ListBuckets(ctx, in)
		if s3.Refused(err) {
			return time.Time{}, nil
		}
		if err != nil {
			return time.Time{}, err
		}
		for _, o := range out.Buckets {
			if aws.ToString(o.Name) == e.name {
				return aws.ToTime(o.CreationDate), nil
			}
		}
		if aws.ToString(out.ContinuationToken) == "" {
			break
		}
		in.ContinuationToken = out.ContinuationToken
	}
	return time.Time{}, nil
}
