// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/apis/access/v1alpha1"
	credentialsv1alpha1 "github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
	apis "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/password"
)

// An other role takes turns with a login and is not in use. Which of the two is in use the Secret that clients have says, read in
// the same pass, so that a login that clients can read there is never shut out.
type other struct {
	login

	// unknown means that the Secret does not say which role is in use: this one stays as it is.
	unknown bool

	// token names the password to come that is staged for it, if there is one.
	token string

	// overlaps means that clients may still log in with it; idle that none did for a while.
	overlaps, idle bool

	// whenIdle ends the overlap as soon as it is idle.
	whenIdle bool
}

// kept reports whether the role stays as it is for clients that still have it.
func (o other) kept() bool { return o.unknown || o.overlaps && (!o.whenIdle || !o.idle) }

// names reports whether a role is a desired role or alternates with one.
func (w wanted) names(role string) bool {
	return slices.ContainsFunc(w.logins, func(l login) bool { return l.name == role }) ||
		slices.ContainsFunc(w.others, func(o other) bool { return o.name == role })
}

// pair adds two alternating roles to w, as the Secret has them. It returns problems when the Secret cannot be used.
func (e *external) pair(ctx context.Context, l v1alpha1.Login, w *wanted) ([]problem, error) {
	of := login{of: l.Name, database: l.Database, readOnly: l.Access == v1alpha1.AccessReadOnly}
	leave := func(f *outside.Failure) ([]problem, error) {
		for _, name := range []string{l.Name, l.Alternate} {
			o := other{login: of, unknown: true}
			o.name = name
			w.others = append(w.others, o)
		}
		return []problem{{of: subject{login: l.Name}, text: f.Error()}}, nil
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
	now, rest := of, other{login: of, whenIdle: l.RetireWhenIdle, overlaps: overlaps(s, e.idle.now())}
	now.name, now.password = active, string(s.Data[ref.Key])
	rest.name = l.Name
	if active == l.Name {
		rest.name = l.Alternate
	}
	if next := s.Data[ref.Key+credentialsv1alpha1.SuffixNext]; password.Check(next) == nil && len(next) > 0 {
		rest.password, rest.staged = string(next), true
		rest.token = s.GetAnnotations()[credentialsv1alpha1.AnnotationStaged]
	}
	w.logins, w.others = append(w.logins, now), append(w.others, rest)
	return nil, nil
}

// overlaps reports whether a Secret says that clients may still have the username before.
func overlaps(s *corev1.Secret, now time.Time) bool {
	until, err := time.Parse(time.RFC3339, s.GetAnnotations()[credentialsv1alpha1.AnnotationOverlapUntil])
	return err == nil && now.Before(until)
}

// compareOther role with what is wanted of it: whether it is idle, and, when it is not kept for clients, whether the password to
// come opens it.
func (e *external) compareOther(ctx context.Context, s *server, o *other) error {
	r, ok := s.roles[o.name]
	if !ok || !r.login || !o.overlaps {
		e.idle.busy(e.cr.GetUID(), o.name)
	} else {
		n := 0
		for _, k := range r.sessions {
			n += k
		}
		o.idle = e.idle.look(e.cr.GetUID(), o.name, n)
	}
	o.opens = false
	if !ok || r.mark != markLogin || !r.login || o.token == "" || o.unknown || !r.memberOf[o.role()].inherits {
		return nil
	}

	// One that clients still have most likely does not open with it, and the server writes down every attempt.
	if o.kept() && e.proofs.refused(e.cr.GetUID(), o.login) {
		return nil
	}
	var err error
	if o.opens, err = e.opens(ctx, o.login); err != nil {
		return fmt.Errorf("cannot log in as %q: %w", o.name, err)
	}
	return nil
}

// rest plans what to do with a role that is not in use. As long as clients may have it, that is nothing. It is shut out before it
// gets the next password, so that no earlier holder of it keeps its sessions.
func (p *plan) rest(s *server, w wanted, o other) {
	r, there := s.roles[o.name]
	switch {
	case o.opens:
		p.letIn(s, w, o.login)
	case o.kept():
	case o.token == "" && (!there || r.mark != markLogin):
	case o.token == "", there && r.mark == markLogin && (r.login || len(r.sessions) > 0):
		p.shut(s, o.name, o.of)
	default:
		p.letIn(s, w, o.login)
	}
}

// takenIntoUse reports whether a role that is about to be shut out may be in the clients' Secret by now. It is read right before,
// because the Secret may have changed since it was read. Steps of other roles need no such question.
func (e *external) takenIntoUse(ctx context.Context, st step) (bool, error) {
	i := slices.IndexFunc(e.cr.Spec.ForProvider.Logins, func(l v1alpha1.Login) bool { return l.Name == st.unused })
	if st.unused == "" || i < 0 {
		return false, nil
	}
	ref := e.cr.Spec.ForProvider.Logins[i].PasswordSecretRef
	s := &corev1.Secret{}
	err := e.kube.Get(ctx, client.ObjectKey{Namespace: e.cr.GetNamespace(), Name: ref.Name}, s)
	if client.IgnoreNotFound(err) != nil {
		return false, outside.InCluster("cannot get Secret %q of login %q: %w", ref.Name, st.unused, err)
	}
	active := string(s.Data[credentialsv1alpha1.KeyUsername])
	return active == "" || active == st.of.login, nil
}

// alternating logins as they are.
func alternating(s *server, w wanted, p plan) []v1alpha1.AlternatingLogin {
	var out []v1alpha1.AlternatingLogin
	for _, o := range w.others {
		i := slices.IndexFunc(w.logins, func(l login) bool { return l.of == o.of })
		if i < 0 {
			continue
		}
		a := v1alpha1.AlternatingLogin{Name: o.of, Active: w.logins[i].name}
		if r := s.roles[o.name]; o.opens && !p.open(subject{login: o.name}) {
			a.Accepted = o.token
		} else if r.mark == markLogin && r.login && o.kept() {
			a.Retiring = o.name
		}
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b v1alpha1.AlternatingLogin) int { return strings.Compare(a.Name, b.Name) })
	return out
}
