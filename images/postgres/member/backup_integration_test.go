// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/outcome"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
	"github.com/capstan-dev/capstan/test/container"
	"github.com/capstan-dev/capstan/test/outside"
)

// bucket of the backups of a test.
const bucket = "orders-backup"

// A store is the S3 server of a test with its bucket.
type store struct {
	*outside.S3Server

	client *s3.Client
	secret map[string]string
}

// newStore with an empty bucket.
func newStore(t *testing.T) *store {
	t.Helper()
	server := outside.S3(t)
	return &store{server, server.Client(), server.Bucket(bucket)}
}

// connection files of the bucket, as its Secret is mounted.
func (s *store) connection(c *cluster, folder string) {
	c.t.Helper()
	for key, value := range s.secret {
		c.file(folder+"/"+key, []byte(value))
	}
}

// settings of the backups of a cluster.
func (c *cluster) settings(letters ...string) pgmember.Backup {
	s := pgmember.Backup{Enabled: true, Stanza: scope + "-17", Path: "/" + c.ns + "/" + database, Queue: 256 << 20, RetentionDays: 30}
	for _, l := range letters {
		s.Members = append(s.Members, c.podHost(l))
	}
	return s
}

// want backups, and a source to begin with.
func (c *cluster) want(w pgmember.Config) {
	c.t.Helper()
	raw, err := json.Marshal(map[string]any{"databases": []string{"shop"}, "extensions": []string{}, "volumes": []string{}, "backup": w.Backup, "from": w.From, "reinitialize": w.Reinitialize, "fence": w.Fence, "queries": w.Queries})
	if err != nil {
		c.t.Fatal(err)
	}
	c.file("config/member.json", raw)
}

// archives makes a cluster whose members archive.
func archives(c *cluster) { c.server.Archives, c.server.Archiving = true, true }

// backup as the pod of a CronJob takes it.
func (c *cluster) backup() (outcome.Backup, string) { return c.backupWithin(5 * time.Minute) }

