// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/test/container"
)

// A foreign server has nothing of Capstan but the programs of PostgreSQL.
type foreign struct {
	c     *cluster
	ip    string
	major string
	box   container.Spec
	now   *container.Running
}

// foreignProgram is the first process of its container.
//
//nolint:dupword // pg_hba.conf says all for each of its columns.
const foreignProgram = `#!/bin/sh
set -e
cp /etc/foreign/tls.key /data/tls.key && chmod 600 /data/tls.key
b=/usr/lib/postgresql/$CAPSTAN_FOREIGN/bin
if [ ! -d /data/pg ]; then
	$b/initdb -D /data/pg -U postgres -A scram-sha-256 --pwfile=/etc/foreign/password --encoding=UTF8 --locale=C >/dev/null
	printf 'hostssl all all all scram-sha-256\nhostssl replication all all scram-sha-256\n' >/data/pg/pg_hba.conf
fi
exec $b/postgres -D /data/pg -k /tmp -c ssl=on -c ssl_cert_file=/etc/foreign/tls.crt -c ssl_key_file=/data/tls.key "$@"
`

// foreign server of a major version, with a certificate of the cluster's authority.
func (c *cluster) foreign(major string) *foreign {
	c.t.Helper()
	f := &foreign{c: c, major: major, ip: fmt.Sprintf("127.%d.%d.%d", c.net, c.sub, 200)}
	c.reaches = append(c.reaches, f.ip+" legacy.example\n")
	cert, key, err := c.ca.Issue(pgmember.MemberCommonName, []string{"legacy.example"})
	if err != nil {
		c.t.Fatal(err)
	}
	c.file("foreign/tls.crt", cert)
	c.file("foreign/tls.key", key)
	c.file("foreign/password", []byte("of-root"))
	c.file("foreign-program", []byte(foreignProgram))
	program, data := filepath.Join(c.base, "foreign-program"), c.folder("foreign-data")
	if err := os.Chmod(program, 0o755); err != nil {
		c.t.Fatal(err)
	}
	if err := os.Chown(data, container.User, container.User); err != nil {
		c.t.Fatal(err)
	}
	f.box = container.Spec{
		Run: "postgresql", Root: c.root, Program: program, Hosts: c.hosts(), Host: "legacy",
		Mounts: map[string]string{"/data": data, "/etc/foreign": filepath.Join(c.base, "foreign")},
	}
	c.file("import/host", []byte("legacy.example"))
	c.file("import/username", []byte("mover"))
	c.file("import/password", []byte("of'a:test\\"))
	c.file("import/ca.crt", c.ca.PEM)
	c.t.Cleanup(func() { f.now.Kill() })
	return f
}

// start with parameters, again if it runs.
func (f *foreign) start(parameters ...string) {
	f.c.t.Helper()
	if f.now != nil {
		f.now.Kill()
		_ = os.Remove(filepath.Join(f.c.base, "foreign-data", "pg", "postmaster.pid"))
	}
	f.box.Scratch = filepath.Join(f.c.base, fmt.Sprintf("scratch-foreign-%d", time.Now().UnixNano()))
	if err := os.Mkdir(f.box.Scratch, 0o755); err != nil {
		f.c.t.Fatal(err)
	}
	f.box.Args = []string{"-c", "listen_addresses=" + f.ip}
	for _, p := range parameters {
		f.box.Args = append(f.box.Args, "-c", p)
	}
	f.now = f.box.Start(f.c.t, filepath.Join(f.c.logs, "log-foreign"), []string{"CAPSTAN_FOREIGN=" + f.major})
	var err error
	f.c.eventually("the foreign server answers", time.Minute, func() bool {
		var conn *pgx.Conn
		if conn, err = f.connect(f.c.t.Context(), "postgres"); err == nil {
			_ = conn.Close(context.Background())
		}
		return err == nil
	})
}

