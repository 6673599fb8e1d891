// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
)

// dumper makes dumps of a foreign server, and puts them into a bucket.
type dumper struct {
	*foreign

	store *store
}

// newDumper with a server of a version, and the bucket that members read.
func (c *cluster) newDumper(t *testing.T, major string) *dumper {
	t.Helper()
	d := &dumper{c.foreign(major), newStore(t)}
	d.store.connection(c, "import")
	d.start()
	d.run("postgres", "create database legacy_shop")
	return d
}

// folder of dumps, as the machine sees it.
func (d *dumper) folder() string { return filepath.Join(d.c.base, "foreign-data") }

// dump with pg_dump of a version to a file or a folder.
func (d *dumper) dump(major, to string, args ...string) string {
	d.c.t.Helper()
	_ = os.RemoveAll(filepath.Join(d.folder(), to))
	all := append([]string{
		"/usr/lib/postgresql/" + major + "/bin/pg_dump", "--dbname=postgres://postgres:of-root@" + d.ip + "/legacy_shop?sslmode=require", "--file=/data/" + to,
	}, args...)
	if out, err := d.now.Enter(all...); err != nil {
		d.c.t.Fatalf("%v: %v: %s", args, err, out)
	}
	return filepath.Join(d.folder(), to)
}

// put a file or a folder into the bucket, below a key.
func (d *dumper) put(key, path string) {
	d.c.t.Helper()
	err := filepath.WalkDir(path, func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		raw, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		rest, err := filepath.Rel(path, file)
		if err != nil {
			return err
		}
		d.upload(filepath.Join(key, rest), raw)
		return nil
	})
	if err != nil {
		d.c.t.Fatal(err)
	}
}

func (d *dumper) upload(key string, raw []byte) {
	d.c.t.Helper()
	if _, err := d.store.client.PutObject(d.c.t.Context(), &s3.PutObjectInput{Bucket: aws.String(bucket), Key: aws.String(key), Body: bytes.NewReader(raw)}); err != nil {
		d.c.t.Fatal(err)
	}
}

// dumps that the members have to restore.
func (c *cluster) dumps(w pgmember.Dumps, extensions ...string) {
	c.t.Helper()
	config := pgmember.Config{Databases: []string{}, Extensions: append([]string{}, extensions...), Dumps: &w}
	for _, f := range w.Databases {
		config.Databases = append(config.Databases, f.Name)
	}
	raw, err := json.Marshal(config)
	if err != nil {
		c.t.Fatal(err)
	}
	c.file("config/member.json", raw)
}

// platform makes databases that are not there, as often as it looks, and starts members.
func (c *cluster) platform(t *testing.T, databases []string, letters ...string) {
	t.Helper()
	for _, l := range letters {
		c.start(l)
	}
	c.eventually("all members are ready", 90*time.Second, func() bool { return c.ready(letters...) })
	if len(letters) > 1 { // Only then the other one may take over.
		c.eventually("commits wait for another member", time.Minute, func() bool {
			return c.superuserIn("postgres", "select count(*) from pg_stat_replication where sync_state in ('sync', 'quorum')") != "0"
		})
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if l := c.leader(); l != "" {
				for _, d := range databases {
					// What is there already is an error that says nothing.
					_, _ = c.running(l).Enter("psql", "-h", pgmember.FolderSocket, "-U", "postgres", "-Atc", `create role "shop-owner"`)
					_, _ = c.running(l).Enter("psql", "-h", pgmember.FolderSocket, "-U", "postgres", "-Atc", `create database "`+d+`" owner "shop-owner"`)
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(2 * time.Second):
			}
		}
	}()
	t.Cleanup(func() {
		stop()
		<-done
	})
}

