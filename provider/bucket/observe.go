// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	capstan "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/kind"
	"github.com/capstan-dev/capstan/provider/internal/outside"
)

// Observe the bucket. It writes nothing, and asks
//
//  1. HEAD: is it there, and in which region;
//  2. GET tagging: whose is it;
//  3. one GET for each feature that the spec mentions or that is to be removed;
//     tags have been read already.
//
// A Bucket that only observes stops after the first, whoever the bucket belongs
// to. A bucket of somebody else's stops everything, except that a Bucket that is
// on its way out is not held up by it: for that it does not exist.
func (e *external) Observe(ctx context.Context, cr *v1alpha1.Bucket) (managed.ExternalObservation, error) {
	b, err := e.find(ctx)
	if err != nil {
		return managed.ExternalObservation{}, err
	}

	if b == nil {
		cr.Status.AtProvider = v1alpha1.BucketObservation{}

		return managed.ExternalObservation{}, nil
	}

	if !meta.WasDeleted(cr) && kind.OnlyLooks(cr) {
		return e.look(ctx, cr, b)
	}

	if err := e.assess(ctx, cr, b, !meta.WasDeleted(cr)); err != nil {
		return managed.ExternalObservation{}, err
	}

	if b.standing == others || b.standing == nobodys {
		owner := b.tags[v1alpha1.TagOwner]
		disown(cr, e.name)

		if meta.WasDeleted(cr) {
			return managed.ExternalObservation{}, nil
		}

		return managed.ExternalObservation{}, refuse(cr, taken(cr, e.name, b.standing, owner, e.tenant))
	}

	e.found = b

	if meta.WasDeleted(cr) {
		return managed.ExternalObservation{ResourceExists: true}, nil
	}

	return e.compare(ctx, cr, b)
}

// look at a bucket and leave it alone.
func (e *external) look(ctx context.Context, cr *v1alpha1.Bucket, b *bucket) (managed.ExternalObservation, error) {
	o := managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}

	endpoint, err := e.client.Endpoint(ctx, b.region)
	if err != nil {
		return o, err
	}

	cr.Status.AtProvider = v1alpha1.BucketObservation{BucketName: b.name, Region: b.region, Endpoint: endpoint}

	if o.ConnectionDetails, err = e.details(ctx, cr, b, endpoint); err != nil {
		return o, err
	}

	ready(cr)

	return o, nil
}

// compare a bucket of ours with what the spec asks for.
func (e *external) compare(ctx context.Context, cr *v1alpha1.Bucket, b *bucket) (managed.ExternalObservation, error) {
	o := managed.ExternalObservation{ResourceExists: true}

	endpoint, err := e.client.Endpoint(ctx, b.region)
	if err != nil {
		return o, err
	}

	b.endpoint = endpoint
	b.tell(cr)

	if o.ConnectionDetails, err = e.details(ctx, cr, b, endpoint); err != nil {
		return o, err
	}

	if e.plan, err = planFor(ctx, cr, b); err != nil {
		return o, err
	}

	e.plan.tell(cr)

	if b.standing == unmarked && !kind.May(cr, xpv2.ManagementActionUpdate) {
		return o, unavailable(cr, &outside.Failure{
			Reason:  capstan.ReasonNameTaken,
			Message: fmt.Sprintf("bucket %q carries no tag of an owner yet, and may not be given one", b.name),
			Remedy:  "add Update to spec.managementPolicies",
		})
	}

	if b.standing == unmarked || len(e.plan.steps) > 0 {
		o.Diff = e.plan.summary(b)

		// Update goes on with what can be done, and tells what cannot.
		if kind.May(cr, xpv2.ManagementActionUpdate) || e.plan.failure() == nil {
			return o, nil
		}
	}

	if f := e.plan.failure(); f != nil {
		return o, unavailable(cr, f)
	}

	o.ResourceUpToDate = true

	ready(cr)

	return o, nil
}

// disown the bucket of a name. What was set on it is remembered, for the case that
// its tag was lost and comes back.
func disown(cr *v1alpha1.Bucket, name string) {
	was := cr.Status.AtProvider
	cr.Status.AtProvider = v1alpha1.BucketObservation{}

	if was.BucketName == name {
		cr.Status.AtProvider = v1alpha1.BucketObservation{BucketName: name, Features: was.Features, TagKeys: was.TagKeys}
	}
}

// tell the status of cr what the bucket is. What was set on another bucket is not
// to be taken from this one.
func (b *bucket) tell(cr *v1alpha1.Bucket) {
	at := &cr.Status.AtProvider
	if at.BucketName != "" && at.BucketName != b.name {
		at.Features, at.TagKeys = nil, nil
	}

	at.BucketName, at.Region, at.Endpoint, at.Owned = b.name, b.region, b.endpoint, b.standing == ours
}

func ready(cr *v1alpha1.Bucket) {
	cr.SetConditions(xpv2.Available().WithObservedGeneration(cr.GetGeneration()))
}

// refuse says that cr has no bucket, for the given reason.
func refuse(cr *v1alpha1.Bucket, f *outside.Failure) error {
	if !meta.WasDeleted(cr) {
		cr.SetConditions(xpv2.Unavailable().WithMessage(f.Error()).WithObservedGeneration(cr.GetGeneration()))
	}

	return f
}

// unavailable says that cr has a bucket that has never been what was asked for.
// One that was once stays available: who uses it is not to lose it because one of
// its features cannot be changed.
func unavailable(cr *v1alpha1.Bucket, f *outside.Failure) error {
	if cr.GetCondition(xpv2.TypeReady).Status == corev1.ConditionTrue {
		return f
	}

	return refuse(cr, f)
}
