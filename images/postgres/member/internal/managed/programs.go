// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// outside are PostgreSQL's own roles whose members act as the user of the server: they run programs, and read and write files.
var outside = []string{"pg_execute_server_program", "pg_read_server_files", "pg_write_server_files"}

// noPrograms keeps roles that may make roles from giving themselves the roles that reach out of the database. From version 16
// on PostgreSQL does. Before, it asks only whether the given role is a superuser's, so these are: no client can log in as one, and
// only a superuser can make members of one. Members that there were are removed in the same moment, while no other session can change roles.
func noPrograms(ctx context.Context, conn *pgx.Conn) error {
	var open bool
	_, err := row(ctx, conn, "look at roles that run programs", `select current_setting('server_version_num')::int < 160000
		and exists (select from pg_authid where rolname = any($1) and not rolsuper)`, []any{outside}, &open)
	if err != nil || !open {
		return err
	}
	names := "('" + outside[0] + "', '" + outside[1] + "', '" + outside[2] + "')"
	return do(ctx, conn, "keep roles from running programs",
		"lock table pg_authid in access exclusive mode",
		"delete from pg_auth_members m using pg_authid g where g.oid = m.roleid and g.rolname in "+names,
		"update pg_authid set rolsuper = true where rolname in "+names)
}
