// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/importing"
	"github.com/capstan-dev/capstan/images/member/volume"
)

// A server is what was seen of the source.
type server struct {
	Version                    int // such as 160004
	Level                      string
	Recovery                   bool
	Super                      bool
	User                       string
	Slots, SlotsUsed           int
	Senders, SendersUsed       int
	ReplicationRefused         string
	MissingDatabases           []string
	Bytes                      int64
	Databases                  []database
	ToBegin                    int // databases that are not followed yet
	TargetWorkers, TargetMajor int
	Free                       int64
}

// A database of the source.
type database struct {
	// Name here, and Source there.
	Name, Source string
	Encoding     string
	MayCreate    bool
	LargeObjects bool
	Publication  string // its name, and whether it is there
	Published    bool
	Tables       []table
	Sequences    []string // without the right to read them
	Extensions   []string // that are not there
	Uncreated    []string // extensions that only a superuser makes, and that spec.extensions lacks
	Elsewhere    []string // extensions that are in another schema here
	Roles        []string // policies and user mappings of roles, which are not copied
	Partial      string   // why the publication has not every change
	Mighty       string   // why nothing may be restored as the owner here
	OccupiedBy   string   // something that is here already
}

// A table of the source.
type table struct {
	Schema, Name string
	OID          uint32 // another one of the same name is another table
	Kind         string // of pg_class: r, p or f
	Unlogged     bool
	Identity     bool // rows can be found again
	Readable     bool
	Owned        bool
	Filtered     bool   // row security hides rows
	Forced       bool   // row security holds for the owner
	Always       bool   // triggers fire also when changes are applied
	Published    bool   // by its own name, as far as there is a publication
	Inherits     string // the entry of its parent: one that is attached again has another
	Columns      string // numbers, names and types, with the entry of each: a column that is made or altered again has another
}

func (t table) String() string { return t.Schema + "." + t.Name }

// fingerprint of a table: the import notices when it changes, also when the change was undone, and when another one has taken its name.
func (t table) fingerprint() string {
	return fmt.Sprintf("%s\n%d\n%t\n%s\n%s", t, t.OID, t.Unlogged, t.Inherits, t.Columns)
}

func (t table) object() object { return object{t.Schema, t.Name} }

// followed reports whether changes of a table are followed: of a table with partitions, these are.
func (t table) followed() bool { return t.Kind == "r" && !t.Unlogged }

// followedOf tables. Each is published by its own name, partitions as well: the source then refuses to make one unlogged, which would keep its
// changes out of the log for as long as that lasts.
func followedOf(all []table) []object {
	var out []object
	for _, t := range all {
		if t.followed() {
			out = append(out, t.object())
		}
	}
	return out
}

// firstPublishing is the first version that publishes tables with partitions by their root, and reports slots that are lost.
const firstPublishing = 130000

// findings are what stands in the way, each with its remedy.
func (s *server) findings(skip []string) []string {
	var fs []string
	add := func(format string, args ...any) { fs = append(fs, fmt.Sprintf(format, args...)) }
	n := len(s.Databases)
	switch major := s.Version / 10000; {
	case s.Version < firstPublishing:
		add("the source has version %d: changes can be followed from version %d on: upgrade the source first", major, firstPublishing/10000)
	case major > s.TargetMajor:
		add("the source has version %d, and this Database has %d: make a Database with spec.version %d or later", major, s.TargetMajor, major)
	}
	if s.Recovery {
		add("the source is a standby: make another Database with the host of its primary in spec.from.server.host")
	}
	if s.Level != "logical" {
		add("wal_level of the source is %q: set wal_level = logical there, and restart it", s.Level)
	}
	if s.ReplicationRefused != "" {
		add("user %q may not replicate (%s): run alter role %s replication on the source (a managed service has a role for it, such as rds_replication), "+
			"and let pg_hba.conf admit it", s.User, s.ReplicationRefused, name(s.User))
	}
	// Each subscription has a slot and a sender, and two more while it copies.
	need := 3 * s.ToBegin
	if free := s.Slots - s.SlotsUsed; free < need {
		add("the source has %d free replication slots, and this needs %d: raise max_replication_slots there by %d, and restart it", free, need, need-free)
	}
	if free := s.Senders - s.SendersUsed; free < need {
		add("the source has %d free senders, and this needs %d: raise max_wal_senders there by %d, and restart it", free, need, need-free)
	}
	if s.TargetWorkers < n+1 {
		add("this Database can follow %d databases at a time, and %d are imported: set spec.config.max_logical_replication_workers to %d or more", s.TargetWorkers-1, n, n+1)
	}
	// Indexes and write-ahead log of the copy need room as well.
	if bytes := s.Bytes + s.Bytes/5; bytes > s.Free {
		add("the databases of the source have %s, and the volume of the leader has room for %s: raise spec.storage by %d GiB", importing.Size(s.Bytes), importing.Size(s.Free), (bytes-s.Free)>>30+1)
	}
	for _, d := range s.MissingDatabases {
		add("the source has no database %q: create it there, or make another Database with other spec.from.server.databases", d)
	}
	for i := range s.Databases {
		fs = append(fs, s.Databases[i].findings(*s, skip)...)
	}
	return fs
}

