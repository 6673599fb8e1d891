// SPDX-License-Identifier: Apache-2.0

//go:build integration

package backups

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/images/member/report"
	"github.com/capstan-dev/capstan/images/member/volume"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/layout"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/mysql"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/repository"
	"github.com/capstan-dev/capstan/test/outside"
)

func TestMain(m *testing.M) { os.Exit(outside.Main(m)) }

// A realLeader with a bucket.
type realLeader struct {
	t      *testing.T
	server *outside.MySQLServer
	bucket *outside.S3Server
	client *s3.Client
	dir    string
	config mysqlmember.Config
	keeper *Keeper
}

const bucketName, passphrase = "orders-backup", "a key of a test, of more than twenty-four characters"

func newReal(t *testing.T) *realLeader {
	t.Helper()
	r := &realLeader{t: t, server: outside.MySQL(t), bucket: outside.S3(t), dir: t.TempDir()}
	r.client = r.bucket.Client()
	for name, value := range r.bucket.Bucket(bucketName) {
		r.file("secret/"+name, value)
	}
	r.key(passphrase)
	r.config = mysqlmember.Config{Generation: 1, Backup: &mysqlmember.Backup{
		Enabled: true, Stanza: "orders-1", Path: "/shop/orders", Queue: 1 << 30, Encrypted: true,
	}}
	at := r.server.SQL("SELECT @@socket UNION ALL SELECT @@datadir")
	server, err := mysql.At(at[0], "root")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	r.keeper = &Keeper{
		Server: server, Reporter: report.New(nil, log), Log: log, Data: at[1], Note: filepath.Join(r.dir, "archive.json"),
		Config: func() (mysqlmember.Config, error) { return r.config, nil }, Group: func(int) string { return group },
		Runs: func() bool { return true }, Leads: func() bool { return true }, Disk: func() string { return volume.DiskOk },
		Place: func(mysqlmember.Backup) repository.Place { return r.place() },
		Open:  func(ctx context.Context, p repository.Place) (Repository, error) { return repository.Open(ctx, p) },
	}
	r.server.SQL("CREATE DATABASE shop", "CREATE TABLE shop.ledger (id BIGINT PRIMARY KEY, text LONGTEXT)")
	return r
}

