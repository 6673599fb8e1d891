// SPDX-License-Identifier: Apache-2.0

package backups

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/images/member/report"
	"github.com/capstan-dev/capstan/images/member/vault"
	"github.com/capstan-dev/capstan/images/member/volume"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/mysql"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/repository"
)

const group = "3e11fa47-71ca-11e1-9e33-c80aa9429562"

// A disk is a server that has nothing but binary logs, in real files.
type disk struct {
	t    *testing.T
	dir  string
	logs mysql.Logs
	next int
}

func newDisk(t *testing.T, name string, executed gtid.Set) *disk {
	t.Helper()
	d := &disk{t: t, dir: t.TempDir(), logs: mysql.Logs{Server: uuid.NewSHA1(uuid.NameSpaceURL, []byte(name)).String(), Executed: executed, Expire: 24 * time.Hour, Purges: true}}
	d.begin()
	return d
}

// event of a binary log without checksums.
func event(kind byte, body []byte) []byte {
	out := binary.LittleEndian.AppendUint32(nil, uint32(time.Now().Unix()))
	out = append(out, kind, 1, 0, 0, 0)
	out = binary.LittleEndian.AppendUint32(out, uint32(19+len(body)))
	return append(append(out, make([]byte, 6)...), body...)
}

func (d *disk) begin() {
	d.next++
	var previous []byte
	n := 0
	for _, source := range []string{group, MarkSource("orders-1")} {
		last := d.logs.Executed.Last(source)
		if last == 0 {
			continue
		}
		n++
		id := uuid.MustParse(source)
		previous = append(previous, id[:]...)
		for _, v := range []int64{1, 1, last + 1} {
			previous = binary.LittleEndian.AppendUint64(previous, uint64(v))
		}
	}
	content := append([]byte("\xfebin"), event(15, make([]byte, 100))...)
	content = append(content, event(35, append(binary.LittleEndian.AppendUint64(nil, uint64(n)), previous...))...)
	d.logs.Files = append(d.logs.Files, mysql.LogFile{Name: fmt.Sprintf("binlog.%06d", d.next)})
	d.write(content)
}

// write to the last file.
func (d *disk) write(content []byte) {
	d.t.Helper()
	last := &d.logs.Files[len(d.logs.Files)-1]
	path := filepath.Join(d.dir, last.Name)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.Write(content)
		err = errors.Join(err, f.Close(), os.Chtimes(path, time.Now(), time.Now()))
	}
	if err != nil {
		d.t.Fatal(err)
	}
	last.Size += int64(len(content))
}

// commit the next n transactions of the group.
func (d *disk) commit(n int) {
	for range n {
		d.transaction(group, d.logs.Executed.Last(group)+1)
	}
}

func (d *disk) transaction(source string, number int64) {
	id := uuid.MustParse(source)
	body := append([]byte{0}, id[:]...)
	body = binary.LittleEndian.AppendUint64(body, uint64(number))
	body = append(body, make([]byte, 17)...)
	body = append(body, binary.LittleEndian.AppendUint64(nil, uint64(time.Now().UnixMicro()))[:7]...)
	d.write(append(event(33, body), event(2, make([]byte, 100))...))
	d.logs.Executed = d.logs.Executed.Union(numbers(d.t, source, number, number))
}

func numbers(t *testing.T, source string, first, last int64) gtid.Set {
	t.Helper()
	var b gtid.Builder
	if err := b.Add(source, "", first, last); err != nil {
		t.Fatal(err)
	}
	return b.Set()
}

func (d *disk) Logs(context.Context) (mysql.Logs, error) {
	out := d.logs
	out.Files = slices.Clone(out.Files)
	return out, nil
}

func (d *disk) PurgeLogs(_ context.Context, itself bool) error {
	d.logs.Purges = itself
	return nil
}

func (d *disk) PurgeBefore(_ context.Context, file string) error {
	for d.logs.Files[0].Name != file {
		if err := os.Remove(filepath.Join(d.dir, d.logs.Files[0].Name)); err != nil {
			return err
		}
		d.logs.Files = d.logs.Files[1:]
	}
	return nil
}

func (d *disk) Rotate(context.Context) error {
	d.write(event(4, make([]byte, 20)))
	d.begin()
	return nil
}

func (d *disk) Mark(_ context.Context, server string, number int64) error {
	d.transaction(server, number)
	return nil
}

// names of the files.
func (d *disk) names() string {
	out := make([]string, 0, len(d.logs.Files))
	for _, f := range d.logs.Files {
		out = append(out, strings.TrimLeft(strings.TrimPrefix(f.Name, "binlog."), "0"))
	}
	return strings.Join(out, " ")
}

