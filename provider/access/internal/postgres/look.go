// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	apis "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/access/internal/engine"
	"github.com/capstan-dev/capstan/provider/internal/outside"
)

// What was seen of a server, as far as it matters.
type seen struct {
	// version as a number, 170004 for 17.4.
	version int

	// self is the role that the provider has.
	self string

	// roles by name: the desired roles, and all that carry our marks.
	roles map[string]role

	// databases by name: the desired ones that exist.
	databases map[string]database
}

// A role of a server.
type role struct {
	mark    string
	login   bool
	inherit bool

	// memberOf other roles.
	memberOf map[string]membership

	// begins is the role that its sessions begin as, by database.
	begins map[string]string

	// sessions that there are now, by database.
	sessions map[string]int
}

// A membership in a role.
type membership struct {
	// inherits what the role may, and may become it.
	inherits, becomes bool
}

// A database of a server.
type database struct {
	owner string

	// public means that everybody may connect or make temporary tables, read that its reader may connect.
	public, read bool

	// inside is what is in it, or nil when that was not looked at.
	inside *inside
}

// What is inside a database.
type inside struct {
	// defaults are what its reader gets of what its owner makes: r (tables and views), S (sequences) and n (schemas).
	defaults string

	// schemas, tables and sequences of its owner that its reader cannot read. There may be more.
	schemas, tables, sequences []string

	// desired extensions, by name.
	extensions map[string]extension
}

// An extension that is installed or could be.
type extension struct {
	installed, trusted bool
}

// batch is how many tables are granted at once.
const batch = 500

const selfQuery = `
SELECT current_setting('server_version_num')::int, current_user::text, pg_is_in_recovery(),
       r.rolcreaterole OR r.rolsuper, r.rolcreatedb OR r.rolsuper
FROM pg_roles r WHERE r.rolname = current_user`

const rolesQuery = `
SELECT r.rolname::text, coalesce(shobj_description(r.oid, 'pg_authid'), ''), r.rolcanlogin, r.rolinherit
FROM pg_roles r
WHERE r.rolname = ANY($1::text[]) OR shobj_description(r.oid, 'pg_authid') LIKE 'capstan.dev: %'`

// membersQuery of 16 and later, and of before.
const (
	membersQuery = `
SELECT m.rolname::text, g.rolname::text, bool_or(a.inherit_option), bool_or(a.set_option)
FROM pg_auth_members a JOIN pg_roles m ON m.oid = a.member JOIN pg_roles g ON g.oid = a.roleid
WHERE m.rolname = ANY($1::text[]) GROUP BY 1, 2`
	membersQuery15 = `
SELECT m.rolname::text, g.rolname::text, true, true
FROM pg_auth_members a JOIN pg_roles m ON m.oid = a.member JOIN pg_roles g ON g.oid = a.roleid
WHERE m.rolname = ANY($1::text[])`
)

const settingsQuery = `
SELECT r.rolname::text, d.datname::text, c.setting
FROM pg_db_role_setting s JOIN pg_roles r ON r.oid = s.setrole JOIN pg_database d ON d.oid = s.setdatabase,
     unnest(s.setconfig) AS c (setting)
WHERE r.rolname = ANY($1::text[]) AND c.setting LIKE 'role=%'`

const sessionsQuery = `
SELECT usename::text, datname::text, count(*)::int FROM pg_stat_activity
WHERE usename = ANY($1::text[]) AND datname IS NOT NULL GROUP BY 1, 2`

const databasesQuery = `
SELECT d.datname::text, pg_get_userbyid(d.datdba)::text,
       coalesce(bool_or(a.grantee = 0 AND a.privilege_type IN ('CONNECT', 'TEMPORARY')), false),
       coalesce(bool_or(a.privilege_type = 'CONNECT' AND pg_get_userbyid(a.grantee) = d.datname || '_reader'), false)
FROM pg_database d LEFT JOIN LATERAL aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) a ON true
WHERE d.datname = ANY($1::text[]) GROUP BY d.oid, d.datname, d.datdba`

const defaultsQuery = `
SELECT coalesce(string_agg(DISTINCT d.defaclobjtype::text, '' ORDER BY d.defaclobjtype::text), '')
FROM pg_default_acl d, aclexplode(d.defaclacl) a
WHERE d.defaclnamespace = 0 AND d.defaclobjtype IN ('r', 'S', 'n')
  AND pg_get_userbyid(d.defaclrole) = $1 AND pg_get_userbyid(a.grantee) = $2
  AND a.privilege_type = CASE d.defaclobjtype WHEN 'n' THEN 'USAGE' ELSE 'SELECT' END`

// unreadQuery finds what belongs to the owner, and the reader cannot read. The schema public belongs to the owner of the
// database.
const unreadQuery = `
SELECT 'n', n.nspname::text, '' FROM pg_namespace n
WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
  AND pg_get_userbyid(n.nspowner) IN ($1, 'pg_database_owner') AND NOT has_schema_privilege($2, n.oid, 'USAGE')
UNION ALL
(SELECT CASE c.relkind WHEN 'S' THEN 'S' ELSE 'r' END, n.nspname::text, c.relname::text
 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
   AND pg_get_userbyid(c.relowner) = $1
   AND NOT CASE c.relkind WHEN 'S' THEN has_sequence_privilege($2, c.oid, 'SELECT') ELSE has_table_privilege($2, c.oid, 'SELECT') END
 ORDER BY c.oid LIMIT $3)`

const extensionsQuery = `
SELECT a.name::text, a.installed_version IS NOT NULL, v.trusted OR NOT v.superuser
FROM pg_available_extensions a JOIN pg_available_extension_versions v ON v.name = a.name AND v.version = a.default_version
WHERE a.name = ANY($1::text[])`

