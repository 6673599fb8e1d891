// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/process"
)

// logical makes a cluster whose members write what consumers of changes need.
func logical(c *cluster) { c.server.Config = map[string]string{"wal_level": "logical"} }

// A feed is a consumer of changes, which names what it has read of the table events.
type feed struct {
	c    *cluster
	seen map[string]bool
}

var rowsOfEvents = regexp.MustCompile(`row-[0-9]{4};`)

// read all changes up to now from the leader, as a client of its own process does.
func (f *feed) read() error {
	leader := f.c.leader()
	if leader == "" {
		return errors.New("there is no leader")
	}
	end, err := f.c.running(leader).Enter("psql", "-h", pgmember.FolderSocket, "-U", "postgres", "-Atc", "select pg_current_wal_lsn()")
	if err != nil {
		return fmt.Errorf("no end: %s", end)
	}
	out, err := f.c.running(leader).Enter("timeout", "20", "/usr/lib/postgresql/17/bin/pg_recvlogical",
		"--dbname=dbname=shop user=feed password=of-a-test sslmode=require host="+f.c.identify(leader).IP,
		"--slot=cdc", "--start", "--no-loop", "--file=-", "--endpos="+strings.TrimSpace(end), "--option=proto_version=1", "--option=publication_names=changes")
	for _, row := range rowsOfEvents.FindAllString(out, -1) {
		f.seen[row] = true
	}
	if err != nil {
		return fmt.Errorf("%w: %s", err, out[:min(len(out), 300)])
	}
	return nil
}

// insert rows of which each names itself.
func (c *cluster) insert(t *testing.T, from, to int) {
	t.Helper()
	c.eventually("rows are taken", 40*time.Second, func() bool {
		conn, err := c.connect(t.Context(), c.leader(), "shop")
		if err != nil {
			return false
		}
		defer func() { _ = conn.Close(context.Background()) }()
		_, err = conn.Exec(t.Context(), fmt.Sprintf("insert into public.events select g, 'row-' || lpad(g::text, 4, '0') || ';' from generate_series(%d, %d) g "+
			"on conflict do nothing", from, to))
		return err == nil
	})
}

// has reads until it has seen all rows up to one.
func (f *feed) has(t *testing.T, to int) {
	t.Helper()
	var err error
	f.c.eventually("the consumer reads from the leader", time.Minute, func() bool { err = f.read(); return err == nil })
	for n := 1; n <= to; n++ {
		if !f.seen[fmt.Sprintf("row-%04d;", n)] {
			t.Fatalf("the consumer never got row %d of %d (%v)", n, to, err)
		}
	}
}

// synced reports whether a standby has a copy of a slot that would survive its promotion.
func (c *cluster) synced(letter, slot string) bool {
	return c.asSuperuser(letter, "select count(*) from pg_replication_slots where synced and not temporary and slot_name = '"+slot+"'") == "1"
}

func (c *cluster) replicate(slots, publications, logins string) {
	c.file("config/member.json", []byte(`{"databases": ["shop"], "extensions": [], "slots": [`+slots+`], "publications": [`+publications+`], "replicators": [`+logins+`]}`))
}

const (
	cdcSlot = `{"name": "cdc", "database": "shop", "plugin": "pgoutput"}`
	changes = `{"name": "changes", "database": "shop", "tables": ["public.events", "public.later"]}`
)

// TestLogicalReplication: a slot and its consumer go on after the leader is lost and after a handover, and what is listed no more goes.
func TestLogicalReplication(t *testing.T) {
	c := newClusterWith(t, []string{"a", "b", "c"}, logical)
	c.replicate(cdcSlot, changes, `"feed", "feed-b"`)
	begin(t, c, "a", "b", "c")
	c.run(t, "create table public.events (id bigint primary key, name text)", "create role feed login password 'of-a-test'",
		"comment on role feed is 'capstan.dev: login'")
	f := &feed{c: c, seen: map[string]bool{}}
	leader := c.leader()
	c.eventually("the leader tells that a table is missing", time.Minute, func() bool {
		_, message := c.blockedBy(leader)
		return strings.Contains(message, `table "public.later" does not exist`)
	})
	c.run(t, "create table public.later (id bigint primary key)")
	c.eventually("nothing is missing", time.Minute, func() bool { reason, _ := c.blockedBy(leader); return reason == "" })
	c.insert(t, 1, 100)
	f.has(t, 100)
	// A consumer makes a slot of its own, and stays away.
	c.asSuperuser(leader, "select pg_create_logical_replication_slot('own', 'test_decoding')")
	took := c.eventually("both standbys have the slot", 2*time.Minute, func() bool {
		_ = f.read()
		return c.synced(others(c, leader)[0], "cdc") && c.synced(others(c, leader)[1], "cdc")
	})
	t.Logf("standbys have the slot after %s", took)
	// Patroni looks at slots when it starts.
	c.killPatroni(leader)
	c.eventually("Patroni is back", time.Minute, func() bool { return c.ready("a", "b", "c") })
	time.Sleep(15 * time.Second)
	if c.asSuperuser(leader, "select count(*) from pg_replication_slots where slot_name = 'own'") != "1" {
		t.Error("the slot that a consumer made is gone")
	}

	before := c.leader()
	if out, err := c.running(before).Enter("/usr/local/bin/capstan-member", "handover"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	c.eventually("another leads", time.Minute, func() bool { l := c.leader(); return l != "" && l != before })
	c.insert(t, 101, 200)
	f.has(t, 200)
	c.eventually("who handed over has a copy of the slot", 3*time.Minute, func() bool { _ = f.read(); return c.synced(before, "cdc") })

	leader = c.leader()
	for _, l := range others(c, leader) {
		c.eventually("every standby has the slot", 2*time.Minute, func() bool { _ = f.read(); return c.synced(l, "cdc") })
	}
	c.insert(t, 201, 300) // not read
	c.running(leader).Kill()
	c.eventually("another leads", 90*time.Second, func() bool { l := c.leader(); return l != "" && l != leader })
	c.insert(t, 301, 400)
	f.has(t, 400)
	t.Logf("all 400 rows after the leader was lost")

	c.start(leader)
	c.eventually("it is back", 2*time.Minute, func() bool { return c.ready("a", "b", "c") })
	took = c.eventually("the former leader has a copy of the slot", 3*time.Minute, func() bool { _ = f.read(); return c.synced(leader, "cdc") })
	t.Logf("the former leader has a copy after %s", took)

	c.replicate("", "", "")
	for _, l := range []string{"a", "b", "c"} {
		c.eventually("the slot is gone everywhere", 2*time.Minute, func() bool {
			return c.asSuperuser(l, "select count(*) from pg_replication_slots where slot_name = 'cdc'") == "0"
		})
	}
	now := c.leader()
	for query, want := range map[string]string{
		"select rolreplication from pg_roles where rolname = 'feed'": "f",
		"select count(*) from replication.slots":                     "0",
	} {
		if got := c.asSuperuser(now, query); got != want {
			t.Errorf("%s: got %q, want %q", query, got, want)
		}
	}
	if err := f.read(); err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("who may no longer read changes gets %v", err)
	}
}

// killPatroni of a member. The supervisor starts it again.
func (c *cluster) killPatroni(letter string) {
	c.t.Helper()
	if c.running(letter).Signal(syscall.SIGKILL, func(p process.Process) bool { return p.Name == "patroni" }) == 0 {
		c.t.Fatal("found no Patroni")
	}
}

// others than a member.
func others(c *cluster, letter string) []string {
	return slices.DeleteFunc(slices.Clone(c.letters), func(l string) bool { return l == letter })
}
