// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
)

// lies replaces a function of the system on a server of an attacker: what pg_dump, a subscription or this program ask it has another answer.
func lies(signature, returns, body string) string {
	return fmt.Sprintf("create or replace function pg_catalog.%s returns %s language sql stable as $lie$%s$lie$", signature, returns, body)
}

// publishes what is in publications, and more: what a subscription asks servers before version 16.
func publishes(more string) []string {
	return []string{"set allow_system_table_mods = on", `create or replace view pg_catalog.pg_publication_tables as
		select p.pubname, n.nspname as schemaname, c.relname as tablename, null::name[] as attnames, null::text as rowfilter
		from pg_publication p, pg_class c join pg_namespace n on n.oid = c.relnamespace
		where exists (select from pg_publication_rel r where r.prpubid = p.oid and r.prrelid = c.oid) or c.relname = '` + more + `'`}
}

// TestImportHostile: a source answers with SQL where it can. It gains no more than the owner of the database has.
func TestImportHostile(t *testing.T) {
	c := newClusterWith(t, []string{"a"}, func(*cluster) {})
	f := c.foreign("15")
	f.start("wal_level=logical")
	// Where text is quoted for a server that reads a backslash as an escape, this name ends the constant that it is in.
	const user = "a' publication p with(connect=false);create role h superuser--"
	c.file("import/username", []byte(user))
	f.run("postgres", "create database legacy_shop", "create role "+pgx.Identifier{user}.Sanitize()+" login superuser password $$of'a:test\\$$")
	f.run("legacy_shop", "create table public.items (id serial primary key, name text)", "insert into public.items (name) select 'item ' || g from generate_series(1, 100) g",
		"create view public.v as select 1 as a",
		// A table of an extension, such as the one of jobs that a scheduler runs, is the superuser's here.
		"create extension hstore", "create table public.platform (id int primary key)", "insert into public.platform values (666)", "alter extension hstore add table public.platform",
		// The schema is a script. It leaves the role that it was given, takes what it can, and sets up the sessions that come later.
		lies("pg_get_viewdef(oid)", "text", `select 'select 1 as a; alter database shop set standard_conforming_strings = off;
			grant create on schema public to session_user; set role none; alter role session_user password ''known'';
			create table public.stray (id int primary key); set role "shop-owner";'`),
		// What a statement for a sequence was made with.
		lies("format(text, text, bigint, boolean)", "text", `select 'create role hacked superuser login'`))
	f.run("legacy_shop", publishes("platform")...)
	c.importFrom(nil)
	c.makes(t, "a")
	c.superuserIn("shop", "create extension hstore schema public; create table public.platform (id int primary key); alter extension hstore add table public.platform")
	c.eventually("what is published beside the tables is refused", time.Minute, func() bool {
		return strings.Contains(strings.Join(c.imports().Findings, " "), `no table of the owner of database "shop": "public"."platform"`)
	})
	if got := c.superuserIn("shop", "select count(*) from pg_subscription"); got != "0" {
		t.Errorf("%s subscriptions write to tables of the platform", got)
	}
	f.run("legacy_shop", publishes("")...)
	t.Logf("following after %s", c.comes(members.ImportFollowing, time.Minute))
	for query, want := range map[string]string{
		"show standard_conforming_strings": "off",
		"select subowner::regrole::text || subpasswordrequired || subrunasowner from pg_subscription":                                  "capstan_importfalsefalse",
		"select rolsuper::text || rolinherit || rolconnlimit || (rolpassword is null) from pg_authid where rolname = 'capstan_import'": "falsefalse0true",
		"select count(*) from pg_roles where rolname = 'capstan_restore'":                                                              "0",
		"select tableowner from pg_tables where tablename = 'stray'":                                                                   "shop-owner",
		"select count(*) from public.platform":                                                                                         "0",
		"select count(*) from public.items":                                                                                            "100",
	} {
		if got := c.superuserIn("shop", query); got != want {
			t.Errorf("%s: got %q, want %q", query, got, want)
		}
	}
	// What a leader that was killed has left is a login with a password that the source may know.
	c.superuserIn("shop", "create role capstan_restore login password 'known'; comment on role capstan_restore is 'made by the import'")
	c.eventually("a login that was left is removed", time.Minute, func() bool {
		return c.superuserIn("shop", "select count(*) from pg_roles where rolname = 'capstan_restore'") == "0"
	})
	// A role that no import has made is somebody's.
	c.superuserIn("shop", "create role capstan_restore login")
	time.Sleep(12 * time.Second)
	if got := c.superuserIn("shop", "select rolcanlogin from pg_roles where rolname = 'capstan_restore'"); got != "t" {
		t.Errorf("a consumer's login was taken: %q", got)
	}
	c.superuserIn("shop", "drop role capstan_restore")
	c.importFrom(&members.CutOver{ID: "go"})
	c.comes(members.ImportCutOver, time.Minute)
	if got := c.superuserIn("postgres", `select string_agg(rolname, ' ' order by rolname) from pg_roles where rolsuper or rolname like 'capstan\_%' or rolname in ('h', 'hacked')`); got != "postgres" {
		t.Errorf("there are %q, want no superuser but postgres", got)
	}
	if got := c.superuserIn("shop", "select last_value from public.items_id_seq"); got != "100" {
		t.Errorf("the sequence is at %s, want 100", got)
	}
}

