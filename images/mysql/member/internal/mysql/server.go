// SPDX-License-Identifier: Apache-2.0

// Package mysql says and asks what a member's program has to by SQL, over the socket.
package mysql

import (
	"context"
	"crypto/tls"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/images/member/reach"
)

// A Server behind a socket. Its connections come and go with the server.
type Server struct{ db *sql.DB }

// ErrNoAnswer says that the server did not answer in time, or not at all.
var ErrNoAnswer = errors.New("the server does not answer")

// sessions at a time: what the loops of the program need.
const sessions = 10

// At a socket, the Server for an account that logs in without a password.
func At(socket, account string) (*Server, error) {
	return open(config("unix", socket, account, nil))
}

// Of a member, the Server for an account that logs in by its certificate, at the port of members. It is for pods that ask once: it tries on
// while network policies do not know the pod.
func Of(host, account string, identity *tls.Config) (*Server, error) {
	identity = identity.Clone()
	identity.ServerName = host
	cfg := config("tcp", net.JoinHostPort(host, strconv.Itoa(mysqlmember.PortMembers)), account, identity)
	cfg.DialFunc, cfg.Timeout = reach.Dial, 0 // which has a limit of its own
	return open(cfg)
}

func config(network, address, account string, identity *tls.Config) *driver.Config {
	cfg := driver.NewConfig()
	cfg.User, cfg.Net, cfg.Addr, cfg.TLS = account, network, address, identity
	cfg.Timeout = 2 * time.Second
	cfg.MultiStatements, cfg.InterpolateParams = true, true
	cfg.Logger = &driver.NopLogger{} // what it has to say is in errors
	// Statements of the platform wait for no other member by themselves.
	cfg.Params = map[string]string{
		"group_replication_consistency": "'EVENTUAL'", "lock_wait_timeout": "10", "innodb_lock_wait_timeout": "10",
		// Parameters of the Database that end slow clients must not end these sessions.
		"wait_timeout": "28800", "max_execution_time": "0", "sql_mode": "''",
	}
	return cfg
}

func open(cfg *driver.Config) (*Server, error) {
	connector, err := driver.NewConnector(cfg)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to the server: %w", err)
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(sessions)
	db.SetMaxIdleConns(sessions)
	return &Server{db}, nil
}

// Own server of the container.
func Own() (*Server, error) { return At(mysqlmember.FileSocket, mysqlmember.AccountMember) }

// Close all connections.
func (s *Server) Close() { _ = s.db.Close() }

// Do statements one after the other, in one session. What it is for is in the error.
func (s *Server) Do(ctx context.Context, what string, statements ...string) error {
	return s.Session(ctx, what, func(c *sql.Conn) error {
		for _, one := range statements {
			if _, err := c.ExecContext(ctx, one); err != nil {
				return err
			}
		}
		return nil
	})
}

// Session in which to do something. What it is for is in the error.
func (s *Server) Session(ctx context.Context, what string, do func(*sql.Conn) error) error {
	c, err := s.db.Conn(ctx)
	if err == nil {
		err = do(c)
		_ = c.Close()
	}
	if err != nil {
		return fmt.Errorf("cannot %s: %w", what, plain(ctx, err))
	}
	return nil
}

// each row of a query.
func each(ctx context.Context, c *sql.Conn, query string, take func(*sql.Rows) error) error {
	rows, err := c.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := take(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// plain error: one that says that nothing answered says so in our words.
func plain(ctx context.Context, err error) error {
	var said *driver.MySQLError
	if errors.As(err, &said) {
		return err
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", ErrNoAnswer, ctx.Err())
	}
	return fmt.Errorf("%w: %w", ErrNoAnswer, err)
}

// TooManySessions is the code of the error with which a server refuses a session.
const TooManySessions = 1040

// Code of an error of the server; 0 for other errors.
func Code(err error) uint16 {
	var said *driver.MySQLError
	if errors.As(err, &said) {
		return said.Number
	}
	return 0
}

// Text quotes a constant. Our sessions have no sql_mode, so backslashes escape.
func Text(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(s) + "'"
}