// sameContent of a database of the leader and of the foreign server.
func (d *dumper) sameContent(t *testing.T, database string) {
	t.Helper()
	there, err := d.connect(t.Context(), "legacy_shop")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = there.Close(context.Background()) }()
	for _, query := range []string{
		"select md5(string_agg(t::text, '|' order by id)) from public.items t", "select md5(string_agg(t::text, '|' order by id)) from past.orders t",
		"select n::text from public.totals", "select public.loud('a') || public.twice(2)", "select count(*)::text from public.cache",
		`select string_agg(sequencename || '=' || coalesce(last_value::text, ''), ',' order by sequencename) from pg_sequences`,
		"select string_agg(md5(lo_get(oid)), ',' order by oid) from pg_largeobject_metadata",
		`select string_agg(c.relname || ':' || c.relkind::text, ',' order by c.relname) from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname in ('public', 'past')`,
	} {
		if here, want := d.c.superuserIn(database, query), ask(t, there, query); here != want {
			t.Errorf("%s: %s: got %q, want %q", database, query, here, want)
		}
	}
	if got := d.c.superuserIn(database, `select string_agg(distinct pg_get_userbyid(c.relowner), ',') from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where n.nspname in ('public', 'past') and not exists (select from pg_depend d where d.objid = c.oid and d.deptype = 'e')`); got != "shop-owner" {
		t.Errorf("%s: owners are %q, want shop-owner", database, got)
	}
}

// dumpedSchema is what an import from a server refuses partly.
var dumpedSchema = append(append([]string{}, legacySchema...),
	"insert into public.cache values (1)", "select lo_from_bytea(0, decode(repeat('00ff5c', 30000), 'hex'))",
	"create function public.twice(int) returns int language sql begin atomic select 1; select case when true then $1 * 2 end; end",
	"create publication p for all tables", "create role reader", "grant select on public.items to reader", "alter default privileges grant select on tables to reader",
	`insert into public.items (name) values (e'\\.'), (e'a\tb\\c\nd\re'), ('; select 1; --'), ('$$'), (e'\restrict'), (null || '')`)

// usable statements: the last row above has no name.
func usable() []string {
	last := len(dumpedSchema) - 1
	// Before version 17 partitions have no identity of their own, so that their rows as INSERT are for one that is generated by default.
	return append(append([]string{}, dumpedSchema[:last]...), "alter table past.orders alter column id set generated by default", strings.Replace(dumpedSchema[last], ", (null || '')", "", 1))
}

// TestDump: dumps of all formats are restored, each into a database, with everything in them, as the owner and without the roles of the source.
func TestDump(t *testing.T) {
	c := newClusterWith(t, []string{"a", "b"}, func(*cluster) {})
	d := c.newDumper(t, "15")
	d.run("legacy_shop", usable()...)
	d.put("dumps/shop.dump", d.dump("15", "custom", "--format=custom"))
	d.put("dumps/shop", d.dump("15", "directory", "--format=directory"))
	d.put("dumps/a+b c=d.tar", d.dump("17", "tar", "--format=tar"))
	d.put("dumps/shop.sql", d.dump("17", "plain"))
	d.put("dumps/rows.sql", d.dump("15", "rows", "--inserts", "--rows-per-insert=10"))
	raw, err := os.ReadFile(d.dump("15", "plain", "--clean", "--if-exists"))
	if err != nil {
		t.Fatal(err)
	}
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write(raw)
	_ = z.Close()
	d.upload("dumps/shop.sql.gz", zipped.Bytes())
	w := pgmember.Dumps{Databases: []pgmember.Dump{
		{Name: "custom", Path: "dumps/shop.dump", Format: pgmember.DumpCustom},
		{Name: "directory", Path: "dumps/shop", Format: pgmember.DumpDirectory},
		{Name: "tar", Path: "dumps/a+b c=d.tar"},
		{Name: "plain", Path: "dumps/shop.sql"},
		{Name: "gzip", Path: "dumps/shop.sql.gz", Format: pgmember.DumpPlain},
		{Name: "rows", Path: "dumps/rows.sql"},
	}}
	names := make([]string, 0, len(w.Databases))
	for _, f := range w.Databases {
		names = append(names, f.Name)
	}
	c.dumps(w)
	c.platform(t, names, "a", "b")
	t.Logf("restored after %s", c.comes(members.ImportRestored, 5*time.Minute))
	for _, n := range names {
		d.sameContent(t, n)
	}
	if got := c.superuserIn("postgres", "select count(*) from pg_roles where rolname in ('legacy', 'reader', 'mover', 'capstan_restore')"); got != "0" {
		t.Errorf("there are %s roles of the dump or of the restore", got)
	}
	if got := c.superuserIn("plain", "select count(*) from pg_publication"); got != "0" {
		t.Errorf("there are %s publications", got)
	}

	// It runs once: another leader, and other files, change nothing.
	c.superuserIn("custom", "delete from public.items")
	d.upload("dumps/shop.dump", []byte("another"))
	c.restartLeader(t)
	c.comes(members.ImportRestored, time.Minute)
	if got := c.superuserIn("custom", "select count(*) from public.items"); got != "0" {
		t.Errorf("the dump was restored again: %s rows", got)
	}
	// Consumers have logins, and the data is new: nothing is restored.
	w.Ended = true
	c.dumps(w)
	c.superuserIn("postgres", "delete from import.dumps")
	// A program that has seen the end looks again after minutes only, so this one begins.
	next := others(c, c.leader())[0]
	c.running(next).Kill()
	c.start(next)
	c.eventually("it is back", time.Minute, func() bool { return c.ready("a", "b") })
	c.restartLeader(t)
	c.eventually("that the import had ended is told", time.Minute, func() bool {
		return c.imports().State == members.ImportRestored && strings.Contains(c.imports().Message, "had ended before")
	})
	if got := c.superuserIn("custom", "select count(*) from public.items"); got != "0" {
		t.Errorf("the dump was restored again: %s rows", got)
	}
}