// TestImportRefusesTables: tables whose changes would be applied twice, or not at all, are told before anything is copied.
func TestImportRefusesTables(t *testing.T) {
	c := newClusterWith(t, []string{"a"}, func(*cluster) {})
	f := c.foreign("15")
	f.start("wal_level=logical")
	f.run("postgres", "create role mover login replication password $$of'a:test\\$$", "create role reader", "create database legacy_shop")
	f.run("legacy_shop",
		"create table public.doubled (id int primary key)", "create table public.copies (id int primary key)",
		"create function public.copy() returns trigger language plpgsql as 'begin insert into public.copies values (new.id); return new; end'",
		"create trigger always after insert on public.doubled for each row execute function public.copy()", "alter table public.doubled enable always trigger always",
		"create table public.later (id int primary key deferrable)",
		"create table public.lost (id int not null)", "create unique index lost_id on public.lost (id)", "alter table public.lost replica identity using index lost_id", "drop index lost_id",
		"create policy own on public.copies to reader",
		"create schema elsewhere", "create extension hstore schema elsewhere",
		"create table public.parts (id int primary key) partition by list (id)", "create table public.part partition of public.parts default")
	c.importFrom(nil)
	c.makes(t, "a")
	c.superuserIn("shop", "create extension hstore schema public")
	c.comes(members.ImportIncompatible, time.Minute)
	told := func() string { return strings.Join(c.imports().Findings, "\n") }
	publication := ""
	c.eventually("a publication is asked for", 30*time.Second, func() bool {
		publication = regexp.MustCompile(`capstan_orders_[0-9a-f]+`).FindString(told())
		return publication != ""
	})
	f.run("legacy_shop", "create publication "+publication+" for all tables", "alter role mover superuser")
	for _, want := range []string{
		"triggers of public.doubled are set to fire always", "public.later, public.lost", "policy own on copies", `hstore (there in "elsewhere", here in "public")`,
		"lacks tables: public.copies, public.doubled, public.later, public.lost, public.part:",
	} {
		c.eventually("a finding says "+want, 30*time.Second, func() bool { return strings.Contains(told(), want) })
	}
	f.run("legacy_shop", "alter table public.doubled enable trigger always", "alter table public.later replica identity full", "alter table public.lost replica identity full",
		"drop policy own on public.copies", "alter extension hstore set schema public",
		"insert into public.lost values (1)", "drop publication "+publication)
	c.comes(members.ImportFollowing, time.Minute)
	// Changes of an unlogged table are in no log, and the source itself refuses to make one of what is published by its own name.
	for _, table := range []string{"part", "copies"} {
		if err := f.try("legacy_shop", "alter table public."+table+" set unlogged"); err == nil || !strings.Contains(err.Error(), "part of a publication") {
			t.Errorf("table %s may be unlogged for a moment: %v", table, err)
		}
	}
	// A leader that is lost after rows began to be copied has not noted that. The next one does not copy them twice, also into tables without a key.
	c.superuserIn("postgres", "update import.databases set phase = 'Restored'")
	c.eventually("what is subscribed is noted", time.Minute, func() bool {
		return c.superuserIn("postgres", "select phase from import.databases") != "Restored" && c.imports().State == members.ImportFollowing
	})
	if got := c.superuserIn("shop", "select count(*) from public.lost"); got != "1" {
		t.Errorf("there are %s rows, want 1", got)
	}
	f.run("legacy_shop", "insert into public.doubled values (1)")
	c.importFrom(&members.CutOver{ID: "go"})
	c.comes(members.ImportCutOver, time.Minute)
	if got := c.superuserIn("shop", "select count(*) from public.copies"); got != "1" {
		t.Errorf("there are %s copies, want 1", got)
	}
}

