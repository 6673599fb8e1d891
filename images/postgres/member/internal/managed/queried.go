// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
)

// queried lets the exporter connect to the databases that it runs queries in, and to no others. What it may read there, their owners grant.
func queried(ctx context.Context, conn *pgx.Conn, databases []string) error {
	granted := `exists (select from aclexplode(datacl) where grantee = (select oid from pg_roles where rolname = '` + pgmember.RoleExporter + `') and privilege_type = 'CONNECT')`
	for _, change := range []struct{ query, statement string }{
		{"select datname from pg_database where datallowconn and datname = any($1) and not " + granted, "grant connect on database %s to " + name(pgmember.RoleExporter)},
		{"select datname from pg_database where datname <> all($1) and datname <> 'postgres' and " + granted, "revoke connect on database %s from " + name(pgmember.RoleExporter)},
	} {
		if databases == nil {
			databases = []string{}
		}
		names, err := List(ctx, conn, change.query, databases)
		if err != nil {
			return fmt.Errorf("cannot look at privileges of databases: %w", err)
		}
		for _, n := range names {
			if err := do(ctx, conn, fmt.Sprintf("set who may connect to database %q", n), fmt.Sprintf(change.statement, name(n))); err != nil {
				return err
			}
		}
	}
	return nil
}
