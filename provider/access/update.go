// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"

	"github.com/capstan-dev/capstan/apis/access/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/scram"
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
	var failed []problem
	for range rounds {
		s, p, err := e.compare(ctx, &w)
		if err != nil {
			return managed.ExternalUpdate{}, err
		}
		left := slices.DeleteFunc(slices.Clone(p.steps), func(st step) bool {
			return slices.ContainsFunc(failed, func(f problem) bool { return f.of == st.of && f.extension == st.extension })
		})
		p.problems = append(p.problems, slices.Concat(unknown, failed)...)
		report(cr, s, w, p)
		if len(left) == 0 {
			return managed.ExternalUpdate{}, nil
		}
		for _, st := range left {
			f, err := e.take(ctx, s, w, st, failed)
			if err != nil {
				return managed.ExternalUpdate{}, err
			}
			failed = append(failed, f...)
		}
	}
	return managed.ExternalUpdate{}, nil
}

// take a step, unless what it depends on has failed. What the server refuses is a problem; an error is one of the connection.
func (e *external) take(ctx context.Context, s *server, w wanted, st step, failed []problem) ([]problem, error) {
	var l login
	if i := slices.IndexFunc(w.logins, func(l login) bool { return l.name == st.of.login }); i >= 0 {
		l = w.logins[i]
	}
	if i := slices.IndexFunc(w.others, func(o other) bool { return o.name == st.of.login }); i >= 0 {
		l = w.others[i].login
	}
	for _, f := range failed {
		if f.of == st.of && (!f.extension || st.extension) || l.name != "" && f.of.database == l.database && !f.extension {
			return nil, nil
		}
	}
	var err error
	switch used, unread := e.takenIntoUse(ctx, st); {
	case unread != nil:
		return nil, unread
	case used:
		return nil, nil // The next look sees it.
	}
	if st.evict != "" {
		err = e.evict(ctx, s, st.evict)
	} else {
		err = e.run(ctx, st, l)
	}
	if err == nil {
		return nil, nil
	}
	p := (*pgconn.PgError)(nil)
	if !errors.As(err, &p) || passing(p) {
		return nil, fmt.Errorf("cannot %s: %w", st.what, err)
	}
	return []problem{{of: st.of, extension: st.extension, text: fmt.Sprintf("cannot %s: %s", st.what, refusal(p).Error())}}, nil
}

// run the statements of a step.
func (e *external) run(ctx context.Context, st step, l login) error {
	in := st.database
	if in == "" {
		in = maintenance
	}
	conn, err := e.in(ctx, in)
	if err != nil {
		return err
	}
	do := slices.Clone(st.statements)
	if st.password {
		v, err := scram.New([]byte(l.password), scram.Iterations)
		if err != nil {
			return fmt.Errorf("cannot make a verifier of the password of login %q: %w", l.name, err)
		}

		// Also when the answer is lost.
		defer e.proofs.outdated(e.cr.GetUID(), l.name)

		// The server never sees the password.
		do = append(do, "ALTER ROLE "+id(l.name)+" PASSWORD "+text(v.String()))
	}
	if st.alone {
		for _, sql := range do {
			if _, err := conn.Exec(ctx, sql); err != nil {
				return err
			}
		}
		return nil
	}
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		for _, sql := range do {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}
		return nil
	})
}

// evict ends the sessions of a login. Only a member of the role may end them: the provider becomes one in a transaction that it
// rolls back.
func (e *external) evict(ctx context.Context, s *server, name string) error {
	conn, err := e.in(ctx, maintenance)
	if err != nil {
		return err
	}
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	if _, err := tx.Exec(ctx, enter(s.version, name)); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = "+text(name))
	return err
}

// Delete does nothing: what is in a server stays there.
func (e *external) Delete(context.Context, *v1alpha1.Access) (managed.ExternalDelete, error) {
	return managed.ExternalDelete{}, nil
}
