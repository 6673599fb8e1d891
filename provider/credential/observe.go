// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
)

// Observe the Secret. What is wrong with it is told and left alone:
//
//  1. A Secret that is not ours may hold somebody's only copy of something.
//  2. A Secret of ours without its password: whatever the password opens (a
//     database, say) still expects it. A new one would look healthy here and
//     break every login, so a person decides.
//
// While the Credential is being deleted neither must hold it up: a stranger's
// Secret does not exist for us, and ours is deleted with or without a password.
func (e *external) Observe(ctx context.Context, cr *v1alpha1.Credential) (managed.ExternalObservation, error) {
	s, err := e.secret(ctx, cr)
	if err != nil {
		if kerrors.IsNotFound(err) {
			cr.Status.AtProvider = v1alpha1.CredentialObservation{}
		}

		return managed.ExternalObservation{}, resource.IgnoreNotFound(err)
	}

	if !belongs(s, cr) {
		return managed.ExternalObservation{}, refuse(cr, errStranger(s, cr))
	}

	cr.Status.AtProvider = v1alpha1.CredentialObservation{
		SecretName: s.GetName(),
		Keys:       slices.Sorted(maps.Keys(s.Data)),
	}

	o := managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: upToDate(s)}

	if len(s.Data[v1alpha1.KeyPassword]) == 0 {
		return o, refuse(cr, errNoPassword(s))
	}

	cr.SetConditions(xpv2.Available().WithObservedGeneration(cr.GetGeneration()))

	return o, nil
}

// upToDate tells whether s carries the labels it should. The password has no
// desired value to be compared with.
func upToDate(s *corev1.Secret) bool { return s.GetLabels()[labelManagedBy] == managedBy }

// refuse marks cr as not available for the given reason, unless it is on its
// way out.
func refuse(cr *v1alpha1.Credential, why error) error {
	if meta.WasDeleted(cr) {
		return nil
	}

	cr.SetConditions(xpv2.Unavailable().WithMessage(why.Error()).WithObservedGeneration(cr.GetGeneration()))

	return why
}