func (r *realLeader) file(name, content string) {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func (r *realLeader) key(value string) { r.file("key/"+mysqlmember.FileBackupKey, value) }

func (r *realLeader) place() repository.Place {
	return repository.Place{
		Path: r.config.Backup.Path, Stanza: r.config.Backup.Stanza, Secret: filepath.Join(r.dir, "secret"), Key: filepath.Join(r.dir, "key"),
		Scratch: filepath.Join(r.dir, "scratch"),
	}
}

func (r *realLeader) executed() gtid.Set {
	r.t.Helper()
	s, err := gtid.Parse(r.server.SQL("SELECT @@gtid_executed")[0])
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// logs in the archive, by a repository of its own, and what they have.
func (r *realLeader) logs() (*repository.Repository, []repository.Log, gtid.Set) {
	r.t.Helper()
	repo, err := repository.Open(r.t.Context(), r.place())
	if err != nil {
		r.t.Fatal(err)
	}
	logs, err := repo.Logs(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	var set gtid.Set
	for _, l := range logs {
		set = set.Union(l.Set)
	}
	return repo, logs, set
}

func (r *realLeader) told() members.BackupReport { return r.keeper.Reporter.Report().Backup }

// TestRealServer archives the logs of a real server to a real bucket.
func TestRealServer(t *testing.T) {
	r := newReal(t)
	ctx := t.Context()
	r.server.SQL("INSERT INTO shop.ledger VALUES (1, 'one')")
	r.keeper.Once(ctx)
	if got := r.server.SQL("SELECT @@binlog_expire_logs_auto_purge")[0]; got != "0" {
		t.Errorf("the server removes its logs itself: %s", got)
	}
	r.server.SQL("FLUSH BINARY LOGS")
	want := r.executed()
	begun := time.Now()
	r.keeper.Once(ctx)
	t.Logf("archived within %s of the close of the log", time.Since(begun).Round(time.Millisecond))
	repo, logs, has := r.logs()
	if b := r.told(); b.Archive != members.ArchiveOK || !b.Asked || b.Unread != "" || !has.Contains(want) {
		t.Fatalf("with %q of %q in the archive it reports %+v", has, want, b)
	}
	for _, l := range logs {
		file := filepath.Join(t.TempDir(), l.File)
		if err := repo.LoadLog(ctx, l, file); err != nil {
			t.Fatal(err)
		}
		here, _ := os.ReadFile(filepath.Join(r.keeper.Data, l.File))
		there, _ := os.ReadFile(file)
		if !bytes.Equal(here, there) || len(here) == 0 {
			t.Errorf("%s is another one in the archive", l.File)
		}
	}

	raw, err := json.Marshal(repository.Backup{Label: "first", Stanza: "orders-1", Began: time.Now(), Ended: time.Now(), Set: want, Size: 4711})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.client.PutObject(ctx, &s3.PutObjectInput{Bucket: aws.String(bucketName), Key: aws.String("shop/orders/backup/orders-1/first.json"), Body: bytes.NewReader(raw)}); err != nil {
		t.Fatal(err)
	}
	r.keeper.inventory.asked = time.Time{}
	r.config.Backup.RestorePoint = "before-v2"
	for range 3 {
		r.keeper.Once(ctx)
	}
	points := r.keeper.Reporter.Report().RestorePoints
	if b := r.told(); b.Label != "first" || b.Size != 4711 || len(points) != 1 || b.RestorePointWait != "" {
		t.Fatalf("it reports %+v, %+v", b, points)
	}
	var written []members.RestorePoint
	if _, err := repo.ReadObject(ctx, layout.RestorePoints, &written); err != nil || len(written) != 1 || written[0].LSN != r.executed().String() {
		t.Errorf("written down is %+v (%v), and executed was %s", written, err, r.executed())
	}

	t.Run("Away", func(t *testing.T) {
		r.bucket.Stop()
		r.server.SQL("INSERT INTO shop.ledger VALUES (2, 'two')", "FLUSH BINARY LOGS")
		r.keeper.inventory.asked = time.Time{}
		r.keeper.Once(ctx)
		first := r.told()
		r.keeper.Once(ctx)
		t.Logf("%+v", first)
		if again := r.told(); again != first || first.Archive != members.ArchiveFailing || first.Since == "" || first.Message == "" || first.Label != "first" {
			t.Errorf("it reports %+v and then %+v", first, again)
		}
		r.bucket.Start()
		r.keeper.Once(ctx)
		if _, _, has := r.logs(); r.told().Archive != members.ArchiveOK || r.told().Message != "" || !has.Contains(r.executed()) {
			t.Errorf("with %q in the archive it reports %+v", has, r.told())
		}
	})
	t.Run("Key", func(t *testing.T) {
		for value, want := range map[string]string{"another key of a test, of more than twenty-four characters": members.KeyMismatch, "short": members.KeyInvalid} {
			r.key(value)
			r.keeper.Once(ctx)
			if b := r.told(); b.Key != want || b.Archive != members.ArchiveFailing || b.Message == "" {
				t.Errorf("with the key %q it reports %+v", value, b)
			}
			t.Log(r.told().Message)
		}
		if err := os.Remove(filepath.Join(r.dir, "key", mysqlmember.FileBackupKey)); err != nil {
			t.Fatal(err)
		}
		r.keeper.Once(ctx)
		if b := r.told(); b.Key != members.KeyMissing || b.Archive != members.ArchiveFailing {
			t.Errorf("without a key it reports %+v", b)
		}
		r.key(passphrase)
		r.keeper.Once(ctx)
		if b := r.told(); b.Key != "" || b.Archive != members.ArchiveOK {
			t.Errorf("with the key it reports %+v", b)
		}
	})
	t.Run("Dropped", func(t *testing.T) {
		before := r.executed()
		r.config.Backup.Queue = 2 << 20
		r.bucket.Stop()
		for i := range 4 {
			r.server.SQL(fmt.Sprintf("INSERT INTO shop.ledger VALUES (%d, '%s')", 10+i, strings.Repeat("x", 1<<20)), "FLUSH BINARY LOGS")
		}
		r.keeper.Once(ctx)
		if b := r.told(); b.Dropped == "" {
			t.Errorf("it reports %+v", b)
		}
		r.bucket.Start()
		r.keeper.Once(ctx)
		_, _, has := r.logs()
		missing := r.executed().Minus(before).Minus(has)
		t.Logf("the archive lacks %s; %+v", missing, r.told())
		if b := r.told(); b.Archive != members.ArchiveOK || missing.Empty() || missing.Contains(r.executed().Minus(before)) {
			t.Errorf("the archive lacks %q, and it reports %+v", missing, b)
		}
	})
}
