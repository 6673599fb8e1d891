// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
)

// following makes a cluster that is a standby of what its source archives.
func following(c *cluster) { restoring(c); c.server.Follows, c.server.Standby = true, true }

// rows of the ledger that a member has.
func (c *cluster) rows(letter string) map[int]bool {
	c.t.Helper()
	conn, err := c.connect(c.t.Context(), letter, "shop")
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	rows, err := conn.Query(c.t.Context(), "select id from public.ledger")
	if err != nil {
		c.t.Fatal(err)
	}
	defer rows.Close()
	there := map[int]bool{}
	for rows.Next() {
		var id int
		if err := rows.Scan(&id); err != nil {
			c.t.Fatal(err)
		}
		there[id] = true
	}
	return there
}

// follows reports whether members of a standby cluster are ready. None of them has the label of the leader.
func (c *cluster) follows(letters ...string) bool {
	return !slices.ContainsFunc(letters, func(l string) bool { return c.probe(l, "/readyz") != nil })
}

// count the objects of a prefix.
func (s *store) count(t *testing.T, prefix string) int {
	t.Helper()
	list, err := s.client.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: aws.String(bucket), Prefix: aws.String(prefix)})
	if err != nil {
		t.Fatal(err)
	}
	return len(list.Contents)
}

// TestStandbyCluster follows a primary by its archive, is promoted when the primary is lost for good, and has what was archived. A former
// primary that comes back and writes is reported.
func TestStandbyCluster(t *testing.T) {
	s := newStore(t)
	c := newClusterWith(t, []string{"a"}, archives)
	s.connection(c, "bucket")
	c.want(pgmember.Config{Backup: new(c.settings("a"))})
	begin(t, c, "a")
	w := c.write()
	w.goesOn(10 * time.Second)
	if taken, said := c.backup(); taken.Type != pgbackrest.Full {
		t.Fatalf("no backup: %s", said)
	}

	d := newClusterWith(t, []string{"a", "b"}, following)
	s.connection(d, "bucket")
	s.connection(d, "source")
	own := d.settings("a", "b")
	d.want(pgmember.Config{Backup: &own, From: &pgmember.Source{Path: c.settings().Path, Follow: true}})
	d.start("a")
	took := d.eventually("the first member follows", 3*time.Minute, func() bool { return d.follows("a") })
	t.Logf("the first member follows after %s", took)
	d.start("b")
	took = d.eventually("the second member streams from the first", 2*time.Minute, func() bool { return d.follows("a", "b") })
	t.Logf("the second member follows after %s", took)
	if got := d.leader(); got != "" {
		t.Errorf("member %s of a standby has the label of the leader", got)
	}
	for _, l := range []string{"a", "b"} {
		if got := d.query(l, "select pg_is_in_recovery()::text || ' ' || current_setting('transaction_read_only')"); got != "true on" {
			t.Errorf("member %s: recovery and read-only are %s", l, got)
		}
	}

	// What is committed and archived arrives at both.
	w.goesOn(10 * time.Second)
	marked := w.count()
	c.switchLog("a")
	begun := time.Now()
	d.eventually("what was archived is replayed", time.Minute, func() bool { return len(d.rows("a")) >= marked && len(d.rows("b")) >= marked })
	t.Logf("%d rows are replayed %s after they were archived", marked, time.Since(begun).Round(time.Millisecond))
	d.eventually("the standby reports that the primary runs", time.Minute, func() bool {
		f := d.report("a").Following
		return f.State == members.FollowCaughtUp && f.Active && f.ReplayedTo != "" && f.Stanza == c.settings().Stanza
	})
	if n := s.count(t, strings.TrimPrefix(own.Path, "/")); n != 0 {
		t.Errorf("the standby wrote %d objects to its repository", n)
	}

	// The leader of the standby hands over in a failover of its own.
	d.running("a").Kill()
	took = d.eventually("the second member leads the standby", 2*time.Minute, func() bool { return d.report("b").Following.State != "" })
	t.Logf("the second member leads the standby after %s", took)
	w.goesOn(10 * time.Second)
	marked = w.count()
	c.switchLog("a")
	archived := time.Now()
	d.eventually("it follows as well", 2*time.Minute, func() bool { return len(d.rows("b")) >= marked })
	d.start("a")
	d.eventually("the first member is back", 2*time.Minute, func() bool { return d.follows("a", "b") })

	// The primary is lost. Of the last seconds something was never archived.
	w.goesOn(10 * time.Second)
	time.Sleep(2 * time.Second)
	c.running("a").Kill()
	w.stop()
	w.all.Wait()
	acked := append([]int{}, w.acked...)
	lost := time.Now()
	t.Logf("the primary is killed %s after it switched to another segment", lost.Sub(archived).Round(time.Second))
	d.eventually("the standby reports that the primary archives no more", 4*time.Minute, func() bool {
		f := d.report("b").Following
		return f.State == members.FollowCaughtUp && !f.Active
	})
	t.Logf("that the primary archives no more is known after %s", time.Since(lost).Round(time.Second))

	// Promotion: one change of Patroni's configuration.
	begun = time.Now()
	d.server.Standby = false
	d.compose()
	d.eventually("a member leads", time.Minute, func() bool { return d.leader() != "" })
	writer := d.write()
	writer.mu.Lock()
	writer.next = 1_000_000
	writer.mu.Unlock()
	writer.goesOn(30 * time.Second)
	t.Logf("writes are taken %s after the promotion", time.Since(begun).Round(time.Millisecond))
	there := d.rows(d.leader())
	missing := 0
	for _, id := range acked {
		if !there[id] {
			missing++
		}
	}
	t.Logf("of %d acknowledged rows %d were never archived and are lost", len(acked), missing)
	if len(acked)-missing < marked {
		t.Errorf("of %d acknowledged rows %d are lost, and %d had been archived", len(acked), missing, marked)
	}
	// Its own backups begin, in a stanza of its own.
	d.eventually("the other member follows", time.Minute, func() bool { return d.ready("a", "b") })
	// To make the stanza, a backup needs a moment in which nothing is archived. Its Job tries again.
	d.eventually("the promoted Database is backed up", 3*time.Minute, func() bool { taken, _ := d.backup(); return taken.Type == pgbackrest.Full })
	d.eventually("it archives", time.Minute, func() bool { return d.told(d.leader()).Archive == members.ArchiveOK && d.told(d.leader()).Label != "" })
	// The last report of the standby stays until its next look.
	d.eventually("the promoted Database reports nothing of a former primary that is away", time.Minute, func() bool {
		return d.report(d.leader()).Following.State == ""
	})

	// The former primary comes back and writes.
	c.start("a")
	c.eventually("the former primary is back", 2*time.Minute, func() bool { return c.ready("a") })
	again := c.write()
	again.mu.Lock()
	again.next = 2_000_000
	again.mu.Unlock()
	for range 2 {
		again.goesOn(10 * time.Second)
		c.switchLog("a")
	}
	again.stop()
	d.eventually("the second primary is told", 3*time.Minute, func() bool {
		return d.report(d.leader()).Following.State == members.FollowSecondPrimary
	})
	t.Logf("told: %s", d.report(d.leader()).Following.Message)
	for id := range d.rows(d.leader()) {
		if id >= 2_000_000 {
			t.Fatalf("row %d of the former primary is in the promoted Database", id)
		}
	}
	writer.check(t)
}