// backupWithin the deadline of its Job.
func (c *cluster) backupWithin(deadline time.Duration) (outcome.Backup, string) {
	c.t.Helper()
	cert, key, err := c.ca.Issue(pgmember.BackupCommonName, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	c.file("client/tls.key", key)
	c.file("client/tls.crt", cert)
	c.file("client/ca.crt", c.ca.PEM)
	for _, name := range []string{"tls.key", "tls.crt", "ca.crt"} {
		if err := os.Chmod(filepath.Join(c.base, "client", name), 0o440); err != nil {
			c.t.Fatal(err)
		}
		_ = os.Chown(filepath.Join(c.base, "client", name), 0, container.User)
	}
	raw := c.jobWithin(deadline, "backup", map[string]string{pgmember.FolderMembers: filepath.Join(c.base, "client")}, "backup")
	var out outcome.Backup
	for line := range strings.SplitSeq(raw, "\n") {
		if strings.HasPrefix(line, `{"label"`) {
			_ = json.Unmarshal([]byte(line), &out)
		}
	}
	return out, raw
}

// job runs the program in a pod of its own, beside those of members, and returns what it says.
func (c *cluster) job(name string, mounts map[string]string, args ...string) string {
	c.t.Helper()
	return c.jobWithin(5*time.Minute, name, mounts, args...)
}

// jobWithin a deadline, after which it is killed.
func (c *cluster) jobWithin(deadline time.Duration, name string, mounts map[string]string, args ...string) string {
	c.t.Helper()
	scratch := filepath.Join(c.base, fmt.Sprintf("scratch-%s-%d", name, time.Now().UnixNano()))
	if err := os.Mkdir(scratch, 0o755); err != nil {
		c.t.Fatal(err)
	}
	log := filepath.Join(c.logs, "log-"+name)
	_ = os.Remove(log)
	all := map[string]string{
		"/etc/capstan/config": filepath.Join(c.base, "config"), pgmember.FolderBackup: filepath.Join(c.base, "bucket"), pgmember.FolderBackupKey: c.folder("backup-key"),
		folderCloudToken: c.folder("cloud-token"),
	}
	maps.Copy(all, mounts)
	r := container.Spec{Run: "postgresql", Root: c.root, Scratch: scratch, Program: c.program, Hosts: c.hosts(), Host: name, Args: args, Mounts: all}.Start(c.t, log, c.role())
	select {
	case <-r.Done():
	case <-time.After(deadline):
		r.Kill()
	}
	raw, err := os.ReadFile(log)
	if err != nil {
		c.t.Fatal(err)
	}
	return string(raw)
}

// told is what the pod of a member tells of backups.
func (c *cluster) told(letter string) members.BackupReport {
	return c.report(letter).Backup
}

// TestBackup under load, and what is told of it.
func TestBackup(t *testing.T) {
	s := newStore(t)
	c := newClusterWith(t, []string{"a", "b"}, archives)
	s.connection(c, "bucket")
	c.want(pgmember.Config{Backup: new(c.settings("a", "b"))})
	begin(t, c, "a", "b")
	w := c.write()
	w.goesOn(10 * time.Second)
	w.reset()
	first, said := c.backup()
	if first.Type != pgbackrest.Full || first.Size == 0 {
		t.Fatalf("the first backup is %+v: %s", first, said)
	}
	gap, failed := w.reset()
	t.Logf("backup %+v; longest gap in writing meanwhile: %s, %d tries failed", first, gap, failed)
	c.eventually("the leader tells of the backup", time.Minute, func() bool { return c.told(c.leader()).Label == first.Label })
	if got := c.told(c.leader()); got.Archive != members.ArchiveOK || got.Earliest == "" {
		t.Errorf("the leader tells %+v", got)
	}
	second, said := c.backup()
	if second.Type != pgbackrest.Incremental || second.Label == first.Label {
		t.Errorf("the second backup is %+v: %s", second, said)
	}
	w.check(t)
}

// switchLog lets the leader begin another segment, so that what was written comes into the archive now.
func (c *cluster) switchLog(letter string) {
	c.t.Helper()
	out, err := c.running(letter).Enter("psql", "-h", pgmember.FolderSocket, "-U", "postgres", "-Atc", "select pg_switch_wal()")
	if err != nil {
		c.t.Fatalf("cannot begin another segment: %v: %s", err, out)
	}
}

// loggable waits until the platform can log in to a member, which is made possible once that serves.
func (c *cluster) loggable(letter string) {
	c.t.Helper()
	c.eventually("the platform can log in", 30*time.Second, func() bool {
		conn, err := c.connect(c.t.Context(), letter, "shop")
		if err == nil {
			_ = conn.Close(context.Background())
		}
		return err == nil
	})
}

// query a member for one text.
func (c *cluster) query(letter, query string) string {
	c.t.Helper()
	conn, err := c.connect(c.t.Context(), letter, "shop")
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	var text string
	if err := conn.QueryRow(c.t.Context(), query).Scan(&text); err != nil {
		c.t.Fatalf("%s: %v", query, err)
	}
	return text
}

// archived reports whether nothing waits for the archive.
func (c *cluster) archived(letter string) bool {
	waits, err := pgbackrest.Backlog(filepath.Join(c.base, "data-"+letter, "pgdata"))
	return err == nil && waits == 0
}

// blockedBy is what blocks a member, as its pod tells.
func (c *cluster) blockedBy(letter string) (reason, message string) {
	r := c.report(letter)
	return r.Reason, r.Message
}

// report of a member about itself.
func (c *cluster) report(letter string) members.Report {
	var r members.Report
	_ = json.Unmarshal([]byte(c.pods()[letter].Annotations[members.AnnotationReport]), &r)
	return r
}

// restoring makes a cluster whose first member begins with a backup.
func restoring(c *cluster) { archives(c); c.server.Restored = true }

// restored cluster, whose first member is started and not waited for.
func restored(t *testing.T, s *store, from pgmember.Source, letters ...string) *cluster {
	t.Helper()
	c := newClusterWith(t, letters, restoring)
	s.connection(c, "bucket")
	s.connection(c, "source")
	c.want(pgmember.Config{Backup: new(c.settings(letters...)), From: &from})
	c.start("a")
	return c
}

// TestRestore into new Databases: to the moment before one commit, to the latest, to moments that there are not, and from a
// backup that was tampered with.
func TestRestore(t *testing.T) {
	s := newStore(t)
	c := newClusterWith(t, []string{"a"}, archives)
	s.connection(c, "bucket")
	c.want(pgmember.Config{Backup: new(c.settings("a"))})
	begin(t, c, "a")
	conn, err := c.connect(t.Context(), "a", "shop")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	commit := func(id int) {
		if _, err := conn.Exec(t.Context(), "insert into public.ledger (id) values ($1)", id); err != nil {
			t.Fatal(err)
		}
	}
	commit(1)
	taken, said := c.backup()
	if taken.Type != pgbackrest.Full {
		t.Fatalf("no backup: %s", said)
	}
	time.Sleep(1100 * time.Millisecond)
	for id := 2; id <= 50; id++ {
		commit(id)
	}
	// No commit is between the two but for those before and after the moment.
	var at time.Time
	if err := conn.QueryRow(t.Context(), "select clock_timestamp()").Scan(&at); err != nil {
		t.Fatal(err)
	}
	commit(51)
	commit(52)
	c.switchLog("a")
	c.eventually("all is archived", time.Minute, func() bool { return c.archived("a") })
	source := pgmember.Source{Path: c.settings().Path}
	t.Run("Moment", func(t *testing.T) {
		from := source
		from.At = &at
		d := restored(t, s, from, "a", "b")
		took := d.eventually("the copy is ready", 2*time.Minute, func() bool { return d.ready("a") })
		t.Logf("ready after %s", took)
		d.loggable("a")
		if got := d.query("a", "select count(*)::text || ' ' || max(id)::text from public.ledger"); got != "50 50" {
			t.Errorf("the copy has rows %s, want 50 50", got)
		}
		for query, want := range map[string]string{
			"select pg_is_in_recovery()::text": "false", "select current_setting('archive_mode')": "on",
		} {
			if got := d.query("a", query); got != want {
				t.Errorf("%s: %q, want %q", query, got, want)
			}
		}
		if reason, message := d.blockedBy("a"); reason != "" {
			t.Errorf("the copy tells %s: %s", reason, message)
		}
		// Those that follow have nothing of where the restore ended: they would stop there.
		d.start("b")
		d.eventually("another member follows the copy", 2*time.Minute, func() bool { return d.ready("a", "b") })
		for query, want := range map[string]string{
			"select pg_is_in_recovery()::text": "true", "select current_setting('recovery_target_time')": "", // A standby that its leader has outrun reads the archive.
			"select current_setting('restore_command')": members.Program + " fetch %f %p",
		} {
			if got := d.query("b", query); got != want {
				t.Errorf("of the follower %s: %q, want %q", query, got, want)
			}
		}
		// It has a place of its own for backups, and nothing was added to that of the source.
		own, said := d.backup()
		if own.Type != pgbackrest.Full {
			t.Errorf("the copy is not backed up: %s", said)
		}
		d.eventually("the copy tells of its backup", time.Minute, func() bool { return d.told("a").Label == own.Label && d.told("a").Archive == members.ArchiveOK })
		if again, said := c.backup(); again.Type != pgbackrest.Incremental {
			t.Errorf("the source is not backed up after its copy was made: %s", said)
		}
	})
	t.Run("TooEarly", func(t *testing.T) {
		from := source
		from.At = new(taken.Ended.Add(-time.Hour))
		d := restored(t, s, from, "a")
		d.eventually("it is told", time.Minute, func() bool {
			reason, message := d.blockedBy("a")
			return reason == members.ReasonRestoreFailed && strings.Contains(message, "the first time that can be restored is")
		})
	})
	t.Run("TooLate", func(t *testing.T) {
		from := source
		from.At = new(time.Now().Add(-time.Second))
		d := restored(t, s, from, "a")
		d.eventually("it is told", 2*time.Minute, func() bool {
			reason, message := d.blockedBy("a")
			return reason == members.ReasonRestoreFailed && strings.Contains(message, "what was archived ends before")
		})
		// It is tried again, and then what was archived may go on to the moment.
		commit(1000)
		c.switchLog("a")
		d.eventually("the copy is ready after all", 3*time.Minute, func() bool { return d.ready("a") })
		d.eventually("nothing blocks it any more", time.Minute, func() bool { reason, _ := d.blockedBy("a"); return reason == "" })
	})
	t.Run("BackupsExist", func(t *testing.T) {
		d := newClusterWith(t, []string{"a"}, archives)
		s.connection(d, "bucket")
		settings := d.settings("a")
		settings.Path, settings.Stanza = source.Path, "another-17"
		d.want(pgmember.Config{Backup: &settings})
		d.start("a")
		d.eventually("it waits beside backups of its name", time.Minute, func() bool {
			reason, message := d.blockedBy("a")
			return reason == members.ReasonBackupsExist && strings.Contains(message, scope+"-17")
		})
		settings.StartEmpty = true
		d.want(pgmember.Config{Backup: &settings})
		d.eventually("it begins when it is told to", 2*time.Minute, func() bool { return d.ready("a") })
	})
	t.Run("Tampered", func(t *testing.T) {
		s.tamper(t, strings.TrimPrefix(source.Path, "/")+"/backup/"+scope+"-17/"+taken.Label+"/bundle/")
		d := restored(t, s, source, "a")
		d.eventually("it is told", 2*time.Minute, func() bool {
			reason, _ := d.blockedBy("a")
			return reason == members.ReasonRestoreFailed
		})
		_, message := d.blockedBy("a")
		t.Logf("told: %s", message)
		if d.probe("a", "/readyz") == nil {
			t.Error("a backup that was tampered with is served")
		}
	})
}

// tamper with every object of a prefix: one bit in the middle.
func (s *store) tamper(t *testing.T, prefix string) {
	t.Helper()
	list, err := s.client.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: aws.String(bucket), Prefix: aws.String(prefix)})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Contents) == 0 {
		t.Fatalf("no objects of prefix %s", prefix)
	}
	for _, o := range list.Contents {
		got, err := s.client.GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String(bucket), Key: o.Key})
		if err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(got.Body)
		if err != nil {
			t.Fatal(err)
		}
		raw[len(raw)/2] ^= 1
		if _, err := s.client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String(bucket), Key: o.Key, Body: bytes.NewReader(raw)}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestArchiveAway: writes continue while the bucket cannot be reached, no more waits than may, released files are reported, and