// findings in one database: what is wrong with it, with its tables, and with the rights of the user.
func (d *database) findings(s server, skip []string) []string {
	var fs []string
	add := d.adds(&fs)
	if d.OccupiedBy != "" {
		fs = append(fs, fmt.Sprintf("database %q of this Database is not empty (%s): make another Database", d.Name, d.OccupiedBy))
	}
	if d.Encoding == "SQL_ASCII" {
		add("its encoding is SQL_ASCII, so its text may be of any: convert it there")
	}
	if len(d.Extensions) > 0 {
		add("this image has no extensions %s: drop them there, or ask the platform team for an image that has them", importing.Some(d.Extensions))
	}
	if len(d.Uncreated) > 0 {
		add("only a superuser makes the extensions %s: list them in spec.extensions", importing.Some(d.Uncreated))
	}
	if d.LargeObjects && !slices.Contains(skip, pgmember.SkipLargeObjects) {
		add("it has large objects, whose changes cannot be followed: move them into columns of type bytea, or make another Database with %s in spec.from.server.skip", pgmember.SkipLargeObjects)
	}
	if d.Mighty != "" {
		fs = append(fs, d.Mighty)
	}
	if len(d.Elsewhere) > 0 {
		add("extensions are in another schema here: %s: run alter extension ... set schema ... there, or remove them from spec.extensions and make another Database", importing.Some(d.Elsewhere))
	}
	if len(d.Roles) > 0 {
		add("roles are not copied, and these name some: %s: drop them there, and make them again after the cut-over", importing.Some(d.Roles))
	}
	if d.Partial != "" {
		add("publication %s %s: drop it, and create it for whole tables and with every operation", name(d.Publication), d.Partial)
	}
	if names := d.which(func(t table) bool { return t.followed() && !t.Published }); names != "" && d.Published {
		add("publication %s lacks tables: %s: drop it, and create it for each table and each partition by its own name", name(d.Publication), names)
	}
	return slices.Concat(fs, d.ofTables(s, skip), d.ofRights(s))
}

// adds returns what adds a finding with the name of the database.
func (d *database) adds(to *[]string) func(format string, args ...any) {
	return func(format string, args ...any) {
		*to = append(*to, fmt.Sprintf("database %q of the source: ", d.Source)+fmt.Sprintf(format, args...))
	}
}

// which tables match, by their names.
func (d *database) which(match func(table) bool) string {
	var names []string
	for _, t := range d.Tables {
		if match(t) {
			names = append(names, t.String())
		}
	}
	return importing.Some(names)
}

