// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/member/volume"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/objectstore"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
	"github.com/capstan-dev/capstan/test/container"
)

// sizeOfRepository is how large the volume of backups of a test is.
const sizeOfRepository = 384 << 20

// A vault is the host of a volume of backups, as its StatefulSet makes it.
type vault struct {
	*cluster

	pod           *container.Running
	host, address string
	starts        int
}

// newVault of a cluster, with a volume of its own size. It is not started yet.
func newVault(c *cluster) *vault {
	c.t.Helper()
	v := &vault{cluster: c, host: database + "-repository." + c.ns + ".svc", address: fmt.Sprintf("127.%d.%d.9", c.net, c.sub)}
	c.reaches = append(c.reaches, v.line())
	folder := c.folder("data-repository")
	if err := unix.Mount("tmpfs", folder, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0770,uid=%d,gid=%d", sizeOfRepository, container.User, container.User)); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		if v.pod != nil {
			v.pod.Kill()
		}
		_ = unix.Unmount(folder, unix.MNT_DETACH)
	})
	v.shown("repository-server", pgmember.BackupCommonName, v.host)
	v.shown("bucket", pgmember.RepositoryCommonName)
	return v
}

// line of /etc/hosts that leads here.
func (v *vault) line() string { return v.address + " " + v.host + "\n" }

// shown certificate of a common name, as its Secret is mounted to a folder of a cluster.
func (v *vault) shown(folder, name string, hosts ...string) {
	v.t.Helper()
	cert, key, err := v.ca.Issue(name, hosts)
	if err != nil {
		v.t.Fatal(err)
	}
	v.open(v.cluster, folder, map[string][]byte{"tls.key": key, "tls.crt": cert, "ca.crt": v.ca.PEM})
}

// open a folder of a cluster with files that only the group of the server reads.
func (v *vault) open(c *cluster, folder string, files map[string][]byte) {
	v.t.Helper()
	for name, content := range files {
		c.file(folder+"/"+name, content)
		file := filepath.Join(c.base, folder, name)
		if err := errors.Join(os.Chmod(file, 0o440), os.Chown(file, 0, container.User)); err != nil {
			v.t.Fatal(err)
		}
	}
}

// opens what another cluster begins with: it gets the Secret of this one.
func (v *vault) opens(d *cluster) {
	v.t.Helper()
	files := map[string][]byte{}
	for _, name := range []string{"tls.key", "tls.crt", "ca.crt"} {
		raw, err := os.ReadFile(filepath.Join(v.base, "bucket", name))
		if err != nil {
			v.t.Fatal(err)
		}
		files[name] = raw
	}
	v.open(d, "source-repository", files)
	d.reaches = append(d.reaches, v.line())
}

// serve the volume.
func (v *vault) serve() {
	v.t.Helper()
	v.starts++
	scratch := filepath.Join(v.base, fmt.Sprintf("scratch-repository-%d", v.starts))
	if err := os.Mkdir(scratch, 0o755); err != nil {
		v.t.Fatal(err)
	}
	v.pod = container.Spec{
		Run: "postgresql", Root: v.root, Scratch: scratch, Program: v.program, Hosts: v.hosts(), Host: database + "-repository-0", Args: []string{"repository"},
		Mounts: map[string]string{
			pgmember.FolderVolume: v.folder("data-repository"), pgmember.FolderMembers: v.folder("repository-server"), pgmember.FolderBackupKey: v.folder("backup-key"),
		},
	}.Start(v.t, filepath.Join(v.logs, "log-repository"), []string{"POD_IP=" + v.address, "CAPSTAN_HEALTH_ADDRESS=" + net.JoinHostPort(v.address, strconv.Itoa(pgmember.PortHealth))})
	v.eventually("the volume is served", 30*time.Second, func() bool {
		return probed(net.JoinHostPort(v.address, strconv.Itoa(pgmember.PortHealth)), "/readyz") == nil
	})
}

// filler is the file that fills the volume.
func (v *vault) filler() string { return filepath.Join(v.base, "data-repository", "filler") }

