// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/images/member/importing"
	"github.com/capstan-dev/capstan/images/member/volume"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/mysql"
)

// A server is what was seen of the source.
type server struct {
	place

	Settings                map[string]string
	Lacks                   []string // rights in the whole server
	Databases               []database
	Bytes, Free             int64
	TargetVersion, Occupied string
}

// A database of the source.
type database struct {
	Name    string
	Missing bool
	Lacks   []string // rights
	Engines []string // tables of other engines
	Keyless []string // tables without a primary key
	Stored  []string // views, triggers, routines and events
	Outside []string // tables whose foreign keys refer to databases that are not imported
}

// wanted settings of a source, each with how to set it.
var wanted = []struct{ name, value, remedy string }{
	{"log_bin", "1", "start it with log_bin"},
	{"binlog_format", "ROW", "run set persist binlog_format = row there, and let its clients connect again"},
	{"gtid_mode", "ON", "run set persist enforce_gtid_consistency = on there, and gtid_mode = off_permissive, on_permissive and on, one after the other, " +
		"which needs no restart (a managed service has parameters for it)"},
	{"lower_case_table_names", "0", "names are case-sensitive here, so load a dump as a consumer, and let its clients write names as they are stored"},
}

// rights of the user in the whole server and in each database.
var (
	rightsGlobal   = []string{"REPLICATION SLAVE", "REPLICATION CLIENT", "PROCESS"}
	rightsDatabase = []string{"SELECT", "LOCK TABLES", "SHOW VIEW", "TRIGGER", "EVENT", "EXECUTE"}
)

// firstVersion that is followed.
const firstVersion = "8.0"

// findings are what stands in the way, each with its remedy.
func (s *server) findings(user string, skip []string) []string {
	var fs []string
	add := func(format string, args ...any) { fs = append(fs, fmt.Sprintf(format, args...)) }
	switch n, own := series(s.Version), series(s.TargetVersion); {
	case slices.Compare(n[:], own[:]) > 0:
		add("the source has version %d.%d, and this Database has %d.%d: make a Database with a later spec.version", n[0], n[1], own[0], own[1])
	case n[0] < series(firstVersion)[0]:
		add("the source has version %d.%d: changes can be followed from version %s on: upgrade the source first", n[0], n[1], firstVersion)
	}
	for _, w := range wanted {
		if is := s.Settings[w.name]; is != w.value {
			add("%s of the source is %q: %s", w.name, importing.Shortened(is, 64), w.remedy)
		}
	}
	if s.Filtered != "" {
		add("the binary log of the source has not all databases (binlog_do_db, binlog_ignore_db): remove these settings, and restart it")
	}
	if len(s.Lacks) > 0 {
		add("user %q lacks rights: run grant %s on *.* to %s on the source (rights by a role do not count)", user, strings.Join(s.Lacks, ", "), user)
	}
	// Rows are in the binary log of this Database as well, and indexes need room.
	if need := 2*s.Bytes + s.Bytes/5; need > s.Free {
		add("the databases of the source have %s, and the volume of the leader has room for %s, and binary logs take half of it: raise spec.storage by %d GiB",
			importing.Size(s.Bytes), importing.Size(s.Free), (need-s.Free)>>30+1)
	}
	if s.Occupied != "" {
		add("databases of this Database are not empty (%s): make another Database", s.Occupied)
	}
	for i := range s.Databases {
		fs = append(fs, s.Databases[i].findings(user, skip)...)
	}
	return fs
}

func (d *database) findings(user string, skip []string) []string {
	if d.Missing {
		return []string{fmt.Sprintf("the source has no database %q: create it there, or make another Database with other spec.from.server.databases", d.Name)}
	}
	var fs []string
	add := func(names []string, format string, args ...any) {
		if len(names) > 0 {
			fs = append(fs, fmt.Sprintf("database %q of the source: ", d.Name)+fmt.Sprintf(format, args...))
		}
	}
	add(d.Lacks, "user %q lacks rights: run grant %s on `%s`.* to %s (rights by a role do not count)", user, strings.Join(d.Lacks, ", "), d.Name, user)
	add(d.Engines, "a group replicates tables of InnoDB only: %s: run alter table ... engine = innodb", importing.Some(d.Engines))
	add(d.Keyless, "tables without primary key: %s: add one", importing.Some(d.Keyless))
	add(d.Outside, "foreign keys refer to databases that are not imported: %s: drop them, or make another Database with these databases as well", importing.Some(d.Outside))
	if !slices.Contains(skip, mysqlmember.SkipStoredObjects) {
		add(d.Stored, "views, triggers, routines and events run as the account that made them, and accounts are not copied: %s: make another Database with %s in "+
			"spec.from.server.skip, and make them as a consumer after the cut-over", importing.Some(d.Stored), mysqlmember.SkipStoredObjects)
	}
	return fs
}