// ofTables are findings about tables whose changes cannot be followed.
func (d *database) ofTables(s server, skip []string) []string {
	var fs []string
	add := d.adds(&fs)
	if names := d.which(func(t table) bool { return t.Unlogged }); names != "" && !slices.Contains(skip, pgmember.SkipUnloggedTables) {
		add("unlogged tables cannot be followed: %s: run alter table ... set logged, or make another Database with %s in spec.from.server.skip", names, pgmember.SkipUnloggedTables)
	}
	if names := d.which(func(t table) bool { return t.followed() && !t.Identity }); names != "" {
		add("tables without primary key, or with a deferrable one, or whose replica identity has no index: %s: add a key that is not deferrable, or run alter table ... replica identity full",
			names)
	}
	if names := d.which(func(t table) bool { return t.Always }); names != "" {
		add("triggers of %s are set to fire always or on a replica, so that they would fire again when a change is applied: run alter table ... enable trigger ...", names)
	}
	if names := d.which(func(t table) bool { return t.Forced }); names != "" {
		add("tables with forced row security cannot be followed: %s: run alter table ... no force row level security", names)
	}
	if names := d.which(func(t table) bool { return t.Filtered && !t.Forced }); names != "" {
		add("row security hides rows of %s from user %q: run alter role %s bypassrls", names, s.User, name(s.User))
	}
	return fs
}

// ofRights are findings about what the user of the import may not do.
func (d *database) ofRights(s server) []string {
	var fs []string
	add := d.adds(&fs)
	if names := d.which(func(t table) bool { return !t.Readable && t.Kind != "f" }); names != "" {
		add("user %q may not read %s: run grant usage on schema ... and grant select on all tables in schema ... to %s", s.User, names, name(s.User))
	}
	if len(d.Sequences) > 0 {
		add("user %q may not read the sequences %s: run grant select on all sequences in schema ... to %s", s.User, importing.Some(d.Sequences), name(s.User))
	}
	if d.Published || s.Super {
		return fs
	}
	if names := d.which(func(t table) bool { return !t.Owned && t.followed() }); names != "" {
		add("only an owner publishes tables, and user %q does not own %s: run grant OWNER to %s, or let a superuser create publication %s for table %s",
			s.User, names, name(s.User), name(d.Publication), names)
	}
	if !d.MayCreate {
		add("user %q may not create a publication: run grant create on database %s to %s", s.User, name(d.Source), name(s.User))
	}
	return fs
}

// look at the source, and at what this server has for it.
func look(ctx context.Context, from source, i members.Import, named func(string) string, p progress) (server, error) {
	var s server
	own := make([]string, 0, len(i.Databases)) // what a try before has left is used again
	for _, d := range i.Databases {
		own = append(own, named(d.Name))
	}
	first := i.Databases[0].Source
	var there []string
	if err := from.visit(ctx, first, func(ctx context.Context, conn *pgx.Conn) (err error) {
		there, err = s.look(ctx, conn, own)
		return err
	}); err != nil {
		return s, err
	}
	if s.Version < firstPublishing || s.Recovery {
		s.TargetMajor, s.Free, s.TargetWorkers = 99, 1, 2
		return s, nil // it may not know the rest
	}
	if s.Level == "logical" {
		if err := from.replicates(ctx, first); err != nil {
			s.ReplicationRefused = err.Error()
		}
	}
	for _, d := range i.Databases {
		if !slices.Contains(there, d.Source) {
			s.MissingDatabases = append(s.MissingDatabases, d.Source)
			continue
		}
		seen, bytes, err := from.database(ctx, d, named(d.Name), p.phases[d.Name] == "")
		if err != nil {
			return s, err
		}
		if !p.follows(d.Name) {
			s.Bytes += bytes
			s.ToBegin++
		}
		s.Databases = append(s.Databases, seen)
	}
	u, err := volume.Measure(pgmember.FolderVolume)
	if err != nil {
		return s, err
	}
	s.Free = u.Free
	err = within(ctx, "postgres", func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "select current_setting('max_logical_replication_workers')::int, current_setting('server_version_num')::int / 10000").
			Scan(&s.TargetWorkers, &s.TargetMajor)
	})
	return s, err
}