// TestDumpRefuses what cannot be restored, before anything changes, and continues by itself when it can.
func TestDumpRefuses(t *testing.T) {
	c := newClusterWith(t, []string{"a"}, func(*cluster) {})
	d := c.newDumper(t, "18")
	d.run("legacy_shop", "create table public.items (id int primary key)", "insert into public.items values (1), (2)", "create extension pg_stat_statements", "create extension hstore")
	d.put("newer.dump", d.dump("18", "custom", "--format=custom"))
	d.put("newer.sql", d.dump("18", "plain"))
	d.put("folder", d.dump("18", "directory", "--format=directory"))
	d.upload("hello.txt", []byte("hello"))
	all := pgmember.Dumps{Databases: []pgmember.Dump{
		{Name: "a", Path: "newer.dump"},
		{Name: "b", Path: "newer.sql"},
		{Name: "c", Path: "absent/shop.dump"},
		{Name: "d", Path: "hello.txt"},
		{Name: "e", Path: "newer.sql", Format: pgmember.DumpCustom},
		{Name: "f", Path: "folder"},
		{Name: "g", Path: "newer.dump", Format: pgmember.DumpDirectory},
	}}
	c.dumps(all)
	c.platform(t, []string{"a", "b", "c", "d", "e", "f", "g"}, "a")
	c.comes(members.ImportIncompatible, time.Minute)
	told := strings.Join(c.imports().Findings, "\n")
	for _, want := range []string{
		`spec.from.dump.databases[0].path: "newer.dump": a server of version 18 was dumped, and this Database has 17: make a Database with spec.version 18 or later`,
		`only a superuser makes the extensions pg_stat_statements: list them in spec.extensions`,
		`spec.from.dump.databases[1].path: "newer.sql": a server of version 18 was dumped`,
		`spec.from.dump.databases[2].path: "absent/shop.dump": the bucket has no such file: put the dump there, or make another Database with its path`,
		`spec.from.dump.databases[3].path: "hello.txt": it is not a file that pg_dump wrote`,
		`spec.from.dump.databases[4].path: "newer.sql": its format is Plain, and the spec has Custom`,
		`spec.from.dump.databases[5].path: "folder": a server of version 18 was dumped`,
		`spec.from.dump.databases[6].path: "newer.dump": the bucket has no such folder with a toc.dat`,
	} {
		if !strings.Contains(told, want) {
			t.Errorf("no finding says %q:\n%s", want, told)
		}
	}
	if got := c.superuserIn("postgres", "select count(*) from import.dumps"); got != "0" {
		t.Errorf("%s dumps are begun", got)
	}

	// A wrong key of the bucket, and then the right one.
	c.dumps(pgmember.Dumps{Databases: []pgmember.Dump{{Name: "a", Path: "absent/shop.sql"}}})
	c.file("import/secretAccessKey", []byte("wrong"))
	c.eventually("a key that the server refuses is told", time.Minute, func() bool {
		return strings.Contains(strings.Join(c.imports().Findings, "\n"), "the server refuses it: SignatureDoesNotMatch")
	})
	d.store.connection(c, "import")
	c.eventually("the file is missed", time.Minute, func() bool { return strings.Contains(strings.Join(c.imports().Findings, "\n"), "no such file") })
	raw := "--\n-- PostgreSQL database dump\n--\n-- Dumped from database version 17.5\n-- Dumped by pg_dump version 17.5\n\ncreate table public.items (id int primary key);\n"
	// What fails tells where and why, and no row. What it has made is gone before the next try.
	d.upload("absent/shop.sql", []byte(raw+"COPY public.items (id) FROM stdin;\n1\n2\nsecret\n\\.\n"))
	c.comes(members.ImportFailing, time.Minute)
	message := c.imports().Message
	if !strings.Contains(message, `spec.from.dump.databases[0].path: "absent/shop.sql": line 8: ERROR: invalid input syntax for type integer: … (COPY items, line 3, column id)`) || strings.Contains(message, "secret") {
		t.Errorf("the message is %s", message)
	}
	d.upload("absent/shop.sql", []byte(raw+"insert into public.items values (1);\ninsert into public.items values (7), (7);\n"))
	c.eventually("another file is tried at once", 30*time.Second, func() bool { return strings.Contains(c.imports().Message, "duplicate key") })
	if message := c.imports().Message; strings.Contains(message, "(7)") {
		t.Errorf("the message has a row: %s", message)
	}
	d.upload("absent/shop.sql", []byte(raw+"create extension pg_stat_statements;\n"))
	c.eventually("an extension is missed", 30*time.Second, func() bool { return strings.Contains(c.imports().Message, "list it in spec.extensions") })
	d.upload("absent/shop.sql", []byte(raw+"COPY public.items (id) FROM stdin;\n1\n2\n"))
	c.eventually("a file that is cut off is told", 30*time.Second, func() bool { return strings.Contains(c.imports().Message, "rows have no end, so the file is cut off") })
	d.upload("absent/shop.sql", []byte(raw+"COPY public.items (id) FROM stdin;\n1\n2\n\\.\n"))
	c.comes(members.ImportRestored, 30*time.Second)
	if got := c.superuserIn("a", "select count(*) from public.items"); got != "2" {
		t.Errorf("there are %s rows, want 2", got)
	}
}