func (f *foreign) connect(ctx context.Context, database string) (*pgx.Conn, error) {
	cfg, err := pgx.ParseConfig("postgres://postgres:of-root@" + f.ip + "/" + database + "?sslmode=require&connect_timeout=3")
	if err != nil {
		return nil, err
	}
	return pgx.ConnectConfig(ctx, cfg)
}

func (f *foreign) run(database string, statements ...string) {
	f.c.t.Helper()
	conn, err := f.connect(f.c.t.Context(), database)
	if err != nil {
		f.c.t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	for _, s := range statements {
		if _, err := conn.Exec(f.c.t.Context(), s); err != nil {
			f.c.t.Fatalf("%s: %v", s, err)
		}
	}
}

// try a statement.
func (f *foreign) try(database, statement string) error {
	conn, err := f.connect(f.c.t.Context(), database)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.Background()) }()
	_, err = conn.Exec(f.c.t.Context(), statement)
	return err
}

// ask for one text.
func ask(t *testing.T, conn *pgx.Conn, query string) string {
	t.Helper()
	var text string
	if err := conn.QueryRow(t.Context(), query).Scan(&text); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return text
}

// writer of the foreign server: rows that name themselves, one at a time, and changes of others.
func (f *foreign) write() *writer {
	ctx, stop := context.WithCancel(f.c.t.Context())
	w := &writer{ledger{c: f.c, stop: stop}}
	w.all.Go(func() {
		var conn *pgx.Conn
		var last time.Time
		for ctx.Err() == nil {
			err := func() (err error) {
				if conn == nil {
					if conn, err = f.connect(ctx, "legacy_shop"); err != nil {
						return err
					}
				}
				id := w.number()
				if _, err := conn.Exec(ctx, "insert into public.ledger (id) values ($1)", id); err != nil {
					return err
				}
				last = w.ack(id, last)
				_, err = conn.Exec(ctx, "update public.items set name = name || '.' where id = $1", id%5000+1)
				return err
			}()
			if err != nil && ctx.Err() == nil {
				w.fail(err)
				if conn != nil {
					_ = conn.Close(context.Background())
					conn = nil
				}
			}
			time.Sleep(10 * time.Millisecond)
		}
		if conn != nil {
			_ = conn.Close(context.Background())
		}
	})
	return w
}

// importFrom is the member's file of an import.
func (c *cluster) importFrom(cut *members.CutOver, skip ...string) {
	c.t.Helper()
	c.importWith(func(i *members.Import) { i.CutOver, i.Skip = cut, skip })
}

// importWith is the same with a change.
func (c *cluster) importWith(change func(*members.Import)) {
	c.t.Helper()
	i := &members.Import{
		Host: "legacy.example", Port: 5432, TLS: "verify-full", Databases: []members.ImportDatabase{{Name: "shop", Source: "legacy_shop"}}, Object: "uid-1",
	}
	change(i)
	raw, err := json.Marshal(pgmember.Config{Databases: []string{"shop"}, Extensions: []string{}, Import: i})
	if err != nil {
		c.t.Fatal(err)
	}
	c.file("config/member.json", raw)
}

// imports is the report of the leader.
func (c *cluster) imports() members.ImportReport {
	if l := c.leader(); l != "" {
		if r := c.report(l).Import; r != nil {
			return *r
		}
	}
	return members.ImportReport{}
}

