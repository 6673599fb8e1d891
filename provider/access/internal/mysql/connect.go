// SPDX-License-Identifier: Apache-2.0

// Package mysql is how an Access is kept in a server of MySQL.
//
// The provider has no SYSTEM_USER there, and may not touch the server's own databases. It creates logins, and changes only those
// with its mark, an attribute that only an account with CREATE USER can write. Rights in a database are given to logins directly:
// MySQL has no owner of an object. A view, trigger, routine or event runs with the rights of the login that made it, its DEFINER.
// So a login that is not wanted, or alternates with one in use, is locked, and neither dropped nor deprived of its rights.
package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/capstan-dev/capstan/provider/access/internal/engine"
)

var _ engine.Server = &Server{}

// DefaultPort of MySQL.
const DefaultPort = 3306

const (
	// connectTimeout bounds how long a connection takes to be made, log-in included.
	connectTimeout = 5 * time.Second

	// statementTimeout bounds how long a statement takes.
	statementTimeout = 30 * time.Second

	// programName identifies the provider in performance_schema.session_connect_attrs.
	programName = "provider-capstan"
)

// A Server of MySQL.
type Server struct {
	target engine.Target

	db   *sql.DB
	conn *sql.Conn
}

// New server, not connected yet.
func New(t engine.Target) *Server { return &Server{target: t} }

// Disconnect from the server, if there is a connection.
func (c *Server) Disconnect(context.Context) {
	if c.conn == nil {
		return
	}

	// A server that is gone has closed both, too.
	_ = c.conn.Close()
	_ = c.db.Close()
	c.conn, c.db = nil, nil
}

// connection as the account that the provider has.
func (c *Server) connection(ctx context.Context) (*sql.Conn, error) {
	if c.conn != nil {
		return c.conn, nil
	}
	db, err := Open(c.target)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, err := db.Conn(ctx)
	if err != nil {
		_ = db.Close()
		return nil, err
	}
	c.db, c.conn = db, conn
	return conn, nil
}

// Open a target. Nothing is connected yet, and sessions begin in no database.
func Open(t engine.Target) (*sql.DB, error) {
	cfg := mysql.NewConfig()
	cfg.User, cfg.Passwd = t.Username, t.Password
	cfg.Net, cfg.Addr = "tcp", net.JoinHostPort(t.Host, strconv.Itoa(int(t.Port)))
	cfg.TLS = t.TLS.Clone()
	cfg.Timeout, cfg.ReadTimeout, cfg.WriteTimeout = connectTimeout, statementTimeout, statementTimeout
	cfg.ConnectionAttributes = "program_name:" + programName
	cfg.Logger = &mysql.NopLogger{} // Everything that it says is in an error, too.

	// A password is sent within TLS, and by no other method that a server chooses.
	cfg.AllowNativePasswords = false
	cfg.DialFunc = dialler(t)

	// Settings of our sessions. No statement waits long: locks in a tenant's database are not ours to wait for. The mode is the one
	// that quoting is made for.
	cfg.Params = map[string]string{
		"sql_mode":           "'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'",
		"lock_wait_timeout":  "5",
		"max_execution_time": strconv.FormatInt(statementTimeout.Milliseconds(), 10),
	}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, fmt.Errorf("cannot make a configuration of MySQL: %w", err)
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	return db, nil
}

// dialler looks a host up before, so that what decides about connections gets addresses.
func dialler(t engine.Target) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		addresses, err := t.Lookup(ctx, host)
		if err != nil {
			return nil, err
		}
		last := error(&net.AddrError{Err: "no address", Addr: host})
		for _, a := range addresses {
			conn, err := t.Dial(ctx, network, net.JoinHostPort(a, port))
			if err == nil {
				return conn, nil
			}
			last = err
		}
		return nil, last
	}
}

// LogIn tries a login with its password.
func (c *Server) LogIn(ctx context.Context, l engine.Login) (engine.Answer, error) {
	// One connection at a time.
	c.Disconnect(ctx)
	t := c.target
	t.Username, t.Password = l.Name, l.Password
	db, err := Open(t)
	if err != nil {
		return engine.Unanswered, err
	}
	defer func() { _ = db.Close() }()
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	err = db.PingContext(ctx)
	switch code(err) {
	case codeNone:
		if err != nil {
			return engine.Unanswered, err
		}
		return engine.Opened, nil
	case codeAccessDenied:
		return engine.WrongPassword, nil
	case codeTooManyConnections, codeTooManyUserConnections, codeUserLimitReached:
		return engine.Full, err
	default:
		return engine.Unanswered, err
	}
}
