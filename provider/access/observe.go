// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/access/v1alpha1"
	"github.com/capstan-dev/capstan/provider/access/internal/engine"
	"github.com/capstan-dev/capstan/provider/internal/kind"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/words"
)

const (
	// maxMessage bounds a condition in bytes.
	maxMessage = 2048

	// soon is the poll interval while the leader has yet to create an extension.
	soon = 30 * time.Second

	// atOnce is how often while an Access is young: its Database is Ready for the first time when that is made.
	atOnce = 5 * time.Second
	young  = 2 * time.Minute
)

// Observe the server. It always exists; what is in it is up to date or not.
func (e *external) Observe(ctx context.Context, cr *v1alpha1.Access) (managed.ExternalObservation, error) {
	// It stays as it is, whether it is there or not.
	if meta.WasDeleted(cr) {
		return managed.ExternalObservation{}, nil
	}
	if cr.Spec.ForProvider.Suspended {
		return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}, nil
	}
	w, unknown, err := e.wanted(ctx)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	s, p, err := e.compare(ctx, &w)
	if err != nil {
		return managed.ExternalObservation{}, err
	}
	p.Problems = append(p.Problems, unknown...)
	report(cr, s, w, p)
	return managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: len(p.Steps) == 0}, nil
}

// wanted is what the spec asks for, with passwords, and the problems of passwords that are missing.
func (e *external) wanted(ctx context.Context) (engine.Wanted, []engine.Problem, error) {
	var unknown []engine.Problem
	q := e.cr.Spec.ForProvider
	w := engine.Wanted{Extensions: q.Extensions}
	for _, d := range q.Databases {
		w.Databases = append(w.Databases, d.Name)
	}
	for _, l := range q.Logins {
		if l.Alternate != "" {
			p, err := e.pair(ctx, l, &w)
			if err != nil {
				return w, nil, err
			}
			unknown = append(unknown, p...)
			continue
		}
		password, err := e.password(ctx, l)
		if f := (*outside.Failure)(nil); errors.As(err, &f) {
			unknown = append(unknown, engine.Problem{Of: engine.Subject{Login: l.Name}, Text: f.Error()})
		} else if err != nil {
			return w, nil, err
		}
		w.Logins = append(w.Logins, engine.Login{
			Name: l.Name, Of: l.Name, Database: l.Database, ReadOnly: l.Access == v1alpha1.AccessReadOnly, Password: password,
		})
	}
	return w, unknown, nil
}

// compare the server with the spec. w learns which passwords fit.
func (e *external) compare(ctx context.Context, w *engine.Wanted) (engine.Seen, engine.Plan, error) {
	server, err := e.at(ctx)
	if err != nil {
		return nil, engine.Plan{}, err
	}
	s, err := server.Look(ctx, *w)
	if err != nil {
		return nil, engine.Plan{}, err
	}
	for i := range w.Logins {
		l := &w.Logins[i]

		// A login that does not exist, or not as it should, needs no proof.
		if l.Opens = false; l.Password == "" || !s.Stands(*l) {
			continue
		}
		if l.Opens, err = e.opens(ctx, *l); err != nil {
			return nil, engine.Plan{}, fmt.Errorf("cannot log in as %q: %w", l.Name, err)
		}
	}
	for i := range w.Others {
		if err := e.compareOther(ctx, s, &w.Others[i]); err != nil {
			return nil, engine.Plan{}, err
		}
	}
	return s, engine.Draw(s, *w), nil
}

// report sets the status of cr.
func report(cr *v1alpha1.Access, s engine.Seen, w engine.Wanted, p engine.Plan) {
	cr.Status.AtProvider = engine.Observe(s, w, p)
	var open []string
	for _, q := range p.Problems {
		open = append(open, q.Text)
	}
	for _, st := range p.Steps {
		if !slices.ContainsFunc(p.Problems, func(q engine.Problem) bool { return q.Of == st.Of }) {
			open = append(open, "still to do: "+st.What)
		}
	}
	if len(open) > 0 {
		cr.SetConditions(xpv2.Unavailable().
			WithMessage(words.Bounded(strings.Join(slices.Compact(open), "; "), maxMessage)).
			WithObservedGeneration(cr.GetGeneration()))
		return
	}
	cr.SetConditions(xpv2.Available().WithObservedGeneration(cr.GetGeneration()))
}

// poll is the interval after which an Access is observed again: shorter while an extension is missing, which the leader creates
// within seconds of the database.
func poll(mg resource.Managed, every time.Duration) time.Duration {
	every = kind.Poll(mg, every)
	cr, ok := mg.(*v1alpha1.Access)
	if ok && slices.ContainsFunc(cr.Status.AtProvider.Databases,
		func(d v1alpha1.ObservedDatabase) bool { return len(d.Missing) > 0 }) {
		every = min(every, soon)
		if ready := cr.GetCondition(xpv2.TypeReady); time.Since(ready.LastTransitionTime.Time) < young {
			every = min(every, atOnce)
		}
	}

	// Whether a role is idle is known only while it is observed.
	if ok && slices.ContainsFunc(cr.Status.AtProvider.Alternating,
		func(a v1alpha1.AlternatingLogin) bool { return a.Retiring != "" }) {
		every = min(every, soon)
	}
	return every
}
