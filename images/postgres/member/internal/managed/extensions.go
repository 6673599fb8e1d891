// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
)

// extensions that are not trusted, in one database.
func extensions(ctx context.Context, socket, database string, wanted []string) error {
	conn, err := connect(ctx, socket, database)
	if err != nil {
		return err
	}
	defer Close(ctx, conn)
	var problems []error
	for _, e := range wanted {
		if err := extension(ctx, conn, e); err != nil {
			problems = append(problems, fmt.Errorf("cannot make extension %q in database %q: %w", e, database, err))
		}
	}
	return errors.Join(problems...)
}

// extension makes one that is there, not trusted and not made.
func extension(ctx context.Context, conn *pgx.Conn, wanted string) error {
	var trusted, made, fixed bool
	there, err := row(ctx, conn, "look for it", `select v.trusted, e.installed_version is not null, v.schema is not null
		from pg_available_extensions e join pg_available_extension_versions v on v.name = e.name and v.version = e.default_version
		where e.name = $1`, []any{wanted}, &trusted, &made, &fixed)
	switch {
	case err != nil:
		return err
	case !there:
		return errors.New("the image has no such extension")
	case made || trusted:
		return nil
	case fixed:
		return do(ctx, conn, "create it", "create extension if not exists "+name(wanted)+" cascade")
	}
	if err := schema(ctx, conn); err != nil {
		return err
	}
	return do(ctx, conn, "create it", "create extension if not exists "+name(wanted)+" schema "+name(Schema)+" cascade")
}

// schema for extensions. The owner of the schema of an extension could put functions into the way of its script, so one that is
// another's is not used. Every role finds what is in it unless the database has a search path of its own.
func schema(ctx context.Context, conn *pgx.Conn) error {
	var owner string
	there, err := row(ctx, conn, fmt.Sprintf("look for schema %q", Schema), "select pg_get_userbyid(nspowner) from pg_namespace where nspname = $1", []any{Schema}, &owner)
	switch {
	case err != nil:
	case !there:
		err = do(ctx, conn, fmt.Sprintf("make schema %q", Schema), "create schema "+name(Schema), "grant usage on schema "+name(Schema)+" to public")
	case owner != pgmember.RoleSuperuser:
		err = fmt.Errorf("schema %q belongs to %q: rename it", Schema, owner)
	}
	if err != nil {
		return err
	}
	var has bool
	var database string
	_, err = row(ctx, conn, "look at the search path", `select exists (select from pg_db_role_setting s join pg_database d on d.oid = s.setdatabase, unnest(s.setconfig) c
		where d.datname = current_database() and s.setrole = 0 and c like 'search\_path=%'), current_database()`, nil, &has, &database)
	if err != nil || has {
		return err
	}
	return do(ctx, conn, "set the search path", "alter database "+name(database)+` set search_path = "$user", public, `+name(Schema))
}
