// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
)

// mask with statements in the database of the test.
func mask(statements ...string) *pgmember.Mask {
	m := &pgmember.Mask{}
	for _, s := range statements {
		m.Statements = append(m.Statements, pgmember.Statement{Database: "shop", SQL: s})
	}
	return m
}

// TestMask: a copy is masked before any client can connect, also when its member is killed meanwhile. Statistics have no value of the
// original. A statement that fails is named with what the server says of it, and its data is never reached.
func TestMask(t *testing.T) {
	s := newStore(t)
	c := newClusterWith(t, []string{"a"}, archives)
	s.connection(c, "bucket")
	c.want(pgmember.Config{Backup: new(c.settings("a"))})
	begin(t, c, "a")
	script := `create role shop_owner; grant shop_owner to capstan; alter database shop owner to shop_owner; alter schema public owner to shop_owner;
		create table public.people (id int primary key, email text unique, country text); alter table public.people owner to shop_owner;
		insert into public.people select g, 'jane-' || g || '@original.example', 'secret-' || g % 3 from generate_series(1, 500) g; analyze public.people;
		alter table public.people enable row level security; alter table public.people force row level security;
		create policy few on public.people using (country = 'secret-1');
		create table public.runs (at timestamptz); alter table public.runs owner to shop_owner;
		create table public.breaches (what text); alter table public.breaches owner to shop_owner`
	if out, err := c.running("a").Enter("psql", "-h", pgmember.FolderSocket, "-U", "postgres", "-d", "shop", "-v", "ON_ERROR_STOP=1", "-c", script); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if taken, said := c.backup(); taken.Type != pgbackrest.Full {
		t.Fatalf("no backup: %s", said)
	}
	c.switchLog("a")
	c.eventually("all is archived", time.Minute, func() bool { return c.archived("a") })
	source := pgmember.Source{Path: c.settings().Path}
	reachable := func(d *cluster) bool {
		conn, err := d.connect(t.Context(), "a", "shop")
		if err == nil {
			_ = conn.Close(context.Background())
		}
		return err == nil
	}
	has := func(d *cluster, name string) bool {
		_, err := os.Stat(filepath.Join(d.base, "data-a", name))
		return err == nil
	}
	t.Run("Masked", func(t *testing.T) {
		from := source
		from.Mask = mask(
			"insert into runs values (now())",
			"update people set email = 'person-' || id || '@example.org', country = null",
			// With the rights of the owner of the database, and no more.
			`do $$ declare s text; begin
				foreach s in array array['copy people to program ''true''', 'set role postgres', 'create role intruder superuser login', 'alter role capstan superuser',
					'set session authorization postgres'] loop
					begin execute s; insert into breaches values (s || ' as ' || current_user); exception when others then null; end;
				end loop; end $$`,
			// Who may mask need not be who may see the original.
			"create table loot as select coalesce(most_common_vals::text, '') || coalesce(histogram_bounds::text, '') as had from pg_stats where schemaname = 'public'",
			"select pg_sleep(6)",
		)
		d := restored(t, s, from, "a")
		d.eventually("the restored data is being masked", 2*time.Minute, func() bool { return has(d, "unmasked/postmaster.pid") })
		time.Sleep(2 * time.Second)
		if has(d, "pgdata/PG_VERSION") || reachable(d) {
			t.Error("data that is not masked should be nowhere that Patroni or a client reaches it")
		}
		d.running("a").Kill()
		if has(d, "pgdata/PG_VERSION") || !has(d, "unmasked/PG_VERSION") {
			t.Fatal("the member should have been killed while it masked")
		}
		d.start("a")
		took := d.eventually("the copy is ready", 2*time.Minute, func() bool { return d.ready("a") })
		t.Logf("ready %s after the second start", took)
		segments, err := filepath.Glob(filepath.Join(d.base, "data-a", "pgdata", "pg_wal", "0*"))
		if err != nil || len(segments) == 0 {
			t.Fatalf("no write-ahead log: %v", err)
		}
		for _, segment := range segments {
			if raw, err := os.ReadFile(segment); err == nil && bytes.Contains(raw, []byte("@original.example")) {
				t.Errorf("%s has values of the original, and would be archived", filepath.Base(segment))
			}
		}
		d.loggable("a")
		// The test sees all rows, too.
		if out, err := d.running("a").Enter("psql", "-h", pgmember.FolderSocket, "-U", "postgres", "-d", "shop", "-v", "ON_ERROR_STOP=1", "-c", "alter table public.people disable row level security"); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		for query, want := range map[string]string{
			"select count(*)::text from public.people":                                                                                           "500",
			"select count(*)::text from public.people where email like '%original%' or country is not null":                                      "0",
			"select coalesce(string_agg(what, ', '), '') from public.breaches":                                                                   "",
			"select count(*)::text from public.loot where had ~ 'original|secret'":                                                               "0",
			"select count(*)::text from pg_roles where rolname = 'shop_owner' and rolbypassrls":                                                  "0",
			"select count(*)::text from public.runs":                                                                                             "1",
			"select count(*)::text from pg_stats where schemaname = 'public' and concat(most_common_vals, histogram_bounds) ~ 'original|secret'": "0",
			"select count(*)::text from pg_roles where rolname = 'capstan_masker'":                                                               "0",
			"select current_setting('archive_mode')":                                                                                             "on",
			"select pg_is_in_recovery()::text":                                                                                                   "false",
		} {
			if got := d.query("a", query); got != want {
				t.Errorf("%s: %q, want %q", query, got, want)
			}
		}
		if has(d, "unmasked") {
			t.Error("nothing that was not masked should be left")
		}
		// It runs once: a start does nothing again. Of another member's restore nothing stays either.
		d.running("a").Kill()
		for _, left := range []string{"unmasked", "pgdata.failed"} {
			if err := os.Mkdir(filepath.Join(d.base, "data-a", left), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		d.start("a")
		d.eventually("the copy is ready again", 2*time.Minute, func() bool { return d.ready("a") })
		d.loggable("a")
		if got := d.query("a", "select count(*)::text from public.runs"); got != "1" {
			t.Errorf("the statements ran %s times", got)
		}
		d.eventually("it leads", time.Minute, func() bool { return d.query("a", "select pg_is_in_recovery()::text") == "false" })
		if has(d, "unmasked") || has(d, "pgdata.failed") {
			t.Error("what a restore left should be removed")
		}
		if own, said := d.backup(); own.Type != pgbackrest.Full {
			t.Errorf("the copy is not backed up: %s", said)
		}
	})
	for name, tc := range map[string]struct {
		reason, sql, message string
	}{
		"Fails":      {"What the server says is reported, with the number of the statement.", "update nobody set id = 1", `statement 2 of 2 that mask the copy, in database "shop": the server says "relation \"nobody\" does not exist" (42P01)`},
		"Values":     {"A message has no values of the original.", "update people set id = email::int", `invalid input syntax for type integer: \"…\"" (22P02)`},
		"Statements": {"It is one statement.", "commit; drop table people", "42601"},
	} {
		t.Run(name, func(t *testing.T) {
			from := source
			from.Mask = mask("update people set country = null where id = 1", tc.sql)
			d := restored(t, s, from, "a")
			d.eventually("it is reported", 2*time.Minute, func() bool {
				reason, message := d.blockedBy("a")
				return reason == members.ReasonRestoreFailed && strings.Contains(message, tc.message)
			})
			if _, message := d.blockedBy("a"); strings.Contains(message, "original") {
				t.Errorf("%s The message has a value of the original: %s", tc.reason, message)
			}
			if reachable(d) || has(d, "pgdata/PG_VERSION") {
				t.Errorf("%s Its data should be removed and not be reached", tc.reason)
			}
			d.eventually("the data is removed", time.Minute, func() bool { return !has(d, "unmasked") && !has(d, "pgdata.failed") })
			raw, _ := os.ReadFile(filepath.Join(d.logs, "log-a"))
			if strings.Contains(string(raw), "@original.example") {
				t.Errorf("%s The log of the pod has values of the original", tc.reason)
			}
		})
	}
}
