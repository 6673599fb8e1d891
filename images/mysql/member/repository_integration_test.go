// SPDX-License-Identifier: Apache-2.0

//go:build integration

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/images/member/volume"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/layout"
	"github.com/capstan-dev/capstan/test/container"
)

// sizeOfRepository is how large the volume of backups of a test is.
const sizeOfRepository = 384 << 20

// letterOfVault stands for the pod that serves a volume of backups.
const letterOfVault = "v"

// A vault is the host of a volume of backups, as its StatefulSet makes it.
type vault struct {
	*cluster

	pod    *container.Running
	host   string
	starts int
}

// servedAt is host and port of a volume; "" for no host.
func servedAt(host string) string {
	if host == "" {
		return ""
	}
	return net.JoinHostPort(host, strconv.Itoa(mysqlmember.PortRepository))
}

// newVault is a cluster whose members archive to a volume, encrypted, and its host, which serves it. Members are not started yet.
func newVault(t *testing.T, letters ...string) *vault {
	t.Helper()
	c := newCluster(t, letters...)
	v := &vault{cluster: c, host: database + "-repository." + c.ns + ".svc"}
	c.network(letterOfVault)
	c.network(letterOfJobs)
	v.known(c)
	folder := c.folder("data-repository")
	if err := unix.Mount("tmpfs", folder, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0770,uid=%d,gid=%d", sizeOfRepository, container.User, container.User)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if v.pod != nil {
			v.pod.Kill()
		}
		_ = unix.Unmount(folder, unix.MNT_DETACH)
	})
	v.shown("repository-server", mysqlmember.RepositoryHostCommonName, v.host)
	v.shown("backup", mysqlmember.RepositoryCommonName)
	c.file("backup-key/"+mysqlmember.FileBackupKey, []byte(backupKey))
	c.config.Backup = &mysqlmember.Backup{
		Enabled: true, Stanza: scope + "-9.7", Path: "/" + c.ns + "/" + database, Repository: v.host, Queue: 256 << 20, RetentionDays: 30, Encrypted: true,
	}
	for _, l := range letters {
		c.config.Backup.Members = append(c.config.Backup.Members, layout.Host(c.identify(l).Name, c.podsHost()))
	}
	c.configure()
	v.serve()
	return v
}

// known to a cluster, and to this test.
func (v *vault) known(c *cluster) {
	address := v.identify(letterOfVault).IP
	c.named = map[string]string{v.host: address}
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort(v.dns, "53"))
	}}
}

// shown certificate of a common name, as its Secret is mounted to a folder.
func (v *vault) shown(folder, name string, hosts ...string) {
	v.t.Helper()
	cert, key, err := v.ca.Issue(name, hosts)
	if err != nil {
		v.t.Fatal(err)
	}
	v.file(folder+"/tls.key", key)
	v.file(folder+"/tls.crt", cert)
	v.file(folder+"/ca.crt", v.ca.PEM)
}

