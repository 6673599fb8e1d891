// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"context"
	"reflect"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/capstan-dev/capstan/apis/storage/v1alpha1"
)

// A corsRule is a rule in one form.
type corsRule struct {
	origins, methods, headers, expose []string

	// maxAge in seconds, nil when the rule says none.
	maxAge *int32
}

// corsFeature lets web pages of other origins use the bucket.
func corsFeature() feature {
	return unit[[]corsRule]{
		field:     "corsRules",
		asks:      func(p *v1alpha1.BucketParameters) bool { return len(p.CORSRules) > 0 },
		want:      func(p *v1alpha1.BucketParameters) ([]corsRule, error) { return wantedCORS(p.CORSRules), nil },
		observe:   corsOf,
		same:      sameCORS,
		removable: func(got []corsRule, _ *v1alpha1.BucketParameters) bool { return len(got) > 0 },
		apply:     setCORS,
		remove: func(ctx context.Context, b Bucket, _ []corsRule) error {
			_, err := b.API.DeleteBucketCors(ctx, &awss3.DeleteBucketCorsInput{Bucket: aws.String(b.Name)})
			return err
		},
	}
}

func wantedCORS(rules []v1alpha1.CORSRule) []corsRule {
	want := make([]corsRule, 0, len(rules))
	for _, r := range rules {
		want = append(want, corsRule{
			origins: ordered(r.AllowedOrigins),
			methods: ordered(r.AllowedMethods),
			headers: folded(r.AllowedHeaders),
			expose:  folded(r.ExposeHeaders),
			maxAge:  r.MaxAgeSeconds,
		})
	}
	return want
}

// ordered strings, each once: their order means nothing. The order of rules does, the first that fits applies.
func ordered(all []string) []string {
	if len(all) == 0 {
		return nil
	}
	return slices.Compact(slices.Sorted(slices.Values(all)))
}

// folded names of headers, whose case means nothing.
func folded(all []string) []string {
	lower := make([]string, 0, len(all))
	for _, s := range all {
		lower = append(lower, strings.ToLower(s))
	}
	return ordered(lower)
}

func corsOf(ctx context.Context, b Bucket) ([]corsRule, error) {
	out, err := b.API.GetBucketCors(ctx, &awss3.GetBucketCorsInput{Bucket: aws.String(b.Name)})
	if isNone(err, "NoSuchCORSConfiguration") {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return observedCORS(out.CORSRules), nil
}

func observedCORS(rules []types.CORSRule) []corsRule {
	got := make([]corsRule, 0, len(rules))
	for _, r := range rules {
		got = append(got, corsRule{
			origins: ordered(r.AllowedOrigins),
			methods: ordered(r.AllowedMethods),
			headers: folded(r.AllowedHeaders),
			expose:  folded(r.ExposeHeaders),
			maxAge:  r.MaxAgeSeconds,
		})
	}
	return got
}

// sameCORS takes 0 seconds for no word about them, which is how some servers say it, unless 0 is desired.
func sameCORS(want, got []corsRule) bool {
	return slices.EqualFunc(want, got, func(w, g corsRule) bool {
		if w.maxAge == nil && g.maxAge != nil && *g.maxAge == 0 {
			g.maxAge = nil
		}
		return reflect.DeepEqual(w, g)
	})
}

func setCORS(ctx context.Context, b Bucket, want, _ []corsRule) error {
	rules := make([]types.CORSRule, 0, len(want))
	for _, r := range want {
		rules = append(rules, types.CORSRule{
			AllowedOrigins: r.origins,
			AllowedMethods: r.methods,
			AllowedHeaders: r.headers,
			ExposeHeaders:  r.expose,
			MaxAgeSeconds:  r.maxAge,
		})
	}
	_, err := b.API.PutBucketCors(ctx, &awss3.PutBucketCorsInput{
		Bucket: aws.String(b.Name), CORSConfiguration: &types.CORSConfiguration{CORSRules: rules},
	})
	return err
}
