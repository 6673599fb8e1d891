// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"

	"github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
)

// Create the Secret with a new password. It may be repeated: a Secret that has
// appeared meanwhile is never written to, and the next Observe looks at it. The
// password goes into the Secret and nowhere else.
func (e *external) Create(ctx context.Context, cr *v1alpha1.Credential) (managed.ExternalCreation, error) {
	pw, err := generate(cr.Spec.ForProvider)
	if err != nil {
		return managed.ExternalCreation{}, fmt.Errorf("cannot generate password: %w", err)
	}

	k := key(cr)
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: k.Namespace,
			Name:      k.Name,
			Labels: map[string]string{
				v1alpha1.LabelCredential: cr.GetName(),
				labelManagedBy:           managedBy,
			},
		},
		Type: corev1.SecretTypeOpaque,
		Data: map[string][]byte{v1alpha1.KeyPassword: []byte(pw)},
	}

	err = e.kube.Create(ctx, s)
	if kerrors.IsAlreadyExists(err) {
		return managed.ExternalCreation{}, e.adopt(ctx, cr)
	}

	if err != nil {
		return managed.ExternalCreation{}, fmt.Errorf("cannot create Secret %q: %w", k.Name, err)
	}

	return managed.ExternalCreation{}, nil
}

// adopt the Secret that was there first, if it is ours.
func (e *external) adopt(ctx context.Context, cr *v1alpha1.Credential) error {
	s, err := e.secret(ctx, cr)
	if err != nil {
		return err
	}

	if !belongs(s, cr) {
		return errStranger(s, cr)
	}

	return nil
}