// look at the server, and return the databases that it has.
func (s *server) look(ctx context.Context, conn *pgx.Conn, own []string) ([]string, error) {
	err := conn.QueryRow(ctx, `select current_setting('server_version_num')::int, current_setting('wal_level'), pg_is_in_recovery(), r.rolsuper, current_user::text,
		current_setting('max_replication_slots')::int, (select count(*) from pg_replication_slots where slot_name <> all($1))::int,
		current_setting('max_wal_senders')::int, (select count(*) from pg_stat_replication)::int
		from pg_roles r where r.rolname = current_user`, own).
		Scan(&s.Version, &s.Level, &s.Recovery, &s.Super, &s.User, &s.Slots, &s.SlotsUsed, &s.Senders, &s.SendersUsed)
	if err != nil {
		return nil, fmt.Errorf("cannot look at the source: %w", said(err))
	}
	there, err := list(ctx, conn, "select datname::text from pg_database where datallowconn")
	if err != nil {
		return nil, fmt.Errorf("cannot list databases of the source: %w", said(err))
	}
	return there, nil
}

// notOfExtension leaves out what extensions bring.
const notOfExtension = ` and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
	and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')`

const tablesQuery = `select n.nspname::text, c.relname::text, c.oid::int8, c.relkind::text, c.relpersistence = 'u',
	c.relreplident = 'f' or exists (select from pg_index x where x.indrelid = c.oid and x.indimmediate and x.indisvalid
		and (c.relreplident = 'd' and x.indisprimary or c.relreplident = 'i' and x.indisreplident)),
	has_schema_privilege(n.oid, 'usage') and has_table_privilege(c.oid, 'select'), pg_has_role(c.relowner, 'usage'), row_security_active(c.oid), c.relforcerowsecurity,
	exists (select from pg_trigger g where g.tgrelid = c.oid and not g.tgisinternal and g.tgenabled in ('A', 'R')),
	exists (select from pg_publication_rel r join pg_publication p on p.oid = r.prpubid where p.pubname = $1 and r.prrelid = c.oid),
	coalesce((select string_agg(i.inhparent::text || ' ' || i.xmin, ', ' order by i.inhseqno) from pg_inherits i where i.inhrelid = c.oid), ''),
	coalesce((select string_agg(a.attnum || ' ' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod) || ' ' || a.xmin, ', ' order by a.attnum) from pg_attribute a
		where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped), '')
	from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.relkind in ('r', 'p', 'f') and c.relpersistence <> 't'` + notOfExtension + ` order by 1, 2`

// tables of a database of the source, and which of them a publication has.
func tables(ctx context.Context, conn *pgx.Conn, publication string) ([]table, error) {
	rows, err := conn.Query(ctx, tablesQuery, publication)
	ts, err := collect(rows, err, pgx.RowToStructByPos[table])
	if err != nil {
		return nil, fmt.Errorf("cannot list tables of the source: %w", said(err))
	}
	return ts, nil
}

// partial is why a publication lacks changes of its tables; "" when it has all, or is not there.
const partial = `select coalesce((select case
	when not (p.pubinsert and p.pubupdate and p.pubdelete and p.pubtruncate) then 'lacks some operations'
	when p.pubviaroot then 'has publish_via_partition_root'
	when exists (select from pg_publication_rel r where r.prpubid = p.oid and (to_jsonb(r) ->> 'prqual' is not null or to_jsonb(r) ->> 'prattrs' is not null))
		then 'has filters of rows or lists of columns'
	else '' end from pg_publication p where p.pubname = $1), '')`

// ofRoles are objects of a schema that name roles.
const ofRoles = `select 'policy ' || p.polname || ' on ' || c.relname from pg_policy p join pg_class c on c.oid = p.polrelid where p.polroles <> '{0}'
	union all select 'user mapping for ' || usename || ' of ' || srvname from pg_user_mappings where umuser <> 0 order by 1`

// An extension, and the schema that it is in.
type extension struct{ Name, Schema string }