// TestDumpHostile: a dump of an attacker runs no program, reads no file of the member, and gains no more than the owner of the database has.
func TestDumpHostile(t *testing.T) {
	c := newClusterWith(t, []string{"a"}, func(*cluster) {})
	d := c.newDumper(t, "17")
	head := "--\n-- PostgreSQL database dump\n--\n-- Dumped from database version 17.5\n-- Dumped by pg_dump version 17.5\n\n"
	const left = "/data/hostile"
	c.dumps(pgmember.Dumps{Databases: []pgmember.Dump{{Name: "shop", Path: "hostile.sql"}}})
	c.platform(t, []string{"shop"}, "a")
	c.comes(members.ImportIncompatible, time.Minute)
	for _, h := range []struct{ reason, sql, want string }{
		{"A shell of psql.", "\\! touch " + left + "\n", `line 7: the command \! of psql is not carried out`},
		{"One behind a command that pg_dump writes.", "\\restrict abc\n\\unrestrict abc\n\\! touch " + left + "\n", `the command \! of psql`},
		{"A program of psql in backquotes.", "\\set x `touch " + left + "`\n", `the command \set of psql`},
		{"A pipe of psql.", "select 1 \\g |touch " + left + "\n", `the command \g of psql`},
		{"A copy of psql.", "\\copy a from program 'touch " + left + "'\n", `the command \copy of psql`},
		{"Another database.", "\\connect postgres\n", `the command \connect of psql`},
		{"A program of the server.", "create table a (b text); copy a from program 'touch " + left + "';", "COPY is used in a way that pg_dump does not"},
		{"One in a function.", "do $$ begin execute 'copy (select 1) to program ''touch " + left + "'''; end $$;", "permission denied to COPY to or from an external program"},
		{"The superuser.", "set session authorization postgres; reset role; create role hacked superuser login;", "permission denied to create role"},
		{"Another role.", "set role postgres;", `permission denied to set role "postgres"`},
		{"A file of the server.", "create table a as select pg_read_file('/etc/passwd');", "permission denied for function pg_read_file"},
		{"A library.", "load '/tmp/x.so';", "access to library"},
		{"A setting of the server.", "alter system set archive_command = 'touch " + left + "';", "permission denied to set parameter"},
		{"A language that may do anything.", "create extension plpython3u;", "extension \"plpython3u\""},
	} {
		d.upload("hostile.sql", []byte(head+h.sql+"\n"))
		c.eventually(h.reason+" It is refused.", time.Minute, func() bool {
			r := c.imports()
			if r.State == members.ImportRestored {
				t.Fatalf("%s It is restored.", h.reason)
			}
			return strings.Contains(r.Message, h.want)
		})
	}
	for file, there := range map[string]bool{filepath.Join(c.base, "data-a", "hostile"): false, filepath.Join(c.base, "data-a", "import-dump"): false} {
		if _, err := os.Stat(file); (err == nil) != there {
			t.Errorf("%s: %v", file, err)
		}
	}
	// It takes what the login of the restore can have, for as long as that lives: rights of the owner, and no others.
	d.upload("hostile.sql", []byte(head+`set role none; create table public.stray (a int); alter role session_user password 'known'; alter database shop set standard_conforming_strings = off;
		grant create on schema public to session_user; set role "shop-owner"; create table public.own (a int);`+"\n"))
	c.eventually("what only a superuser changes is refused", time.Minute, func() bool {
		m := c.imports().Message
		return c.imports().State == members.ImportRestored || strings.Contains(m, "permission denied for schema public")
	})
	d.upload("hostile.sql", []byte(head+`grant create on schema public to public; alter schema public owner to public;
		do $$ begin execute 'grant create on schema public to ' || session_user; end $$; set role none; create table public.stray (a int);`+"\n"))
	c.comes(members.ImportRestored, time.Minute)
	for query, want := range map[string]string{
		"select tableowner from pg_tables where tablename = 'stray'":                            "shop-owner",
		"select count(*) from pg_roles where rolname in ('capstan_restore', 'hacked')":          "0",
		"select string_agg(rolname, ' ') from pg_roles where rolsuper":                          "postgres",
		"select count(*) from pg_stat_activity where usename = 'capstan_restore'":               "0",
		"select count(*) from pg_db_role_setting s join pg_database d on d.oid = s.setdatabase": "0",
		"select count(*) from pg_extension where extname <> 'plpgsql'":                          "0",
	} {
		if got := c.superuserIn("shop", query); got != want {
			t.Errorf("%s: got %q, want %q", query, got, want)
		}
	}
}

