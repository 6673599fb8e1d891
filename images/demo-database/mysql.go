// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

// mySQL is one connection to MySQL, made again whenever it fails.
type mySQL struct {
	pool   *sql.DB
	conn   *sql.Conn
	member string
}

// openMySQL understands the URI. It connects only when it is needed.
func openMySQL(uri, ca string, timeout time.Duration) (*mySQL, error) {
	config, err := mysqlConfig(uri, ca, timeout)
	if err != nil {
		return nil, err
	}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, fmt.Errorf("cannot understand the URI: %w", err)
	}
	pool := sql.OpenDB(connector)
	pool.SetMaxIdleConns(0)
	return &mySQL{pool: pool}, nil
}

// mysqlConfig of a URI such as mysql://user:password@host:3306/database. The server always has to prove who it is.
func mysqlConfig(uri, ca string, timeout time.Duration) (*mysql.Config, error) {
	u, err := url.Parse(uri)
	if err != nil {
		return nil, fmt.Errorf("cannot understand the URI: %w", errors.Unwrap(err)) // The outer error quotes the password.
	}
	config := mysql.NewConfig()
	config.User = u.User.Username()
	config.Passwd, _ = u.User.Password()
	config.Net, config.Addr, config.DBName = "tcp", u.Host, strings.TrimPrefix(u.Path, "/")
	config.Timeout, config.ReadTimeout, config.WriteTimeout = timeout, 2*timeout, 2*timeout
	config.DialFunc = dialer(timeout)
	config.TLS = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: u.Hostname()}
	if ca != "" {
		raw, err := os.ReadFile(ca) //nolint:gosec // It was named to us.
		if err != nil {
			return nil, fmt.Errorf("cannot read the authority of the server: %w", err)
		}
		config.TLS.RootCAs = x509.NewCertPool()
		if !config.TLS.RootCAs.AppendCertsFromPEM(raw) {
			return nil, fmt.Errorf("cannot understand the authority of the server: %s has no certificate", ca)
		}
	}
	return config, nil
}

// dialer of names that are remembered.
func dialer(timeout time.Duration) func(context.Context, string, string) (net.Conn, error) {
	lookup := remembering(timeout / 4)
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		addresses, err := lookup(ctx, host)
		if err != nil {
			return nil, err
		}
		return (&net.Dialer{Timeout: timeout}).DialContext(ctx, network, net.JoinHostPort(addresses[0], port))
	}
}

// with a connection do something. After an error nothing is known of it, and it is closed: a leader that hands over keeps the connections
// of its clients, and takes no more writes.
func (s *mySQL) with(ctx context.Context, do func(*sql.Conn) error) error {
	if s.conn == nil {
		conn, err := s.pool.Conn(ctx)
		if err != nil {
			return fmt.Errorf("cannot connect: %w", err)
		}
		s.conn = conn
		if err := conn.QueryRowContext(ctx, "SELECT @@hostname").Scan(&s.member); err != nil {
			s.close()
			return fmt.Errorf("cannot ask the server for its name: %w", err)
		}
	}
	err := do(s.conn)
	if err != nil {
		s.close()
	}
	return err
}

func (s *mySQL) close() {
	if s.conn == nil {
		return
	}
	_ = s.conn.Close()
	s.conn = nil
}

func (s *mySQL) prepare(ctx context.Context) error {
	return s.with(ctx, func(c *sql.Conn) error {
		_, err := c.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS account_rows (
			writer VARCHAR(255) NOT NULL,
			n BIGINT NOT NULL,
			at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
			PRIMARY KEY (writer, n))`)
		return err
	})
}

func (s *mySQL) insert(ctx context.Context, writer string, n int64) (string, error) {
	err := s.with(ctx, func(c *sql.Conn) error {
		_, err := c.ExecContext(ctx, `INSERT INTO account_rows (writer, n) VALUES (?, ?)`, writer, n)
		return err
	})
	return s.member, err
}

func (s *mySQL) read(ctx context.Context, writer string, each func(int64)) error {
	return s.with(ctx, func(c *sql.Conn) error {
		found, err := c.QueryContext(ctx, `SELECT n FROM account_rows WHERE writer = ? ORDER BY n`, writer)
		if err != nil {
			return err
		}
		defer func() { _ = found.Close() }()
		for found.Next() {
			var n int64
			if err := found.Scan(&n); err != nil {
				return err
			}
			each(n)
		}
		return found.Err()
	})
}