// TestImportStaysFailed: what was changed while tables were not followed as they should be is lost, also when that was undone before anybody
// looked. So such an import is never cut over.
func TestImportStaysFailed(t *testing.T) {
	for _, what := range []struct {
		reason           string
		first, then, end []string // %s is the publication
	}{
		{"A table is no longer published for a moment.", []string{"alter publication %s drop table public.ledger"}, []string{"update public.ledger set n = 2"}, []string{"alter publication %s add table public.ledger"}},
		{
			"Some operations are not published for a moment.",
			[]string{"alter publication %s set (publish = 'insert')"},
			[]string{"update public.ledger set n = 2"},
			[]string{"alter publication %s set (publish = 'insert, update, delete, truncate')"},
		},
		{
			"Rows are filtered for a moment.",
			[]string{"alter publication %s set table public.parts, public.ledger where (id > 5)"},
			[]string{"insert into public.ledger values (2, 1)"},
			[]string{"alter publication %s set table public.parts, public.ledger"},
		},
		{"A partition is detached for a moment.", []string{"alter table public.parts detach partition public.part"}, []string{"insert into public.part values (2)"}, []string{"alter table public.parts attach partition public.part default"}},
		{"A column is computed again.", []string{"alter table public.ledger alter n type bigint using n + 1"}, nil, []string{"alter table public.ledger alter n type integer"}},
	} {
		t.Run(what.reason, func(t *testing.T) {
			c := newClusterWith(t, []string{"a"}, func(*cluster) {})
			f := c.foreign("15")
			f.start("wal_level=logical")
			f.run("postgres", "create role mover login superuser password $$of'a:test\\$$", "create database legacy_shop")
			f.run("legacy_shop", "create table public.ledger (id int primary key, n int)", "insert into public.ledger values (1, 1)",
				"create table public.parts (id int primary key) partition by list (id)", "create table public.part partition of public.parts default")
			c.importFrom(nil)
			c.makes(t, "a")
			c.comes(members.ImportFollowing, time.Minute)
			publication := c.superuserIn("shop", "select subname from pg_subscription")
			for _, statements := range [][]string{what.first, what.then, what.end} {
				for _, s := range statements {
					f.run("legacy_shop", strings.ReplaceAll(s, "%s", publication))
				}
			}
			c.importFrom(&members.CutOver{ID: "go"})
			c.comes(members.ImportFailing, time.Minute)
			time.Sleep(25 * time.Second) // two looks
			if got := c.imports(); got.State != members.ImportFailing || !strings.Contains(got.Message, "make another Database") {
				t.Errorf("it is %s: %s", got.State, got.Message)
			}
			if got := c.superuserIn("postgres", "select changed from import.databases"); got == "" {
				t.Error("the register has forgotten it")
			}
		})
	}
}

