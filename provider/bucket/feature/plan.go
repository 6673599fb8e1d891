// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	capstan "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/s3"
)

// features of a bucket, in the order in which they are set:
//
//   - an object lock needs versioning,
//   - a public access block must be lifted before a policy that it forbids is set, and set before any other policy,
//   - a policy comes last, because it may lock out the provider itself.
//
// They are removed in the reverse order, before others are set: a public policy goes before what restricts it.
func features(given []string) []feature {
	return []feature{
		versioningFeature(),
		lockFeature(),
		encryptionFeature(),
		tagsFeature(given),
		corsFeature(),
		lifecycleFeature(),
		publicAccessFeature(),
		policyFeature(),
	}
}

// A Record is what the status of a Bucket says about features.
type Record struct {
	// Features that the provider is responsible for: it has set them, or found them as the spec says.
	Features []string

	// TagKeys are the keys of tags that the provider is responsible for.
	TagKeys []string

	// Unsupported features that the spec asks for.
	Unsupported []string
}

// A Plan is what to do with a bucket, in order, and what became of the features that need nothing or were tried.
type Plan struct {
	record Record

	// tags are the keys that the spec asks for.
	tags []string

	steps   []step
	results []result
}

// A step sets or removes a feature.
type step struct {
	feature string
	removes bool
	do      func(context.Context) error
}

// A result of a feature that was read, set or removed. Without failure it is as the spec says.
type result struct {
	feature     string
	removed     bool
	unsupported bool
	failure     *outside.Failure
}

func newResult(feature string, removed bool, err error) result {
	switch {
	case err == nil:
		return result{feature: feature, removed: removed}
	case s3.NotImplemented(err):
		return result{feature: feature, removed: removed, unsupported: true}
	default:
		return result{feature: feature, removed: removed, failure: outside.Understand(s3.Explain, err)}
	}
}

// unanswered reports whether the server cannot be talked to, so that no other feature can do better.
func (r result) unanswered() bool {
	if r.failure == nil {
		return false
	}
	switch r.failure.Reason {
	case capstan.ReasonUnreachable, capstan.ReasonHostUnknown, capstan.ReasonTLSFailed, capstan.ReasonTimedOut,
		capstan.ReasonAddressRefused, capstan.ReasonCredentialsRefused, capstan.ReasonClockSkew, capstan.ReasonThrottled:
		return true
	default:
		return false
	}
}

// NewPlan for a bucket whose features are recorded. It reads the features that the spec mentions and those that must be removed.
// One that fails hides no other; when the server cannot be talked to at all, NewPlan stops and returns the failure.
func NewPlan(ctx context.Context, b Bucket, spec *v1alpha1.BucketParameters, record Record) (Plan, error) {
	p := Plan{record: record, tags: slices.Collect(maps.Keys(spec.Tags))}
	var applies []step
	for _, f := range features(record.TagKeys) {
		asked := f.asked(spec)
		if !asked && !slices.Contains(record.Features, f.name()) {
			continue
		}
		check := f.missing
		if !asked {
			check = f.surplus
		}
		do, err := check(ctx, b, spec)
		switch {
		case err != nil || do == nil:
			r := newResult(f.name(), !asked, err)
			if r.unanswered() {
				return Plan{}, r.failure
			}
			p.results = append(p.results, r)
		case asked:
			applies = append(applies, step{feature: f.name(), do: do})
		default:
			p.steps = append(p.steps, step{feature: f.name(), removes: true, do: do})
		}
	}
	slices.Reverse(p.steps)
	p.steps = append(p.steps, applies...)
	return p, nil
}

// Run the steps, and return the plan with their results. When the server cannot be talked to, the rest of the steps stay.
func (p Plan) Run(ctx context.Context) Plan {
	out := Plan{record: p.record, tags: p.tags, results: slices.Clone(p.results)}
	for i, s := range p.steps {
		r := newResult(s.feature, s.removes, s.do(ctx))
		out.results = append(out.results, r)
		if r.unanswered() {
			out.steps = p.steps[i:]
			break
		}
	}
	return out
}

// Steps that are still to do, by feature: the debug log has no use for policies.
func (p Plan) Steps() []string {
	all := make([]string, 0, len(p.steps))
	for _, s := range p.steps {
		all = append(all, s.feature)
	}
	return all
}

// settled is the record with the features that are as the spec says.
func (p Plan) settled() (features, keys sets.Set[string]) {
	features, keys = sets.New(p.record.Features...), sets.New(p.record.TagKeys...)
	for _, r := range p.results {
		switch {
		case r.failure != nil:
		case r.unsupported, r.removed:
			// What a server does not have cannot be removed from it either.
			features.Delete(r.feature)
		default:
			features.Insert(r.feature)
		}
		if r.feature == fieldTags && r.failure == nil && !r.unsupported {
			keys = sets.New(p.tags...)
		}
	}
	return features, keys
}

// Intent is a record of what is about to be set, in addition to what was. A feature that the server did not support the last time
// is tried again, but is not worth a write each time.
func (p Plan) Intent(now Record) Record {
	features, keys := p.settled()
	for _, s := range p.steps {
		if s.removes || slices.Contains(now.Unsupported, s.feature) {
			continue
		}
		features.Insert(s.feature)
		if s.feature == fieldTags {
			keys.Insert(p.tags...)
		}
	}
	return Record{Features: list(features), TagKeys: list(keys), Unsupported: now.Unsupported}
}

// Record is what is known about features. What may have been set, because it was recorded before, counts as set.
func (p Plan) Record(now Record) Record {
	features, keys := p.settled()
	unsupported, open := sets.New[string](), sets.New(p.Steps()...)
	for _, r := range p.results {
		switch {
		case r.failure != nil:
			open.Insert(r.feature)
		case r.unsupported && !r.removed:
			unsupported.Insert(r.feature)
		}
	}
	for name := range open {
		if slices.Contains(now.Features, name) {
			features.Insert(name)
		}
		// Some servers report only when a feature is set, and not when it is read.
		if slices.Contains(now.Unsupported, name) {
			unsupported.Insert(name)
		}
		if name == fieldTags {
			keys.Insert(now.TagKeys...)
		}
	}
	return Record{Features: list(features), TagKeys: list(keys), Unsupported: list(unsupported)}
}

// Failure of all features that failed, as one, or nil.
func (p Plan) Failure() *outside.Failure {
	failed := slices.DeleteFunc(slices.Clone(p.results), func(r result) bool { return r.failure == nil })
	if len(failed) == 0 {
		return nil
	}
	first := failed[0]
	if len(failed) == 1 {
		return &outside.Failure{
			Reason:  first.failure.Reason,
			Message: first.feature + ": " + first.failure.Message,
			Remedy:  first.failure.Remedy,
			Cause:   first.failure,
		}
	}
	texts, causes := []string{}, []error{}
	for _, r := range failed {
		texts = append(texts, r.feature+": "+r.failure.Error())
		causes = append(causes, r.failure)
	}
	return &outside.Failure{Reason: first.failure.Reason, Message: strings.Join(texts, "; "), Cause: errors.Join(causes...)}
}

// list of a set, sorted, nil when it is empty.
func list(s sets.Set[string]) []string { return slices.Sorted(maps.Keys(s)) }
