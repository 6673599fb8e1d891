// SPDX-License-Identifier: Apache-2.0

package bucket

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"

	"github.com/capstan-dev/capstan/apis/storage/v1alpha1"
	capstan "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
)

// Update sets the tag if it is missing, and the features that Observe found to be
// otherwise than the spec. One that fails holds up no other.
func (e *external) Update(ctx context.Context, cr *v1alpha1.Bucket) (managed.ExternalUpdate, error) {
	if e.found == nil || e.plan == nil {
		return managed.ExternalUpdate{}, &outside.Failure{
			Reason:  capstan.ReasonNotFound,
			Message: fmt.Sprintf("bucket %q is not there", e.name),
			Remedy:  "add Create to spec.managementPolicies, or make the bucket by other means",
		}
	}

	if e.found.standing == unmarked {
		if err := e.found.mark(ctx); err != nil {
			return managed.ExternalUpdate{}, err
		}
	}

	// What Observe has told is lost when the runtime has just set the finalizer.
	e.found.tell(cr)

	if err := e.remember(ctx, cr, e.plan); err != nil {
		return managed.ExternalUpdate{}, err
	}

	e.plan.carryOut(ctx)
	e.plan.tell(cr)

	if f := e.plan.failure(); f != nil {
		return managed.ExternalUpdate{}, unavailable(cr, f)
	}

	// There may be no other look at the bucket for a while.
	ready(cr)

	return managed.ExternalUpdate{}, nil
}

// remember, before anything is set, what is about to be: whatever happens between
// then and the end of the reconcile, what the provider has set is known, and is
// removed when the spec no longer asks for it.
func (e *external) remember(ctx context.Context, cr *v1alpha1.Bucket, p *plan) error {
	was := cr.Status.AtProvider.DeepCopy()
	p.intend(cr)

	if equality.Semantic.DeepEqual(was, &cr.Status.AtProvider) {
		return nil
	}

	if err := e.kube.Status().Update(ctx, cr); err != nil {
		return fmt.Errorf("cannot record what is about to be set: %w", err)
	}

	return nil
}