// A bucket that backups are in. away is why it does not answer.
type bucket struct {
	// claimed is the first group that it was claimed for last, and the present one.
	claimed [2]string

	away, opening, unreadable error

	slow bool
	// busy buckets take logs, and no other objects.
	busy     bool
	logs     []repository.Log
	backups  []repository.Backup
	objects  map[string][]byte
	requests map[string]int
	// usage of the volume that it stands for, if it stands for one.
	usage vault.Usage
}

func newBucket() *bucket { return &bucket{objects: map[string][]byte{}, requests: map[string]int{}} }

func (b *bucket) request(what string) error {
	b.requests[what]++
	return b.away
}

func (b *bucket) Claim(_ context.Context, group, present string) error {
	b.claimed = [2]string{group, present}
	return b.request("claim")
}

func (b *bucket) Backups(context.Context) ([]repository.Backup, error) {
	return slices.Clone(b.backups), b.request("backups")
}

func (b *bucket) Unreadable() error { return b.unreadable }

func (b *bucket) Usage(context.Context) (vault.Usage, bool, error) {
	return b.usage, b.usage.Size > 0, nil
}

func (b *bucket) Logs(context.Context) ([]repository.Log, error) {
	return slices.Clone(b.logs), b.request("logs")
}

func (b *bucket) SaveLog(ctx context.Context, path string, l repository.Log) error {
	if err := b.request("save"); err != nil {
		return err
	}
	if b.slow {
		<-ctx.Done()
		return ctx.Err()
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	l.SHA256 = hex.EncodeToString(raw)
	for _, other := range b.logs {
		if other.Server == l.Server && other.File == l.File {
			if other.SHA256 != l.SHA256 {
				return repository.ErrDiffers
			}
			return nil
		}
	}
	b.logs = append(b.logs, l)
	return nil
}

func (b *bucket) ReadObject(_ context.Context, name string, into any) (bool, error) {
	if err := b.request("read " + name); err != nil {
		return false, err
	}
	raw, there := b.objects[name]
	if !there {
		return false, nil
	}
	return true, json.Unmarshal(raw, into)
}

func (b *bucket) WriteObject(_ context.Context, name string, value any) error {
	if err := b.request("write " + name); err != nil {
		return err
	}
	if b.busy {
		return errors.New("503 SlowDown")
	}
	var err error
	b.objects[name], err = json.Marshal(value)
	return err
}

func (b *bucket) ChangeObject(ctx context.Context, name string, value any, change func() error) error {
	if _, err := b.ReadObject(ctx, name, value); err != nil {
		return err
	}
	if err := change(); err != nil {
		return err
	}
	return b.WriteObject(ctx, name, value)
}

// backup of all that a server has executed.
func (b *bucket) backup(label string, executed gtid.Set) {
	b.backups = append(b.backups, repository.Backup{Label: label, Set: executed, Began: time.Now(), Ended: time.Now(), Size: 100, Added: 10})
}

// has is what the archive has.
func (b *bucket) has() string {
	var set gtid.Set
	for _, l := range b.logs {
		set = set.Union(l.Set)
	}
	return set.String()
}

// asked is how often the bucket was asked for what since the last time.
func (b *bucket) asked() map[string]int {
	out := maps.Clone(b.requests)
	clear(b.requests)
	return out
}

// A member with a Keeper.
type member struct {
	*disk

	keeper   *Keeper
	config   mysqlmember.Config
	leads    bool
	fullness string
	place    repository.Place
}

func newMember(t *testing.T, d *disk, b *bucket) *member {
	t.Helper()
	m := &member{disk: d, leads: true, fullness: volume.DiskOk, config: mysqlmember.Config{Generation: 1, Backup: &mysqlmember.Backup{
		Enabled: true, Stanza: "orders-1", Path: "/shop/orders", Queue: 1 << 20,
	}}}
	log := slog.New(slog.DiscardHandler)
	m.keeper = &Keeper{
		Server: d, Reporter: report.New(nil, log), Log: log, Data: d.dir, Note: filepath.Join(t.TempDir(), "archive.json"),
		Config: func() (mysqlmember.Config, error) { return m.config, nil }, Group: func(int) string { return group },
		Runs: func() bool { return true }, Leads: func() bool { return m.leads }, Disk: func() string { return m.fullness },
		Place: func(mysqlmember.Backup) repository.Place { return m.place },
		Open:  func(context.Context, repository.Place) (Repository, error) { return b, b.opening },
	}
	return m
}

// runs for a while. It returns how often the report changed.
func (m *member) runs(d time.Duration) int {
	report := func() []byte {
		raw, err := json.Marshal(m.keeper.Reporter.Report())
		if err != nil {
			m.t.Fatal(err)
		}
		return raw
	}
	changes := 0
	for until := time.Now().Add(d); time.Now().Before(until); {
		before := report()
		pause := m.keeper.Once(m.t.Context())
		if !bytes.Equal(before, report()) {
			changes++
		}
		time.Sleep(pause)
	}
	return changes
}

func (m *member) backup() members.BackupReport { return m.keeper.Reporter.Report().Backup }