// fill the volume to its last byte.
func (v *vault) fill() {
	v.t.Helper()
	u, err := volume.Measure(filepath.Dir(v.filler()))
	if err != nil {
		v.t.Fatal(err)
	}
	f, err := os.Create(v.filler())
	if err != nil {
		v.t.Fatal(err)
	}
	if err := errors.Join(unix.Fallocate(int(f.Fd()), 0, 0, u.Free), f.Close()); err != nil {
		v.t.Fatal(err)
	}
}

// copied makes a cluster that begins with what the volume has, and starts its first member.
func (v *vault) copied(key string, change func(*pgmember.Source)) *cluster {
	v.t.Helper()
	d := newClusterWith(v.t, []string{"a"}, restoring)
	v.opens(d)
	from := pgmember.Source{Path: v.settings().Path, Either: v.host, Encrypted: key != ""}
	change(&from)
	if key != "" {
		d.key("source-key", key)
	}
	d.want(pgmember.Config{From: &from})
	d.start("a")
	return d
}

// TestRepository: what is written goes to a volume that a host of its own serves, encrypted with a key that only those have who
// write and read. Backups are taken there, restored from there to a moment and to a restore point, and verified; and while nobody
// serves the volume, or while it is full, writes go on, what waits is bounded, and all goes on by itself.
func TestRepository(t *testing.T) {
	c := newClusterWith(t, []string{"a", "b"}, archives)
	c.key("backup-key", theKey)
	v := newVault(c)
	v.serve()
	settings := c.settings("a", "b")
	settings.Repository, settings.Encrypted, settings.Queue = v.host, true, 5*pgbackrest.SegmentSize
	c.want(pgmember.Config{Backup: &settings})
	begin(t, c, "a", "b")
	commit := func(id int) {
		t.Helper()
		conn, err := c.connect(t.Context(), c.leader(), "shop")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(context.Background()) }()
		if _, err := conn.Exec(t.Context(), "insert into public.ledger (id) values ($1)", id); err != nil {
			t.Fatal(err)
		}
	}
	commit(1)
	first, said := c.backup()
	if first.Type != pgbackrest.Full || first.Size == 0 {
		t.Fatalf("the first backup is %+v: %s", first, said)
	}
	c.eventually("the leader tells of the backup and of the volume", 2*time.Minute, func() bool {
		b := c.told(c.leader())
		return b.Label == first.Label && b.Archive == members.ArchiveOK && b.Repository.Disk == volume.DiskOk && b.Repository.FileSystem == fmt.Sprintf("%dMi", sizeOfRepository>>20)
	})
	if found := exposed(t, theKey, filepath.Join(c.base, "data-repository", "repository", "*", "*", "*")); len(found) > 0 {
		t.Errorf("the key is in %v", found)
	}
	if second, said := c.backup(); second.Type != pgbackrest.Incremental {
		t.Errorf("the second backup is %+v: %s", second, said)
	}
	settings.RestorePoint = "before-two"
	c.want(pgmember.Config{Backup: &settings})
	points := filepath.Join(c.base, "data-repository", "objects", objectstore.RestorePoints(settings.Path))
	c.eventually("the restore point is written down", 2*time.Minute, func() bool {
		raw, err := os.ReadFile(points)
		return err == nil && strings.Contains(string(raw), "before-two@")
	})
	commit(2)
	time.Sleep(1100 * time.Millisecond)
	at, err := time.Parse(time.RFC3339Nano, c.query(c.leader(), `select to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`))
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(1100 * time.Millisecond)
	commit(3)
	c.switchLog(c.leader())
	c.eventually("all is archived", time.Minute, func() bool { return c.archived(c.leader()) })
	t.Run("Copies", func(t *testing.T) {
		for name, tc := range map[string]struct {
			change func(*pgmember.Source)
			want   string
		}{
			"Moment": {func(s *pgmember.Source) { s.At = &at }, "2"},
			"Point":  {func(s *pgmember.Source) { s.RestorePoint = "before-two" }, "1"},
			"Latest": {func(*pgmember.Source) {}, "3"},
		} {
			d := v.copied(theKey, tc.change)
			d.eventually(name+": the copy is ready", 2*time.Minute, func() bool { return d.ready("a") })
			d.eventually(name+": the platform can log in", 30*time.Second, func() bool {
				conn, err := d.connect(t.Context(), "a", "shop")
				if err == nil {
					_ = conn.Close(context.Background())
				}
				return err == nil
			})
			if got := d.query("a", "select max(id)::text from public.ledger"); got != tc.want {
				t.Errorf("%s: the copy has rows up to %s, want %s", name, got, tc.want)
			}
			d.running("a").Kill()
		}
	})
	t.Run("WithoutKey", func(t *testing.T) {
		d := v.copied("", func(*pgmember.Source) {})
		d.eventually("it is told", 2*time.Minute, func() bool {
			reason, message := d.blockedBy("a")
			return reason == members.ReasonRestoreFailed && strings.Contains(message, "does not open with the key")
		})
		d.running("a").Kill()
	})
	t.Run("Verified", func(t *testing.T) {
		settings.Verify = &pgmember.Verify{Assertions: []pgmember.Assertion{{Database: "shop", SQL: "select count(*) = 3 from public.ledger"}}}
		c.want(pgmember.Config{Backup: &settings})
		_, said := c.verify("one")
		c.eventually("the leader tells of it", 2*time.Minute, func() bool {
			r := c.told(c.leader()).Verification
			return r.Asked && r.ID == "one" && r.Failure == "" && r.Passed.Assertions == 1
		})
		if t.Failed() {
			t.Logf("it said: %s", said)
		}
	})
	w := c.write()
	t.Run("Away", func(t *testing.T) {
		w.goesOn(10 * time.Second)
		w.reset()
		v.pod.Kill()
		for range 8 {
			w.goesOn(10 * time.Second)
			c.switchLog(c.leader())
		}
		c.eventually("that archiving fails and what was discarded is told", 3*time.Minute, func() bool {
			b := c.told(c.leader())
			return b.Archive == members.ArchiveFailing && b.Dropped != ""
		})
		if waits, err := pgbackrest.Backlog(filepath.Join(c.base, "data-"+c.leader(), "pgdata")); err != nil || waits > settings.Queue {
			t.Errorf("%d MiB wait, error %v", waits>>20, err)
		}
		within(t, w, 2*time.Second)
		if _, said := c.backup(); !strings.Contains(said, "cannot ask for a backup") {
			t.Errorf("who asks for a backup says %s", said)
		}
		v.serve()
		c.eventually("archiving goes on", 3*time.Minute, func() bool { return c.told(c.leader()).Archive == members.ArchiveOK })
		if after, said := c.backup(); after.Type != pgbackrest.Incremental {
			t.Errorf("no backup afterwards: %s", said)
		}
	})
	t.Run("Full", func(t *testing.T) {
		w.goesOn(10 * time.Second)
		w.reset()
		v.fill()
		c.switchLog(c.leader())
		w.goesOn(10 * time.Second)
		c.switchLog(c.leader())
		c.eventually("that the volume is full is told", 4*time.Minute, func() bool {
			b := c.told(c.leader())
			return b.Archive == members.ArchiveFailing && b.Repository.Disk == volume.DiskFull && b.Repository.UsedPercent >= 95
		})
		t.Logf("told: %+v", c.told(c.leader()))
		within(t, w, 2*time.Second)
		if err := os.Remove(v.filler()); err != nil {
			t.Fatal(err)
		}
		c.eventually("archiving goes on", 4*time.Minute, func() bool {
			b := c.told(c.leader())
			return b.Archive == members.ArchiveOK && b.Repository.Disk == volume.DiskOk
		})
		if after, said := c.backup(); after.Label == "" {
			t.Errorf("no backup afterwards: %s", said)
		}
	})
	w.check(t)
}
