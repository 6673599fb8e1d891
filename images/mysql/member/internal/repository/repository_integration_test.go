// SPDX-License-Identifier: Apache-2.0

//go:build integration

package repository

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/images/member/bucket"
	"github.com/capstan-dev/capstan/images/member/certificate"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/vault"
	"github.com/capstan-dev/capstan/test/container"
	"github.com/capstan-dev/capstan/test/outside"
)

func TestMain(m *testing.M) {
	// The image has it in its PATH.
	if dir := os.Getenv("CAPSTAN_PROGRAM_MYSQL"); dir != "" {
		_ = os.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	}
	os.Exit(outside.Main(m))
}

const (
	group  = "aaaaaaaa-71ca-11e1-9e33-c80aa9429562"
	other  = "bbbbbbbb-71ca-11e1-9e33-c80aa9429562"
	server = "11111111-71ca-11e1-9e33-c80aa9429562"
)

// A fixture is a bucket of its own, or a volume that a host serves.
type fixture struct {
	t       *testing.T
	srv     *outside.S3Server
	bucket  string
	secret  map[string]string
	objects *objects
	// server of a volume, folder that it keeps objects in, and stop to end it.
	server, folder string
	stop           func()
}

// everywhere tests a repository in a bucket and one on a volume: both keep the same promises.
func everywhere(t *testing.T, test func(*testing.T, *fixture)) {
	t.Helper()
	t.Run("Bucket", func(t *testing.T) { test(t, begin(t)) })
	t.Run("Volume", func(t *testing.T) { test(t, onVolume(t)) })
}

// onVolume is a volume, empty, that a host serves with certificates of an authority of its own.
func onVolume(t *testing.T) *fixture {
	t.Helper()
	authority, err := container.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	issue := func(name string, hosts ...string) map[string]string {
		cert, key, err := authority.Issue(name, hosts)
		if err != nil {
			t.Fatal(err)
		}
		return map[string]string{"tls.crt": string(cert), "tls.key": string(key), "ca.crt": string(authority.PEM)}
	}
	f := &fixture{t: t, secret: issue(mysqlmember.RepositoryCommonName), folder: filepath.Join(t.TempDir(), "repository")}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	f.server = net.JoinHostPort("localhost", port)
	shown := folder(t, issue(mysqlmember.RepositoryHostCommonName, "localhost"))
	f.serve(vault.Host{
		Address: l.Addr().String(), Folder: f.folder, Volume: filepath.Dir(f.folder),
		Config: func() (*tls.Config, error) {
			return certificate.Identity(filepath.Join(shown, "tls.crt"), filepath.Join(shown, "tls.key"), filepath.Join(shown, "ca.crt"))
		},
	})
	s, err := openServed(f.server, f.place("", "").Secret)
	if err != nil {
		t.Fatal(err)
	}
	f.objects = &objects{store: s, place: "the volume"}
	return f
}

// serve the volume until the test ends, or it is stopped.
func (f *fixture) serve(h vault.Host) {
	f.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- h.Serve(ctx) }()
	f.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			f.t.Error(err)
		}
	})
	f.t.Cleanup(func() { f.stop() })
}

func begin(t *testing.T) *fixture {
	t.Helper()
	srv := outside.SharedS3(t)
	f := &fixture{t: t, srv: srv, bucket: "b-" + strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-"))}
	f.secret = map[string]string{
		"endpoint": srv.Endpoint, "region": srv.Region, "bucket": f.bucket, "accessKeyId": srv.AccessKey, "secretAccessKey": srv.SecretKey,
		"ca.crt": string(srv.CA),
	}
	c, err := bucket.Read(f.place("", "").Secret, nil)
	if err != nil {
		t.Fatal(err)
	}
	if f.objects, err = openBucket(c); err != nil {
		t.Fatal(err)
	}
	if _, err := f.api().CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &f.bucket, ObjectLockEnabledForBucket: aws.Bool(t.Name() == "TestLocked")}); err != nil {
		t.Fatal(err)
	}
	return f
}

// api of the bucket.
func (f *fixture) api() *s3.Client {
	f.t.Helper()
	b, ok := f.objects.store.(*inBucket)
	if !ok {
		f.t.Fatal("it is no bucket")
	}
	return b.api
}

