// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"

	"github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
)

// Update puts back the label that says who manages the Secret. It is a patch of
// just that label, so that it cannot touch the password, and only of the version
// that was looked at.
func (e *external) Update(ctx context.Context, cr *v1alpha1.Credential) (managed.ExternalUpdate, error) {
	s, err := e.secret(ctx, cr)
	if err != nil {
		return managed.ExternalUpdate{}, err
	}

	if !belongs(s, cr) {
		return managed.ExternalUpdate{}, errStranger(s, cr)
	}

	patch := client.MergeFromWithOptions(s.DeepCopy(), client.MergeFromWithOptimisticLock{})
	s.Labels[labelManagedBy] = managedBy

	if err := e.kube.Patch(ctx, s, patch); err != nil {
		return managed.ExternalUpdate{}, fmt.Errorf("cannot label Secret %q: %w", s.GetName(), err)
	}

	return managed.ExternalUpdate{}, nil
}
