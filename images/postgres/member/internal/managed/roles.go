// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/jackc/pgx/v5"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
)

// verifiers have this form. It is what makes the text safe in a statement, which takes no parameters here.
var verifiers = regexp.MustCompile(`^SCRAM-SHA-256\$[0-9]{1,9}:[A-Za-z0-9+/=]+\$[A-Za-z0-9+/=]+:[A-Za-z0-9+/=]+$`)

// a role as it is.
type role struct {
	Exists, Login, Super, CreateRole, CreateDB, Replication, Bypass bool
	Verifier                                                        string
	// Set reports that sessions begin with the desired settings.
	Set bool
}

// path that names are looked up in, and what keeps statements that hold verifiers from logs and statistics, also when the server logs
// all other statements. Only a superuser can set these, and no session of the role can undo it.
var (
	path  = setting{"search_path", "pg_catalog"}
	quiet = []setting{
		{"log_statement", "none"},
		{"log_min_duration_statement", "-1"},
		{"log_min_duration_sample", "-1"},
		{"log_transaction_sample_rate", "0"},
		{"log_min_error_statement", "panic"},
		{"pg_stat_statements.track_utility", "off"},
	}
)

// A setting of a role.
type setting struct{ name, value string }

func (s setting) String() string { return s.name + "=" + s.value }

func roles(ctx context.Context, conn *pgx.Conn, verifier string) error {
	if !verifiers.MatchString(verifier) {
		return errors.New("the Secret with the platform's password has no SCRAM verifier")
	}
	settings := append([]setting{path}, quiet...)
	is, err := get(ctx, conn, pgmember.RoleAccess, settings...)
	if err != nil {
		return err
	}
	want := role{Exists: true, Login: true, CreateRole: true, CreateDB: true, Verifier: verifier, Set: true}
	if is != want {
		statements := []string{
			verb(is.Exists) + " role " + name(pgmember.RoleAccess) + " login nosuperuser createrole createdb noreplication nobypassrls password '" + verifier + "'",
		}
		for _, s := range settings {
			statements = append(statements, "alter role "+name(pgmember.RoleAccess)+" set "+s.name+" = '"+s.value+"'")
		}
		if err := do(ctx, conn, fmt.Sprintf("make role %q", pgmember.RoleAccess), statements...); err != nil {
			return err
		}
	}
	is, err = get(ctx, conn, pgmember.RoleExporter, path)
	if err != nil {
		return err
	}
	if want := (role{Exists: true, Login: true}); is != want {
		statement := verb(is.Exists) + " role " + name(pgmember.RoleExporter) + " login nosuperuser nocreaterole nocreatedb noreplication nobypassrls password null"
		err := do(ctx, conn, fmt.Sprintf("make role %q", pgmember.RoleExporter), statement, "alter role "+name(pgmember.RoleExporter)+" reset search_path")
		if err != nil {
			return err
		}
	}
	return grant(ctx, conn)
}

// verb that makes a role as it should be.
func verb(exists bool) string {
	if exists {
		return "alter"
	}
	return "create"
}

// get a role as it is, and whether it has all of some settings.
func get(ctx context.Context, conn *pgx.Conn, which string, settings ...setting) (role, error) {
	var r role
	var err error
	asked := make([]string, 0, len(settings))
	for _, s := range settings {
		asked = append(asked, s.String())
	}
	r.Exists, err = row(ctx, conn, fmt.Sprintf("look at role %q", which), `select rolcanlogin, rolsuper, rolcreaterole, rolcreatedb, rolreplication, rolbypassrls,
		coalesce(rolpassword, ''), exists (select from pg_db_role_setting s where s.setrole = a.oid and s.setdatabase = 0
			and s.setconfig @> $2::text[])
		from pg_authid a where rolname = $1`, []any{which, asked},
		&r.Login, &r.Super, &r.CreateRole, &r.CreateDB, &r.Replication, &r.Bypass, &r.Verifier, &r.Set)
	return r, err
}

// grant what the roles need: the exporter reads statistics, the platform ends sessions of roles that it takes away.
func grant(ctx context.Context, conn *pgx.Conn) error {
	for _, g := range []struct{ group, to string }{{"pg_monitor", pgmember.RoleExporter}, {"pg_signal_backend", pgmember.RoleAccess}} {
		var has bool
		_, err := row(ctx, conn, fmt.Sprintf("look at the members of role %q", g.group), `select exists (select from pg_auth_members m join pg_roles g on g.oid = m.roleid
			join pg_roles r on r.oid = m.member where g.rolname = $1 and r.rolname = $2)`, []any{g.group, g.to}, &has)
		if err == nil && !has {
			err = do(ctx, conn, fmt.Sprintf("grant role %q", g.group), "grant "+name(g.group)+" to "+name(g.to))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// do statements, all or none. What it is for is in the error.
func do(ctx context.Context, conn *pgx.Conn, what string, statements ...string) error {
	err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		for _, s := range statements {
			if _, err := tx.Exec(ctx, s); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("cannot %s: %w", what, err)
	}
	return nil
}