func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func (f *fixture) place(stanza, key string) Place {
	f.t.Helper()
	p := Place{Path: "/demo/orders", Stanza: stanza, Secret: folder(f.t, f.secret), Server: f.server, Scratch: f.t.TempDir()}
	if key != "" {
		p.Key = folder(f.t, map[string]string{mysqlmember.FileBackupKey: key})
	}
	return p
}

func (f *fixture) open(stanza, key string) *Repository {
	f.t.Helper()
	r, err := Open(f.t.Context(), f.place(stanza, key))
	if err != nil {
		f.t.Fatal(err)
	}
	return r
}

func noise(seed uint64, size int) string {
	b := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{byte(seed)}).Read(b)
	return string(b)
}

func sets(t *testing.T, numbers string) gtid.Set {
	t.Helper()
	s, err := gtid.Parse(group + ":" + numbers)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func holds(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	got := map[string]string{}
	if err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(file)
		name, _ := filepath.Rel(dir, file)
		got[name] = string(raw)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if !cmp.Equal(want, got) {
		t.Errorf("the folder has %d files, want %d, or their content differs", len(got), len(want))
	}
}

// keys of all objects below a prefix.
func (f *fixture) keys(prefix string) (all []string) {
	f.t.Helper()
	found, err := f.objects.list(f.t.Context(), prefix, false)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, e := range found {
		all = append(all, e.key)
	}
	return all
}

func TestBackups(t *testing.T) {
	for name, key := range map[string]string{"Plain": "", "Encrypted": "correct horse battery staple"} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, f *fixture) { t.Helper(); testBackups(t, f, key) })
		})
	}
}

