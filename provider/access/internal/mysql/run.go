// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/capstan-dev/capstan/provider/access/internal/engine"
	"github.com/capstan-dev/capstan/provider/internal/cachingsha2"
)

const (
	// evictWithin is how long sessions that are ended may take, and evictPace how often to look.
	evictWithin = 2 * time.Second
	evictPace   = 50 * time.Millisecond
)

// Run a step. Each statement is a transaction of its own in MySQL: one that is cut off leaves a login that is locked, or has the rights
// but not yet the password, and the next look continues from there.
func (c *Server) Run(ctx context.Context, st engine.Step, password string) error {
	if st.Evict != "" {
		return c.evict(ctx, st.Evict)
	}
	conn, err := c.connection(ctx)
	if err != nil {
		return err
	}
	do := slices.Clone(st.Statements)
	if st.Password {
		v, err := cachingsha2.New([]byte(password))
		if err != nil {
			return fmt.Errorf("cannot make a verifier of the password of login %q: %w", st.Of.Login, err)
		}

		// The server never sees the password.
		do = append(do, "ALTER USER "+account(st.Of.Login)+" "+identified(v.String())+" ACCOUNT UNLOCK")
	}
	for _, statement := range do {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// evict ends the sessions of a login, and waits until they are gone. The next look sees those that take longer.
func (c *Server) evict(ctx context.Context, name string) error {
	conn, err := c.connection(ctx)
	if err != nil {
		return err
	}
	for end := time.Now().Add(evictWithin); ; {
		var ids []uint64
		var session uint64
		if err := each(ctx, conn, "SELECT ID FROM performance_schema.processlist WHERE USER = "+text(name), []any{&session}, func() {
			ids = append(ids, session)
		}); err != nil {
			return err
		}
		for _, n := range ids {
			if _, err := conn.ExecContext(ctx, "KILL "+strconv.FormatUint(n, 10)); err != nil && code(err) != codeNoSuchSession {
				return err
			}
		}
		if len(ids) == 0 || time.Now().After(end) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(evictPace):
		}
	}
}
