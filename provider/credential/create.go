// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"

	"github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
)

// Create the Secret where it may be made and not changed (see Observe).
func (e *external) Create(ctx context.Context, cr *v1alpha1.Credential) (managed.ExternalCreation, error) {
	_, err := e.make(ctx, cr)
	return managed.ExternalCreation{}, err
}

// make the Secret with new values. It may be repeated: a Secret that has appeared meanwhile is never written to here, and is
// returned as it is if it is ours. The values go into the Secret and nowhere else. What is missing for the rest (certificates
// that are yet to be made, say) does not delay a consumer that needs just a password.
func (e *external) make(ctx context.Context, cr *v1alpha1.Credential) (*corev1.Secret, error) {
	k := key(cr)
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: k.Namespace,
			Name:      k.Name,
			Labels:    map[string]string{v1alpha1.LabelCredential: cr.GetName()},
		},
		Type: corev1.SecretTypeOpaque,
	}
	if c := cr.Spec.ForProvider.Connection; c != nil {
		s.Type = corev1.SecretType(v1alpha1.SecretTypeBinding + c.Type)
	}
	d, err := e.draft(ctx, cr, s, true)
	if err != nil {
		return nil, err
	}
	err = e.kube.Create(ctx, d.Secret)
	if kerrors.IsAlreadyExists(err) {
		return e.adopt(ctx, cr)
	}
	if err != nil {
		return nil, errUnwritten("create", k.Name, err)
	}
	return d.Secret, nil
}

// adopt the Secret that was there first, if it is ours.
func (e *external) adopt(ctx context.Context, cr *v1alpha1.Credential) (*corev1.Secret, error) {
	s, err := e.secret(ctx, cr)
	if err != nil {
		return nil, err
	}
	if !belongs(s, cr) {
		return nil, errStranger(s, cr)
	}
	return s, nil
}
