// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"path"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
)

// segments that the bucket has, by their number, on whichever timeline.
func (s *store) segments(t *testing.T) map[int64]bool {
	t.Helper()
	out := map[int64]bool{}
	pages := s3.NewListObjectsV2Paginator(s.client, &s3.ListObjectsV2Input{Bucket: aws.String(bucket)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range page.Contents {
			name, _, ok := strings.Cut(path.Base(*o.Key), "-")
			if !ok || len(name) != 24 || !strings.Contains(*o.Key, "/archive/") {
				continue
			}
			if n, err := strconv.ParseInt(name[20:], 16, 64); err == nil {
				out[n] = true
			}
		}
	}
	return out
}

// TestArchiveGap: whenever something did not reach the archive it is told, and what a leader left behind comes there all the same.
func TestArchiveGap(t *testing.T) {
	s := newStore(t)
	c := newClusterWith(t, []string{"a", "b"}, archives)
	s.connection(c, "bucket")
	settings := c.settings("a", "b")
	c.want(pgmember.Config{Backup: &settings})
	begin(t, c, "a", "b")
	if first, said := c.backup(); first.Type != pgbackrest.Full {
		t.Fatalf("no backup: %s", said)
	}
	c.eventually("all is archived", time.Minute, func() bool { return c.archived(c.leader()) })

	// The leader is lost while the bucket does not answer: the next one has what it had not archived.
	before := c.leader()
	s.Stop()
	first, _ := strconv.ParseInt(c.asSuperuser(before, "select right(pg_walfile_name(pg_current_wal_lsn()), 4)"), 16, 64)
	for range 4 {
		c.asSuperuser(before, "select pg_logical_emit_message(false, 'x', 'x')")
		c.switchLog(before)
	}
	c.eventually("the other member has it", time.Minute, func() bool {
		return c.asSuperuser(before, "select count(*) from pg_stat_replication where replay_lsn = pg_current_wal_lsn()") == "1"
	})
	c.running(before).Kill()
	c.eventually("another member leads", time.Minute, func() bool { return c.leader() != before && c.leader() != "" })
	now := c.leader()
	s.Start()
	c.start(before)
	c.eventually("both are ready", 2*time.Minute, func() bool { return c.ready("a", "b") })
	c.switchLog(now)
	c.eventually("archiving continues", 3*time.Minute, func() bool { return c.archived(now) && c.told(now).Archive == members.ArchiveOK })
	there := s.segments(t)
	for n := first; n < first+4; n++ {
		if !there[n] {
			t.Errorf("the archive lacks segment %d, which the former leader had not archived", n)
		}
	}
	if gap := c.told(now).Dropped; gap != "" {
		t.Errorf("a gap is told where there is none, of %s", gap)
	}

	// Off and on: nobody can restore what was written meanwhile, nor what follows, until the next backup.
	settings.Enabled = false
	c.want(pgmember.Config{Backup: &settings})
	time.Sleep(2 * time.Second)
	for range 2 {
		c.asSuperuser(now, "select pg_logical_emit_message(false, 'x', 'x')")
		c.switchLog(now)
	}
	c.eventually("nothing waits", time.Minute, func() bool { return c.archived(now) })
	settings.Enabled = true
	c.want(pgmember.Config{Backup: &settings})
	c.eventually("the gap is told", time.Minute, func() bool { return c.told(now).Dropped != "" })
	if next, said := c.backup(); next.Type == "" {
		t.Errorf("no backup after the gap: %s", said)
	}
	c.eventually("the leader tells of the backup after the gap", time.Minute, func() bool { return c.told(now).Began > c.told(now).Dropped })
}
