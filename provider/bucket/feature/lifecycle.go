// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"cmp"
	"context"
	"maps"
	"reflect"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/capstan-dev/capstan/apis/storage/v1alpha1"
)

// A lifecycleRule is a rule in one form: servers say the same in several.
type lifecycleRule struct {
	id, prefix string
	tags       map[string]string

	expire, expireOld, keepOld, abort int32
	expireMarkers                     bool

	// foreign means that the rule says something that ours never say.
	foreign bool
}

// lifecycleFeature deletes what has become old. All rules of a bucket are one document, so that other rules do not survive beside
// ours.
func lifecycleFeature() feature {
	return unit[[]lifecycleRule]{
		field: "lifecycleRules",
		asks:  func(p *v1alpha1.BucketParameters) bool { return len(p.LifecycleRules) > 0 },
		want: func(p *v1alpha1.BucketParameters) ([]lifecycleRule, error) {
			return wantedLifecycle(p.LifecycleRules), nil
		},
		observe:   lifecycleOf,
		same:      func(want, got []lifecycleRule) bool { return reflect.DeepEqual(want, got) },
		removable: func(got []lifecycleRule, _ *v1alpha1.BucketParameters) bool { return len(got) > 0 },
		apply:     setLifecycle,
		remove: func(ctx context.Context, b Bucket, _ []lifecycleRule) error {
			_, err := b.API.DeleteBucketLifecycle(ctx, &awss3.DeleteBucketLifecycleInput{Bucket: aws.String(b.Name)})
			return err
		},
	}
}

func wantedLifecycle(rules []v1alpha1.LifecycleRule) []lifecycleRule {
	want := make([]lifecycleRule, 0, len(rules))
	for _, r := range rules {
		want = append(want, lifecycleRule{
			id:            r.ID,
			prefix:        aws.ToString(r.Prefix),
			tags:          someTags(maps.Clone(r.Tags)),
			expire:        aws.ToInt32(r.ExpireAfterDays),
			expireOld:     aws.ToInt32(r.ExpireNoncurrentAfterDays),
			keepOld:       aws.ToInt32(r.KeepNoncurrentVersions),
			abort:         aws.ToInt32(r.AbortUploadsAfterDays),
			expireMarkers: r.ExpireDeleteMarkers,
		})
	}
	return sortedRules(want)
}

// sortedRules by ID: their order means nothing.
func sortedRules(rules []lifecycleRule) []lifecycleRule {
	slices.SortStableFunc(rules, func(a, b lifecycleRule) int { return cmp.Compare(a.id, b.id) })
	return rules
}

// someTags are nil when there are none.
func someTags(tags map[string]string) map[string]string {
	if len(tags) == 0 {
		return nil
	}
	return tags
}

func lifecycleOf(ctx context.Context, b Bucket) ([]lifecycleRule, error) {
	out, err := b.API.GetBucketLifecycleConfiguration(ctx, &awss3.GetBucketLifecycleConfigurationInput{Bucket: aws.String(b.Name)})
	if isNone(err, "NoSuchLifecycleConfiguration") {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return observedLifecycle(out.Rules), nil
}

func observedLifecycle(rules []types.LifecycleRule) []lifecycleRule {
	got := make([]lifecycleRule, 0, len(rules))
	for _, r := range rules {
		got = append(got, observedRule(r))
	}
	return sortedRules(got)
}

func observedRule(r types.LifecycleRule) lifecycleRule {
	got := lifecycleRule{
		id:      aws.ToString(r.ID),
		prefix:  aws.ToString(r.Prefix), //nolint:staticcheck // Some servers still say it here.
		foreign: r.Status != types.ExpirationStatusEnabled || len(r.Transitions)+len(r.NoncurrentVersionTransitions) > 0,
	}
	got.filter(r.Filter)
	if e := r.Expiration; e != nil {
		got.expire, got.expireMarkers = aws.ToInt32(e.Days), aws.ToBool(e.ExpiredObjectDeleteMarker)
		got.foreign = got.foreign || e.Date != nil
	}
	if e := r.NoncurrentVersionExpiration; e != nil {
		got.expireOld, got.keepOld = aws.ToInt32(e.NoncurrentDays), aws.ToInt32(e.NewerNoncurrentVersions)
	}
	if a := r.AbortIncompleteMultipartUpload; a != nil {
		got.abort = aws.ToInt32(a.DaysAfterInitiation)
	}
	return got
}

// filter of a rule: a prefix, a tag, or all of several.
func (r *lifecycleRule) filter(f *types.LifecycleRuleFilter) {
	if f == nil {
		return
	}
	r.foreign = r.foreign || f.ObjectSizeGreaterThan != nil || f.ObjectSizeLessThan != nil
	if p := aws.ToString(f.Prefix); p != "" {
		r.prefix = p
	}
	var tags []types.Tag
	if f.Tag != nil {
		tags = append(tags, *f.Tag)
	}
	if a := f.And; a != nil {
		r.foreign = r.foreign || a.ObjectSizeGreaterThan != nil || a.ObjectSizeLessThan != nil
		tags = append(tags, a.Tags...)
		if p := aws.ToString(a.Prefix); p != "" {
			r.prefix = p
		}
	}
	for _, t := range tags {
		if r.tags == nil {
			r.tags = map[string]string{}
		}
		r.tags[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
}

func setLifecycle(ctx context.Context, b Bucket, want, _ []lifecycleRule) error {
	rules := make([]types.LifecycleRule, 0, len(want))
	for _, r := range want {
		rules = append(rules, r.document())
	}
	_, err := b.API.PutBucketLifecycleConfiguration(ctx, &awss3.PutBucketLifecycleConfigurationInput{
		Bucket:                 aws.String(b.Name),
		LifecycleConfiguration: &types.BucketLifecycleConfiguration{Rules: rules},
	})
	return err
}

// document of a rule, as S3 wants it.
func (r *lifecycleRule) document() types.LifecycleRule {
	d := types.LifecycleRule{ID: aws.String(r.id), Status: types.ExpirationStatusEnabled, Filter: &types.LifecycleRuleFilter{}}
	tags := tagSet(r.tags)
	switch {
	case len(tags) == 0:
		d.Filter.Prefix = aws.String(r.prefix)
	case len(tags) == 1 && r.prefix == "":
		d.Filter.Tag = &tags[0]
	default:
		d.Filter.And = &types.LifecycleRuleAndOperator{Tags: tags}
		if r.prefix != "" {
			d.Filter.And.Prefix = aws.String(r.prefix)
		}
	}
	if r.expire > 0 {
		d.Expiration = &types.LifecycleExpiration{Days: aws.Int32(r.expire)}
	}
	if r.expireMarkers {
		d.Expiration = &types.LifecycleExpiration{ExpiredObjectDeleteMarker: aws.Bool(true)}
	}
	if r.expireOld > 0 {
		d.NoncurrentVersionExpiration = &types.NoncurrentVersionExpiration{NoncurrentDays: aws.Int32(r.expireOld)}
		if r.keepOld > 0 {
			d.NoncurrentVersionExpiration.NewerNoncurrentVersions = aws.Int32(r.keepOld)
		}
	}
	if r.abort > 0 {
		d.AbortIncompleteMultipartUpload = &types.AbortIncompleteMultipartUpload{DaysAfterInitiation: aws.Int32(r.abort)}
	}
	return d
}