// comes to a state.
func (c *cluster) comes(state string, within time.Duration) time.Duration {
	c.t.Helper()
	var last members.ImportReport
	begun := time.Now()
	for last = c.imports(); last.State != state; last = c.imports() {
		if time.Since(begun) > within {
			for _, l := range append(c.letters, "foreign") {
				raw, _ := os.ReadFile(filepath.Join(c.logs, "log-"+l))
				c.t.Logf("log of %s:\n%s", l, raw[max(0, len(raw)-3000):])
			}
			c.t.Fatalf("not %s within %s: %+v", state, within, last)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return time.Since(begun).Round(10 * time.Millisecond)
}

// makes the database, as the platform does.
func (c *cluster) makes(t *testing.T, letters ...string) {
	t.Helper()
	for _, l := range letters {
		c.start(l)
	}
	c.eventually("all members are ready", 90*time.Second, func() bool { return c.ready(letters...) })
	c.eventually("the database is made", 20*time.Second, func() bool {
		out, err := c.running(c.leader()).Enter("psql", "-h", pgmember.FolderSocket, "-U", "postgres", "-Atc", `create role "shop-owner"`,
			"-c", `create database shop owner "shop-owner"`)
		return err == nil || strings.Contains(out, "already exists")
	})
}

var legacySchema = []string{
	"create role mover login password $$of'a:test\\$$",
	"create role legacy", "grant legacy to current_user",
	"create extension hstore",
	"create type mood as enum ('good', 'bad')",
	"create table public.items (id serial primary key, name text not null, m mood default 'good', h hstore)",
	"insert into public.items (name, h) select 'item ' || g, 'a=>1' from generate_series(1, 5000) g",
	"create table public.ledger (id bigint primary key)",
	"create schema past",
	"create table past.orders (id bigint generated always as identity, at date not null, note text, primary key (id, at)) partition by range (at)",
	"create table past.orders_25 partition of past.orders for values from ('2025-01-01') to ('2026-01-01')",
	"create table past.orders_26 partition of past.orders for values from ('2026-01-01') to ('2027-01-01')",
	"insert into past.orders (at, note) select '2025-12-01'::date + g % 60, md5(g::text) from generate_series(1, 20000) g",
	"create materialized view public.totals as select count(*) n from past.orders",
	"create function public.loud(text) returns text language sql as 'select upper($1)'",
	`create sequence public."Odd name" start 40`, `select nextval('public."Odd name"')`,
	"create table public.nokey (a int)", "create unlogged table public.cache (id int primary key)",
	"select lo_create(0)",
}

// handOver gives everything in the database to a role.
const legacyOwned = `do $$ declare x record; begin
	for x in select c.oid::regclass r from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname in ('public', 'past') and c.relkind in ('r', 'p', 'm')
		and not exists (select from pg_depend d where d.objid = c.oid and d.deptype = 'e')
	loop execute format('alter table %s owner to legacy', x.r); end loop;
	execute 'alter sequence public."Odd name" owner to legacy'; execute 'alter schema past owner to legacy'; end $$`

// TestImport: a server of another version is imported under writes. What stands in the way is told first, the import survives the loss of two
// leaders, and after the cut-over every row is there once.
func TestImport(t *testing.T) {
	c := newClusterWith(t, []string{"a", "b", "c"}, func(*cluster) {})
	f := c.foreign("15")
	f.start("wal_level=replica", "max_replication_slots=2")
	f.run("postgres", "create database legacy_shop")
	f.run("legacy_shop", legacySchema...)
	f.run("legacy_shop", legacyOwned)
	c.importFrom(nil)
	c.makes(t, "a", "b", "c")

	t.Logf("incompatible after %s", c.comes(members.ImportIncompatible, time.Minute))
	told := strings.Join(c.imports().Findings, "\n")
	for _, want := range []string{
		`wal_level of the source is "replica": set wal_level = logical there`, "has 2 free replication slots, and this needs 3", "tables without primary key, or with a deferrable one, or whose replica identity has no index: public.nokey",
		"unlogged tables cannot be followed: public.cache", "large objects", `user "mover" may not read past.orders`, "may not read the sequences", "only an owner publishes tables",
		"may not create a publication",
	} {
		if !strings.Contains(told, want) {
			t.Errorf("no finding says %q:\n%s", want, told)
		}
	}
	if got := c.superuserIn("shop", "select count(*) from pg_class c join pg_namespace n on n.oid = relnamespace where nspname = 'past'"); got != "0" {
		t.Errorf("something was copied: %s", got)
	}
	f.start("wal_level=logical")
	c.eventually("the rights to replicate are missed", time.Minute, func() bool {
		return strings.Contains(strings.Join(c.imports().Findings, "\n"), `run alter role "mover" replication`)
	})
	f.run("legacy_shop", "drop table public.nokey", "alter role mover replication", "grant legacy to mover", "grant create on database legacy_shop to mover")
	w := f.write()
	c.importFrom(nil, pgmember.SkipLargeObjects, pgmember.SkipUnloggedTables)

	t.Logf("copying after %s", c.comes(members.ImportCopying, time.Minute))
	first := c.leader()
	c.running(first).Kill()
	t.Logf("leader %s killed while it copies", first)
	c.eventually("another leads", 90*time.Second, func() bool { l := c.leader(); return l != "" && l != first })
	t.Logf("following after %s", c.comes(members.ImportFollowing, 2*time.Minute))
	c.start(first)
	c.eventually("it is back", 2*time.Minute, func() bool { return c.ready("a", "b", "c") })
	second := c.leader()
	c.running(second).Kill()
	c.eventually("another leads", 90*time.Second, func() bool { l := c.leader(); return l != "" && l != second })
	c.start(second)
	t.Logf("following again after %s", c.comes(members.ImportFollowing, time.Minute))
	w.goesOn(10 * time.Second)

	c.importFrom(&members.CutOver{ID: "go"}, pgmember.SkipLargeObjects, pgmember.SkipUnloggedTables)
	c.eventually("the writer is in the way", time.Minute, func() bool {
		m := c.imports().Message
		return strings.Contains(m, "still takes writes") || strings.Contains(m, "open at the source")
	})
	w.stop()
	w.all.Wait()
	stopped := time.Now()
	c.comes(members.ImportCutOver, time.Minute)
	r := c.imports()
	t.Logf("cut over %s after the last write, of which %d s are told: %+v", time.Since(stopped).Round(10*time.Millisecond), r.GapSeconds, r)
	if r.CutOver != "go" || r.Message != "" {
		t.Errorf("got %+v", r)
	}
	c.sameAs(t, f, w.acked)

	// The next leader may find that all is here, and the source neither left nor there.
	f.now.Kill()
	c.superuserIn("postgres", "update import.cut_over set phase = 'Drained'")
	c.restartLeader(t)
	c.eventually("what is left at the source is named", 2*time.Minute, func() bool {
		r := c.imports()
		return r.State == members.ImportCutOver && r.CutOver == "go" && strings.Contains(r.Message, `left at the source`) && strings.Contains(r.Message, `replication slot "capstan_orders_`)
	})
}

// restartLeader by a handover: another member is the leader then.
func (c *cluster) restartLeader(t *testing.T) {
	t.Helper()
	// Only a synchronous standby may lead.
	c.eventually("another member may lead", time.Minute, c.synchronous)
	before := c.leader()
	if out, err := c.running(before).Enter("/usr/local/bin/capstan-member", "handover"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	c.eventually("another leads", time.Minute, func() bool { l := c.leader(); return l != "" && l != before })
}

// superuserIn runs a query in a database of the leader.
func (c *cluster) superuserIn(database, query string) string {
	c.t.Helper()
	out, err := c.running(c.leader()).Enter("psql", "-h", pgmember.FolderSocket, "-U", "postgres", "-d", database, "-Atc", query)
	if err != nil {
		c.t.Fatalf("%s: %v: %s", query, err, out)
	}
	return strings.TrimSpace(out)
}

// sameAs compares both sides after the cut-over, and both are free of each other.
func (c *cluster) sameAs(t *testing.T, f *foreign, acked []int) {
	t.Helper()
	there, err := f.connect(t.Context(), "legacy_shop")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = there.Close(context.Background()) }()
	for _, query := range []string{
		"select md5(string_agg(t::text, '|' order by id)) from public.items t", "select md5(string_agg(t::text, '|' order by id)) from public.ledger t",
		"select md5(string_agg(t::text, '|' order by id)) from past.orders t", "select n::text from public.totals",
		`select string_agg(sequencename || '=' || coalesce(last_value::text, ''), ',' order by sequencename) from pg_sequences`,
	} {
		if here, want := c.superuserIn("shop", query), ask(t, there, query); here != want {
			t.Errorf("%s: got %q, want %q", query, here, want)
		}
	}
	rows := strings.Fields(c.superuserIn("shop", "select id from public.ledger order by id"))
	lost := 0
	for _, id := range acked {
		if !slices.Contains(rows, strconv.Itoa(id)) {
			lost++
		}
	}
	t.Logf("%d acknowledged rows, %d there, %d lost", len(acked), len(rows), lost)
	if lost > 0 {
		t.Errorf("%d rows are lost", lost)
	}
	if got := ask(t, there, "select (select count(*) from pg_replication_slots) || ' slots, ' || (select count(*) from pg_publication) || ' publications'"); got != "0 slots, 0 publications" {
		t.Errorf("the source has %s", got)
	}
	for query, want := range map[string]string{
		"select count(*) from pg_subscription":                                  "0",
		"select count(*) from pg_roles where rolname like 'capstan\\_%'":        "0",
		"select distinct tableowner from pg_tables where schemaname = 'past'":   "shop-owner",
		"select public.loud('x')":                                               "X",
		"select count(*) > 0 from pg_stats where schemaname = 'past'":           "t",
		"select nextval(pg_get_serial_sequence('public.items', 'id')) > 5000":   "t",
		"select count(*) from pg_replication_origin":                            "0",
		"select nspowner::regrole::text from pg_namespace where nspname='past'": `"shop-owner"`,
	} {
		if got := c.superuserIn("shop", query); got != want {
			t.Errorf("%s: got %q, want %q", query, got, want)
		}
	}
}

// TestImportWaitsForMembers: the source hears that a change was applied when two members have it, and not before. Otherwise it would keep no
// more what a failover then loses.
func TestImportWaitsForMembers(t *testing.T) {
	c := newClusterWith(t, []string{"a", "b"}, func(*cluster) {})
	f := c.foreign("17")
	f.start("wal_level=logical")
	f.run("postgres", "create role mover login superuser password $$of'a:test\\$$", "create database legacy_shop")
	f.run("legacy_shop", "create table public.ledger (id bigint primary key)")
	c.importFrom(nil)
	c.makes(t, "a", "b")
	c.comes(members.ImportFollowing, 2*time.Minute)
	applied := func(id int) bool {
		conn, err := f.connect(t.Context(), "legacy_shop")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(context.Background()) }()
		if _, err := conn.Exec(t.Context(), "insert into public.ledger values ($1)", id); err != nil {
			t.Fatal(err)
		}
		end := ask(t, conn, "select pg_current_wal_flush_lsn()::text")
		for begun := time.Now(); time.Since(begun) < 3*time.Second; time.Sleep(50 * time.Millisecond) {
			if ask(t, conn, "select (confirmed_flush_lsn >= '"+end+"')::text from pg_replication_slots") == "true" {
				return true
			}
		}
		return false
	}
	c.eventually("commits wait for another member", time.Minute, func() bool {
		return c.superuserIn("postgres", "select count(*) from pg_stat_replication where sync_state in ('sync', 'quorum')") == "1"
	})
	if !applied(1) {
		t.Fatal("a change is not confirmed while both members run")
	}
	standby := others(c, c.leader())[0]
	c.running(standby).Signal(syscall.SIGSTOP, nil)
	confirmed := applied(2)
	c.running(standby).Signal(syscall.SIGCONT, nil)
	if confirmed {
		t.Error("the source heard of a change that one member has: a failover to the other one loses it for good")
	}
	// A Secret with another user is used for the subscription, too.
	f.run("postgres", "create role second login superuser password 'another'")
	c.file("import/username", []byte("second"))
	c.file("import/password", []byte("another"))
	c.eventually("the subscription logs in as the other user", time.Minute, func() bool {
		conn, err := f.connect(t.Context(), "postgres")
		if err != nil {
			return false
		}
		defer func() { _ = conn.Close(context.Background()) }()
		return ask(t, conn, "select count(*)::text from pg_stat_replication where usename = 'second'") == "1"
	})
}

// importSize in MiB of the largest table; CAPSTAN_IMPORT_MIB is another one.
func importSize() int {
	if n, err := strconv.Atoi(os.Getenv("CAPSTAN_IMPORT_MIB")); err == nil {
		return n
	}
	return 8
}

// TestImportStopsWrites: the source is made read-only while its clients write, and what they were told is here. The id that the Database was
// created with does nothing, and a request that is withdrawn leaves the source writable.
func TestImportStopsWrites(t *testing.T) {
	size := importSize()
	c := newClusterWith(t, []string{"a"}, func(c *cluster) { c.server.Storage = 1<<30 + 2*int64(size)<<20 })
	f := c.foreign("17")
	f.start("wal_level=logical", "max_prepared_transactions=4")
	f.run("postgres", "create database legacy_shop")
	f.run("legacy_shop", slices.DeleteFunc(slices.Clone(legacySchema), func(s string) bool {
		return strings.Contains(s, "nokey") || strings.Contains(s, "unlogged") || strings.Contains(s, "lo_create")
	})...)
	f.run("legacy_shop", "alter role mover superuser")
	f.run("legacy_shop", "create table public.bulk (id bigint primary key, content text not null)", fmt.Sprintf(
		"insert into public.bulk select g, repeat(md5(g::text), 30) from generate_series(1, %d) g", size<<10))
	w := f.write()
	c.importFrom(&members.CutOver{ID: "copied", StopWrites: true})
	c.makes(t, "a")
	t.Logf("following after %s, with %d MiB and %d rows meanwhile", c.comes(members.ImportFollowing, 2*time.Minute+time.Duration(size)*time.Second), size, w.count())
	time.Sleep(12 * time.Second)
	if r := c.imports(); r.State != members.ImportFollowing || r.Skipped != "copied" {
		t.Fatalf("the id that it was created with did something: %+v", r)
	}
	f.run("legacy_shop", "create table public.late (id int primary key)")
	t.Logf("failing after %s", c.comes(members.ImportFailing, time.Minute))
	if m := c.imports().Message; !strings.Contains(m, "public.late") {
		t.Errorf("it does not name the table: %s", m)
	}
	f.run("legacy_shop", "drop table public.late")
	c.comes(members.ImportFollowing, time.Minute)

	f.run("legacy_shop", "begin", "insert into public.ledger values (-1)", "prepare transaction 'stuck'")
	c.importFrom(&members.CutOver{ID: "first", StopWrites: true})
	c.eventually("it waits for the prepared transaction", time.Minute, func() bool { return strings.Contains(c.imports().Message, "prepared transaction") })
	c.importFrom(nil)
	c.eventually("the source is writable again", time.Minute, func() bool {
		conn, err := f.connect(t.Context(), "legacy_shop")
		if err != nil {
			return false
		}
		defer func() { _ = conn.Close(context.Background()) }()
		return ask(t, conn, "show default_transaction_read_only") == "off"
	})
	f.run("legacy_shop", "rollback prepared 'stuck'")
	w.goesOn(20 * time.Second)
	c.comes(members.ImportFollowing, time.Minute)
	c.importFrom(&members.CutOver{ID: "second", StopWrites: true})
	c.comes(members.ImportCutOver, time.Minute)
	ended := time.Now()
	w.mu.Lock()
	acked := slices.Clone(w.acked)
	w.mu.Unlock()
	t.Logf("cut over: %+v; the writer failed: %v", c.imports(), w.failures())
	time.Sleep(time.Second)
	w.stop()
	w.all.Wait()
	if len(w.acked) != len(acked) {
		t.Errorf("the source took %d rows after the cut-over at %s", len(w.acked)-len(acked), ended)
	}
	c.sameAs(t, f, w.acked)
	if got := c.superuserIn("shop", "select count(*) from public.bulk where content = repeat(md5(id::text), 30)"); got != strconv.Itoa(size<<10) {
		t.Errorf("%s rows of %d are as they were at the source", got, size<<10)
	}
}