// TestImportLooksAgain: what changes at the source while it is cut over is noticed before that is noted.
func TestImportLooksAgain(t *testing.T) {
	c := newClusterWith(t, []string{"a"}, func(*cluster) {})
	f := c.foreign("17")
	f.start("wal_level=logical")
	f.run("postgres", "create role mover login superuser password $$of'a:test\\$$", "create database legacy_shop", "alter role postgres set default_transaction_read_only = off",
		"alter database legacy_shop set default_transaction_read_only = off")
	f.run("legacy_shop", "create table public.ledger (id bigint primary key)")
	c.importFrom(nil)
	c.makes(t, "a")
	c.comes(members.ImportFollowing, time.Minute)

	calm, err := f.connect(t.Context(), "legacy_shop")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = calm.Close(context.Background()) }()
	stop := members.CutOver{ID: "one", StopWrites: true}
	c.importFrom(&stop)
	c.eventually("a role that is exempt is told", time.Minute, func() bool {
		return strings.Contains(c.imports().Message, "alter role ... reset default_transaction_read_only")
	})
	f.run("postgres", "alter role postgres reset default_transaction_read_only")
	c.importFrom(nil)
	c.comes(members.ImportFollowing, time.Minute)
	time.Sleep(12 * time.Second) // a look
	if got := ask(t, calm, "select setconfig::text from pg_db_role_setting where setrole = 0"); got != "{default_transaction_read_only=off}" {
		t.Errorf("nothing was fenced, and the setting of the database is %q", got)
	}
	f.run("postgres", "select pg_create_logical_replication_slot('own', 'pgoutput')", "create publication own")
	f.run("legacy_shop", "create subscription own connection 'host="+f.ip+" user=postgres password=of-root dbname=postgres' publication own with (create_slot = false)")
	c.importFrom(&stop)
	c.eventually("a subscription of the source is told", time.Minute, func() bool { return strings.Contains(c.imports().Message, "subscriptions write to database") })
	f.run("legacy_shop", "set default_transaction_read_only = off", "alter subscription own disable", "alter subscription own set (slot_name = none)", "drop subscription own")
	f.run("postgres", "select pg_drop_replication_slot('own')")
	c.importFrom(nil)
	c.eventually("the source is writable", time.Minute, func() bool { return f.readOnly() == "off" })
	if got := ask(t, calm, "select setconfig::text from pg_db_role_setting where setrole = 0"); got != "{default_transaction_read_only=off}" {
		t.Errorf("no database was fenced, and its setting is %q", got)
	}
	c.comes(members.ImportFollowing, time.Minute)

	// A lock here makes changes wait, and so there is time between the fence and the end.
	held := c.hold(t, "public.ledger")
	f.run("legacy_shop", "insert into public.ledger values (1)")
	c.importFrom(&stop)
	c.eventually("the source is read-only", time.Minute, func() bool { return f.readOnly() == "on" })
	time.Sleep(3 * time.Second)
	f.run("legacy_shop", "set default_transaction_read_only = off", "create table public.late (id int primary key)")
	held()
	c.eventually("a table that was made behind the fence is noticed", time.Minute, func() bool { return strings.Contains(c.imports().Message, "public.late") })
	if s := c.imports().State; s == members.ImportCutOver {
		t.Fatal("it was cut over without a table")
	}
	held = c.hold(t, "public.ledger")
	f.run("legacy_shop", "set default_transaction_read_only = off", "drop table public.late", "insert into public.ledger values (2)")
	c.comes(members.ImportCuttingOver, time.Minute)
	time.Sleep(3 * time.Second)
	began, err := f.connect(t.Context(), "legacy_shop")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = began.Close(context.Background()) }()
	c.importFrom(nil)
	held()
	c.eventually("the request is withdrawn", time.Minute, func() bool { return f.readOnly() == "off" && c.imports().State == members.ImportFollowing })
	if got := c.superuserIn("postgres", "select count(*) from import.fences"); got != "0" {
		t.Errorf("a request that was withdrawn has left %s records", got)
	}
	f.run("legacy_shop", "do $$ begin if (select setconfig::text from pg_db_role_setting where setrole = 0) <> '{default_transaction_read_only=off}' then raise 'the setting is lost'; end if; end $$")
	if _, err := began.Exec(t.Context(), "insert into public.ledger values (3)"); err == nil || !strings.Contains(err.Error(), "terminating") && !strings.Contains(err.Error(), "closed") && !strings.Contains(err.Error(), "EOF") {
		t.Errorf("a session that began behind the fence is still there: %v", err)
	}

	// Another object over the same volumes: its manifest has an id already.
	c.importWith(func(i *members.Import) { i.CutOver, i.Object = &members.CutOver{ID: "two"}, "uid-2" })
	c.eventually("the id of a manifest is skipped", time.Minute, func() bool { return c.imports().Skipped == "two" })
	time.Sleep(12 * time.Second)
	if s := c.imports().State; s != members.ImportFollowing {
		t.Errorf("an id in a manifest over kept volumes made it %s", s)
	}
	c.importWith(func(i *members.Import) { i.CutOver, i.Object = &members.CutOver{ID: "three"}, "uid-2" })
	c.comes(members.ImportCutOver, time.Minute)
	if got := c.superuserIn("shop", "select string_agg(id::text, ' ' order by id) from public.ledger"); got != "1 2" {
		t.Errorf("the rows are %q", got)
	}
}