// TestDumpHostileDirectory: a table of contents names the files that pg_restore opens.
func TestDumpHostileDirectory(t *testing.T) {
	c := newClusterWith(t, []string{"a"}, func(*cluster) {})
	d := c.newDumper(t, "17")
	d.run("legacy_shop", "create table public.items (name text)", "insert into public.items values ('a')", "select lo_from_bytea(0, 'abc')")
	folder := d.dump("17", "directory", "--format=directory", "--compress=none")
	d.put("shop", folder)
	toc, err := os.ReadFile(filepath.Join(folder, "toc.dat"))
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(toc, []byte(".dat"))
	// The same length, so that all else stays as it is.
	hostile := bytes.Clone(toc)
	copy(hostile[at-4:], "../wal.x")
	d.upload("shop/toc.dat", hostile)
	c.dumps(pgmember.Dumps{Databases: []pgmember.Dump{{Name: "shop", Path: "shop"}}})
	c.platform(t, []string{"shop"}, "a")
	c.eventually("a file of the member is refused", time.Minute, func() bool {
		return strings.Contains(strings.Join(c.imports().Findings, "\n"), `its table of contents names the file "../wal.x", which pg_dump does not write`)
	})
	d.upload("shop/toc.dat", toc)
	lists, err := filepath.Glob(filepath.Join(folder, "blobs*.toc"))
	if err != nil || len(lists) != 1 {
		t.Fatalf("lists of large objects: %v, %v", lists, err)
	}
	list, err := os.ReadFile(lists[0])
	if err != nil {
		t.Fatal(err)
	}
	number, _, _ := strings.Cut(string(list), " ")
	d.upload("shop/"+filepath.Base(lists[0]), []byte(number+" ../../run/secrets/kubernetes.io/serviceaccount/token\n"))
	c.eventually("a list of large objects names no file of the member", time.Minute, func() bool {
		return strings.Contains(c.imports().Message, "its list of large objects names files that pg_dump does not write")
	})
	d.upload("shop/"+filepath.Base(lists[0]), list)
	c.comes(members.ImportRestored, time.Minute)
	if got := c.superuserIn("shop", "select name || (select convert_from(lo_get(oid), 'UTF8') from pg_largeobject_metadata) from public.items"); got != "aabc" {
		t.Errorf("got %q", got)
	}
}

