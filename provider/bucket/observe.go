// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"context"
	"fmt"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	capstan "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/bucket/feature"
	"github.com/capstan-dev/capstan/provider/internal/kind"
	"github.com/capstan-dev/capstan/provider/internal/outside"
)

// Observe the bucket. It writes nothing, and sends
//
//  1. HEAD: does it exist, and in which region;
//  2. GET tagging: who owns it;
//  3. one GET for each feature that the spec mentions or that must be removed; tags have been read already.
//
// A Bucket that only observes stops after the first, for any owner. A bucket of another owner stops everything, except that it
// does not hold up a Bucket that is being deleted: for that Bucket it does not exist.
func (e *external) Observe(ctx context.Context, cr *v1alpha1.Bucket) (managed.ExternalObservation, error) {
	there, err := e.find(ctx)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	if there == nil {
		cr.Status.AtProvider = v1alpha1.BucketObservation{}
		return managed.ExternalObservation{}, nil
	}
	if !meta.WasDeleted(cr) && kind.OnlyLooks(cr) {
		return e.look(ctx, cr, *there)
	}
	b, err := e.assess(ctx, cr, *there, !meta.WasDeleted(cr))
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	if b.standing == others || b.standing == nobodys {
		cr.Status.AtProvider = disowned(cr.Status.AtProvider, e.name)
		if meta.WasDeleted(cr) {
			return managed.ExternalObservation{}, nil
		}
		return managed.ExternalObservation{}, refuse(cr, taken(cr, e.name, b.standing, b.Tags.Values[v1alpha1.TagOwner], e.tenant))
	}
	if meta.WasDeleted(cr) {
		e.found = &b
		return managed.ExternalObservation{ResourceExists: true}, nil
	}
	return e.compare(ctx, cr, b)
}

// look at a bucket that is only observed.
func (e *external) look(ctx context.Context, cr *v1alpha1.Bucket, b found) (managed.ExternalObservation, error) {
	o := managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}
	var err error
	if b.endpoint, err = e.client.Endpoint(ctx, b.region); err != nil {
		return o, err
	}
	cr.Status.AtProvider = v1alpha1.BucketObservation{BucketName: b.Name, Region: b.region, Endpoint: b.endpoint}
	if o.ConnectionDetails, err = e.details(ctx, cr, b); err != nil {
		return o, err
	}
	ready(cr)
	return o, nil
}

// compare a bucket of ours with the spec.
func (e *external) compare(ctx context.Context, cr *v1alpha1.Bucket, b found) (managed.ExternalObservation, error) {
	o := managed.ExternalObservation{ResourceExists: true}
	var err error
	if b.endpoint, err = e.client.Endpoint(ctx, b.region); err != nil {
		return o, err
	}
	e.found = &b
	cr.Status.AtProvider = owned(cr.Status.AtProvider, b)
	if o.ConnectionDetails, err = e.details(ctx, cr, b); err != nil {
		return o, err
	}
	p, err := feature.NewPlan(ctx, b.Bucket, &cr.Spec.ForProvider, record(cr.Status.AtProvider))
	if err != nil {
		return o, err
	}
	e.plan = &p
	report(cr, p)
	mayUpdate := kind.May(cr, xpv2.ManagementActionUpdate)
	todo := p.Steps()
	if b.standing == unmarked {
		if !mayUpdate {
			return o, unavailable(cr, &outside.Failure{
				Reason:  capstan.ReasonNameTaken,
				Message: fmt.Sprintf("bucket %q carries no tag of an owner yet, and may not be given one", b.Name),
				Remedy:  "add Update to spec.managementPolicies",
			})
		}
		todo = append([]string{"owner"}, todo...)
	}
	f := p.Failure()
	if len(todo) > 0 {
		o.Diff = strings.Join(todo, ", ")
		// Update does what can be done, and reports what cannot.
		if mayUpdate || f == nil {
			return o, nil
		}
	}
	if f != nil {
		return o, unavailable(cr, f)
	}
	o.ResourceUpToDate = true
	ready(cr)
	return o, nil
}
