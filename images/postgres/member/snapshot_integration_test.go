// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/process"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
)

// sourceIdentity of the Database that snapshots are of. Clusters of these tests have one identity, so that copies get this one.
const sourceIdentity = "00112233445566778899aabbccddeeff"

// frozen copy of the volume of a member that runs: all its processes stand still while it is completed, so that it shows one moment, as the
// snapshot of a volume does. Most of it is copied before, or a leader would stand still for so long that it is replaced. It returns the folder.
func (c *cluster) frozen(letter string) string {
	c.t.Helper()
	from, to, all := filepath.Join(c.base, "data-"+letter), filepath.Join(c.base, "snapshot-"+letter), func(process.Process) bool { return true }
	// Files come and go meanwhile.
	_ = exec.Command("cp", "-aT", from, to).Run()
	r := c.running(letter)
	// One that was started between two looks is stopped by the second.
	for range 3 {
		if r.Signal(syscall.SIGSTOP, all) == 0 {
			c.t.Fatal("no process stands still")
		}
	}
	began := time.Now()
	out, err := exec.Command("cp", "-auT", from, to).CombinedOutput()
	err = errors.Join(err, filepath.WalkDir(to, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if _, gone := os.Lstat(from + strings.TrimPrefix(path, to)); !errors.Is(gone, fs.ErrNotExist) {
			return nil
		}
		if d.IsDir() {
			return errors.Join(os.RemoveAll(path), fs.SkipDir)
		}
		return os.Remove(path)
	}))
	r.Signal(syscall.SIGCONT, all)
	if err != nil {
		c.t.Fatalf("cannot copy the volume: %v: %s", err, out)
	}
	c.t.Logf("member %s stood still for %s", letter, time.Since(began).Round(time.Millisecond))
	c.markAs(to)
	return to
}

