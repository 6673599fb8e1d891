// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"fmt"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"

	"github.com/capstan-dev/capstan/apis/access/v1alpha1"
	"github.com/capstan-dev/capstan/provider/access/internal/engine"
)

// rounds there may be: databases are made in the first, furnished in the second, and found to be so in the third. Many tables
// that were not readable take more.
const rounds = 8

// Create does nothing: there is always a server.
func (e *external) Create(context.Context, *v1alpha1.Access) (managed.ExternalCreation, error) {
	return managed.ExternalCreation{}, nil
}

// Update the server, step by step, and look again. What fails holds up nothing but what depends on it.
func (e *external) Update(ctx context.Context, cr *v1alpha1.Access) (managed.ExternalUpdate, error) {
	w, unknown, err := e.wanted(ctx)
	if err != nil {
		return managed.ExternalUpdate{}, err
	}
	var failed []engine.Problem
	for range rounds {
		s, p, err := e.compare(ctx, &w)
		if err != nil {
			return managed.ExternalUpdate{}, err
		}
		left := slices.DeleteFunc(slices.Clone(p.Steps), func(st engine.Step) bool {
			return slices.ContainsFunc(failed, func(f engine.Problem) bool { return f.Of == st.Of && f.Extension == st.Extension })
		})
		p.Problems = append(p.Problems, slices.Concat(unknown, failed)...)
		report(cr, s, w, p)
		if len(left) == 0 {
			return managed.ExternalUpdate{}, nil
		}
		for _, st := range left {
			f, err := e.take(ctx, w, st, failed)
			if err != nil {
				return managed.ExternalUpdate{}, err
			}
			failed = append(failed, f...)
		}
	}
	return managed.ExternalUpdate{}, nil
}

// take a step, unless what it depends on has failed. What the server refuses is a problem; an error is one of the connection.
func (e *external) take(ctx context.Context, w engine.Wanted, st engine.Step, failed []engine.Problem) ([]engine.Problem, error) {
	l, ok := w.Named(st.Of.Login)
	for _, f := range failed {
		if f.Of == st.Of && (!f.Extension || st.Extension) || ok && f.Of.Database == l.Database && !f.Extension {
			return nil, nil
		}
	}
	switch used, err := e.takenIntoUse(ctx, st); {
	case err != nil:
		return nil, err
	case used:
		return nil, nil // The next look sees it.
	}
	server, err := e.at(ctx)
	if err != nil {
		return nil, err
	}
	if err = server.Run(ctx, st, l.Password); st.Password {
		// Also when the answer is lost.
		e.proofs.outdated(e.cr.GetUID(), l.Name)
	}
	if err == nil {
		return nil, nil
	}
	if f := server.Refused(err); f != nil {
		return []engine.Problem{{Of: st.Of, Extension: st.Extension, Text: fmt.Sprintf("cannot %s: %s", st.What, f.Error())}}, nil
	}
	return nil, fmt.Errorf("cannot %s: %w", st.What, err)
}

// Delete does nothing: what is in a server stays there.
func (e *external) Delete(context.Context, *v1alpha1.Access) (managed.ExternalDelete, error) {
	return managed.ExternalDelete{}, nil
}
