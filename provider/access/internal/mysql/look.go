// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	apis "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/access/internal/engine"
	"github.com/capstan-dev/capstan/provider/internal/outside"
)

// What was seen of a server, as far as it matters.
type seen struct {
	// self is the name of the account that the provider has.
	self string

	// logins by name: the desired ones, and all that carry our mark.
	logins map[string]login

	// databases that are desired and exist.
	databases map[string]bool
}

// A login of a server: all accounts of one name.
type login struct {
	// strange are hosts of accounts that we did not make.
	strange []string

	// ours means that we made the account for any host; that one is locked, and encrypted if it has to be.
	ours, locked, encrypted bool

	// rights of ours, by database.
	rights map[string][]string

	// sessions that there are now.
	sessions int
}

const selfQuery = "SELECT SUBSTRING_INDEX(CURRENT_USER(), '@', 1), @@GLOBAL.read_only OR @@GLOBAL.super_read_only, @@GLOBAL.offline_mode, @@GLOBAL.partial_revokes"

// needed are rights on the server without which nothing can be done.
var needed = []string{"CREATE USER", "CREATE", "PROCESS", "CONNECTION_ADMIN"}

const rightsQuery = "SELECT PRIVILEGE_TYPE FROM information_schema.USER_PRIVILEGES " +
	"WHERE GRANTEE = CONCAT(QUOTE(SUBSTRING_INDEX(CURRENT_USER(), '@', 1)), '@', QUOTE(SUBSTRING_INDEX(CURRENT_USER(), '@', -1)))"

// Queries that end with a list.
const (
	loginsQuery    = "SELECT User, Host, " + mysqlmember.MarkedLogin + ", account_locked = 'Y', ssl_type <> '' FROM mysql.user WHERE " + mysqlmember.MarkedLogin + " OR User IN "
	sessionsQuery  = "SELECT USER, COUNT(*) FROM performance_schema.processlist GROUP BY USER HAVING USER IN "
	databasesQuery = "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME IN "
)

// grantsQuery has the rights in a database as a list with commas, in the order of privileges.
var grantsQuery = func() string {
	columns := make([]string, 0, len(privileges))
	for _, p := range privileges {
		columns = append(columns, "IF("+p.column+" = 'Y', "+text(p.name)+", NULL)")
	}
	return "SELECT User, Db, CONCAT_WS(',', " + strings.Join(columns, ", ") + ") FROM mysql.db WHERE Host = " + text(anywhere) + " AND User IN "
}()

// Look at the server.
func (c *Server) Look(ctx context.Context, w engine.Wanted) (engine.Seen, error) {
	conn, err := c.connection(ctx)
	if err != nil {
		return nil, err
	}
	s := &seen{logins: map[string]login{}, databases: map[string]bool{}}
	if err := s.lookAtSelf(ctx, conn); err != nil {
		return nil, err
	}
	var name string
	if err := each(ctx, conn, databasesQuery+texts(w.Databases), []any{&name}, func() { s.databases[name] = true }); err != nil {
		return nil, fmt.Errorf("cannot look at databases: %w", err)
	}
	if err := s.lookAtLogins(ctx, conn, w.Names()); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *seen) lookAtSelf(ctx context.Context, conn *sql.Conn) error {
	var readOnly, offline, exact bool
	if err := conn.QueryRowContext(ctx, selfQuery).Scan(&s.self, &readOnly, &offline, &exact); err != nil {
		return fmt.Errorf("cannot look at the server: %w", err)
	}
	if readOnly || offline {
		f := follows
		return &f
	}
	if !exact {
		return &outside.Failure{
			Reason:  apis.ReasonInvalidConfig,
			Message: "partial_revokes is off, so that _ in the name of a database would stand for any character",
			Remedy:  "switch it on: partial_revokes=ON",
		}
	}
	var has []string
	var right string
	if err := each(ctx, conn, rightsQuery, []any{&right}, func() { has = append(has, right) }); err != nil {
		return fmt.Errorf("cannot look at the rights of account %q: %w", s.self, err)
	}
	if lacks := without(needed, has); len(lacks) > 0 {
		return &outside.Failure{
			Reason:  apis.ReasonForbidden,
			Message: fmt.Sprintf("account %q lacks the rights %s", s.self, strings.Join(lacks, ", ")),
			Remedy:  "give it the rights that the documentation of Access lists",
		}
	}
	return nil
}

// follows is the answer of a server that takes no writes.
var follows = outside.Failure{
	Reason:  apis.ReasonUnreachable,
	Message: "the server follows another one and takes no writes",
	Remedy:  "nothing to do: the Service leads to the next leader as soon as there is one",
}

func (s *seen) lookAtLogins(ctx context.Context, conn *sql.Conn, names []string) error {
	var (
		name, host, database, rights string
		ours, locked, encrypted      bool
		n                            int
	)
	if err := each(ctx, conn, loginsQuery+texts(names), []any{&name, &host, &ours, &locked, &encrypted}, func() {
		l := s.logins[name]
		if ours && host == anywhere {
			l.ours, l.locked, l.encrypted, l.rights = true, locked, encrypted, map[string][]string{}
		} else {
			l.strange = append(l.strange, host)
			slices.Sort(l.strange)
		}
		s.logins[name] = l
	}); err != nil {
		return fmt.Errorf("cannot look at logins: %w", err)
	}
	var known []string
	for name := range s.logins {
		known = append(known, name)
	}
	slices.Sort(known)
	if err := each(ctx, conn, grantsQuery+texts(known), []any{&name, &database, &rights}, func() {
		if l := s.logins[name]; l.ours && rights != "" {
			l.rights[database] = strings.Split(rights, ",")
		}
	}); err != nil {
		return fmt.Errorf("cannot look at the rights of logins: %w", err)
	}
	if err := each(ctx, conn, sessionsQuery+texts(known), []any{&name, &n}, func() {
		l := s.logins[name]
		l.sessions = n
		s.logins[name] = l
	}); err != nil {
		return fmt.Errorf("cannot look at sessions: %w", err)
	}
	return nil
}

// each row of a query is scanned, and then taken.
func each(ctx context.Context, conn *sql.Conn, query string, into []any, take func()) error {
	rows, err := conn.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		take()
	}
	return rows.Err()
}
