// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// postgres is one connection to PostgreSQL, made again whenever it fails.
type postgres struct {
	config *pgx.ConnConfig
	conn   *pgx.Conn
}

// openPostgres understands the URI. It connects only when it is needed.
func openPostgres(uri string, timeout time.Duration) (*postgres, error) {
	config, err := pgx.ParseConfig(uri)
	if err != nil {
		return nil, fmt.Errorf("cannot understand the URI: %w", err)
	}

	// Of several hosts each may take this long.
	config.ConnectTimeout = timeout
	config.LookupFunc = remembering(timeout / 4)
	return &postgres{config: config}, nil
}

// remembering what names meant, as pools and runtimes do: for as long as a name cannot be resolved it means what it meant. A node
// that is lost often takes one of the cluster's name servers along, and this is about databases.
func remembering(limit time.Duration) pgconn.LookupFunc {
	known := map[string][]string{}
	return func(ctx context.Context, host string) ([]string, error) {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		addresses, err := net.DefaultResolver.LookupHost(ctx, host)
		if err == nil {
			known[host] = addresses
		}
		if before := known[host]; len(before) > 0 {
			return before, nil
		}
		return addresses, err
	}
}

// with a connection do something. After an error nothing is known of it, and it is closed.
func (s *postgres) with(ctx context.Context, do func(*pgx.Conn) error) error {
	if s.conn == nil {
		conn, err := pgx.ConnectConfig(ctx, s.config)
		if err != nil {
			return fmt.Errorf("cannot connect: %w", err)
		}
		s.conn = conn
	}
	err := do(s.conn)
	if err != nil {
		s.close()
	}
	return err
}

func (s *postgres) close() {
	if s.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_ = s.conn.Close(ctx)
	s.conn = nil
}

func (s *postgres) prepare(ctx context.Context) error {
	return s.with(ctx, func(c *pgx.Conn) error {
		_, err := c.Exec(ctx, `create table if not exists account_rows (
			writer text not null,
			n bigint not null,
			at timestamptz not null default now(),
			primary key (writer, n))`)
		return err
	})
}

func (s *postgres) insert(ctx context.Context, writer string, n int64) (string, error) {
	var member string
	err := s.with(ctx, func(c *pgx.Conn) error {
		return c.QueryRow(ctx, `insert into account_rows (writer, n) values ($1, $2)
			returning coalesce(host(inet_server_addr()), 'local')`, writer, n).Scan(&member)
	})
	return member, err
}

func (s *postgres) read(ctx context.Context, writer string, each func(int64)) error {
	return s.with(ctx, func(c *pgx.Conn) error {
		found, err := c.Query(ctx, `select n from account_rows where writer = $1 order by n`, writer)
		if err != nil {
			return err
		}
		var n int64
		_, err = pgx.ForEachRow(found, []any{&n}, func() error { each(n); return nil })
		return err
	})
}