// archiving goes on by itself.
func TestArchiveAway(t *testing.T) {
	s := newStore(t)
	c := newClusterWith(t, []string{"a"}, archives)
	s.connection(c, "bucket")
	settings := c.settings("a")
	settings.Queue = 5 * pgbackrest.SegmentSize
	c.want(pgmember.Config{Backup: &settings})
	begin(t, c, "a")
	if first, said := c.backup(); first.Type != pgbackrest.Full {
		t.Fatalf("no backup: %s", said)
	}
	c.eventually("all is archived", time.Minute, func() bool { return c.archived("a") })
	w := c.write()
	w.goesOn(10 * time.Second)
	w.reset()
	s.Stop()
	most := int64(0)
	for range 12 {
		w.goesOn(10 * time.Second)
		c.switchLog("a")
		if waits, err := pgbackrest.Backlog(filepath.Join(c.base, "data-a", "pgdata")); err == nil {
			most = max(most, waits)
		}
	}
	c.eventually("the gap is told", 2*time.Minute, func() bool { return c.told("a").Dropped != "" })
	c.eventually("that archiving fails is told", 2*time.Minute, func() bool { return c.told("a").Archive == members.ArchiveFailing })
	c.eventually("no more waits than may", time.Minute, func() bool {
		waits, err := pgbackrest.Backlog(filepath.Join(c.base, "data-a", "pgdata"))
		return err == nil && waits <= settings.Queue
	})
	t.Logf("at most %d MiB waited; told: %+v", most>>20, c.told("a"))
	within(t, w, 2*time.Second)
	s.Start()
	c.eventually("archiving goes on", 3*time.Minute, func() bool { return c.told("a").Archive == members.ArchiveOK })
	if second, said := c.backup(); second.Type != pgbackrest.Incremental {
		t.Errorf("no backup after the gap: %s", said)
	}
	c.eventually("the leader tells of the backup after the gap", time.Minute, func() bool { return c.told("a").Began > c.told("a").Dropped })
	w.check(t)
}
