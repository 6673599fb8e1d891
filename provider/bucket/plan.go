// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	capstan "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/s3"
)

// A plan is what there is to do with a bucket of ours, and what is known of its
// features.
type plan struct {
	steps []step

	// set are the features that the provider answers for: it has set them, or found
	// them as the spec says.
	set sets.Set[string]

	// keys of tags that the provider answers for.
	keys sets.Set[string]

	// wanted keys of tags.
	wanted sets.Set[string]

	unsupported sets.Set[string]
	failures    []failed
}

// A step sets or removes a feature.
type step struct {
	feature string
	removes bool
	do      func(context.Context) error
}

// failed is a feature and what is wrong with it.
type failed struct {
	feature string
	failure *outside.Failure
}

// planFor a bucket. A feature that fails hides no other, but when the server
// cannot be talked to at all, it returns that and asks no more.
func planFor(ctx context.Context, cr *v1alpha1.Bucket, b *bucket) (*plan, error) {
	spec := &cr.Spec.ForProvider
	p := &plan{
		set:         sets.New(cr.Status.AtProvider.Features...),
		keys:        sets.New(cr.Status.AtProvider.TagKeys...),
		wanted:      sets.KeySet(spec.Tags),
		unsupported: sets.New[string](),
	}

	// What was set and is no longer wanted is known to the feature of tags.
	b.given = p.keys

	var applies []step

	for _, f := range features() {
		asked := f.asked(spec)
		if !asked && !p.set.Has(f.name()) {
			continue
		}

		check := f.missing
		if !asked {
			check = f.surplus
		}

		do, err := check(ctx, b, spec)

		switch {
		case err != nil:
			if err := p.fail(f.name(), asked, err); err != nil {
				return nil, err
			}
		case do != nil && asked:
			applies = append(applies, step{feature: f.name(), do: do})
		case do != nil:
			p.steps = append(p.steps, step{feature: f.name(), removes: true, do: do})
		default:
			p.settle(f.name(), !asked)
		}
	}

	slices.Reverse(p.steps)
	p.steps = append(p.steps, applies...)

	return p, nil
}

// fail notes that a feature failed. It returns an error when no feature can do
// better.
func (p *plan) fail(feature string, asked bool, err error) error {
	if s3.NotImplemented(err) {
		// What a server does not have cannot be removed from it either.
		p.set.Delete(feature)

		if asked {
			p.unsupported.Insert(feature)
		}

		return nil
	}

	f := outside.Understand(s3.Explain, err)

	switch f.Reason {
	case capstan.ReasonUnreachable, capstan.ReasonHostUnknown, capstan.ReasonTLSFailed, capstan.ReasonTimedOut,
		capstan.ReasonAddressRefused, capstan.ReasonCredentialsRefused, capstan.ReasonClockSkew, capstan.ReasonThrottled:
		return f
	default:
		p.failures = append(p.failures, failed{feature: feature, failure: f})

		return nil
	}
}

// settle a feature that is as the spec says.
func (p *plan) settle(feature string, removed bool) {
	if feature == fieldTags {
		p.keys = p.wanted.Clone()
	}

	if removed {
		p.set.Delete(feature)
	} else {
		p.set.Insert(feature)
	}
}

// carryOut the steps that are left.
func (p *plan) carryOut(ctx context.Context) {
	steps := p.steps
	p.steps = nil

	for i, s := range steps {
		err := s.do(ctx)
		if err == nil {
			p.settle(s.feature, s.removes)

			continue
		}

		if err := p.fail(s.feature, !s.removes, err); err != nil {
			p.failures = append(p.failures, failed{feature: s.feature, failure: outside.Understand(s3.Explain, err)})
			p.steps = steps[i:]

			return
		}
	}
}

// intend records in the status of cr what is about to be set, over and above what
// has been. What the server did not let be set the last time is tried again, and
// is not worth a write each time.
func (p *plan) intend(cr *v1alpha1.Bucket) {
	features, keys := p.set.Clone(), p.keys.Clone()

	for _, s := range p.steps {
		if s.removes || slices.Contains(cr.Status.AtProvider.Unsupported, s.feature) {
			continue
		}

		features.Insert(s.feature)

		if s.feature == fieldTags {
			keys = keys.Union(p.wanted)
		}
	}

	cr.Status.AtProvider.Features, cr.Status.AtProvider.TagKeys = list(features), list(keys)
}

// tell the status of cr what is known. What may have been set counts as set.
func (p *plan) tell(cr *v1alpha1.Bucket) {
	at := &cr.Status.AtProvider
	was := sets.New(at.Features...)

	features, keys, unsupported := p.set.Clone(), p.keys.Clone(), p.unsupported.Clone()

	for open := range p.open() {
		if was.Has(open) {
			features.Insert(open)
		}

		// Some servers tell only when a feature is set, and not when it is read.
		if slices.Contains(at.Unsupported, open) {
			unsupported.Insert(open)
		}

		if open == fieldTags {
			keys.Insert(at.TagKeys...)
		}
	}

	at.Features, at.TagKeys, at.Unsupported = list(features), list(keys), list(unsupported)

	c := xpv2.Condition{
		Type:               v1alpha1.TypeFeaturesSupported,
		Status:             corev1.ConditionTrue,
		Reason:             v1alpha1.ReasonSupported,
		LastTransitionTime: metav1.Now(),
	}

	if len(at.Unsupported) > 0 {
		c.Status, c.Reason = corev1.ConditionFalse, v1alpha1.ReasonNotImplemented
		c.Message = "the server does not implement " + strings.Join(at.Unsupported, ", ") +
			": take it out of spec.forProvider, or use a server that has it"
	}

	cr.SetConditions(c.WithObservedGeneration(cr.GetGeneration()))
}

// open features: those that failed, and those that are still to be set or removed.
func (p *plan) open() sets.Set[string] {
	all := sets.New[string]()

	for _, f := range p.failures {
		all.Insert(f.feature)
	}

	for _, s := range p.steps {
		all.Insert(s.feature)
	}

	return all
}

// failure of all features that failed, as one.
func (p *plan) failure() *outside.Failure {
	if len(p.failures) == 0 {
		return nil
	}

	first := p.failures[0]
	f := &outside.Failure{
		Reason:  first.failure.Reason,
		Message: first.feature + ": " + first.failure.Message,
		Remedy:  first.failure.Remedy,
		Cause:   first.failure,
	}

	if len(p.failures) == 1 {
		return f
	}

	texts, causes := []string{}, []error{}

	for _, each := range p.failures {
		texts = append(texts, each.feature+": "+each.failure.Error())
		causes = append(causes, each.failure)
	}

	f.Message, f.Remedy, f.Cause = strings.Join(texts, "; "), "", errors.Join(causes...)

	return f
}

// summary of what is to be done, by name: the debug log has no use for policies.
func (p *plan) summary(b *bucket) string {
	var all []string
	if b.standing == unmarked {
		all = append(all, "owner")
	}

	for _, s := range p.steps {
		all = append(all, s.feature)
	}

	return strings.Join(all, ", ")
}

// list of a set, sorted, nil when it is empty.
func list(s sets.Set[string]) []string { return slices.Sorted(maps.Keys(s)) }
