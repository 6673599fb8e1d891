// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/capstan-dev/capstan/images/member/hook"
)

// Hook runs one hook of a change, in a pod of its own.
type Hook struct{ hook.Hook }

// Run the hook.
func (c *Hook) Run(ctx context.Context, log *slog.Logger) error { return c.Do(ctx, log, c.statements) }

// statements are run in one transaction, which a failure undoes.
func (c *Hook) statements(ctx context.Context) error {
	uri, err := c.URI()
	if err != nil {
		return err
	}
	cfg, err := pgx.ParseConfig(uri)
	if err != nil {
		return errors.New("the Secret of the consumer has no uri of PostgreSQL") // what it says may hold the password
	}
	if cfg.TLSConfig, err = c.TLS(cfg.Host); err != nil {
		return err
	}
	cfg.Fallbacks = nil
	cfg.RuntimeParams["application_name"] = hook.Program
	cfg.RuntimeParams["statement_timeout"] = strconv.FormatInt(c.Timeout.Milliseconds(), 10)
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return hook.Unreached(fmt.Errorf("cannot connect as %q: %w", cfg.User, err))
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err = conn.Exec(ctx, c.SQL, pgx.QueryExecModeSimpleProtocol); err == nil {
		return nil
	}
	if p := (*pgconn.PgError)(nil); errors.As(err, &p) {
		return fmt.Errorf("PostgreSQL refuses the statements: %s (%s)", p.Message, p.Code)
	}
	return fmt.Errorf("the connection broke while the statements ran; they may have been committed: %w", err)
}
