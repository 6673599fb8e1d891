// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"context"
	"slices"

	"github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/s3"
)

// features of a bucket, in the order in which they are set:
//
//   - an object lock needs versioning,
//   - a public access block that is lifted must be so before the policy that it
//     forbids, and one that is set had better be there first,
//   - a policy comes last, since it may lock out the provider itself.
//
// They are removed, before others are set, in the reverse order: a public policy
// is gone before what restrains it.
func features() []feature {
	return []feature{
		versioningFeature(),
		lockFeature(),
		encryptionFeature(),
		tagsFeature(),
		corsFeature(),
		lifecycleFeature(),
		publicAccessFeature(),
		policyFeature(),
	}
}

// A feature is one thing that can be set on a bucket.
type feature interface {
	// name of its field in the spec.
	name() string

	// asked tells whether the spec mentions it.
	asked(p *v1alpha1.BucketParameters) bool

	// missing returns what has to be done for the bucket to be as the spec says,
	// nil when it is.
	missing(ctx context.Context, b *bucket, p *v1alpha1.BucketParameters) (func(context.Context) error, error)

	// surplus returns what has to be done for the bucket to have the feature no
	// longer, nil when it does not have it.
	surplus(ctx context.Context, b *bucket, p *v1alpha1.BucketParameters) (func(context.Context) error, error)
}

// A unit is a feature made of its parts. T is what the feature says, in one form
// whatever the form in which the spec and the server say it.
type unit[T any] struct {
	field string

	// asks tells whether the spec mentions the feature, want what it says.
	asks func(p *v1alpha1.BucketParameters) bool
	want func(p *v1alpha1.BucketParameters) (T, error)

	// observe what the server says. An answer that there is none is no error.
	observe func(ctx context.Context, b *bucket) (T, error)

	// same tells whether the server says what is wanted. There is nothing to be
	// set then.
	same func(want, got T) bool

	// removable tells whether there is something to be removed, for a spec that no
	// longer mentions the feature.
	removable func(got T, p *v1alpha1.BucketParameters) bool

	// apply what is wanted where something else was observed, or remove it.
	apply  func(ctx context.Context, b *bucket, want, got T) error
	remove func(ctx context.Context, b *bucket, got T) error
}

func (u unit[T]) name() string { return u.field }

func (u unit[T]) asked(p *v1alpha1.BucketParameters) bool { return u.asks(p) }

func (u unit[T]) missing(
	ctx context.Context, b *bucket, p *v1alpha1.BucketParameters,
) (func(context.Context) error, error) {
	want, err := u.want(p)
	if err != nil {
		return nil, err
	}

	got, err := u.observe(ctx, b)
	if err != nil {
		return nil, err
	}

	if u.same(want, got) {
		return nil, nil //nolint:nilnil // Nothing to do, which is no error.
	}

	return func(ctx context.Context) error { return u.apply(ctx, b, want, got) }, nil
}

func (u unit[T]) surplus(
	ctx context.Context, b *bucket, p *v1alpha1.BucketParameters,
) (func(context.Context) error, error) {
	got, err := u.observe(ctx, b)
	if err != nil {
		return nil, err
	}

	if !u.removable(got, p) {
		return nil, nil //nolint:nilnil // Nothing to do, which is no error.
	}

	return func(ctx context.Context) error { return u.remove(ctx, b, got) }, nil
}

// isNone tells whether an error says that a bucket has none of something.
func isNone(err error, codes ...string) bool { return slices.Contains(codes, s3.Code(err)) }
