// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"context"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	capstan "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
)

// fieldTags is the name of a feature that others have to know.
const fieldTags = "tags"

// labels are tags of a bucket, and the keys of those that the Bucket has set.
type labels struct {
	tags  map[string]string
	given sets.Set[string]
}

// tagsFeature sets tags and leaves those of others, the owner's among them. They
// have been read already, to see whose the bucket is.
func tagsFeature() feature {
	return unit[labels]{
		field:   fieldTags,
		asks:    func(p *v1alpha1.BucketParameters) bool { return len(p.Tags) > 0 },
		want:    func(p *v1alpha1.BucketParameters) (labels, error) { return labels{tags: p.Tags}, nil },
		observe: tagsOf,
		same:    func(want, got labels) bool { return maps.Equal(retagged(got.tags, want.tags, got.given), got.tags) },
		removable: func(got labels, _ *v1alpha1.BucketParameters) bool {
			return !maps.Equal(retagged(got.tags, nil, got.given), got.tags)
		},
		apply: setTags,
		remove: func(ctx context.Context, b *bucket, got labels) error {
			return setTags(ctx, b, labels{}, got)
		},
	}
}

func tagsOf(_ context.Context, b *bucket) (labels, error) {
	if !b.taggable {
		return labels{}, &outside.Failure{Reason: capstan.ReasonNotImplemented, Message: "the server has no tags"}
	}

	return labels{tags: b.tags, given: b.given}, nil
}

// retagged is what tags become: with those that are wanted, and without those that
// were given and are no longer wanted.
func retagged(tags, want map[string]string, given sets.Set[string]) map[string]string {
	all := maps.Clone(tags)
	maps.DeleteFunc(all, func(k, _ string) bool {
		_, stays := want[k]

		return given.Has(k) && !stays && k != v1alpha1.TagOwner
	})

	if all == nil {
		all = map[string]string{}
	}

	maps.Copy(all, want)

	return all
}

func setTags(ctx context.Context, b *bucket, want, got labels) error {
	return b.retag(ctx, func(tags map[string]string) {
		after := retagged(tags, want.tags, got.given)
		clear(tags)
		maps.Copy(tags, after)
	})
}

// tagSet of tags, sorted.
func tagSet(tags map[string]string) []types.Tag {
	set := make([]types.Tag, 0, len(tags))
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		set = append(set, types.Tag{Key: aws.String(k), Value: aws.String(tags[k])})
	}

	return set
}
