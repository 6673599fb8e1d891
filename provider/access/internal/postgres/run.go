// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/capstan-dev/capstan/provider/access/internal/engine"
	"github.com/capstan-dev/capstan/provider/internal/scram"
)

// Codes of PostgreSQL that a log-in ends with.
const (
	codeWrongPassword      = "28P01"
	codeTooManyConnections = "53300"
)

// LogIn tries a login with its password.
func (c *Server) LogIn(ctx context.Context, l engine.Login) (engine.Answer, error) {
	// One connection at a time.
	c.Disconnect(ctx)
	cfg, err := Config(c.target)
	if err != nil {
		return engine.Unanswered, err
	}
	cfg.User, cfg.Password, cfg.Database = l.Name, l.Password, l.Database
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err == nil {
		_ = conn.Close(ctx)
		return engine.Opened, nil
	}
	if p := (*pgconn.PgError)(nil); errors.As(err, &p) {
		switch p.Code {
		case codeWrongPassword:
			return engine.WrongPassword, nil
		case codeTooManyConnections:
			return engine.Full, err
		}
	}
	return engine.Unanswered, err
}

// Run a step.
func (c *Server) Run(ctx context.Context, st engine.Step, password string) error {
	if st.Evict != "" {
		return c.evict(ctx, st.Evict)
	}
	in := st.Database
	if in == "" {
		in = maintenance
	}
	conn, err := c.in(ctx, in)
	if err != nil {
		return err
	}
	do := slices.Clone(st.Statements)
	if st.Password {
		v, err := scram.New([]byte(password), scram.Iterations)
		if err != nil {
			return fmt.Errorf("cannot make a verifier of the password of login %q: %w", st.Of.Login, err)
		}

		// The server never sees the password.
		do = append(do, "ALTER ROLE "+id(st.Of.Login)+" PASSWORD "+text(v.String()))
	}
	if st.Alone {
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
func (c *Server) evict(ctx context.Context, name string) error {
	conn, err := c.in(ctx, maintenance)
	if err != nil {
		return err
	}
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	if _, err := tx.Exec(ctx, enter(c.version, name)); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = "+text(name))
	return err
}
