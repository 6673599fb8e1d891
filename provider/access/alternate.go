// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/apis/access/v1alpha1"
	credentialsv1alpha1 "github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
	apis "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/access/internal/engine"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/password"
)

// pair adds two alternating roles to w, as the Secret has them. It returns problems when the Secret cannot be used.
func (e *external) pair(ctx context.Context, l v1alpha1.Login, w *engine.Wanted) ([]engine.Problem, error) {
	of := engine.Login{Of: l.Name, Database: l.Database, ReadOnly: l.Access == v1alpha1.AccessReadOnly}
	leave := func(f *outside.Failure) ([]engine.Problem, error) {
		for _, name := range []string{l.Name, l.Alternate} {
			o := engine.Other{Login: of, Unknown: true}
			o.Name = name
			w.Others = append(w.Others, o)
		}
		return []engine.Problem{{Of: engine.Subject{Login: l.Name}, Text: f.Error()}}, nil
	}
	ref := l.PasswordSecretRef
	s := &corev1.Secret{}
	if err := e.kube.Get(ctx, client.ObjectKey{Namespace: e.cr.GetNamespace(), Name: ref.Name}, s); kerrors.IsNotFound(err) {
		return leave(&outside.Failure{
			Reason: apis.ReasonCredentialsMissing, Message: fmt.Sprintf("login %q: there is no Secret %q", l.Name, ref.Name), Remedy: "make it, or name another",
		})
	} else if err != nil {
		return nil, outside.InCluster("cannot get Secret %q of login %q: %w", ref.Name, l.Name, err)
	}
	active := string(s.Data[credentialsv1alpha1.KeyUsername])
	if active != l.Name && active != l.Alternate {
		return leave(&outside.Failure{
			Reason:  apis.ReasonInvalidConfig,
			Message: fmt.Sprintf("login %q: key %q of Secret %q is neither %q nor %q", l.Name, credentialsv1alpha1.KeyUsername, ref.Name, l.Name, l.Alternate),
			Remedy:  "name the Secret of a Credential that has both as username and alternateUsername",
		})
	}
	if err := password.Check(s.Data[ref.Key]); err != nil {
		return leave(&outside.Failure{
			Reason:  apis.ReasonInvalidConfig,
			Message: fmt.Sprintf("login %q: key %q of Secret %q is no password that every client understands: %v", l.Name, ref.Key, ref.Name, err),
			Remedy:  "choose another password",
		})
	}
	now, rest := of, engine.Other{Login: of, WhenIdle: l.RetireWhenIdle, Overlaps: overlaps(s, e.idle.now())}
	now.Name, now.Password = active, string(s.Data[ref.Key])
	rest.Name = l.Name
	if active == l.Name {
		rest.Name = l.Alternate
	}
	if next := s.Data[ref.Key+credentialsv1alpha1.SuffixNext]; password.Check(next) == nil && len(next) > 0 {
		rest.Password, rest.Staged = string(next), true
		rest.Token = s.GetAnnotations()[credentialsv1alpha1.AnnotationStaged]
	}
	w.Logins, w.Others = append(w.Logins, now), append(w.Others, rest)
	return nil, nil
}

// overlaps reports whether a Secret says that clients may still have the username before.
func overlaps(s *corev1.Secret, now time.Time) bool {
	until, err := time.Parse(time.RFC3339, s.GetAnnotations()[credentialsv1alpha1.AnnotationOverlapUntil])
	return err == nil && now.Before(until)
}

// compareOther role with what is wanted of it: whether it is idle, and, when it is not kept for clients, whether the password to
// come opens it.
func (e *external) compareOther(ctx context.Context, s engine.Seen, o *engine.Other) error {
	if r := s.Role(o.Name); !r.Open || !o.Overlaps {
		e.idle.busy(e.cr.GetUID(), o.Name)
	} else {
		o.Idle = e.idle.look(e.cr.GetUID(), o.Name, r.Sessions)
	}
	o.Opens = false
	if o.Token == "" || o.Unknown || !s.Stands(o.Login) {
		return nil
	}

	// One that clients still have most likely does not open with it, and the server writes down every attempt.
	if o.Kept() && e.proofs.refused(e.cr.GetUID(), o.Login) {
		return nil
	}
	var err error
	if o.Opens, err = e.opens(ctx, o.Login); err != nil {
		return fmt.Errorf("cannot log in as %q: %w", o.Name, err)
	}
	return nil
}

// takenIntoUse reports whether a role that is about to be shut out may be in the clients' Secret by now. It is read right before,
// because the Secret may have changed since it was read. Steps of other roles need no such question.
func (e *external) takenIntoUse(ctx context.Context, st engine.Step) (bool, error) {
	i := slices.IndexFunc(e.cr.Spec.ForProvider.Logins, func(l v1alpha1.Login) bool { return l.Name == st.Unused })
	if st.Unused == "" || i < 0 {
		return false, nil
	}
	ref := e.cr.Spec.ForProvider.Logins[i].PasswordSecretRef
	s := &corev1.Secret{}
	err := e.kube.Get(ctx, client.ObjectKey{Namespace: e.cr.GetNamespace(), Name: ref.Name}, s)
	if client.IgnoreNotFound(err) != nil {
		return false, outside.InCluster("cannot get Secret %q of login %q: %w", ref.Name, st.Unused, err)
	}
	active := string(s.Data[credentialsv1alpha1.KeyUsername])
	return active == "" || active == st.Of.Login, nil
}