// Look at the server, and into the databases that exist.
func (c *Server) Look(ctx context.Context, w engine.Wanted) (engine.Seen, error) {
	conn, err := c.in(ctx, maintenance)
	if err != nil {
		return nil, err
	}
	s := &seen{roles: map[string]role{}, databases: map[string]database{}}
	if err := s.lookAtSelf(ctx, conn); err != nil {
		return nil, err
	}
	c.version = s.version
	if err := s.lookAtRoles(ctx, conn, append(rolesFor(w), s.self)); err != nil {
		return nil, err
	}
	var d database
	var name string
	if err := each(ctx, conn, databasesQuery, []any{w.Databases}, []any{&name, &d.owner, &d.public, &d.read}, func() {
		s.databases[name] = d
	}); err != nil {
		return nil, fmt.Errorf("cannot look at databases: %w", err)
	}
	for _, name := range w.Databases {
		d, ok := s.databases[name]
		if !ok || !s.ours(name) {
			continue
		}
		if d.inside, err = c.lookInside(ctx, name, w.Extensions); err != nil {
			return nil, err
		}
		s.databases[name] = d
	}
	return s, nil
}

// ours reports whether a database and its two roles are ours and the provider may act as the owner, so that it can look inside.
func (s *seen) ours(name string) bool {
	_, in := s.roles[s.self].memberOf[owner(name)]
	return in && s.databases[name].owner == owner(name) &&
		s.roles[owner(name)].mark == markOwner+name && s.roles[reader(name)].mark == markReader+name
}

func (s *seen) lookAtSelf(ctx context.Context, conn *pgx.Conn) error {
	var recovery, roles, databases bool
	if err := conn.QueryRow(ctx, selfQuery).Scan(&s.version, &s.self, &recovery, &roles, &databases); err != nil {
		return fmt.Errorf("cannot look at the server: %w", err)
	}
	if recovery {
		return &outside.Failure{
			Reason:  apis.ReasonUnreachable,
			Message: "the server follows another one and takes no writes",
			Remedy:  "nothing to do: the Service leads to the next leader as soon as there is one",
		}
	}
	if !roles || !databases {
		return &outside.Failure{
			Reason:  apis.ReasonForbidden,
			Message: fmt.Sprintf("role %q may not make roles and databases", s.self),
			Remedy:  "give it CREATEROLE and CREATEDB",
		}
	}
	return nil
}

func (s *seen) lookAtRoles(ctx context.Context, conn *pgx.Conn, of []string) error {
	var (
		name, other, setting string
		r                    role
		m                    membership
		n                    int
	)
	if err := each(ctx, conn, rolesQuery, []any{of}, []any{&name, &r.mark, &r.login, &r.inherit}, func() {
		x := r
		x.memberOf, x.begins, x.sessions = map[string]membership{}, map[string]string{}, map[string]int{}
		s.roles[name] = x
	}); err != nil {
		return fmt.Errorf("cannot look at roles: %w", err)
	}
	var all []string
	for name := range s.roles {
		all = append(all, name)
	}
	members := membersQuery
	if s.version < version16 {
		members = membersQuery15
	}
	if err := each(ctx, conn, members, []any{all}, []any{&name, &other, &m.inherits, &m.becomes}, func() {
		s.roles[name].memberOf[other] = m
	}); err != nil {
		return fmt.Errorf("cannot look at memberships of roles: %w", err)
	}
	if err := each(ctx, conn, settingsQuery, []any{all}, []any{&name, &other, &setting}, func() {
		s.roles[name].begins[other] = strings.TrimPrefix(setting, "role=")
	}); err != nil {
		return fmt.Errorf("cannot look at settings of roles: %w", err)
	}
	if err := each(ctx, conn, sessionsQuery, []any{all}, []any{&name, &other, &n}, func() {
		s.roles[name].sessions[other] = n
	}); err != nil {
		return fmt.Errorf("cannot look at sessions: %w", err)
	}
	return nil
}

func (c *Server) lookInside(ctx context.Context, name string, extensions []string) (*inside, error) {
	conn, err := c.in(ctx, name)
	if err != nil {
		return nil, err
	}
	in := &inside{extensions: map[string]extension{}}
	if err := conn.QueryRow(ctx, defaultsQuery, owner(name), reader(name)).Scan(&in.defaults); err != nil {
		return nil, fmt.Errorf("cannot look at default privileges in database %q: %w", name, err)
	}
	var sort, schema, object string
	if err := each(ctx, conn, unreadQuery, []any{owner(name), reader(name), batch}, []any{&sort, &schema, &object}, func() {
		switch sort {
		case "n":
			in.schemas = append(in.schemas, id(schema))
		case "S":
			in.sequences = append(in.sequences, qualified(schema, object))
		default:
			in.tables = append(in.tables, qualified(schema, object))
		}
	}); err != nil {
		return nil, fmt.Errorf("cannot look at privileges in database %q: %w", name, err)
	}
	if len(extensions) == 0 {
		return in, nil
	}
	var x extension
	if err := each(ctx, conn, extensionsQuery, []any{extensions}, []any{&object, &x.installed, &x.trusted}, func() {
		in.extensions[object] = x
	}); err != nil {
		return nil, fmt.Errorf("cannot look at extensions in database %q: %w", name, err)
	}
	return in, nil
}

// each row of a query is scanned, and then taken.
func each(ctx context.Context, conn *pgx.Conn, query string, args, into []any, take func()) error {
	rows, err := conn.Query(ctx, query, args...)
	if err != nil {
		return err
	}
	_, err = pgx.ForEachRow(rows, into, func() error {
		take()
		return nil
	})
	return err
}
