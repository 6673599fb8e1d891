// SPDX-License-Identifier: Apache-2.0

// Package postgres is how an Access is kept in a server of PostgreSQL.
//
// The provider is not a superuser there. It creates roles, and changes only roles that carry its comment: only a superuser and
// the provider itself can write it. Each database has a role that owns everything in it and a role that reads it; neither can log
// in. Logins are members of one of them. Objects that a ReadWrite login creates belong to the owner, because its sessions begin
// as the owner; so a login can be removed or replaced and no object changes its owner.
package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/capstan-dev/capstan/provider/access/internal/engine"
)

var _ engine.Server = &Server{}

// DefaultPort of PostgreSQL.
const DefaultPort = 5432

const (
	// connectTimeout bounds how long a connection takes to be made, log-in included.
	connectTimeout = 5 * time.Second

	// Settings of our sessions, as PostgreSQL takes them. No statement waits long: locks in a tenant's database are not ours to
	// wait for.
	statementTimeout = "30s"
	lockTimeout      = "5s"

	// searchPath finds what PostgreSQL ships and no object that a tenant created in a database.
	searchPath = "pg_catalog, pg_temp"

	// maintenance is the database that is there before any other.
	maintenance = "postgres"

	// applicationName identifies the provider in pg_stat_activity.
	applicationName = "provider-capstan"
)

// A Server of PostgreSQL.
type Server struct {
	target engine.Target

	conn     *pgx.Conn
	database string

	// version of the server, 0 until it is known.
	version int
}

// New server, not connected yet.
func New(t engine.Target) *Server { return &Server{target: t} }

// Disconnect from the server, if there is a connection.
func (c *Server) Disconnect(ctx context.Context) {
	if c.conn == nil {
		return
	}
	conn := c.conn
	c.conn = nil
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), connectTimeout)
	defer cancel()

	// A server that is gone has closed it, too.
	_ = conn.Close(ctx)
}

// in gives the connection with a database, as the role that the provider has.
func (c *Server) in(ctx context.Context, database string) (*pgx.Conn, error) {
	if c.conn != nil && !c.conn.IsClosed() && c.database == database {
		return c.conn, nil
	}
	c.Disconnect(ctx)
	cfg, err := Config(c.target)
	if err != nil {
		return nil, err
	}
	cfg.Database = database

	// Servers refuse settings that they do not know.
	if c.version >= version17 {
		cfg.RuntimeParams["transaction_timeout"] = statementTimeout
	}
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}

	// The owner of a database can have every session in it begin as another role.
	if _, err := conn.Exec(ctx, "SET ROLE NONE"); err != nil {
		_ = conn.Close(ctx)
		return nil, err
	}
	c.conn, c.database = conn, database
	return conn, nil
}

// Config of connections with a target. Nothing comes from the environment or files of the provider: every setting that they could
// make is made here.
func Config(t engine.Target) (*pgx.ConnConfig, error) {
	cfg, err := pgx.ParseConfig("host=127.0.0.1 port=1 user=none password=none dbname=none sslmode=disable passfile=/dev/null")
	if err != nil {
		return nil, fmt.Errorf("cannot make a configuration of PostgreSQL: %w", err)
	}
	cfg.Host, cfg.Port, cfg.User, cfg.Password = t.Host, t.Port, t.Username, t.Password
	cfg.TLSConfig = t.TLS.Clone()
	cfg.Fallbacks = nil
	cfg.ConnectTimeout = connectTimeout
	// The name is looked up before, so that the dialler gets addresses.
	cfg.DialFunc = t.Dial
	cfg.LookupFunc = t.Lookup
	cfg.KerberosSrvName, cfg.KerberosSpn = "", ""
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec
	cfg.RuntimeParams = map[string]string{
		"application_name":                    applicationName,
		"search_path":                         searchPath,
		"statement_timeout":                   statementTimeout,
		"lock_timeout":                        lockTimeout,
		"idle_in_transaction_session_timeout": statementTimeout,
		"idle_session_timeout":                "0",
		"default_transaction_read_only":       "off",
		"standard_conforming_strings":         "on",
		"client_encoding":                     "UTF8",
	}
	return cfg, nil
}
