// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"context"
	"maps"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	capstan "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/s3"
)

// Codes of answers that say that there is none of something.
const (
	codeNoBucket = "NoSuchBucket"
	codeNoTags   = "NoSuchTagSet"
)

// A bucket on a server.
type bucket struct {
	api                    *awss3.Client
	name, region, endpoint string

	// own is what its tag has to say for it to be ours.
	own string

	// tags that it has, and whether the server has tags at all. They are not read
	// for a Bucket that only observes.
	tags     map[string]string
	taggable bool

	// given are the keys of the tags that this Bucket has set.
	given sets.Set[string]

	standing standing
}

// find the bucket, or nil when the server says in so many words that there is
// none. The answer to HEAD has no words: any answer but yes is looked into with a
// request whose answer has some, and that needs the same right. A proxy's 404 is
// then an error and not a bucket that has gone.
func (e *external) find(ctx context.Context) (*bucket, error) {
	b := &bucket{api: e.api, name: e.name, region: e.region}

	head, err := e.api.HeadBucket(ctx, &awss3.HeadBucketInput{Bucket: aws.String(e.name)})
	if err == nil {
		if r := aws.ToString(head.BucketRegion); r != "" {
			b.region = r
		}

		return b, nil
	}

	// Nobody answered, or with a redirect that names the region.
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

// readTags of the bucket.
func (b *bucket) readTags(ctx context.Context) error {
	out, err := b.api.GetBucketTagging(ctx, &awss3.GetBucketTaggingInput{Bucket: aws.String(b.name)})

	switch {
	case s3.Code(err) == codeNoTags:
		b.tags, b.taggable = map[string]string{}, true

		return nil
	case s3.NotImplemented(err):
		b.tags, b.taggable = map[string]string{}, false

		return nil
	case err != nil:
		return err
	}

	b.tags, b.taggable = map[string]string{}, true
	for _, t := range out.TagSet {
		b.tags[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}

	return nil
}

// retag changes tags of the bucket and leaves all others. The server knows only
// all of them at once, so they are read again right before, and the bucket must
// not have become somebody else's. It does nothing where there are no tags.
func (b *bucket) retag(ctx context.Context, change func(tags map[string]string)) error {
	if err := b.readTags(ctx); err != nil {
		return err
	}

	if !b.taggable {
		return nil
	}

	if owner := b.tags[v1alpha1.TagOwner]; owner != "" && owner != b.own {
		return &outside.Failure{
			Reason:  capstan.ReasonConflict,
			Message: "the bucket has become somebody else's meanwhile",
			Remedy:  "nothing to do: the provider looks whose it is",
		}
	}

	tags := maps.Clone(b.tags)
	change(tags)

	if _, err := b.api.PutBucketTagging(ctx, &awss3.PutBucketTaggingInput{
		Bucket:  aws.String(b.name),
		Tagging: &types.Tagging{TagSet: tagSet(tags)},
	}); err != nil {
		return err
	}

	b.tags = tags

	return nil
}

// mark the bucket as ours. Where there are no tags, the status of the Bucket is
// the mark.
func (b *bucket) mark(ctx context.Context) error {
	err := b.retag(ctx, func(tags map[string]string) { tags[v1alpha1.TagOwner] = b.own })
	if err == nil {
		b.standing = ours
	}

	return err
}

// assess whose the bucket is.
func (e *external) assess(ctx context.Context, cr *v1alpha1.Bucket, b *bucket, consent bool) error {
	b.own = e.tenant.Owner(cr.GetName())

	if err := b.readTags(ctx); err != nil {
		return err
	}

	ev := evidence{
		owner:    b.tags[v1alpha1.TagOwner],
		taggable: b.taggable,
		recorded: recorded(cr, e.tenant.Shared),
		consent:  consent && cr.Spec.ForProvider.Adopt && e.tenant.Adoption,
		shared:   e.tenant.Shared,
	}

	if ev.owner == "" {
		ev.began = began(cr, e.name, b.taggable, e.tenant.Shared)
	}

	if !ev.began.IsZero() {
		var err error

		if ev.empty, err = b.isEmpty(ctx); err != nil {
			return err
		}

		if ev.made, err = b.made(ctx); err != nil {
			return err
		}
	}

	b.standing = judge(b.own, ev)

	return nil
}

// pagesOfBuckets that are looked through for when a bucket was made, a thousand
// on each.
const pagesOfBuckets = 100

// made tells when the bucket was made, or zero when the server does not tell.
func (b *bucket) made(ctx context.Context) (time.Time, error) {
	in := &awss3.ListBucketsInput{Prefix: aws.String(b.name), MaxBuckets: aws.Int32(1000)}

	for range pagesOfBuckets {
		out, err := b.api.ListBuckets(ctx, in)
		if s3.Refused(err) {
			return time.Time{}, nil
		}

		if err != nil {
			return time.Time{}, err
		}

		for _, o := range out.Buckets {
			if aws.ToString(o.Name) == b.name {
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

// isEmpty tells whether nothing is in the bucket, old versions and unfinished
// uploads included.
func (b *bucket) isEmpty(ctx context.Context) (bool, error) {
	c, err := b.count(ctx, 1)

	return c == content{}, err
}