// markAs the volume of a Database with the identity of the source.
func (c *cluster) markAs(folder string) {
	c.t.Helper()
	mark := filepath.Join(folder, "capstan.json")
	raw, err := os.ReadFile(mark)
	if err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(mark, []byte(strings.Replace(string(raw), identity, sourceIdentity, 1)), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// fromSnapshot is a cluster whose first member has a volume that was filled from a snapshot. It is started and not waited for.
func fromSnapshot(t *testing.T, s *store, shot string, from pgmember.Source, letters ...string) *cluster {
	t.Helper()
	d := newClusterWith(t, letters, restoring)
	s.connection(d, "bucket")
	s.connection(d, "source")
	d.want(pgmember.Config{Backup: new(d.settings(letters...)), From: &from})
	if out, err := exec.Command("cp", "-a", shot, filepath.Join(d.base, "data-a")).CombinedOutput(); err != nil {
		t.Fatalf("cannot fill the volume: %v: %s", err, out)
	}
	d.start("a")
	return d
}

// commit rows, each by itself.
func (c *cluster) commit(from, to int) {
	c.t.Helper()
	conn, err := c.connect(c.t.Context(), c.leader(), "shop")
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	for id := from; id <= to; id++ {
		if _, err := conn.Exec(c.t.Context(), "insert into public.ledger (id) values ($1)", id); err != nil {
			c.t.Fatal(err)
		}
	}
}

// churn changes pages of a table as fast as it can, so that a snapshot finds some of them half written, until it is stopped.
func (c *cluster) churn() (stop func()) {
	c.t.Helper()
	conn, err := c.connect(c.t.Context(), c.leader(), "shop")
	if err != nil {
		c.t.Fatal(err)
	}
	const table = "create table public.pages as select id, 0 as turn, repeat('x', 200) as filler from generate_series(1, 20000) id; create index on public.pages (turn, id)"
	if _, err := conn.Exec(c.t.Context(), table); err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(c.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = conn.Close(context.Background()) }()
		for i := 0; ctx.Err() == nil; i++ {
			// The last one may be cut off by the end of the test.
			_, _ = conn.Exec(ctx, "update public.pages set turn = turn + 1 where id % 50 = $1", i%50)
		}
	}()
	return func() { cancel(); <-done }
}

// sums of the rows of a ledger: how many there are, and which.
const sums = "select count(*)::text || ' ' || coalesce(sum(id), 0)::text || ' ' || coalesce(max(id), 0)::text || ' ' || " +
	"(select count(*)::text || ' ' || sum(turn)::text || ' ' || sum(turn * id)::text from public.pages) from public.ledger"

// wholeness of tables and indexes of the database: each row in each index, and each page as it was written.
const wholeness = "create extension if not exists amcheck; select coalesce(string_agg(format('%s: %s', c.oid::regclass, e.msg), '; '), '') from " +
	"pg_class c, verify_heapam(c.oid::regclass) e where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace"

// whole says what is damaged of a member's tables and indexes.
func (c *cluster) whole(letter string) string {
	c.t.Helper()
	out, err := c.running(letter).Enter("psql", "-h", pgmember.FolderSocket, "-U", "postgres", "-d", "shop", "-qAtc", wholeness,
		"-c", "select bt_index_check(i.indexrelid, true) from pg_index i join pg_class c on c.oid = i.indrelid where c.relnamespace = 'public'::regnamespace")
	if err != nil {
		return err.Error() + ": " + out
	}
	return strings.TrimSpace(out)
}

// TestSnapshot of the volumes of a standby and of a leader under load, taken at one moment and without a word to the server. New Databases
// begin with them, and replay the archive to its end, to a moment, and to one that is not archived yet.
func TestSnapshot(t *testing.T) {
	s := newStore(t)
	c := newClusterWith(t, []string{"a", "b"}, archives)
	s.connection(c, "bucket")
	c.want(pgmember.Config{Backup: new(c.settings("a", "b"))})
	begin(t, c, "a", "b")
	leader, standby := c.leader(), "a"
	if leader == "a" {
		standby = "b"
	}
	c.loggable(leader)
	if first, said := c.backup(); first.Type != pgbackrest.Full {
		t.Fatalf("no backup: %s", said)
	}
	w, still := c.write(), c.churn()
	w.goesOn(20 * time.Second)
	ofStandby, ofLeader := c.frozen(standby), c.frozen(leader)
	w.goesOn(30 * time.Second)
	if now := c.leader(); now != leader {
		t.Fatalf("the leader is %s, and was %s", now, leader)
	}
	for range 5 {
		c.switchLog(leader)
		w.goesOn(20 * time.Second)
	}
	w.stop()
	w.all.Wait()
	still()
	at, atMoment := time.Now(), c.query(leader, sums)
	time.Sleep(10 * time.Millisecond)
	c.commit(1_000_001, 1_000_040)
	atEnd := c.query(leader, sums)
	c.switchLog(leader)
	c.eventually("all is archived", time.Minute, func() bool { return c.archived(leader) })
	t.Logf("%d rows were acknowledged; at the moment there are %s, at the end %s", w.count(), atMoment, atEnd)

	source := pgmember.Source{Path: c.settings().Path, Snapshot: &pgmember.Snapshot{Identity: sourceIdentity, Stanza: scope + "-17", Member: database + "-a"}}
	until := func(at time.Time) pgmember.Source {
		from := source
		from.At = &at
		return from
	}
	for name, tc := range map[string]struct {
		shot string
		from pgmember.Source
		want string
	}{
		"StandbyToEnd":    {ofStandby, source, atEnd},
		"StandbyToMoment": {ofStandby, until(at), atMoment},
		"LeaderToEnd":     {ofLeader, source, atEnd},
		"LeaderToMoment":  {ofLeader, until(at), atMoment},
	} {
		t.Run(name, func(t *testing.T) {
			d := fromSnapshot(t, s, tc.shot, tc.from, "a", "b")
			d.start("b")
			took := d.eventually("the copy is ready", 2*time.Minute, func() bool { return d.ready("a", "b") })
			t.Logf("ready after %s, with another member", took)
			d.loggable("a")
			if got := d.query("a", sums); got != tc.want {
				t.Errorf("the copy has rows %s, want %s", got, tc.want)
			}
			d.eventually("the other member has them, too", 30*time.Second, func() bool { return d.query("b", sums) == tc.want })
			for query, want := range map[string]string{"select pg_is_in_recovery()::text": "false", "select current_setting('archive_mode')": "on"} {
				if got := d.query("a", query); got != want {
					t.Errorf("%s: %q, want %q", query, got, want)
				}
			}
			if got := d.query("a", "select timeline_id::text from pg_control_checkpoint()"); got == c.query(leader, "select timeline_id::text from pg_control_checkpoint()") {
				t.Errorf("the copy writes on the timeline %s of its source", got)
			}
			if got := d.query("a", "select count(*)::text from pg_replication_slots where slot_name not like 'orders%'"); got != "0" {
				t.Errorf("the copy keeps %s slots of its source", got)
			}
			if got := d.whole("a"); got != "" {
				t.Errorf("the copy is damaged: %s", got)
			}
			own, said := d.backup()
			if own.Type != pgbackrest.Full {
				t.Errorf("the copy is not backed up: %s", said)
			}
			for _, left := range []string{"snapshot", "pgdata.failed"} {
				if _, err := os.Lstat(filepath.Join(d.base, "data-a", left)); err == nil {
					t.Errorf("%s stays on the volume", left)
				}
			}
		})
	}
	t.Run("Killed", func(t *testing.T) {
		// Nothing but the volume has the data, and the replay continues.
		d := fromSnapshot(t, s, ofStandby, until(at), "a")
		has := func(name string) bool {
			_, err := os.Stat(filepath.Join(d.base, "data-a", "pgdata", name))
			return err == nil
		}
		d.eventually("it replays", time.Minute, func() bool { return has("recovery.signal") && has("postmaster.pid") })
		d.running("a").Kill()
		if !has("recovery.signal") {
			t.Fatal("the replay ended before the member could be killed")
		}
		d.start("a")
		d.eventually("the copy is ready", 2*time.Minute, func() bool { return d.ready("a") })
		d.loggable("a")
		if got := d.query("a", sums); got != atMoment {
			t.Errorf("the copy has rows %s, want %s", got, atMoment)
		}
	})
	t.Run("TooLate", func(t *testing.T) {
		d := fromSnapshot(t, s, ofStandby, until(time.Now().Add(-time.Second)), "a")
		d.eventually("it is told", 2*time.Minute, func() bool {
			reason, message := d.blockedBy("a")
			return reason == members.ReasonRestoreFailed && strings.Contains(message, "what was archived ends before")
		})
		// It is tried again with the same volume, and then what was archived may go on to the moment.
		c.commit(2_000_001, 2_000_001)
		c.switchLog(leader)
		d.eventually("the copy is ready after all", 3*time.Minute, func() bool { return d.ready("a") })
		d.loggable("a")
		if got := d.query("a", sums); got != atEnd {
			t.Errorf("the copy has rows %s, want %s", got, atEnd)
		}
	})
	t.Run("ArchiveDown", func(t *testing.T) {
		// What cannot be fetched is no end of the archive.
		d := newClusterWith(t, []string{"a"}, restoring)
		s.connection(d, "bucket")
		s.connection(d, "source")
		d.file("source/secretAccessKey", []byte("another"))
		d.want(pgmember.Config{Backup: new(d.settings("a")), From: &source})
		if out, err := exec.Command("cp", "-a", ofStandby, filepath.Join(d.base, "data-a")).CombinedOutput(); err != nil {
			t.Fatalf("cannot fill the volume: %v: %s", err, out)
		}
		d.start("a")
		d.eventually("it is told", 2*time.Minute, func() bool { reason, _ := d.blockedBy("a"); return reason == members.ReasonRestoreFailed })
		s.connection(d, "source")
		d.eventually("the copy is ready once the archive is", 3*time.Minute, func() bool { return d.ready("a") })
		d.loggable("a")
		if got := d.query("a", "select (count(*) >= "+strings.Fields(atEnd)[0]+")::text from public.ledger"); got != "true" {
			t.Error("the copy lacks what was archived")
		}
	})
	t.Run("OfAnother", func(t *testing.T) {
		from := source
		from.Snapshot = &pgmember.Snapshot{Identity: "ffffffffffffffffffffffffffffffff", Stanza: scope + "-17", Member: database + "-a"}
		d := fromSnapshot(t, s, ofStandby, from, "a")
		d.eventually("it is told", time.Minute, func() bool { reason, _ := d.blockedBy("a"); return reason == members.ReasonVolumeOfAnother })
		if _, err := os.Stat(filepath.Join(d.base, "data-a", "pgdata", "PG_VERSION")); err != nil {
			t.Errorf("the data of another is moved: %v", err)
		}
	})
	t.Run("Empty", func(t *testing.T) {
		d := newClusterWith(t, []string{"a"}, restoring)
		s.connection(d, "bucket")
		s.connection(d, "source")
		d.want(pgmember.Config{Backup: new(d.settings("a")), From: &source})
		d.start("a")
		d.eventually("it is told", time.Minute, func() bool {
			reason, message := d.blockedBy("a")
			return reason == members.ReasonRestoreFailed && strings.Contains(message, "not filled from the snapshot")
		})
	})
}