// TestImportSeesWriters: a transaction that says that it writes passes the fence of a cut-over, which waits then and has its rows.
func TestImportSeesWriters(t *testing.T) {
	c := newClusterWith(t, []string{"a"}, func(*cluster) {})
	f := c.foreign("17")
	f.start("wal_level=logical")
	f.run("postgres", "create role mover login superuser password $$of'a:test\\$$", "create database legacy_shop")
	f.run("legacy_shop", "create table public.ledger (id bigint primary key)")
	c.importFrom(nil)
	c.makes(t, "a")
	c.comes(members.ImportFollowing, time.Minute)
	held := c.hold(t, "public.ledger")
	f.run("legacy_shop", "insert into public.ledger values (1)")
	c.importFrom(&members.CutOver{ID: "go", StopWrites: true})
	c.eventually("the source is read-only", time.Minute, func() bool { return f.readOnly() == "on" })
	time.Sleep(3 * time.Second)
	f.run("legacy_shop", "begin read write", "insert into public.ledger values (2)", "commit")
	held()
	c.eventually("a row behind the fence is noticed", time.Minute, func() bool { return strings.Contains(c.imports().Message, "rows were written") })
	c.comes(members.ImportCutOver, time.Minute)
	if got := c.superuserIn("shop", "select string_agg(id::text, ' ' order by id) from public.ledger"); got != "1 2" {
		t.Errorf("the rows are %q", got)
	}
}

// readOnly is the setting of the database.
func (f *foreign) readOnly() string {
	conn, err := f.connect(f.c.t.Context(), "legacy_shop")
	if err != nil {
		return ""
	}
	defer func() { _ = conn.Close(context.Background()) }()
	return ask(f.c.t, conn, "show default_transaction_read_only")
}

// hold a lock of a table here, until what it returns is called.
func (c *cluster) hold(t *testing.T, table string) func() {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = c.running(c.leader()).Enter("psql", "-h", pgmember.FolderSocket, "-U", "postgres", "-d", "shop", "-c", "begin", "-c", "lock table "+table, "-c", "select pg_sleep(120)")
	}()
	c.eventually("the table is locked", 30*time.Second, func() bool {
		return c.superuserIn("shop", "select count(*) from pg_locks where mode = 'AccessExclusiveLock' and granted and relation = '"+table+"'::regclass") == "1"
	})
	return func() {
		c.superuserIn("shop", "select pg_terminate_backend(pid) from pg_stat_activity where query like '%pg_sleep(120)%' and pid <> pg_backend_pid()")
		<-done
	}
}

