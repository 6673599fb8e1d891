// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/layout"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/repository"
)

// executed by a member until now.
func (c *cluster) executed(letter string) gtid.Set {
	c.t.Helper()
	s, err := gtid.Parse(c.inside(letter, "SELECT REPLACE(@@gtid_executed, '\n', '')"))
	if err != nil {
		c.t.Fatal(err)
	}
	return s
}

// archived transactions.
func (c *cluster) archived() gtid.Set {
	logs, err := c.repository().Logs(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	var out gtid.Set
	for _, l := range logs {
		out = out.Union(l.Set)
	}
	return out
}

// archives waits until the archive has what the leader had executed at the call.
func (c *cluster) archives(what string, within time.Duration) {
	c.t.Helper()
	want := c.executed(c.leader())
	took := c.eventually(what, within, func() bool { return c.archived().Contains(want) })
	c.t.Logf("%s after %s", what, took)
}

// told by the leader of its backups.
func (c *cluster) told() (members.BackupReport, []members.RestorePoint) {
	_, r, _ := c.status(c.leader())
	return r.Backup, r.RestorePoints
}

// TestArchive: the leader archives, whatever happens to the archive and to leaders, and says how it is.
func TestArchive(t *testing.T) {
	c := newArchivedCluster(t, "a", "b", "c")
	begin(t, c, "a", "b", "c")
	w := c.write()
	w.goesOn(10 * time.Second)
	for _, step := range []struct {
		name string
		do   func(*testing.T, *cluster, *writer)
	}{
		{"Archives", leaderArchives},
		{"RestorePoint", restorePoint},
		{"AwayAndFailover", archiveAwayAndFailover},
		{"WrongKey", wrongKey},
		{"Dropped", droppedBacklog},
	} {
		if !t.Run(step.name, func(t *testing.T) {
			c.t = t
			step.do(t, c, w)
		}) {
			break
		}
	}
	c.t = t
	w.check(t)
	c.oneLeader()
}

func leaderArchives(t *testing.T, c *cluster, _ *writer) {
	t.Helper()
	c.archives("all is archived", 90*time.Second)
	c.eventually("it tells so", 20*time.Second, func() bool { b, _ := c.told(); return b.Archive == members.ArchiveOK && b.Asked })
	if b, _ := c.told(); b.Label != "" || b.Unread != "" || b.Key != "" || b.Dropped != "" {
		t.Errorf("there is no backup yet, and it tells %+v", b)
	}
	if got := c.inside("a", "SELECT @@global.binlog_expire_logs_auto_purge"); got != "0" {
		t.Errorf("the server removes its logs itself: %s", got)
	}
	for _, l := range c.followers() {
		if _, r, _ := c.status(l); r.Backup != (members.BackupReport{}) {
			t.Errorf("the follower %s tells %+v", l, r.Backup)
		}
	}
	saved := repository.Backup{
		Label: "a-backup", Stanza: c.config.Backup.Stanza, Series: "9.7", Version: "9.7.4", Began: time.Now(), Ended: time.Now(), Set: c.executed(c.leader()),
		Group: c.identify("a").GroupName(c.config.Generation), Size: 4711, Added: 815,
	}
	raw, err := json.Marshal(saved)
	if err != nil {
		t.Fatal(err)
	}
	key := strings.TrimPrefix(c.config.Backup.Path, "/") + "/backup/" + saved.Stanza + "/" + saved.Label + ".json"
	if _, err := c.bucket.client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String(bucketName), Key: &key, Body: bytes.NewReader(raw)}); err != nil {
		t.Fatal(err)
	}
	took := c.eventually("the backup is told", 2*time.Minute, func() bool { b, _ := c.told(); return b.Label == saved.Label })
	b, _ := c.told()
	t.Logf("told after %s: %+v", took, b)
	if b.Type != "full" || b.Size != saved.Size || b.Added != saved.Added || b.Began == "" || b.Ended == "" ||
		b.Earliest != saved.Ended.Add(time.Second-1).Truncate(time.Second).UTC().Format(time.RFC3339) {
		t.Errorf("it tells %+v of %+v", b, saved)
	}
}

