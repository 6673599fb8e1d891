// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"

	"github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	capstan "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/bucket/feature"
	"github.com/capstan-dev/capstan/provider/internal/outside"
)

// Update sets the tag if it is missing, and the features that Observe found different from the spec. One that fails does not
// block the others.
func (e *external) Update(ctx context.Context, cr *v1alpha1.Bucket) (managed.ExternalUpdate, error) {
	if e.found == nil || e.plan == nil {
		return managed.ExternalUpdate{}, &outside.Failure{
			Reason:  capstan.ReasonNotFound,
			Message: fmt.Sprintf("bucket %q is not there", e.name),
			Remedy:  "add Create to spec.managementPolicies, or make the bucket by other means",
		}
	}
	b := *e.found
	if b.standing == unmarked {
		var err error
		if b, err = b.marked(ctx); err != nil {
			return managed.ExternalUpdate{}, err
		}
	}
	// What Observe has reported is lost when the runtime has just set the finalizer.
	cr.Status.AtProvider = owned(cr.Status.AtProvider, b)
	if err := e.remember(ctx, cr, *e.plan); err != nil {
		return managed.ExternalUpdate{}, err
	}
	p := e.plan.Run(ctx)
	report(cr, p)
	if f := p.Failure(); f != nil {
		return managed.ExternalUpdate{}, unavailable(cr, f)
	}
	// There may be no other look at the bucket for a while.
	ready(cr)
	return managed.ExternalUpdate{}, nil
}

// remember what is about to be set, before anything is: also after a crash before the end of the reconcile, it is known what the
// provider has set, and it is removed when the spec no longer asks for it.
func (e *external) remember(ctx context.Context, cr *v1alpha1.Bucket, p feature.Plan) error {
	was := cr.Status.AtProvider
	cr.Status.AtProvider = withRecord(was, p.Intent(record(was)))
	if equality.Semantic.DeepEqual(was, cr.Status.AtProvider) {
		return nil
	}
	if err := e.kube.Status().Update(ctx, cr); err != nil {
		return fmt.Errorf("cannot record what is about to be set: %w", err)
	}
	return nil
}