// TestImportHasEnded: an import whose cut-over is recorded does not begin again on empty data, beside consumers that log in.
func TestImportHasEnded(t *testing.T) {
	c := newClusterWith(t, []string{"a"}, func(*cluster) {})
	f := c.foreign("17")
	f.start("wal_level=logical")
	f.run("postgres", "create role mover login superuser password $$of'a:test\\$$", "create database legacy_shop")
	f.run("legacy_shop", "create table public.ledger (id bigint primary key)")
	c.importWith(func(i *members.Import) { i.Ended = true })
	c.makes(t, "a")
	c.comes(members.ImportCutOver, time.Minute)
	if got := c.superuserIn("shop", "select (select count(*) from pg_class where relname = 'ledger') + (select count(*) from pg_subscription)"); got != "0" {
		t.Error("an import that had ended began again")
	}
	if got := f.slots("legacy_shop"); got != "0 0" {
		t.Errorf("the source has %s slots", got)
	}
}

// slots of a database of the source, and how many of them are of tables that are being copied.
func (f *foreign) slots(database string) string {
	conn, err := f.connect(f.c.t.Context(), database)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = conn.Close(context.Background()) }()
	return ask(f.c.t, conn, "select count(*) || ' ' || count(*) filter (where slot_name like 'pg\\_%\\_sync\\_%') from pg_replication_slots where database = current_database()")
}

// TestImportIsLeft: a database that is no longer listed is not followed any more, and its source has nothing of it, also not what a copy that was
// interrupted has left.
func TestImportIsLeft(t *testing.T) {
	c := newClusterWith(t, []string{"a"}, func(*cluster) {})
	f := c.foreign("17")
	f.start("wal_level=logical")
	f.run("postgres", "create role mover login superuser password $$of'a:test\\$$", "create database legacy_shop", "create database extra")
	f.run("legacy_shop", "create table public.ledger (id bigint primary key)")
	f.run("extra", "create table public.long (id int primary key, t text)", "insert into public.long select g, md5(g::text) from generate_series(1, 10000) g")
	c.importWith(func(i *members.Import) {
		i.Databases = append(i.Databases, members.ImportDatabase{Name: "extra", Source: "extra"})
	})
	c.makes(t, "a")
	c.superuserIn("postgres", `create database extra owner "shop-owner"`)
	c.comes(members.ImportFollowing, time.Minute)
	system := c.superuserIn("postgres", "select system_identifier from pg_control_system()")
	f.run("extra", "select pg_create_logical_replication_slot('pg_16999_sync_16998_"+system+"', 'pgoutput')")
	if got := f.slots("extra"); got != "2 1" {
		t.Fatalf("the source has %s slots", got)
	}
	c.importWith(func(*members.Import) {})
	c.eventually("the source of a database that is no longer listed is left", time.Minute, func() bool {
		return f.slots("extra") == "0 0" && c.superuserIn("postgres", "select count(*) from pg_subscription") == "1"
	})
	c.comes(members.ImportFollowing, time.Minute)

	// One that was renamed holds nothing else up, and what it has is told.
	f.run("postgres", "create database third")
	f.run("third", "create table public.longer (id int primary key)")
	c.importWith(func(i *members.Import) {
		i.Databases = append(i.Databases, members.ImportDatabase{Name: "third", Source: "third"})
	})
	c.superuserIn("postgres", `create database third owner "shop-owner"`)
	c.eventually("the third database is followed", time.Minute, func() bool {
		return f.slots("third") == "1 0" && c.imports().State == members.ImportFollowing
	})
	c.superuserIn("third", "alter subscription "+c.superuserIn("third", "select subname from pg_subscription s join pg_database d on d.oid = subdbid where datname = 'third'")+" disable")
	c.eventually("nothing is connected to it", time.Minute, func() bool {
		f.run("postgres", "select pg_terminate_backend(pid) from pg_stat_activity where datname = 'third'")
		conn, err := f.connect(t.Context(), "postgres")
		if err != nil {
			return false
		}
		defer func() { _ = conn.Close(context.Background()) }()
		_, err = conn.Exec(t.Context(), "alter database third rename to other")
		return err == nil
	})
	c.importWith(func(*members.Import) {})
	c.eventually("what it has is told, and the other one is followed", time.Minute, func() bool {
		r := c.imports()
		return r.State == members.ImportFollowing && strings.Contains(r.Message, `left at the source`) && strings.Contains(r.Message, `"other"`)
	})
	f.run("other", "select pg_drop_replication_slot(slot_name) from pg_replication_slots where database = 'other'")
	c.eventually("nothing is left", time.Minute, func() bool { return !strings.Contains(c.imports().Message, "left at the source") })
}