// database of the source, and how many bytes it has. What is here already is checked only before the import begins.
func (s source) database(ctx context.Context, d members.ImportDatabase, publication string, begins bool) (database, int64, error) {
	out := database{Name: d.Name, Source: d.Source, Publication: publication}
	var bytes int64
	var extensions []extension
	err := s.visit(ctx, d.Source, func(ctx context.Context, conn *pgx.Conn) error {
		err := conn.QueryRow(ctx, `select pg_encoding_to_char(encoding)::text, has_database_privilege(oid, 'create'), pg_database_size(oid),
			exists (select from pg_largeobject_metadata), exists (select from pg_publication where pubname = $1) from pg_database where datname = current_database()`, publication).
			Scan(&out.Encoding, &out.MayCreate, &bytes, &out.LargeObjects, &out.Published)
		if err != nil {
			return fmt.Errorf("cannot look at database %q of the source: %w", d.Source, said(err))
		}
		if out.Tables, err = tables(ctx, conn, publication); err != nil {
			return err
		}
		if err := conn.QueryRow(ctx, partial, publication).Scan(&out.Partial); err != nil {
			return fmt.Errorf("cannot look at publication %q of the source: %w", publication, said(err))
		}
		out.Sequences, err = list(ctx, conn, `select n.nspname || '.' || c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
			where c.relkind = 'S' and not (has_schema_privilege(n.oid, 'usage') and has_sequence_privilege(c.oid, 'select'))`+notOfExtension+" order by 1")
		if err != nil {
			return fmt.Errorf("cannot list sequences of the source: %w", said(err))
		}
		if out.Roles, err = list(ctx, conn, ofRoles); err != nil {
			return fmt.Errorf("cannot list policies of the source: %w", said(err))
		}
		rows, err := conn.Query(ctx, `select e.extname::text, n.nspname::text from pg_extension e join pg_namespace n on n.oid = e.extnamespace
			where e.extname <> 'plpgsql' order by 1`)
		if extensions, err = collect(rows, err, pgx.RowToStructByPos[extension]); err != nil {
			return fmt.Errorf("cannot list extensions of the source: %w", said(err))
		}
		return nil
	})
	if err != nil {
		return out, 0, err
	}
	err = within(ctx, d.Name, func(conn *pgx.Conn) error { return out.here(ctx, conn, extensions, begins) })
	return out, bytes, err
}

// occupied is something in a database that is not the system's and not an extension's.
const occupied = `select coalesce((select n.nspname || '.' || c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.relkind not in ('i', 'I', 't')` + notOfExtension + ` limit 1),
	(select n.nspname || '.' || p.proname from pg_proc p join pg_namespace n on n.oid = p.pronamespace where n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
		and not exists (select from pg_depend d where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e') limit 1),
	(select n.nspname || '.' || t.typname from pg_type t join pg_namespace n on n.oid = t.typnamespace where n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
		and not exists (select from pg_depend d where d.classid = 'pg_type'::regclass and d.objid = t.oid and d.deptype in ('e', 'i')) limit 1), '')`

// here is what this server has of it.
func (d *database) here(ctx context.Context, conn *pgx.Conn, extensions []extension, begins bool) error {
	for _, e := range extensions {
		var trusted, made bool
		var schema string
		err := conn.QueryRow(ctx, `select v.trusted, e.installed_version is not null, coalesce((select n.nspname::text from pg_extension x join pg_namespace n on n.oid = x.extnamespace
				where x.extname = e.name), '') from pg_available_extensions e
			join pg_available_extension_versions v on v.name = e.name and v.version = e.default_version where e.name = $1`, e.Name).Scan(&trusted, &made, &schema)
		switch {
		case err == pgx.ErrNoRows: //nolint:errorlint // QueryRow returns it as it is.
			d.Extensions = append(d.Extensions, e.Name)
		case err != nil:
			return fmt.Errorf("cannot look for extension %q: %w", e.Name, err)
		case !trusted && !made:
			d.Uncreated = append(d.Uncreated, e.Name)
		case begins && made && schema != e.Schema:
			d.Elsewhere = append(d.Elsewhere, fmt.Sprintf("%s (there in %q, here in %q)", e.Name, e.Schema, schema))
		}
	}
	if !begins {
		return nil
	}
	if _, err := owner(ctx, conn); err != nil {
		d.Mighty = err.Error()
	}
	if err := conn.QueryRow(ctx, occupied).Scan(&d.OccupiedBy); err != nil {
		return fmt.Errorf("cannot look at what is in database %q: %w", d.Name, err)
	}
	return nil
}
