// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
)

// Lookup is the schema that has the function lookup. It is in the database postgres, where only the superuser makes
// anything.
const Lookup = "capstan"

// Marks, as comments: of the role of poolers, and of the roles that they may look up, which the platform's login makes.
const (
	poolerMark = "capstan.dev: pooler"
	loginMark  = "capstan.dev: login"
)

// lookup returns the verifier of a login of a consumer. It reveals nothing of a superuser, of who may make roles, replicate or pass
// by the security of rows, of Capstan's own roles, and of one that may not log in any more. Its names are bound when it is made,
// so that no search path points elsewhere.
const lookup = `create or replace function ` + Lookup + `.lookup(login text, out name text, out verifier text) returns setof record
	language sql stable strict security definer set search_path = pg_catalog, pg_temp
	begin atomic
		select a.rolname::text, a.rolpassword from pg_catalog.pg_authid a
		where a.rolname = login and a.rolcanlogin and a.rolpassword like 'SCRAM-SHA-256$%'
			and not (a.rolsuper or a.rolcreaterole or a.rolcreatedb or a.rolreplication or a.rolbypassrls)
			and (a.rolvaliduntil is null or a.rolvaliduntil > pg_catalog.now())
			and pg_catalog.shobj_description(a.oid, 'pg_authid') = '` + loginMark + `';
	end`

// pooler makes what poolers log in and look up with, or removes it.
func pooler(ctx context.Context, conn *pgx.Conn, wanted bool) error {
	var mark string
	var right, made bool
	// A function of an earlier version is another one.
	exists, err := row(ctx, conn, fmt.Sprintf("look at role %q", pgmember.RolePooler), `select coalesce(shobj_description(r.oid, 'pg_authid'), ''),
			r.rolcanlogin and not (r.rolsuper or r.rolcreaterole or r.rolcreatedb or r.rolreplication or r.rolbypassrls) and r.rolpassword is null,
			exists (select from pg_proc p join pg_namespace n on n.oid = p.pronamespace where n.nspname = $2 and p.proname = 'lookup'
				and obj_description(p.oid, 'pg_proc') = md5($3) and p.prosecdef and pg_get_userbyid(p.proowner) = $4
				and has_function_privilege(r.oid, p.oid, 'execute') and has_schema_privilege(r.oid, n.oid, 'usage')
				and not has_function_privilege('public', p.oid, 'execute'))
		from pg_authid r where r.rolname = $1`, []any{pgmember.RolePooler, Lookup, lookup, pgmember.RoleSuperuser}, &mark, &right, &made)
	switch {
	case err != nil:
		return err
	case exists && mark != poolerMark && wanted:
		return fmt.Errorf("role %q exists and Capstan did not make it for poolers: rename or drop it", pgmember.RolePooler)
	case exists && mark != poolerMark, !exists && !wanted, exists && wanted && right && made:
		return nil
	case !wanted:
		return do(ctx, conn, fmt.Sprintf("remove role %q", pgmember.RolePooler), "drop schema if exists "+name(Lookup)+" cascade",
			"revoke all on database postgres from "+name(pgmember.RolePooler), "drop role "+name(pgmember.RolePooler))
	}
	var sum string
	if _, err := row(ctx, conn, "name the function of poolers", "select md5($1)", []any{lookup}, &sum); err != nil {
		return err
	}
	return do(ctx, conn, fmt.Sprintf("make role %q", pgmember.RolePooler),
		verb(exists)+" role "+name(pgmember.RolePooler)+" login nosuperuser nocreaterole nocreatedb noreplication nobypassrls password null",
		"comment on role "+name(pgmember.RolePooler)+" is '"+poolerMark+"'",
		"create schema if not exists "+name(Lookup),
		lookup,
		"comment on function "+name(Lookup)+".lookup(text) is '"+sum+"'",
		"revoke all on function "+name(Lookup)+".lookup(text) from public",
		"grant usage on schema "+name(Lookup)+" to "+name(pgmember.RolePooler),
		"grant execute on function "+name(Lookup)+".lookup(text) to "+name(pgmember.RolePooler))
}