// TestDumpKilled: a leader that is killed in the middle leaves no half of a dump. The next one begins with an empty database, and ends.
func TestDumpKilled(t *testing.T) {
	c := newClusterWith(t, []string{"a", "b"}, func(*cluster) {})
	d := c.newDumper(t, "17")
	d.run("legacy_shop", "create table public.items (id int, name text)", // no key: rows that come twice would be there twice
		"insert into public.items select g, md5(g::text) || md5((g + 1)::text) || md5((g + 2)::text) from generate_series(1, 400000) g", "create index on public.items (name)",
		"create table public.last (id int primary key)", "insert into public.last values (1)")
	for _, format := range []string{"custom", "directory", "plain"} {
		d.put("shop-"+format, d.dump("17", format, "--format="+format, "--compress="+map[string]string{"custom": "none", "directory": "gzip:1", "plain": "none"}[format]))
	}
	var all pgmember.Dumps
	for _, format := range []string{"custom", "directory", "plain"} {
		all.Databases = append(all.Databases, pgmember.Dump{Name: format, Path: "shop-" + format})
	}
	c.dumps(all)
	c.platform(t, []string{"custom", "directory", "plain"}, "a", "b")
	for _, format := range []string{"custom", "directory", "plain"} {
		begun := time.Now()
		c.eventually("rows of "+format+" arrive", 3*time.Minute, func() bool {
			if r := c.imports(); r.State == members.ImportRestored {
				t.Fatalf("all is restored before it could be killed")
			}
			out, err := c.running(c.leader()).Enter("psql", "-h", pgmember.FolderSocket, "-U", "postgres", "-d", format, "-Atc", "select pg_relation_size('public.items') > 20000000")
			return err == nil && strings.TrimSpace(out) == "t"
		})
		first := c.leader()
		c.running(first).Kill()
		t.Logf("leader %s killed after %s, while it restores %s", first, time.Since(begun).Round(time.Second), format)
		if format == "custom" {
			// The other one takes over, and stays alone: who was lost would be copied again beside so many changes.
			c.eventually("another leads", 90*time.Second, func() bool { l := c.leader(); return l != "" && l != first })
			continue
		}
		c.start(first)
		c.eventually("it leads again", 90*time.Second, func() bool { return c.leader() == first && c.ready(first) })
	}
	t.Logf("restored after %s", c.comes(members.ImportRestored, 5*time.Minute))
	for _, format := range []string{"custom", "directory", "plain"} {
		if got := c.superuserIn(format, "select count(*) || ' ' || count(distinct id) || ' ' || (select count(*) from public.last) || ' ' || (select count(*) from pg_indexes where tablename = 'items') from public.items"); got != "400000 400000 1 1" {
			t.Errorf("%s: got %q", format, got)
		}
	}
	if l := c.leader(); l != "" {
		if _, err := os.Stat(filepath.Join(c.base, "data-"+l, "import-dump")); err == nil {
			t.Errorf("member %s keeps files of a dump", l)
		}
	}
}
