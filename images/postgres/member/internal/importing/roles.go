// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/managed"
)

// Roles of an import on this side. What runs because of the source runs as one of them or as the owner of the database, and never as superuser:
// the source chooses the statements of a schema, and which tables a subscription writes to.
//
// Each may act as the owners of the databases that are imported, and has no right of its own.
const (
	// applier owns the subscriptions. PostgreSQL's workers need a role that may log in, so that it may, and no session can: it has no password,
	// and no connection is free for it.
	applier = pgmember.RoleImport
	// restorer is the login that a schema is restored as. It exists for as long as that takes.
	restorer = pgmember.RoleRestore
)

// roleMark is the comment of a role that an import has made. Another role of the same name is a consumer's, and is left alone.
const roleMark = "made by the import"

// marked is a role that has it.
const marked = "select exists (select from pg_roles where rolname = $1 and shobj_description(oid, 'pg_authid') = '" + roleMark + "')"

const powerless = " nosuperuser nocreatedb nocreaterole noreplication nobypassrls noinherit"

// owner of the database of a session. One that may do more than own it must not be had by what the source sends.
func owner(ctx context.Context, conn *pgx.Conn) (string, error) {
	var role string
	var mighty bool
	err := conn.QueryRow(ctx, `select r.rolname::text, r.rolsuper or r.rolcreatedb or r.rolcreaterole or r.rolreplication or r.rolbypassrls
			or exists (select from pg_roles x where (x.rolsuper or x.rolname like 'pg\_%' and x.rolname <> 'pg_database_owner') and pg_has_role(r.oid, x.oid, 'member'))
		from pg_database d join pg_roles r on r.oid = d.datdba where d.datname = current_database()`).Scan(&role, &mighty)
	switch {
	case err != nil:
		return "", fmt.Errorf("cannot find the owner of the database: %w", err)
	case mighty:
		return "", fmt.Errorf("role %q owns the database and has rights beyond it: nothing is imported with its rights: make another Database", role)
	}
	return role, nil
}

// mayActAs lets a role act as the owner of the database of a session.
func mayActAs(ctx context.Context, conn *pgx.Conn, role, owner, more string) error {
	var there, own bool
	var database string
	if err := conn.QueryRow(ctx, "select exists (select from pg_roles where rolname = $1), ("+marked+"), current_database()::text", role).Scan(&there, &own, &database); err != nil {
		return fmt.Errorf("cannot look for role %q: %w", role, err)
	}
	verb := "create"
	switch {
	case own:
		verb = "alter"
	case there:
		return fmt.Errorf("role %q was not made by the import, which needs its name: drop it, or make another Database", role)
	}
	err := all(ctx, conn, verb+" role "+name(role)+" login"+powerless+more, "comment on role "+name(role)+" is "+text(roleMark), "grant "+name(owner)+" to "+name(role)+" with inherit false, set true",
		"grant connect on database "+name(database)+" to "+name(role))
	if err != nil {
		return fmt.Errorf("cannot make role %q: %w", role, err)
	}
	return nil
}

// removeRole of an import: it ends its sessions, and gives what it owns to the owner of each database: a schema of the source may have made something as it.
func removeRole(ctx context.Context, conn *pgx.Conn, role string) error {
	var there bool
	if err := conn.QueryRow(ctx, marked, role).Scan(&there); err != nil {
		return fmt.Errorf("cannot look for role %q: %w", role, err)
	}
	if !there {
		return nil
	}
	if _, err := conn.Exec(ctx, "alter role "+name(role)+" nologin password null"); err != nil {
		return fmt.Errorf("cannot close role %q: %w", role, err)
	}
	databases, err := managed.List(ctx, conn, `select d.datname::text from pg_database d where d.datallowconn and exists (select from pg_shdepend s
		where s.refclassid = 'pg_authid'::regclass and s.refobjid = $1::regrole and (s.dbid = d.oid or s.classid = 'pg_database'::regclass and s.objid = d.oid))`, name(role))
	if err != nil {
		return fmt.Errorf("cannot look for what role %q owns: %w", role, err)
	}
	if _, err := conn.Exec(ctx, "select pg_terminate_backend(pid, 5000) from pg_stat_activity where usename = $1", role); err != nil {
		return fmt.Errorf("cannot end sessions of role %q: %w", role, err)
	}
	for _, d := range databases {
		err := within(ctx, d, func(conn *pgx.Conn) error {
			owner, err := owner(ctx, conn)
			if err != nil {
				return err
			}
			return all(ctx, conn, "reassign owned by "+name(role)+" to "+name(owner), "drop owned by "+name(role))
		})
		if err != nil {
			return fmt.Errorf("cannot take what role %q has in database %q: %w", role, d, err)
		}
	}
	if _, err := conn.Exec(ctx, "drop role "+name(role)); err != nil {
		return fmt.Errorf("cannot drop role %q: %w", role, err)
	}
	return nil
}

// asOwner runs in a database of this server as its owner.
func asOwner(ctx context.Context, database string, do func(*pgx.Conn) error) error {
	return within(ctx, database, func(conn *pgx.Conn) error {
		owner, err := owner(ctx, conn)
		if err != nil {
			return err
		}
		if _, err := conn.Exec(ctx, "set role "+name(owner)); err != nil {
			return fmt.Errorf("cannot act as %q: %w", owner, err)
		}
		return do(conn)
	})
}

// Release removes subscriptions and roles of an import from data that is no import, because it was restored from a backup that was taken while
// there was one, or because the import has ended. It leaves the source alone: slots there are another Database's.
func Release(ctx context.Context) error {
	conn, err := local(ctx, "postgres")
	if err != nil {
		return err
	}
	defer managed.Close(ctx, conn)
	found, err := subscriptions(ctx, conn)
	if err != nil {
		return err
	}
	var problems []error
	for _, s := range found {
		problems = append(problems, within(ctx, s.Database, func(conn *pgx.Conn) error { return dropSubscription(ctx, conn, s.Name) }))
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	return errors.Join(removeRole(ctx, conn, restorer), removeRole(ctx, conn, applier))
}

// A subscription of an import, and the database that it is in.
type subscription struct{ Database, Name string }

func subscriptions(ctx context.Context, conn *pgx.Conn) ([]subscription, error) {
	rows, err := conn.Query(ctx, `select d.datname::text, s.subname::text from pg_subscription s join pg_database d on d.oid = s.subdbid
		where s.subname like 'capstan\_%' and (pg_get_userbyid(s.subowner) = $1
		or pg_get_userbyid(s.subowner) = $2 and shobj_description(s.subowner, 'pg_authid') = $3)`, pgmember.RoleSuperuser, applier, roleMark)
	if err != nil {
		return nil, fmt.Errorf("cannot look for subscriptions: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[subscription])
	if err != nil {
		return nil, fmt.Errorf("cannot look for subscriptions: %w", err)
	}
	return found, nil
}
