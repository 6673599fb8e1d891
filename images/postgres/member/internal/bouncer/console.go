// SPDX-License-Identifier: Apache-2.0

// Package bouncer manages the PgBouncer of a pooler: what lets its clients wait while the leader changes, and what reports how it
// does.
package bouncer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// A Console is PgBouncer's own, behind the socket in a folder. Programs of the same user may use it.
type Console struct {
	// Folder of the socket, and Port that names it.
	Folder string
	Port   uint16
}

// own is the database and the user of PgBouncer itself.
const own = "pgbouncer"

// answerLimit is how long PgBouncer may take for an answer that waits for nothing.
const answerLimit = 5 * time.Second

func (c Console) connect(ctx context.Context) (*pgconn.PgConn, error) {
	conn, err := connect(ctx, c.Folder, c.Port, own, own, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot reach PgBouncer: %w", err)
	}
	return conn, nil
}

// connect as a user whom a certificate or the socket identifies.
func connect(ctx context.Context, host string, port uint16, user, database string, verify *tls.Config, parameters map[string]string) (*pgconn.PgConn, error) {
	cfg, err := pgconn.ParseConfig("sslmode=disable")
	if err != nil {
		return nil, err
	}
	cfg.Host, cfg.Port, cfg.User, cfg.Password, cfg.Database = host, port, user, "", database
	cfg.TLSConfig, cfg.Fallbacks, cfg.RuntimeParams, cfg.ConnectTimeout = verify, nil, parameters, answerLimit
	return pgconn.ConnectConfig(ctx, cfg)
}

// table that a command shows within answerLimit, a map from column to value for each row.
func (c Console) table(ctx context.Context, command string) ([]map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	return c.run(ctx, command)
}

// run a command, and return what it shows like table.
func (c Console) run(ctx context.Context, command string) ([]map[string]string, error) {
	conn, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer closeSoon(ctx, conn)
	results, err := conn.Exec(ctx, command).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("cannot let PgBouncer %s: %w", command, err)
	}
	var out []map[string]string
	for _, r := range results {
		for _, row := range r.Rows {
			one := make(map[string]string, len(row))
			for i, f := range r.FieldDescriptions {
				one[f.Name] = string(row[i])
			}
			out = append(out, one)
		}
	}
	return out, nil
}

// closeSoon says good-bye, which must not take long.
func closeSoon(ctx context.Context, conn *pgconn.PgConn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}

// Pause lets clients wait: no transaction begins from now on. It returns when those that are under way have ended, or with the
// context, after which clients wait nevertheless.
func (c Console) Pause(ctx context.Context) error {
	_, err := c.run(ctx, "PAUSE")
	return unlessRefused(err) // it pauses already, and says nothing else
}

// Resume lets clients continue.
func (c Console) Resume(ctx context.Context) error {
	_, err := c.table(ctx, "RESUME")
	return unlessRefused(err) // it does not pause
}

// unlessRefused is an error, unless it is an answer of PgBouncer.
func unlessRefused(err error) error {
	if p := (*pgconn.PgError)(nil); errors.As(err, &p) {
		return nil
	}
	return err
}

// Reconnect ends connections to the server as soon as no client uses them.
func (c Console) Reconnect(ctx context.Context) error {
	_, err := c.table(ctx, "RECONNECT")
	return err
}

// State reports whether PgBouncer pauses. An error means that it does not answer.
func (c Console) State(ctx context.Context) (paused bool, err error) {
	value, err := c.setting(ctx, "SHOW STATE", "paused")
	return value == "yes", err
}

// Clients returns how many are connected, busy or not.
func (c Console) Clients(ctx context.Context) (int, error) {
	rows, err := c.table(ctx, "SHOW POOLS")
	if err != nil {
		return 0, err
	}
	sum := 0
	for _, r := range rows {
		for _, column := range []string{"cl_active", "cl_waiting"} {
			if n, err := strconv.Atoi(r[column]); err == nil && r["database"] != own {
				sum += n
			}
		}
	}
	return sum, nil
}

// Sessions reports whether clients have connections to the server for as long as they are connected themselves.
func (c Console) Sessions(ctx context.Context) (bool, error) {
	value, err := c.setting(ctx, "SHOW CONFIG", "pool_mode")
	if err == nil && value == "" {
		err = errors.New("PgBouncer does not show its pool_mode")
	}
	return value == "session", err
}

// setting is a value that a command shows; "" when it does not.
func (c Console) setting(ctx context.Context, command, key string) (string, error) {
	rows, err := c.table(ctx, command)
	for _, r := range rows {
		if r["key"] == key {
			return r["value"], nil
		}
	}
	return "", err
}
