// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
)

// small makes a cluster whose leader keeps as little of the write-ahead log for standbys as it may.
func small(c *cluster) { c.server.Storage = 256 << 20 }

// asSuperuser runs a statement as the superuser of a member.
func (c *cluster) asSuperuser(letter, statement string) string {
	c.t.Helper()
	out, err := c.running(letter).Enter("psql", "-h", pgmember.FolderSocket, "-U", "postgres", "-Atc", statement)
	if err != nil {
		c.t.Fatalf("%s: %v: %s", statement, err, out)
	}
	return strings.TrimSpace(out)
}

// outrun the members that are away: the leader writes until it has removed what they need next.
func (c *cluster) outrun(leader string) {
	c.t.Helper()
	begun := time.Now()
	for range 100 {
		c.asSuperuser(leader, "select pg_logical_emit_message(false, 'x', string_agg(md5(g::text), '')) from generate_series(1, 450000) g")
		c.asSuperuser(leader, "select pg_switch_wal()")
		c.asSuperuser(leader, "checkpoint")
		if c.asSuperuser(leader, "select count(*) from pg_replication_slots where wal_status = 'lost' or not active and restart_lsn is null") != "0" {
			c.t.Logf("outrun after %s", time.Since(begun).Round(time.Second))
			return
		}
	}
	c.t.Fatalf("no standby was outrun: %s", c.asSuperuser(leader, "select string_agg(slot_name || ' ' || wal_status, ', ') from pg_replication_slots"))
}

// standbyOf a leader: the first other member.
func (c *cluster) standbyOf(leader string) string {
	for _, l := range c.letters {
		if l != leader {
			return l
		}
	}
	return ""
}

// TestLostStandby: a standby whose leader has removed what it needs next reports that, and follows again by itself.
func TestLostStandby(t *testing.T) {
	t.Run("Copied", func(t *testing.T) {
		c := newClusterWith(t, []string{"a", "b", "c"}, small)
		begin(t, c, "a", "b", "c")
		w := c.write()
		w.goesOn(10 * time.Second)
		leader := c.leader()
		away := c.standbyOf(leader)
		c.running(away).Kill()
		c.outrun(leader)
		c.start(away)
		took := c.eventually("it reports that it is lost", time.Minute, func() bool {
			reason, _ := c.blockedBy(away)
			return reason == members.ReasonStandbyLost
		})
		t.Logf("reported after %s", took)
		took = c.eventually("it follows again", 3*time.Minute, func() bool { return c.ready("a", "b", "c") })
		t.Logf("follows after another %s", took)
		c.eventually("nothing is reported any more", time.Minute, func() bool { reason, _ := c.blockedBy(away); return reason == "" })
		w.check(t)
		c.oneLeader()
	})
	t.Run("Replayed", func(t *testing.T) {
		s := newStore(t)
		c := newClusterWith(t, []string{"a", "b"}, func(c *cluster) { archives(c); small(c) })
		s.connection(c, "bucket")
		settings := c.settings("a", "b")
		settings.Queue = 2 << 30
		c.want(pgmember.Config{Backup: &settings})
		begin(t, c, "a", "b")
		if first, said := c.backup(); first.Type != pgbackrest.Full {
			t.Fatalf("no backup: %s", said)
		}
		leader := c.leader()
		away := c.standbyOf(leader)
		before := c.asSuperuser(away, "select (pg_stat_file('PG_VERSION')).modification || ' ' || pg_postmaster_start_time()")
		created, _, _ := strings.Cut(before, "+")
		c.running(away).Kill()
		c.outrun(leader)
		c.eventually("all is archived", 2*time.Minute, func() bool { return c.archived(leader) })
		c.start(away)
		took := c.eventually("it follows again", 3*time.Minute, func() bool { return c.ready("a", "b") })
		t.Logf("follows after %s", took)
		if got := c.asSuperuser(away, "select (pg_stat_file('PG_VERSION')).modification"); !strings.HasPrefix(got, created) {
			t.Errorf("the data was copied again: PG_VERSION is of %s, and was of %s", got, created)
		}
		c.eventually("nothing is reported any more", time.Minute, func() bool { reason, _ := c.blockedBy(away); return reason == "" })
	})
}
