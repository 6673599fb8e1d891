// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"context"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"

	"github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
)

// Update brings the Secret to what the Credential asks for: rotation, what is derived and rendered, labels and the record. It is
// one patch of just what differs, and only of the version that was read: so it cannot touch a value that it does not mean to
// change, another one that was quicker is not written over, and after a crash either all of it is there or
// nothing. A Secret that is not there is made.
func (e *external) Update(ctx context.Context, cr *v1alpha1.Credential) (managed.ExternalUpdate, error) {
	s, err := e.secret(ctx, cr)
	if kerrors.IsNotFound(err) && mayMake(cr) {
		s, err = e.make(ctx, cr)
	}
	if err != nil {
		return managed.ExternalUpdate{}, err
	}
	if !belongs(s, cr) {
		return managed.ExternalUpdate{}, errStranger(s, cr)
	}
	d, err := e.draft(ctx, cr, s, false)
	if err != nil {
		return managed.ExternalUpdate{}, err
	}
	if d.changes(s) {
		patch := client.MergeFromWithOptions(s, client.MergeFromWithOptimisticLock{})
		if err := e.kube.Patch(ctx, d.Secret, patch); err != nil {
			return managed.ExternalUpdate{}, errUnwritten("update", s.GetName(), err)
		}
	}

	// There may be no other look at the Secret for a while.
	report(cr, d.Secret)
	d.judge()
	return managed.ExternalUpdate{}, d.problem()
}