// restorePoint is a transaction that all members have, and is made once.
func restorePoint(t *testing.T, c *cluster, _ *writer) {
	t.Helper()
	c.config.Backup.RestorePoint = "before-v2"
	c.configure()
	took := c.eventually("the restore point is told", time.Minute, func() bool { _, p := c.told(); return len(p) == 1 })
	_, points := c.told()
	t.Logf("told after %s: %+v", took, points)
	mark, err := gtid.Parse(points[0].LSN)
	if err != nil || !c.archived().Contains(mark) {
		t.Errorf("the archive lacks %v (%v)", mark, err)
	}
	for _, l := range c.letters {
		c.eventually("all members have it", 10*time.Second, func() bool { return c.executed(l).Contains(mark) })
	}
	var written []members.RestorePoint
	if _, err := c.repository().ReadObject(t.Context(), layout.RestorePoints, &written); err != nil || len(written) != 1 || written[0].Label != points[0].Label {
		t.Fatalf("written down is %+v (%v)", written, err)
	}
	until, err := gtid.Parse(written[0].LSN)
	if err != nil || !until.Contains(mark) || !c.archived().Contains(until.Minus(mark)) {
		t.Errorf("what is before it is %v (%v)", until, err)
	}
}

// archiveAwayAndFailover: leaders change while the archive lags. There is no gap, and writes do not wait.
func archiveAwayAndFailover(t *testing.T, c *cluster, w *writer) {
	t.Helper()
	c.bucket.Stop()
	c.eventually("the leader tells that the archive fails", 2*time.Minute, func() bool { b, _ := c.told(); return b.Archive == members.ArchiveFailing })
	b, _ := c.told()
	t.Logf("%+v", b)
	if b.Since == "" || b.Message == "" || b.Label == "" {
		t.Errorf("it tells %+v", b)
	}
	w.reset()
	handOver(t, c, w)
	killed := c.leader()
	serverKilled(t, c, w)
	if c.leader() == killed {
		t.Error("no other member leads")
	}
	c.bucket.Start()
	c.archives("all is archived", 2*time.Minute)
	c.eventually("it tells so", 20*time.Second, func() bool {
		b, _ := c.told()
		return b.Archive == members.ArchiveOK && b.Since == "" && b.Message == ""
	})
	// Missing transactions would be told by then.
	time.Sleep(2*time.Minute + 20*time.Second)
	if b, p := c.told(); b.Dropped != "" || len(p) != 1 {
		t.Errorf("it tells %+v, %+v", b, p)
	}
}

func wrongKey(t *testing.T, c *cluster, _ *writer) {
	t.Helper()
	c.file("backup-key/"+mysqlmember.FileBackupKey, []byte("another key of a test, of more than twenty-four characters"))
	c.eventually("the wrong key is told", 2*time.Minute, func() bool {
		b, _ := c.told()
		return b.Key == members.KeyMismatch && b.Archive == members.ArchiveFailing
	})
	b, _ := c.told()
	t.Logf("%+v", b)
	c.file("backup-key/"+mysqlmember.FileBackupKey, []byte(backupKey))
	c.eventually("the right key is told", time.Minute, func() bool { b, _ := c.told(); return b.Key == "" && b.Archive == members.ArchiveOK })
}

// droppedBacklog: when more waits than may, the oldest is dropped, and it is told. Writes go on.
func droppedBacklog(t *testing.T, c *cluster, w *writer) {
	t.Helper()
	c.config.Backup.Queue = 8 << 20
	c.configure()
	c.bucket.Stop()
	conn := c.connect(c.leader(), consumer, "shop")
	defer func() { _ = conn.Close() }()
	if _, err := conn.ExecContext(t.Context(), "CREATE TABLE large (id BIGINT PRIMARY KEY, text LONGTEXT)"); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		for j := range 5 {
			if _, err := conn.ExecContext(t.Context(), "INSERT INTO large VALUES (?, ?)", 5*i+j, strings.Repeat("x", 1<<20)); err != nil {
				t.Fatal(err)
			}
		}
		if out := c.inside(c.leader(), "FLUSH NO_WRITE_TO_BINLOG BINARY LOGS"); out != "" {
			t.Fatal(out)
		}
	}
	took := c.eventually("the drop is told", time.Minute, func() bool { b, _ := c.told(); return b.Dropped != "" })
	t.Logf("told after %s", took)
	before := c.executed(c.leader())
	w.goesOn(10 * time.Second)
	c.bucket.Start()
	after := c.executed(c.leader()).Minus(before)
	c.eventually("what came after the drop is archived", 2*time.Minute, func() bool {
		b, _ := c.told()
		return b.Archive == members.ArchiveOK && b.Dropped != "" && !after.Empty() && c.archived().Contains(after)
	})
	lacks := before.Minus(c.archived())
	if lacks.Empty() {
		t.Error("the archive has everything, and a drop was told")
	}
	t.Logf("the archive lacks %s", lacks)
}