// look at the source, and at the room there is here.
func (r *run) look(ctx context.Context) (s server, err error) {
	err = r.from.visit(ctx, answerLimit, func(ctx context.Context, c *sql.Conn) error {
		if s.Settings, err = settingsOf(ctx, c); err != nil || s.Settings["log_bin"] != "1" {
			s.Version = s.Settings["version"]
			return err
		}
		if s.Lacks, err = lacking(ctx, c, "", rightsGlobal); err != nil {
			return err
		}
		if slices.Contains(s.Lacks, "REPLICATION CLIENT") {
			s.Version = s.Settings["version"]
		} else if s.place, err = at(ctx, c); err != nil {
			return err
		}
		for _, d := range r.config.Databases {
			seen, bytes, err := r.database(ctx, c, d.Source)
			if err != nil {
				return fmt.Errorf("cannot look at database %q of the source: %w", d.Source, err)
			}
			s.Databases, s.Bytes = append(s.Databases, seen), s.Bytes+bytes
		}
		return nil
	})
	if err != nil {
		return s, err
	}
	u, err := volume.Measure(mysqlmember.FolderVolume)
	if err != nil {
		return s, err
	}
	s.Free = u.Free
	return s, r.here.Session(ctx, "look at what is in the databases", func(c *sql.Conn) error {
		if err := c.QueryRowContext(ctx, "SELECT @@version").Scan(&s.TargetVersion); err != nil || r.state.begun() {
			return err
		}
		tables, err := list(ctx, c, "SELECT CONCAT(table_schema, '.', table_name) FROM information_schema.tables WHERE table_schema IN ("+r.databases()+") LIMIT 1")
		if len(tables) > 0 {
			s.Occupied = tables[0][0]
		}
		return err
	})
}

// settingsOf a source that an import needs.
func settingsOf(ctx context.Context, c *sql.Conn) (map[string]string, error) {
	names := make([]string, 0, 1+len(wanted))
	names = append(names, "version")
	for _, w := range wanted {
		names = append(names, w.name)
	}
	rows, err := list(ctx, c, "SELECT @@GLOBAL."+strings.Join(names, ", @@GLOBAL."))
	if err != nil {
		return nil, fmt.Errorf("cannot look at settings of the source: %w", err)
	}
	out := map[string]string{}
	for i, name := range names {
		out[name] = rows[0][i]
	}
	return out, nil
}

// lacking rights of the user, in a database or in the whole server.
func lacking(ctx context.Context, c *sql.Conn, database string, want []string) (lacks []string, err error) {
	const grantee = "CONCAT('''', SUBSTRING_INDEX(CURRENT_USER(), '@', 1), '''@''', SUBSTRING_INDEX(CURRENT_USER(), '@', -1), '''')"
	has, err := list(ctx, c, "SELECT privilege_type FROM information_schema.user_privileges WHERE grantee = "+grantee+
		" UNION SELECT privilege_type FROM information_schema.schema_privileges WHERE grantee = "+grantee+" AND ? LIKE table_schema", database)
	if err != nil {
		return nil, fmt.Errorf("cannot look at rights in the source: %w", err)
	}
	for _, w := range want {
		if !slices.ContainsFunc(has, func(row []string) bool { return row[0] == w }) {
			lacks = append(lacks, w)
		}
	}
	return lacks, nil
}

// database of the source, and how many bytes its tables have.
func (r *run) database(ctx context.Context, c *sql.Conn, name string) (d database, bytes int64, err error) {
	d.Name = name
	there, err := list(ctx, c, "SELECT schema_name FROM information_schema.schemata WHERE schema_name = ?", name)
	if err != nil || len(there) == 0 {
		d.Missing = true
		return d, 0, err
	}
	if d.Lacks, err = lacking(ctx, c, name, rightsDatabase); err != nil || len(d.Lacks) > 0 {
		return d, 0, err
	}
	tables, err := list(ctx, c, `SELECT t.table_name, t.engine, k.constraint_name, COALESCE(t.data_length + t.index_length, 0) FROM information_schema.tables t
		LEFT JOIN information_schema.table_constraints k ON k.table_schema = t.table_schema AND k.table_name = t.table_name AND k.constraint_type = 'PRIMARY KEY'
		WHERE t.table_schema = ? AND t.table_type = 'BASE TABLE' ORDER BY 1`, name)
	if err != nil {
		return d, 0, err
	}
	for _, t := range tables {
		if t[1] != "InnoDB" {
			d.Engines = append(d.Engines, t[0])
		}
		if t[2] == "" {
			d.Keyless = append(d.Keyless, t[0])
		}
		n, _ := strconv.ParseInt(t[3], 10, 64)
		bytes += n
	}
	for into, query := range map[*[]string]string{
		&d.Stored: `SELECT CONCAT('view ', table_name) FROM information_schema.views WHERE table_schema = @d UNION ALL
			SELECT CONCAT('trigger ', trigger_name) FROM information_schema.triggers WHERE trigger_schema = @d UNION ALL
			SELECT CONCAT(LOWER(routine_type), ' ', routine_name) FROM information_schema.routines WHERE routine_schema = @d UNION ALL
			SELECT CONCAT('event ', event_name) FROM information_schema.events WHERE event_schema = @d ORDER BY 1`,
		&d.Outside: `SELECT DISTINCT CONCAT(table_name, ' (', unique_constraint_schema, ')') FROM information_schema.referential_constraints
			WHERE constraint_schema = @d AND unique_constraint_schema NOT IN (` + r.databases() + `) ORDER BY 1`,
	} {
		rows, err := list(ctx, c, strings.ReplaceAll(query, "@d", mysql.Text(name)))
		if err != nil {
			return d, 0, err
		}
		for _, row := range rows {
			*into = append(*into, row[0])
		}
	}
	return d, bytes, nil
}