// serve the volume.
func (v *vault) serve() {
	v.t.Helper()
	v.starts++
	v.pod = container.Spec{
		Run: "mysqld", Root: v.root, Scratch: v.folder(fmt.Sprintf("scratch-repository-%d", v.starts)), Network: v.netns(letterOfVault), Program: container.Program,
		Hosts: hostsOf(), Host: database + "-repository-0", Args: []string{"repository"},
		Mounts: map[string]string{mysqlmember.FolderVolume: v.folder("data-repository"), mysqlmember.FolderMembers: v.folder("repository-server")},
	}.Start(v.t, filepath.Join(v.logs, "log-repository"), []string{"POD_IP=" + v.identify(letterOfVault).IP})
	v.eventually("the volume is served", 30*time.Second, func() bool { return v.probe(letterOfVault, "/readyz") == nil })
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

// copied makes a cluster that begins with what the volume has, and starts its member: as a copy with the Secret of the source in a folder of its
// own, or as a restore in place with the Secret of the Database itself.
func (v *vault) copied(t *testing.T, inPlace bool, s mysqlmember.Source) *cluster {
	t.Helper()
	n := newCluster(t, "a")
	s.Path, s.Encrypted = v.config.Backup.Path, true
	secret := "source-repository"
	if inPlace {
		s.Repository, secret = v.host, "source"
	} else {
		s.Either = v.host
	}
	n.config.Generation, n.config.From = 2, &s
	n.shared()
	for folder, to := range map[string]string{"backup": secret, "backup-key": "source-key"} {
		if err := os.CopyFS(n.folder(to), os.DirFS(v.folder(folder))); err != nil {
			t.Fatal(err)
		}
	}
	v.known(n)
	address := v.identify(letterOfVault).IP
	n.ip("-n", n.link()+"a", "address", "add", address+"/32", "dev", "lo")
	n.offer("a", net.JoinHostPort(address, strconv.Itoa(mysqlmember.PortRepository)))
	n.start("a")
	return n
}

// TestRepository: what is written goes to a volume that a host of its own serves, encrypted with a key that it does not have. Backups are brought
// there, restored from there to a moment and to a restore point, and verified. While it is not served, or full, writes go on, nothing of the
// archive is lost, and all goes on by itself.
func TestRepository(t *testing.T) {
	v := newVault(t, "a", "b")
	c := v.cluster
	begin(t, c, "a", "b")
	insert := func(id int) {
		t.Helper()
		conn := c.connect(c.leader(), consumer, "shop")
		defer func() { _ = conn.Close() }()
		if _, err := conn.ExecContext(t.Context(), fmt.Sprintf("INSERT INTO ledger (id) VALUES (%d)", id)); err != nil {
			t.Fatal(err)
		}
	}
	insert(1)
	first, said := c.backup()
	if first.Label == "" || first.Size == 0 || first.Type != "full" {
		t.Fatalf("the first backup is %+v: %s", first, said)
	}
	c.eventually("the leader tells of the backup and of the volume", 2*time.Minute, func() bool {
		b, _ := c.told()
		return b.Label == first.Label && b.Archive == members.ArchiveOK && b.Repository.Disk == volume.DiskOk && b.Repository.FileSystem == fmt.Sprintf("%dMi", sizeOfRepository>>20)
	})
	c.config.Backup.RestorePoint = "before-two"
	c.configure()
	c.eventually("the restore point is made", 2*time.Minute, func() bool { _, p := c.told(); return len(p) == 1 && p[0].Name == "before-two" })
	insert(2)
	insert(3)
	all := c.committed(c.leader())
	between := all[len(all)-2].Committed
	t.Run("Copies", func(t *testing.T) {
		for _, tc := range []struct {
			name    string
			inPlace bool
			from    mysqlmember.Source
			want    []int
		}{
			{"Latest", false, mysqlmember.Source{}, []int{1, 2, 3}},
			{"Point", false, mysqlmember.Source{RestorePoint: "before-two"}, []int{1}},
			{"InPlace", true, mysqlmember.Source{Stanza: c.config.Backup.Stanza, At: &between}, []int{1, 2}},
		} {
			n := v.copied(t, tc.inPlace, tc.from)
			n.eventually(tc.name+": the copy serves", 5*time.Minute, func() bool { return n.ready("a") })
			if got := n.ids("a"); !slices.Equal(got, tc.want) {
				t.Errorf("%s: it has the rows %v, want %v", tc.name, got, tc.want)
			}
			n.running("a").Kill()
		}
	})
	t.Run("WithoutKey", func(t *testing.T) {
		n := v.copied(t, false, mysqlmember.Source{})
		n.config.From.Encrypted = false
		n.shared()
		n.eventually("it is told", 2*time.Minute, func() bool {
			_, r, _ := n.status("a")
			return r.Reason == members.ReasonRestoreFailed && strings.Contains(r.Message, "is encrypted, and no key is given")
		})
		n.running("a").Kill()
	})
	t.Run("Verified", func(t *testing.T) {
		c.t = t
		c.config.Backup.Verify = &mysqlmember.Verify{Assertions: []mysqlmember.Assertion{{Database: "shop", SQL: "select count(*) = 3 from ledger"}}}
		c.configure()
		said, left := c.job("", "verify", "--id=one")
		c.eventually("the leader tells of it", 2*time.Minute, func() bool {
			b, _ := c.told()
			return b.Verification.ID == "one" && b.Verification.Failure == "" && b.Verification.Passed.Assertions == 1
		})
		if len(left) > 0 || t.Failed() {
			t.Errorf("it left %v on its volume: %s", left, said)
		}
	})
	c.t = t
	w := c.write()
	failing := func(b members.BackupReport) bool { return b.Archive == members.ArchiveFailing }
	t.Run("Away", func(t *testing.T) {
		c.t = t
		w.goesOn(10 * time.Second)
		v.pod.Kill()
		c.eventually("that archiving fails is told", 3*time.Minute, func() bool { b, _ := c.told(); return failing(b) })
		w.goesOn(20 * time.Second)
		if taken, said := c.backup(); taken.Label != "" {
			t.Errorf("a backup is taken to a volume that is not served: %s", said)
		}
		v.serve()
		c.archives("all is archived", 3*time.Minute)
		c.eventually("it is told", time.Minute, func() bool { b, _ := c.told(); return b.Archive == members.ArchiveOK && b.Dropped == "" })
	})
	t.Run("Full", func(t *testing.T) {
		c.t = t
		v.fill()
		w.goesOn(10 * time.Second)
		c.eventually("that the volume is full is told", 4*time.Minute, func() bool {
			b, _ := c.told()
			return failing(b) && b.Repository.Disk == volume.DiskFull && b.Repository.UsedPercent >= 95
		})
		b, _ := c.told()
		t.Logf("told: %+v", b)
		w.goesOn(20 * time.Second)
		if err := os.Remove(v.filler()); err != nil {
			t.Fatal(err)
		}
		c.archives("all is archived", 3*time.Minute)
		c.eventually("it is told", 3*time.Minute, func() bool {
			b, _ := c.told()
			return b.Archive == members.ArchiveOK && b.Repository.Disk == volume.DiskOk && b.Dropped == ""
		})
	})
	c.t = t
	w.check(t)
	c.config.Backup.RetentionDays, c.config.Backup.RetentionFull = 0, 1
	c.configure()
	second, said := c.backup()
	if kept, err := c.repository().Backups(t.Context()); err != nil || len(kept) != 1 || kept[0].Label != second.Label {
		t.Errorf("of the backups are kept %+v, %v: %s", kept, err, said)
	}
	refused(t, v)
}

// refused is who comes without the right certificate.
func refused(t *testing.T, v *vault) {
	t.Helper()
	v.shown("another", mysqlmember.BackupCommonName)
	for _, name := range []string{"tls.key", "tls.crt", "ca.crt"} {
		raw, err := os.ReadFile(filepath.Join(v.base, "another", name))
		if err != nil {
			t.Fatal(err)
		}
		v.file("backup/"+name, raw)
	}
	c := http.Client{Timeout: 5 * time.Second}
	if res, err := c.Get("https://" + servedAt(v.host) + "/usage"); err == nil {
		_ = res.Body.Close()
		t.Errorf("who has no certificate is answered %s", res.Status)
	}
	v.eventually("the certificate of backups opens nothing", 2*time.Minute, func() bool {
		b, _ := v.told()
		return b.Archive == members.ArchiveFailing && strings.Contains(b.Message, "the certificate is not one that may do that")
	})
}
