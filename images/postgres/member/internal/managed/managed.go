// SPDX-License-Identifier: Apache-2.0

// Package managed makes what only a superuser can make: the roles that the platform uses, what of public access is taken away,
// and extensions that are not trusted. It runs on the leader, over the socket, and everything it does may be done again.
package managed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
)

// Schema holds extensions that are not trusted. It belongs to the superuser, so that no other role can put something in their way.
const Schema = "extensions"

// Wanted is what there should be.
type Wanted struct {
	// Databases that extensions are for, and Extensions by name. Those that are trusted are left to the provider.
	Databases, Extensions []string
	// Verifier is the SCRAM verifier of the password of pgmember.RoleAccess.
	Verifier string
	// Pooled reports that there are poolers.
	Pooled bool
	// Slots, Publications and the logins of consumers that read changes.
	Slots        []pgmember.Slot
	Publications []pgmember.Publication
	Replicators  []string
	// Queried are the databases that the exporter runs queries in.
	Queried []string
}

// Missing databases are there later. Nothing is wrong.
type Missing struct { //nolint:errname // managed.Missing says it.
	Databases []string
}

func (m *Missing) Error() string { return fmt.Sprintf("databases %q are not there yet", m.Databases) }

// Apply makes what is wanted on the server behind a socket's folder. The error is a *Missing when all is well except databases
// that are not there yet.
func Apply(ctx context.Context, socket string, w Wanted) error {
	conn, err := connect(ctx, socket, "postgres")
	if err != nil {
		return err
	}
	defer Close(ctx, conn)
	if err := noPrograms(ctx, conn); err != nil {
		return err
	}
	if err := roles(ctx, conn, w.Verifier); err != nil {
		return err
	}
	if err := pooler(ctx, conn, w.Pooled); err != nil {
		return err
	}
	if err := hygiene(ctx, conn); err != nil {
		return err
	}
	if err := inTemplate(ctx, socket); err != nil {
		return err
	}
	if err := replicators(ctx, conn, w.Replicators); err != nil {
		return err
	}
	there, err := List(ctx, conn, "select datname from pg_database where datallowconn and datname = any($1)", w.Databases)
	if err != nil {
		return fmt.Errorf("cannot list databases: %w", err)
	}
	if err := queried(ctx, conn, w.Queried); err != nil {
		return err
	}
	var problems []error
	missing := &Missing{}
	for _, name := range w.Databases {
		if !slices.Contains(there, name) {
			missing.Databases = append(missing.Databases, name)
			continue
		}
		if len(w.Extensions) > 0 {
			problems = append(problems, extensions(ctx, socket, name, w.Extensions))
		}
		problems = append(problems, publications(ctx, socket, name, w.publishedIn(name)))
	}
	without, err := slots(ctx, conn, socket, w.Slots)
	if err := errors.Join(append(problems, err)...); err != nil {
		return err
	}
	if len(missing.Databases) > 0 && len(w.Extensions)+len(w.Publications)+len(w.Queried) > 0 || len(without) > 0 {
		return missing
	}
	return nil
}

// publishedIn are the publications of one database.
func (w Wanted) publishedIn(database string) []pgmember.Publication {
	return slices.DeleteFunc(slices.Clone(w.Publications), func(p pgmember.Publication) bool { return p.Database != database })
}

func connect(ctx context.Context, socket, database string) (*pgx.Conn, error) {
	return Connect(ctx, socket, pgmember.PortPostgres, database)
}

// Connect over the socket in a folder as superuser. A commit does not wait for other members, which may be what is missing, and no
// statement is logged or counted, because some hold a verifier.
func Connect(ctx context.Context, socket string, port uint16, database string) (*pgx.Conn, error) {
	return Dial(ctx, socket, port, pgmember.RoleSuperuser, database, map[string]string{
		"application_name": "capstan-member", "synchronous_commit": "local",
		"statement_timeout": "30s", "lock_timeout": "5s", "idle_in_transaction_session_timeout": "30s",
		"log_statement": "none", "log_min_error_statement": "panic", "log_min_duration_statement": "-1", "client_min_messages": "warning",
		"pg_stat_statements.track_utility": "off",
	})
}

// Dial the server behind the socket in a folder. Unless the parameters differ, names are looked up in pg_catalog only, so that no
// other function replaces one of the system's.
func Dial(ctx context.Context, socket string, port uint16, user, database string, parameters map[string]string) (*pgx.Conn, error) {
	cfg, err := pgx.ParseConfig("sslmode=disable")
	if err != nil {
		return nil, fmt.Errorf("cannot connect: %w", err)
	}
	cfg.Host, cfg.Port, cfg.User, cfg.Password, cfg.Database = socket, port, user, "", database
	// The owner of a database may set each of these for it, and then quoted text would be read in another way, or as another role.
	cfg.RuntimeParams = map[string]string{
		"search_path": "pg_catalog", "standard_conforming_strings": "on", "client_encoding": "UTF8", "role": "none",
	}
	maps.Copy(cfg.RuntimeParams, parameters)
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec // a pooled plan has no use here
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to database %q: %w", database, err)
	}
	return conn, nil
}

// Close a connection, also when the context has ended.
func Close(ctx context.Context, conn *pgx.Conn) { _ = conn.Close(context.WithoutCancel(ctx)) }

// Ask over the socket in a folder as superuser for the only row of a query, and report whether there is one.
func Ask(ctx context.Context, socket string, port uint16, query string, args []any, into ...any) (bool, error) {
	conn, err := Connect(ctx, socket, port, "postgres")
	if err != nil {
		return false, err
	}
	defer Close(ctx, conn)
	return row(ctx, conn, "query", query, args, into...)
}

// row reads the only row of a query, and reports whether there is one. What it is for is in the error.
func row(ctx context.Context, conn *pgx.Conn, what, query string, args []any, into ...any) (bool, error) {
	err := conn.QueryRow(ctx, query, args...).Scan(into...)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("cannot %s: %w", what, err)
	}
	return true, nil
}

// List the texts that a query returns.
func List(ctx context.Context, conn *pgx.Conn, query string, args ...any) ([]string, error) {
	rows, err := conn.Query(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("cannot query: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// text quotes a string constant. Every session has standard_conforming_strings on: see Dial.
func text(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// name quotes an identifier.
func name(n string) string { return pgx.Identifier{n}.Sanitize() }
