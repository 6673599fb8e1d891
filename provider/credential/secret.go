// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"

	"github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
	apisv1alpha1 "github.com/capstan-dev/capstan/apis/v1alpha1"
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

// belongs reports whether s is the Secret of cr. A label decides and no UID, since the Secret outlives its Credential. What a Preview makes
// is deleted with it, so it takes over no Secret that an earlier Database of the name has left.
func belongs(s *corev1.Secret, cr *v1alpha1.Credential) bool {
	preview := cr.GetLabels()[apisv1alpha1.LabelPreview]
	return s.GetLabels()[v1alpha1.LabelCredential] == cr.GetName() && (preview == "" || s.GetLabels()[apisv1alpha1.LabelPreview] == preview)
}

func errStranger(s *corev1.Secret, cr *v1alpha1.Credential) error {
	if preview := cr.GetLabels()[apisv1alpha1.LabelPreview]; preview != "" {
		return fmt.Errorf("secret %q exists and is not the one of Preview %q, which would delete it: give the Preview another name, or, "+
			"if no client needs the Secret, annotate it with capstan.dev/release=%s and delete it", s.GetName(), preview, s.GetName())
	}
	return fmt.Errorf("secret %q exists and is not the one of Credential %q, nothing was changed: "+
		"choose another name for the Credential, or, if the Secret is meant to become its own, label it %s=%s",
		s.GetName(), cr.GetName(), v1alpha1.LabelCredential, cr.GetName())
}

func errLost(s *corev1.Secret, key string) error {
	return fmt.Errorf("secret %q has no %q any more: put the password back under this key, "+
		"or delete the Secret if no client uses what is in it, and all of it is generated again",
		s.GetName(), key)
}

func errForeign(s *corev1.Secret, key string) error {
	return fmt.Errorf("secret %q has a key %q that is not of this Credential and is needed for something else: "+
		"remove the key from the Secret if no client uses it, or ask for another name",
		s.GetName(), key)
}

// An unwritten error says of an answer of the API server what it means, and not what it says: it may quote what should be written
// (an admission policy's does).
type unwritten struct {
	what  string
	cause error
}

func (e unwritten) Error() string { return e.what }
func (e unwritten) Unwrap() error { return e.cause }

// errUnwritten when the API server did not take a Secret.
func errUnwritten(verb, name string, err error) error {
	answer := kerrors.APIStatus(nil)
	if !errors.As(err, &answer) {
		return fmt.Errorf("cannot %s Secret %q: %w", verb, name, err)
	}
	return unwritten{
		what: fmt.Sprintf("cannot %s Secret %q: the API server answers %q: "+
			"see whether a right, a quota, an admission policy or the Secret being immutable stands in the way",
			verb, name, kerrors.ReasonForError(err)),
		cause: err,
	}
}
