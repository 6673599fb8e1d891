// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/capstan-dev/capstan/images/member/hook"
)

// Hook runs one hook of a change, in a pod of its own.
type Hook struct{ hook.Hook }

const (
	// connectLimit is how long it may take to connect.
	connectLimit = 10 * time.Second
	// endLimit is how long it may take to end a session.
	endLimit = 10 * time.Second
)

// Run the hook.
func (c *Hook) Run(ctx context.Context, log *slog.Logger) error { return c.Do(ctx, log, c.statements) }

// statements are run in one transaction, which a failure undoes.
func (c *Hook) statements(ctx context.Context) error {
	db, err := c.open()
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	conn, err := db.Conn(ctx)
	if err != nil {
		return hook.Unreached(fmt.Errorf("cannot connect: %w", err))
	}
	defer func() { _ = conn.Close() }()
	var session int64
	if err := conn.QueryRowContext(ctx, "SELECT CONNECTION_ID()").Scan(&session); err != nil {
		return hook.Unreached(fmt.Errorf("cannot begin a session: %w", err))
	}
	if err = inTransaction(ctx, conn, c.SQL); err == nil {
		return nil
	}
	if m := (*mysql.MySQLError)(nil); errors.As(err, &m) {
		return fmt.Errorf("MySQL refuses the statements: %s (%d)", m.Message, m.Number)
	}
	return errors.Join(fmt.Errorf("the connection broke while the statements ran; they may have been committed: %w", err), end(ctx, db, session))
}

// inTransaction runs statements.
func inTransaction(ctx context.Context, conn *sql.Conn, statements string) error {
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if _, err = tx.ExecContext(ctx, statements); err != nil {
		_ = tx.Rollback() // The server undoes it in any case when the connection ends.
		return err
	}
	return tx.Commit()
}

// end a session. The server does not notice that its client is gone until the statement has ended.
func end(ctx context.Context, db *sql.DB, session int64) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endLimit)
	defer cancel()
	_, err := db.ExecContext(ctx, "KILL ?", session)
	const isNone = 1094
	if m := (*mysql.MySQLError)(nil); err == nil || errors.As(err, &m) && m.Number == isNone {
		return nil
	}
	return fmt.Errorf("cannot end the session %d, which may still run: %w", session, err)
}

// open the server of the consumer's Secret. Nothing is connected yet.
func (c *Hook) open() (*sql.DB, error) {
	text, err := c.URI()
	if err != nil {
		return nil, err
	}
	uri, err := url.Parse(text)
	if err != nil || uri.Scheme != "mysql" || uri.Port() == "" {
		return nil, errors.New("the Secret of the consumer has no uri of MySQL") // what it says may hold the password
	}
	cfg := mysql.NewConfig()
	if cfg.TLS, err = c.TLS(uri.Hostname()); err != nil {
		return nil, err
	}
	cfg.User = uri.User.Username()
	cfg.Passwd, _ = uri.User.Password()
	cfg.Net, cfg.Addr, cfg.DBName = "tcp", uri.Host, strings.TrimPrefix(uri.Path, "/")
	cfg.Timeout = connectLimit
	cfg.MultiStatements, cfg.InterpolateParams = true, true
	cfg.AllowNativePasswords = false // The password is sent within TLS, and by no other method that a server chooses.
	cfg.ConnectionAttributes = "program_name:" + hook.Program
	cfg.Logger = &mysql.NopLogger{} // what it has to say is in errors
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, errors.New("the Secret of the consumer has no uri of MySQL")
	}
	return sql.OpenDB(connector), nil
}
