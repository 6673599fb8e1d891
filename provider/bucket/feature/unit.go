// SPDX-License-Identifier: Apache-2.0

// Package feature sets what a bucket can do. A feature is compared with the spec first; only then is anything set. Values go one way:
// each feature says what is missing, a Plan collects it, Run returns what became of it, and Record is what the status says about
// it.
package feature

import (
	"context"
	"slices"

	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/s3"
)

// A Bucket on a server, as it was read before its features are compared.
type Bucket struct {
	API  *awss3.Client
	Name string

	// Owner is what its owner tag has to say for the provider to change it.
	Owner string

	// Tags that it has.
	Tags Tags
}

// A feature is one thing that can be set on a bucket.
type feature interface {
	// name of its field in the spec.
	name() string

	// asked reports whether the spec mentions it.
	asked(p *v1alpha1.BucketParameters) bool

	// missing returns what has to be done for the bucket to be as the spec says, nil when it is.
	missing(ctx context.Context, b Bucket, p *v1alpha1.BucketParameters) (func(context.Context) error, error)

	// surplus returns what has to be done for the bucket to have the feature no longer, nil when it does not have it.
	surplus(ctx context.Context, b Bucket, p *v1alpha1.BucketParameters) (func(context.Context) error, error)
}

// A unit is a feature made of its parts. T is what the feature says, in one form for all forms in which the spec and the server
// say it.
type unit[T any] struct {
	field string

	// asks reports whether the spec mentions the feature, want what it says.
	asks func(p *v1alpha1.BucketParameters) bool
	want func(p *v1alpha1.BucketParameters) (T, error)

	// observe what the server says. An answer that there is none is no error.
	observe func(ctx context.Context, b Bucket) (T, error)

	// same reports whether the server says what is wanted, so that there is nothing to set.
	same func(want, got T) bool

	// removable reports whether there is something to remove, for a spec that no longer mentions the feature.
	removable func(got T, p *v1alpha1.BucketParameters) bool

	// apply what is wanted where something else was observed, or remove it.
	apply  func(ctx context.Context, b Bucket, want, got T) error
	remove func(ctx context.Context, b Bucket, got T) error
}

func (u unit[T]) name() string { return u.field }

func (u unit[T]) asked(p *v1alpha1.BucketParameters) bool { return u.asks(p) }

func (u unit[T]) missing(
	ctx context.Context, b Bucket, p *v1alpha1.BucketParameters,
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
	ctx context.Context, b Bucket, p *v1alpha1.BucketParameters,
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

// isNone reports whether an error says that a bucket has none of something.
func isNone(err error, codes ...string) bool { return slices.Contains(codes, s3.Code(err)) }
