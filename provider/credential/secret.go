// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"

	"github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
)

const (
	labelManagedBy = "app.kubernetes.io/managed-by"
	managedBy      = "capstan"
)

// key of the Secret: always in the namespace of its Credential.
func key(cr *v1alpha1.Credential) client.ObjectKey {
	return client.ObjectKey{Namespace: cr.GetNamespace(), Name: meta.GetExternalName(cr)}
}

// secret reads the Secret of cr.
func (e *external) secret(ctx context.Context, cr *v1alpha1.Credential) (*corev1.Secret, error) {
	s := &corev1.Secret{}
	if err := e.kube.Get(ctx, key(cr), s); err != nil {
		return nil, fmt.Errorf("cannot get Secret %q: %w", key(cr).Name, err)
	}

	return s, nil
}

// belongs tells whether s is the Secret of cr. A label decides and no UID, since
// the Secret outlives its Credential.
func belongs(s *corev1.Secret, cr *v1alpha1.Credential) bool {
	return s.GetLabels()[v1alpha1.LabelCredential] == cr.GetName()
}

func errStranger(s *corev1.Secret, cr *v1alpha1.Credential) error {
	return fmt.Errorf("secret %q exists and is not the one of Credential %q, nothing was changed: "+
		"choose another name for the Credential, or, if the Secret is meant to become its own, label it %s=%s",
		s.GetName(), cr.GetName(), v1alpha1.LabelCredential, cr.GetName())
}

func errNoPassword(s *corev1.Secret) error {
	return fmt.Errorf("secret %q has no %q any more: put the password back under this key, "+
		"or delete the Secret if nobody uses the password, and a new one is generated",
		s.GetName(), v1alpha1.KeyPassword)
}