func testBackups(t *testing.T, f *fixture, key string) {
	t.Helper()
	ctx := t.Context()
	r := f.open("orders-1", key)
	if all, err := r.Backups(ctx); err != nil || len(all) != 0 {
		t.Errorf("an empty bucket has %v: %v", all, err)
	}
	if err := r.Expire(ctx, Retention{Days: 7}, time.Now()); err != nil {
		t.Error(err)
	}
	if keys := f.keys(""); len(keys) != 0 {
		t.Errorf("looking wrote %q", keys)
	}
	data := map[string]string{"ibdata1": noise(1, 9<<20), "shop/orders.ibd": noise(2, 3<<20), "mysql.ibd": "", "#innodb_redo/#ib_redo0": "redo"}
	dir := folder(t, data)
	began := time.Now().UTC().Truncate(time.Second)
	first, err := r.Save(ctx, dir, Backup{Series: "9.7", Version: "9.7.4", Began: began, Set: sets(t, "1-100"), Group: group})
	if err != nil {
		t.Fatal(err)
	}
	if first.Size != 12<<20+4 || first.Added < first.Size || first.Label == "" || first.Stanza != "orders-1" || first.Ended.Before(began) {
		t.Errorf("the first backup is %+v", first)
	}
	data["ibdata1"] = data["ibdata1"][:8<<20] + noise(3, 1<<20)
	second, err := r.Save(ctx, folder(t, data), Backup{Series: "9.7", Version: "9.7.4", Began: began, Set: sets(t, "1-200"), Group: group})
	if err != nil {
		t.Fatal(err)
	}
	if second.Added > 9<<20 {
		t.Errorf("a second backup added %d bytes, though most of it was there", second.Added)
	}
	all, err := r.Backups(ctx)
	if err != nil || len(all) != 2 || all[0].Label != first.Label || all[1].Set.String() != second.Set.String() || !all[1].Began.Equal(began) {
		t.Errorf("the backups are %+v: %v", all, err)
	}
	target := filepath.Join(t.TempDir(), "data")
	if err := r.Load(ctx, second.Label, target); err != nil {
		t.Fatal(err)
	}
	holds(t, target, data)
	if err := r.Load(ctx, first.Label, target); err == nil {
		t.Error("a backup is loaded into a folder that has another one")
	}
	if err := r.Load(ctx, "20200101-000000-00000000", t.TempDir()); !errors.Is(err, ErrNotFound) {
		t.Errorf("a backup that there is none of: %v", err)
	}
	if _, err := r.Save(ctx, dir, Backup{Group: other}); !errors.Is(err, ErrForeign) {
		t.Errorf("data of another group: %v", err)
	}
	// Another stanza has nothing of it, and no stanza lists both.
	next := f.open("orders-2", key)
	if _, err := next.Save(ctx, folder(t, map[string]string{"a": "1"}), Backup{Group: other, Ended: time.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	if all, err := f.open("", key).Backups(ctx); err != nil || len(all) != 3 || all[2].Stanza != "orders-2" {
		t.Errorf("all backups are %+v: %v", all, err)
	}
	if all, err := f.open("", key).Stanzas(ctx); err != nil || !cmp.Equal(all, []string{"orders-1", "orders-2"}) {
		t.Errorf("the stanzas are %q: %v", all, err)
	}
	// The first backup expires, and then what only it had is gone from the bucket.
	before := len(f.keys("demo/orders/copy/orders-1/data"))
	if err := r.Expire(ctx, Retention{Full: 1}, time.Now().Add(2*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if all, err := r.Backups(ctx); err != nil || len(all) != 1 || all[0].Label != second.Label {
		t.Errorf("one backup is kept of %+v: %v", all, err)
	}
	target = filepath.Join(t.TempDir(), "data")
	if err := r.Load(ctx, second.Label, target); err != nil {
		t.Fatal(err)
	}
	holds(t, target, data)
	t.Logf("%d packs before and %d after the first backup expired", before, len(f.keys("demo/orders/copy/orders-1/data")))
	// The former stanza goes once the present one has enough.
	if err := next.Expire(ctx, Retention{Full: 2, Former: []string{"orders-1", "orders-2"}}, time.Now()); err != nil {
		t.Fatal(err)
	}
	if all, err := r.Backups(ctx); err != nil || len(all) != 1 {
		t.Errorf("the former stanza is still needed, and has %+v: %v", all, err)
	}
	if err := next.Expire(ctx, Retention{Full: 1, Former: []string{"orders-1", "orders-2"}}, time.Now()); err != nil {
		t.Fatal(err)
	}
	if all, err := r.Backups(ctx); err != nil || len(all) != 0 {
		t.Errorf("the former stanza is needed no more, and has %+v: %v", all, err)
	}
	if err := next.Expire(ctx, Retention{Full: 1, Former: []string{"orders-1", "orders-2"}}, time.Now().Add(25*time.Hour)); err != nil {
		t.Fatal(err)
	}
	for _, key := range f.keys("") {
		if strings.Contains(key, "orders-1") {
			t.Errorf("%s is left of a stanza that was removed", key)
		}
	}
	if all, err := next.Backups(ctx); err != nil || len(all) != 1 {
		t.Errorf("the present stanza has %+v: %v", all, err)
	}
}

func TestKeys(t *testing.T) { everywhere(t, testKeys) }

func testKeys(t *testing.T, f *fixture) {
	t.Helper()
	const key = "correct horse battery staple"
	ctx := t.Context()
	r := f.open("orders-1", key)
	if err := r.WriteObject(ctx, "restore-points", []string{"a"}); err != nil {
		t.Fatal(err)
	}
	var points []string
	if found, err := f.open("orders-1", key).ReadObject(ctx, "restore-points", &points); err != nil || !found || !cmp.Equal(points, []string{"a"}) {
		t.Errorf("the object is %q, %t: %v", points, found, err)
	}
	if found, err := r.ReadObject(ctx, "verification/orders-1", &points); err != nil || found {
		t.Errorf("an object that is not there: %t, %v", found, err)
	}
	plain := f.place("orders-1", key)
	plain.Path = "/demo/plain"
	unencrypted := plain
	unencrypted.Key = ""
	p, err := Open(ctx, unencrypted)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.WriteObject(ctx, "x", 1); err != nil {
		t.Fatal(err)
	}
	missing, none := f.place("orders-1", ""), f.place("orders-1", "")
	missing.Key, none.Secret = t.TempDir(), t.TempDir()
	for name, tc := range map[string]struct {
		reason string
		place  Place
		want   string
	}{
		"Wrong":       {"Another key opens nothing.", f.place("orders-1", "another horse battery staple"), members.KeyMismatch},
		"None":        {"Nothing is ever written beside encrypted things as plain text.", f.place("orders-1", ""), members.KeyMismatch},
		"Unencrypted": {"What is there is plain text.", plain, members.KeyMismatch},
		"Missing":     {"A Secret without the key is not no encryption.", missing, members.KeyMissing},
		"Short":       {"What can be guessed is no key.", f.place("orders-1", "short"), members.KeyInvalid},
		"NoSecret":    {"The Secret of the bucket, or of the volume, is not there.", none, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(ctx, tc.place)
			var n *NotReadyError
			if !errors.As(err, &n) || n.Key != tc.want {
				t.Errorf("%s: got %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
	if f.server != "" {
		return
	}
	elsewhere := f.place("orders-1", key)
	if err := os.WriteFile(filepath.Join(elsewhere.Secret, "bucket"), []byte("nothing-here"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(ctx, elsewhere); err == nil || !strings.Contains(err.Error(), "NoSuchBucket") {
		t.Errorf("a bucket that is not there: %v", err)
	}
}

func TestLogs(t *testing.T) {
	for name, key := range map[string]string{"Plain": "", "Encrypted": "correct horse battery staple"} {
		t.Run(name, func(t *testing.T) { everywhere(t, func(t *testing.T, f *fixture) { t.Helper(); testLogs(t, f, key) }) })
	}
}

func testLogs(t *testing.T, f *fixture, key string) {
	t.Helper()
	ctx := t.Context()
	r := f.open("orders-1", key)
	if err := r.Claim(ctx, group, group); err != nil {
		t.Fatal(err)
	}
	if err := f.open("orders-1", key).Claim(ctx, other, other); !errors.Is(err, ErrForeign) {
		t.Errorf("a stanza that is claimed: %v", err)
	}
	content := strings.Repeat("INSERT INTO orders", 100000)
	file := filepath.Join(folder(t, map[string]string{"log": content}), "log")
	at := time.Date(2026, 11, 26, 12, 0, 0, 123456000, time.UTC)
	save := func(n int) Log {
		t.Helper()
		l := Log{
			Server: server, File: fmt.Sprintf("binlog.%06d", n), Previous: sets(t, fmt.Sprintf("1-%d", n*10)),
			Set: sets(t, fmt.Sprintf("%d-%d", n*10+1, n*10+10)), First: at, Last: at.Add(time.Second),
		}
		if err := r.SaveLog(ctx, file, l); err != nil {
			t.Fatal(err)
		}
		return l
	}
	for _, n := range []int{63, 64, 62, 200} {
		save(n)
	}
	save(64) // the same once more
	logs, err := r.Logs(ctx)
	if err != nil || len(logs) != 4 || logs[0].File != "binlog.000062" || logs[3].File != "binlog.000200" || !logs[1].First.Equal(at) ||
		logs[1].Size != int64(len(content)) || logs[1].Previous.String() != group+":1-630" {
		t.Fatalf("the logs are %+v: %v", logs, err)
	}
	fresh, err := f.open("orders-1", key).Logs(ctx)
	if diff := cmp.Diff(logs, fresh, cmp.Comparer(func(a, b gtid.Set) bool { return a.String() == b.String() })); diff != "" || err != nil {
		t.Errorf("another program reads them in another way: %v\n%s", err, diff)
	}
	target := filepath.Join(t.TempDir(), "log")
	if err := r.LoadLog(ctx, logs[1], target); err != nil {
		t.Fatal(err)
	}
	if raw, err := os.ReadFile(target); err != nil || string(raw) != content {
		t.Errorf("the log came back with %d bytes: %v", len(raw), err)
	}
	for _, object := range f.keys("demo/orders/log/orders-1/" + server + "/binlog") {
		body, _, err := r.objects.get(ctx, object)
		if err != nil {
			t.Fatal(err)
		}
		raw, _ := io.ReadAll(body)
		_ = body.Close()
		if len(raw) > 10000 || bytes.HasPrefix(raw, []byte("age-encryption.org")) != (key != "") {
			t.Errorf("%s begins with %q and has %d bytes", object, raw[:20], len(raw))
		}
	}
	changed := filepath.Join(folder(t, map[string]string{"log": "another"}), "log")
	if err := r.SaveLog(ctx, changed, logs[0]); !errors.Is(err, ErrDiffers) {
		t.Errorf("a log with another content: %v", err)
	}
	// A program was killed between a log and its index.
	late := Log{Server: server, File: "binlog.000201", Set: sets(t, "2011-2020")}
	s, err := r.sealed(ctx, true)
	if err != nil {
		t.Fatal(err)
	}
	at201, _, err := r.keys(late, s)
	if err != nil {
		t.Fatal(err)
	}
	var sealed bytes.Buffer
	if err := s.write(&sealed, strings.NewReader(content)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.objects.put(ctx, at201, bytes.NewReader(sealed.Bytes()), false); err != nil {
		t.Fatal(err)
	}
	if err := r.SaveLog(ctx, changed, late); !errors.Is(err, ErrDiffers) {
		t.Errorf("a log that is not listed, with another content: %v", err)
	}
	if err := r.SaveLog(ctx, file, late); err != nil {
		t.Error(err)
	}
	// Damage and loss are noticed.
	half := sealed.Bytes()[:sealed.Len()/2]
	if _, err := r.objects.put(ctx, at201, bytes.NewReader(half), false); err != nil {
		t.Fatal(err)
	}
	logs, err = r.Logs(ctx)
	if err != nil || len(logs) != 5 {
		t.Fatalf("the logs are %+v: %v", logs, err)
	}
	if err := r.LoadLog(ctx, logs[4], target); !errors.Is(err, ErrDamaged) {
		t.Errorf("half a log: %v", err)
	}
	if _, err := os.Stat(target); err == nil {
		t.Error("half a log is left in the file")
	}
	swapped := logs[1]
	swapped.SHA256 = strings.Repeat("0", 64)
	if err := r.LoadLog(ctx, swapped, target); !errors.Is(err, ErrDamaged) {
		t.Errorf("a log with another content: %v", err)
	}
	if err := r.objects.remove(ctx, at201); err != nil {
		t.Fatal(err)
	}
	if err := r.LoadLog(ctx, logs[4], target); !errors.Is(err, ErrNotFound) {
		t.Errorf("a lost log: %v", err)
	}
	// Logs that every backup has are removed, but those beside one that is needed, or that the server may be writing beside.
	backups := []manifest{{Backup: Backup{Set: sets(t, "1-640")}}}
	if err := r.expireLogs(ctx, "orders-1", backups, time.Now()); err != nil {
		t.Fatal(err)
	}
	if logs, err = r.Logs(ctx); err != nil || len(logs) != 3 || logs[0].File != "binlog.000064" {
		t.Errorf("the logs are %+v: %v", logs, err)
	}
	backups[0].Set = sets(t, "1-9000")
	if err := r.expireLogs(ctx, "orders-1", backups, time.Now()); err != nil {
		t.Fatal(err)
	}
	if logs, err = r.Logs(ctx); err != nil || len(logs) != 2 || logs[0].File != "binlog.000200" {
		t.Errorf("the logs are %+v: %v", logs, err)
	}
	if err := r.expireLogs(ctx, "orders-1", backups, time.Now().Add(2*day)); err != nil {
		t.Fatal(err)
	}
	if left := f.keys("demo/orders/log/"); len(left) != 0 {
		t.Errorf("%q are left of logs that nobody needs", left)
	}
}

// TestKilled kills backups while they are brought to the bucket.
func TestKilled(t *testing.T) { everywhere(t, testKilled) }

func testKilled(t *testing.T, f *fixture) {
	t.Helper()
	ctx := t.Context()
	r := f.open("orders-1", "")
	data := map[string]string{"ibdata1": noise(1, 48<<20)}
	dir := folder(t, data)
	c := r.copies("orders-1")
	if _, err := c.run(ctx, "", "init"); err != nil {
		t.Fatal(err)
	}
	begun := func() {
		t.Helper()
		for until := time.Now().Add(time.Minute); len(f.keys("demo/orders/copy/orders-1/data")) == 0; {
			if time.Now().After(until) {
				t.Error("the backup brought nothing to the bucket in time")
				return
			}
		}
	}
	// By force, as with the loss of a node: its lock stays.
	cmd, err := c.command(ctx, dir, "backup", "--limit-upload=4000", ".")
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	begun()
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if len(f.keys("demo/orders/copy/orders-1/locks/")) == 0 {
		t.Error("the lock did not stay, so that it proves nothing")
	}
	// In good order, as when the pod is deleted.
	killed, kill := context.WithCancel(ctx)
	time.AfterFunc(100*time.Millisecond, kill)
	if b, err := r.Save(killed, dir, Backup{Group: group}); err == nil {
		t.Fatalf("a backup that was killed counts: %+v", b)
	}
	// One that came to the bucket, and whose object did not.
	if _, err := c.save(ctx, folder(t, map[string]string{"lost": "1"})); err != nil {
		t.Fatal(err)
	}
	if all, err := r.Backups(ctx); err != nil || len(all) != 0 {
		t.Errorf("a backup that was killed counts: %+v, %v", all, err)
	}
	b, err := r.Save(ctx, dir, Backup{Group: group})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Expire(ctx, Retention{Full: 1}, time.Now()); err != nil {
		t.Fatal(err)
	}
	if all, err := c.list(ctx); err != nil || len(all) != 2 {
		t.Errorf("a snapshot whose object may come is expired: %+v, %v", all, err)
	}
	if err := r.Expire(ctx, Retention{Full: 1}, time.Now().Add(2*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if all, err := c.list(ctx); err != nil || len(all) != 1 {
		t.Errorf("the snapshots are %+v: %v", all, err)
	}
	target := filepath.Join(t.TempDir(), "data")
	if err := r.Load(ctx, b.Label, target); err != nil {
		t.Fatal(err)
	}
	holds(t, target, data)
}

// TestDamaged changes and deletes what a backup consists of.
func TestDamaged(t *testing.T) { everywhere(t, testDamaged) }

func testDamaged(t *testing.T, f *fixture) {
	t.Helper()
	ctx := t.Context()
	r := f.open("orders-1", "")
	if err := r.Claim(ctx, group, group); err != nil {
		t.Fatal(err)
	}
	// After an outage the group has another name.
	b, err := r.Save(ctx, folder(t, map[string]string{"ibdata1": noise(1, 4<<20)}), Backup{Group: other, Set: sets(t, "1-10")})
	if err != nil {
		t.Fatal(err)
	}
	packs := f.keys("demo/orders/copy/orders-1/data/")
	var largest string
	var content []byte
	for _, key := range packs {
		body, _, err := r.objects.get(ctx, key)
		if err != nil {
			t.Fatal(err)
		}
		raw, _ := io.ReadAll(body)
		_ = body.Close()
		if len(raw) > len(content) {
			largest, content = key, raw
		}
	}
	changed := bytes.Clone(content)
	changed[len(changed)/2] ^= 1
	if _, err := r.objects.put(ctx, largest, bytes.NewReader(changed), false); err != nil {
		t.Fatal(err)
	}
	if err := r.Load(ctx, b.Label, filepath.Join(t.TempDir(), "data")); !errors.Is(err, ErrDamaged) {
		t.Errorf("a copy with a bit that changed: %v", err)
	}
	if err := r.objects.remove(ctx, largest); err != nil {
		t.Fatal(err)
	}
	if err := r.Load(ctx, b.Label, filepath.Join(t.TempDir(), "data")); !errors.Is(err, ErrDamaged) {
		t.Errorf("a copy with a part that is gone: %v", err)
	}
	if _, err := r.objects.put(ctx, r.manifest("orders-1", b.Label), strings.NewReader("{"), false); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Backups(ctx); !errors.Is(err, ErrDamaged) {
		t.Errorf("half a description: %v", err)
	}
}

// TestLocked keeps backups in a bucket that gives nothing up for a day: what is deleted stays as a former version.
func TestLocked(t *testing.T) {
	f, ctx := begin(t), t.Context()
	if _, err := f.api().PutObjectLockConfiguration(ctx, &s3.PutObjectLockConfigurationInput{
		Bucket: &f.bucket, ObjectLockConfiguration: &types.ObjectLockConfiguration{
			ObjectLockEnabled: types.ObjectLockEnabledEnabled,
			Rule:              &types.ObjectLockRule{DefaultRetention: &types.DefaultRetention{Days: aws.Int32(1), Mode: types.ObjectLockRetentionModeCompliance}},
		},
	}); err != nil {
		t.Fatal(err)
	}
	r := f.open("orders-1", "")
	data := map[string]string{"ibdata1": noise(1, 1<<20)}
	dir := folder(t, data)
	var last Backup
	for range 2 {
		var err error
		if last, err = r.Save(ctx, dir, Backup{Group: group}); err != nil {
			t.Fatal(err)
		}
	}
	l := Log{Server: server, File: "binlog.000001", Set: sets(t, "1-10")}
	if err := r.SaveLog(ctx, filepath.Join(dir, "ibdata1"), l); err != nil {
		t.Fatal(err)
	}
	if err := r.Expire(ctx, Retention{Full: 1}, time.Now().Add(2*time.Hour)); err != nil {
		t.Fatal(err)
	}
	if all, err := r.Backups(ctx); err != nil || len(all) != 1 || all[0].Label != last.Label {
		t.Errorf("the backups are %+v: %v", all, err)
	}
	target := filepath.Join(t.TempDir(), "data")
	if err := r.Load(ctx, last.Label, target); err != nil {
		t.Fatal(err)
	}
	holds(t, target, data)
}

// TestBusy lets backups expire while one is restored.
func TestBusy(t *testing.T) { everywhere(t, testBusy) }

func testBusy(t *testing.T, f *fixture) {
	t.Helper()
	ctx := t.Context()
	r := f.open("orders-1", "")
	data := map[string]string{"ibdata1": noise(1, 16<<20)}
	dir := folder(t, data)
	var labels []string
	for range 2 {
		b, err := r.Save(ctx, dir, Backup{Group: group})
		if err != nil {
			t.Fatal(err)
		}
		labels = append(labels, b.Label)
	}
	all, _, err := r.manifests(ctx, "orders-1")
	if err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(t.TempDir(), "data")
	restore, err := r.copies("orders-1").command(ctx, "", "restore", all[0].Snapshot, "--target="+target, "--limit-download=3000")
	if err != nil {
		t.Fatal(err)
	}
	if err := restore.Start(); err != nil {
		t.Fatal(err)
	}
	for len(f.keys("demo/orders/copy/orders-1/locks/")) == 0 {
		time.Sleep(10 * time.Millisecond)
	}
	if err := r.Expire(ctx, Retention{Full: 1}, time.Now().Add(2*time.Hour)); !errors.Is(err, ErrBusy) {
		t.Errorf("copies expire while they are read: %v", err)
	}
	if all, err := r.Backups(ctx); err != nil || len(all) != 1 || all[0].Label != labels[1] {
		t.Errorf("the backups are %+v: %v", all, err)
	}
	if err := restore.Wait(); err != nil {
		t.Error(err)
	}
	holds(t, target, data)
	if err := r.Expire(ctx, Retention{Full: 1}, time.Now().Add(2*time.Hour)); err != nil {
		t.Error(err)
	}
	if all, err := r.copies("orders-1").list(ctx); err != nil || len(all) != 1 {
		t.Errorf("the snapshots are %+v: %v", all, err)
	}
}

// TestReader restores with keys that may only read.
func TestReader(t *testing.T) {
	f, ctx := begin(t), t.Context()
	r := f.open("orders-1", "")
	data := map[string]string{"ibdata1": noise(1, 1<<20)}
	b, err := r.Save(ctx, folder(t, data), Backup{Group: group})
	if err != nil {
		t.Fatal(err)
	}
	f.srv.AddUser("reader", "reader-secret")
	policy := fmt.Sprintf(`{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"AWS": ["reader"]},
		"Action": ["s3:GetObject", "s3:ListBucket"], "Resource": ["arn:aws:s3:::%[1]s", "arn:aws:s3:::%[1]s/*"]}]}`, f.bucket)
	if _, err := f.api().PutBucketPolicy(ctx, &s3.PutBucketPolicyInput{Bucket: &f.bucket, Policy: &policy}); err != nil {
		t.Fatal(err)
	}
	f.secret["accessKeyId"], f.secret["secretAccessKey"] = "reader", "reader-secret"
	reader := f.open("orders-1", "")
	target := filepath.Join(t.TempDir(), "data")
	if err := reader.Load(ctx, b.Label, target); err != nil {
		t.Fatal(err)
	}
	holds(t, target, data)
	if err := reader.WriteObject(ctx, "x", 1); err == nil || !strings.Contains(err.Error(), "AccessDenied") {
		t.Errorf("a key that may only read: %v", err)
	}
}
