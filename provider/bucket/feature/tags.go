// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"context"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	capstan "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/s3"
)

// Tags of a bucket, and whether the server has tags at all.
type Tags struct {
	Values    map[string]string
	Supported bool
}

// ReadTags of a bucket.
func ReadTags(ctx context.Context, api *awss3.Client, bucket string) (Tags, error) {
	out, err := api.GetBucketTagging(ctx, &awss3.GetBucketTaggingInput{Bucket: aws.String(bucket)})
	switch {
	case s3.Code(err) == "NoSuchTagSet":
		return Tags{Values: map[string]string{}, Supported: true}, nil
	case s3.NotImplemented(err):
		return Tags{Values: map[string]string{}}, nil
	case err != nil:
		return Tags{}, err
	}
	tags := Tags{Values: map[string]string{}, Supported: true}
	for _, t := range out.TagSet {
		tags.Values[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	return tags, nil
}

// Retag changes tags of a bucket, keeps all others and returns the result. The server knows only all tags at once, so they are
// read again right before, and the bucket must not belong to another owner by then. It does nothing where there are no tags.
func (b Bucket) Retag(ctx context.Context, change func(tags map[string]string)) (Tags, error) {
	tags, err := ReadTags(ctx, b.API, b.Name)
	if err != nil || !tags.Supported {
		return tags, err
	}
	if owner := tags.Values[v1alpha1.TagOwner]; owner != "" && owner != b.Owner {
		return tags, &outside.Failure{
			Reason:  capstan.ReasonConflict,
			Message: "the bucket has got another owner meanwhile",
			Remedy:  "nothing to do: the provider looks whose it is",
		}
	}
	change(tags.Values)
	_, err = b.API.PutBucketTagging(ctx, &awss3.PutBucketTaggingInput{
		Bucket:  aws.String(b.Name),
		Tagging: &types.Tagging{TagSet: tagSet(tags.Values)},
	})
	return tags, err
}

// fieldTags is the name of a feature that others have to know.
const fieldTags = "tags"

// tagsFeature sets tags and keeps all others, the owner's among them. The tags were read before, to see who owns the bucket.
// given are the keys of tags that the Bucket has set.
func tagsFeature(given []string) feature {
	return unit[map[string]string]{
		field: fieldTags,
		asks:  func(p *v1alpha1.BucketParameters) bool { return len(p.Tags) > 0 },
		want:  func(p *v1alpha1.BucketParameters) (map[string]string, error) { return p.Tags, nil },
		observe: func(_ context.Context, b Bucket) (map[string]string, error) {
			if !b.Tags.Supported {
				return nil, &outside.Failure{Reason: capstan.ReasonNotImplemented, Message: "the server has no tags"}
			}
			return b.Tags.Values, nil
		},
		same: func(want, got map[string]string) bool { return maps.Equal(retagged(got, want, given), got) },
		removable: func(got map[string]string, _ *v1alpha1.BucketParameters) bool {
			return !maps.Equal(retagged(got, nil, given), got)
		},
		apply: func(ctx context.Context, b Bucket, want, _ map[string]string) error {
			return setTags(ctx, b, want, given)
		},
		remove: func(ctx context.Context, b Bucket, _ map[string]string) error { return setTags(ctx, b, nil, given) },
	}
}

// retagged is what tags become: with those that are wanted, and without those that were given and are no longer wanted.
func retagged(tags, want map[string]string, given []string) map[string]string {
	all := map[string]string{}
	for k, v := range tags {
		if !slices.Contains(given, k) || k == v1alpha1.TagOwner {
			all[k] = v
		}
	}
	maps.Copy(all, want)
	return all
}

func setTags(ctx context.Context, b Bucket, want map[string]string, given []string) error {
	_, err := b.Retag(ctx, func(tags map[string]string) {
		after := retagged(tags, want, given)
		clear(tags)
		maps.Copy(tags, after)
	})
	return err
}

// tagSet of tags, sorted.
func tagSet(tags map[string]string) []types.Tag {
	set := make([]types.Tag, 0, len(tags))
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		set = append(set, types.Tag{Key: aws.String(k), Value: aws.String(tags[k])})
	}
	return set
}
