// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// replicators gives consumers that may read changes the right to, and takes it from all other logins that the platform made.
func replicators(ctx context.Context, conn *pgx.Conn, wanted []string) error {
	wrong, err := List(ctx, conn, `select rolname::text from pg_roles where shobj_description(oid, 'pg_authid') = $1 and not rolsuper
		and rolreplication <> (rolname = any($2)) order by 1`, loginMark, nonNil(wanted))
	if err != nil {
		return fmt.Errorf("cannot look at logins that read changes: %w", err)
	}
	for _, login := range wrong {
		var has bool
		if _, err := row(ctx, conn, "look at a login", "select rolreplication from pg_roles where rolname = $1", []any{login}, &has); err != nil {
			return err
		}
		if has {
			err = do(ctx, conn, fmt.Sprintf("end that login %q reads changes", login), "alter role "+name(login)+" noreplication",
				"select pg_terminate_backend(pid) from pg_stat_activity where backend_type = 'walsender' and usename = "+text(login))
		} else {
			err = do(ctx, conn, fmt.Sprintf("let login %q read changes", login), "alter role "+name(login)+" replication")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// nonNil lets an empty list be an empty array for the server.
func nonNil(list []string) []string { return append([]string{}, list...) }
