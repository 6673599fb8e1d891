// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
)

// public returns what everybody may do in the databases of PostgreSQL itself, as database and privilege.
const public = `select d.datname || ' ' || a.privilege_type from pg_database d,
	aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) a
	where d.datname in ('postgres', 'template1') and a.grantee = 0 order by 1`

// hygiene takes from everybody what they have in the databases of PostgreSQL itself: applications have databases of their own,
// and who may connect to this one can fill the disk with temporary tables.
func hygiene(ctx context.Context, conn *pgx.Conn) error {
	open, err := List(ctx, conn, public)
	if err != nil {
		return fmt.Errorf("cannot look at privileges of databases: %w", err)
	}
	if len(open) > 0 {
		if err := do(ctx, conn, "take privileges of databases from everybody", "revoke all on database postgres, template1 from public"); err != nil {
			return err
		}
	}
	need, err := List(ctx, conn, `select rolname from pg_roles where rolname = any($1) and not has_database_privilege(oid, 'postgres', 'connect')`,
		[]string{pgmember.RoleAccess, pgmember.RoleExporter, pgmember.RoleRewind, pgmember.RolePooler, pgmember.RoleReplication})
	if err != nil {
		return fmt.Errorf("cannot look at privileges of databases: %w", err)
	}
	for _, r := range need {
		if err := do(ctx, conn, fmt.Sprintf("let role %q connect", r), "grant connect on database postgres to "+name(r)); err != nil {
			return err
		}
	}
	return noCreate(ctx, conn)
}

// inTemplate does the same within the database that others are copied from.
func inTemplate(ctx context.Context, socket string) error {
	conn, err := connect(ctx, socket, "template1")
	if err != nil {
		return err
	}
	defer Close(ctx, conn)
	return noCreate(ctx, conn)
}

// noCreate takes from everybody the right to create in the schema public, as PostgreSQL does itself from version 15 on unless the
// data was upgraded from an older one.
func noCreate(ctx context.Context, conn *pgx.Conn) error {
	var open bool
	_, err := row(ctx, conn, "look at privileges of the schema public", `select exists (select from pg_namespace n, aclexplode(n.nspacl) a
		where n.nspname = 'public' and a.grantee = 0 and a.privilege_type = 'CREATE')`, nil, &open)
	if err != nil || !open {
		return err
	}
	return do(ctx, conn, "take the schema public from everybody", "revoke create on schema public from public")
}