// TestImportTellsOfSilence: a source that stops to answer, and one that no worker can connect to, are told.
func TestImportTellsOfSilence(t *testing.T) {
	c := newClusterWith(t, []string{"a"}, func(*cluster) {})
	f := c.foreign("17")
	between := c.proxy(f)
	f.start("wal_level=logical")
	f.run("postgres", "create role mover login replication password $$of'a:test\\$$", "create database legacy_shop owner mover")
	f.run("legacy_shop", "set role mover", "create schema own", "create table own.ledger (id bigint primary key)")
	c.importFrom(nil)
	c.makes(t, "a")
	c.comes(members.ImportFollowing, time.Minute)

	between.silent.Store(true)
	t.Logf("silence is told after %s", c.comes(members.ImportFailing, 2*time.Minute))
	if m := c.imports().Message; !strings.Contains(m, "has not answered") {
		t.Errorf("it says %q", m)
	}
	between.silent.Store(false)
	c.comes(members.ImportFollowing, 2*time.Minute)

	f.run("postgres", "alter role mover noreplication", "select pg_terminate_backend(pid) from pg_stat_replication")
	// The end of its session is an error of the worker, which is told first, and for a minute.
	t.Logf("a worker that cannot connect is told after %s", c.comes(members.ImportFailing, 2*time.Minute))
	c.eventually("it is told what is not read", 3*time.Minute, func() bool { return strings.Contains(c.imports().Message, "has not read replication slot") })
	f.run("postgres", "alter role mover replication")
	c.comes(members.ImportFollowing, 2*time.Minute)
}

// A between is a network between members and a foreign server.
type between struct{ silent atomic.Bool }

// proxy puts one there. When it is silent, connections stay and the server's answers do not come.
func (c *cluster) proxy(f *foreign) *between {
	c.t.Helper()
	address := fmt.Sprintf("127.%d.%d.%d", c.net, c.sub, 201)
	listener, err := net.Listen("tcp", address+":5432")
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = listener.Close() })
	c.reaches = []string{address + " legacy.example\n"}
	b := &between{}
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			go b.pass(from, f.ip+":5432")
		}
	}()
	return b
}

// beginning is what the server still says when it is silent, in bytes. Every session gets more.
const beginning = 1000

func (b *between) pass(from net.Conn, to string) {
	defer func() { _ = from.Close() }()
	server, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	go func() { _, _ = io.Copy(server, from) }()
	buffer, passed := make([]byte, 512), 0
	for {
		n, err := server.Read(buffer)
		for b.silent.Load() && passed > beginning {
			time.Sleep(100 * time.Millisecond)
		}
		if err != nil {
			return
		}
		if _, err := from.Write(buffer[:n]); err != nil {
			return
		}
		passed += n
	}
}
