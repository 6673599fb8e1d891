// SPDX-License-Identifier: Apache-2.0

package backups

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/images/member/vault"
	"github.com/capstan-dev/capstan/images/member/volume"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/layout"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/repository"
)

// each runs a test with a clock of its own, with a leader that has archived something and has a backup. The test of the leader belongs to
// that clock.
func each(t *testing.T, do func(m *member, b *bucket)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := newBucket()
		m := newMember(t, newDisk(t, "a", gtid.Set{}), b)
		m.commit(3)
		b.backup("first", numbers(t, group, 1, 1))
		m.runs(5 * time.Minute)
		b.asked()
		do(m, b)
	})
}

func stamps(ago time.Duration) string {
	return time.Now().Add(-ago).UTC().Truncate(time.Second).Format(time.RFC3339)
}

func TestArchive(t *testing.T) {
	each(t, func(m *member, b *bucket) {
		t := m.t
		want := members.BackupReport{
			Archive: members.ArchiveOK, Asked: true, Label: "first", Type: "full", Size: 100, Added: 10,
			Began: stamps(5 * time.Minute), Ended: stamps(5 * time.Minute), Earliest: stamps(5 * time.Minute),
		}
		if diff := cmp.Diff(want, m.backup()); diff != "" || b.has() != group+":1-3" {
			t.Errorf("the archive has %q: -want +got:\n%s", b.has(), diff)
		}
		m.commit(2)
		m.runs(time.Minute + leadEvery)
		if b.has() != group+":1-5" || b.logs[1].Previous.String() != group+":1-3" || b.logs[1].First.IsZero() {
			t.Errorf("a minute later the archive has %q of %v", b.has(), b.logs)
		}
		if m.logs.Purges {
			t.Error("the server removes logs itself")
		}
		b.asked()
		if n := m.runs(time.Hour); n != 0 {
			t.Errorf("an hour without a fact changes the report %d times", n)
		}
		if diff := cmp.Diff(map[string]int{"backups": 66, "logs": 6}, b.asked()); diff != "" {
			t.Errorf("an idle hour costs other requests: -want +got:\n%s", diff)
		}
		m.runs(25 * time.Hour)
		if m.names() != "3" {
			t.Errorf("the files %s are left, of which the archive has all but the last one, and none was written to for a day", m.names())
		}
	})
}

// TestAway: nothing is lost while the bucket does not answer for longer than logs are kept, and all comes when it is back.
func TestAway(t *testing.T) {
	each(t, func(m *member, b *bucket) {
		t := m.t
		begun := time.Now()
		b.away = errors.New("read tcp 10.0.0.1:4711->10.0.0.2:443: connection reset")
		changes := 0
		for range 30 {
			m.commit(1)
			changes += m.runs(time.Hour)
		}
		got := m.backup()
		since, err := time.Parse(time.RFC3339, got.Since)
		if err != nil || since.Sub(begun) > 2*time.Minute || got.Archive != members.ArchiveFailing || !strings.Contains(got.Message, "10.0.0.2:443") || got.Unread == "" {
			t.Errorf("it reports %+v", got)
		}
		if changes > 2 {
			t.Errorf("the report changed %d times", changes)
		}
		b.away = nil
		m.runs(time.Minute)
		if got := m.backup(); got.Archive != members.ArchiveOK || got.Since != "" || got.Message != "" || got.Dropped != "" || got.Unread != "" || b.has() != group+":1-33" {
			t.Errorf("with %q in the archive it reports %+v", b.has(), got)
		}
	})
}

// TestArchivedIsWritten: what the archive has is written down for verifications, also when that did not work at first and nothing is added.
func TestArchivedIsWritten(t *testing.T) {
	each(t, func(m *member, b *bucket) {
		b.busy = true
		m.commit(2)
		m.runs(5 * time.Minute)
		b.busy = false
		m.runs(5 * time.Minute)
		text := ""
		if _, err := b.ReadObject(m.t.Context(), layout.Archived("orders-1"), &text); err != nil || text != group+":1-5" || b.has() != text {
			m.t.Errorf("the archive has %q, and verifications know of %q: %v", b.has(), text, err)
		}
	})
}

// TestFailover: the next leader goes on from its own files, which are others, while the archive lags. There is no gap.
func TestFailover(t *testing.T) {
	each(t, func(m *member, b *bucket) {
		t := m.t
		next := newMember(t, newDisk(t, "b", numbers(t, group, 1, 2)), b)
		next.leads = false
		next.commit(1)
		m.commit(4)
		next.commit(4)
		b.away = errors.New("away")
		m.runs(10 * time.Minute)
		next.runs(10 * time.Minute)
		m.leads, next.leads, b.away = false, true, nil
		next.commit(2)
		next.runs(10 * time.Minute)
		m.runs(10 * time.Minute)
		if got := next.backup(); got.Archive != members.ArchiveOK || got.Dropped != "" || b.has() != group+":1-9" {
			t.Errorf("with %q in the archive the next leader reports %+v", b.has(), got)
		}
		if diff := cmp.Diff(members.BackupReport{}, m.backup()); diff != "" {
			t.Errorf("the former leader reports: -want +got:\n%s", diff)
		}
	})
}

// TestLost: a leader that lacks what the former one had not archived tells of a gap, once, until a backup has it.
func TestLost(t *testing.T) {
	each(t, func(m *member, b *bucket) {
		t := m.t
		next := newMember(t, newDisk(t, "b", numbers(t, group, 1, 6)), b)
		next.commit(2)
		next.runs(firstCheck - leadEvery)
		if got := next.backup(); got.Dropped != "" {
			t.Errorf("at once it reports %+v", got)
		}
		next.runs(time.Minute)
		first := next.backup()
		if first.Dropped == "" || first.Archive != members.ArchiveOK {
			t.Errorf("the archive lacks 4 to 6, and it reports %+v", first)
		}
		if n := next.runs(time.Hour); n != 0 {
			t.Errorf("the report changes %d times", n)
		}
		b.backup("second", next.logs.Executed)
		next.commit(3)
		next.runs(time.Hour)
		if got := next.backup(); got.Dropped != first.Dropped || got.Label != "second" {
			t.Errorf("after a backup it reports %+v", got)
		}
	})
}

// TestOtherHistory: when a group began with less than all transactions, the archive gets again what the members have of a log with others.
func TestOtherHistory(t *testing.T) {
	each(t, func(m *member, b *bucket) {
		t := m.t
		m.commit(4)
		m.runs(2 * time.Minute)
		b.backup("second", m.logs.Executed)
		const another = "4f22fa47-71ca-11e1-9e33-c80aa9429562"
		next := newMember(t, newDisk(t, "b", numbers(t, group, 1, 3)), b)
		next.commit(2)
		next.transaction(another, 1)
		next.runs(5 * time.Minute)
		if last := b.logs[len(b.logs)-1]; last.Set.String() != group+":4-5,"+another+":1" {
			t.Errorf("the archive lacks what is left of a log with lost transactions: it got %q", last.Set)
		}
		if got := next.backup(); got.Dropped == "" {
			t.Errorf("the last backup has lost transactions, so no moment can be restored from it, and it reports %+v", got)
		}
	})
}

// TestDropped: when more waits than may the oldest logs go, and it is told.
func TestDropped(t *testing.T) {
	cases := map[string]struct {
		reason   string
		untilLow bool
		disk     string
		slow     bool
		dropped  bool
	}{
		"Bound":    {"A bound of the spec counts.", false, volume.DiskOk, false, true},
		"Room":     {"Without one, logs wait as long as there is room.", true, volume.DiskOk, false, false},
		"Low":      {"A volume without room would stop the writes.", true, volume.DiskLow, false, true},
		"OnTheWay": {"What waits is looked at while a log is on its way, too.", false, volume.DiskOk, true, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			each(t, func(m *member, b *bucket) {
				t := m.t
				m.config.Backup.Queue, m.config.Backup.UntilLow, m.fullness = 5000, tc.untilLow, tc.disk
				if b.slow = tc.slow; !tc.slow {
					b.away = errors.New("away")
				}
				for range 20 {
					m.commit(5)
					m.runs(2 * time.Minute)
				}
				got := m.backup()
				if (got.Dropped != "") != tc.dropped {
					t.Errorf("%s It reports %+v", tc.reason, got)
				}
				var size int64
				for _, f := range m.logs.Files {
					size += f.Size
				}
				if tc.dropped != (size < 7000) {
					t.Errorf("%s %d bytes are left", tc.reason, size)
				}
				b.away, b.slow = nil, false
				m.runs(5 * time.Minute)
				if got := m.backup(); got.Archive != members.ArchiveOK || (b.has() == group+":1-103") == tc.dropped || !strings.HasSuffix(b.has(), "-103") {
					t.Errorf("with %q in the archive it reports %+v", b.has(), got)
				}
			})
		})
	}
}

// TestUnknown: a member that does not know what the archive has keeps its logs beyond the bound of the spec, while the volume has room. What it
// drops then is a gap only if the archive turns out to lack it.
func TestUnknown(t *testing.T) {
	cases := map[string]struct {
		reason         string
		leads          bool
		disk           string
		lacking        bool
		files, dropped bool
	}{
		"Leader":  {"The logs of a new leader may be in the archive.", true, volume.DiskOk, false, true, false},
		"Low":     {"A volume without room would stop the writes.", true, volume.DiskLow, false, false, false},
		"Lacking": {"What the archive lacks is missing then.", true, volume.DiskLow, true, false, true},
		"Standby": {"A standby would drop what the leader may be about to lose.", false, volume.DiskOk, true, true, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			each(t, func(m *member, b *bucket) {
				t := m.t
				m.commit(40)
				if !tc.lacking {
					m.runs(3 * time.Minute)
				}
				next := newMember(t, newDisk(t, "b", numbers(t, group, 1, 3)), b)
				next.commit(40)
				_ = next.Rotate(t.Context())
				next.leads, next.fullness, next.config.Backup.Queue = tc.leads, tc.disk, 1000
				b.away = errors.New("away")
				next.runs(time.Hour)
				if got := strings.HasPrefix(next.names(), "1 "); got != tc.files || next.backup().Dropped != "" {
					t.Errorf("%s The files %s are left, and it reports %+v", tc.reason, next.names(), next.backup())
				}
				b.away, next.leads = nil, true
				next.runs(10 * time.Minute)
				if got := next.backup(); (got.Dropped != "") != tc.dropped || got.Archive != members.ArchiveOK {
					t.Errorf("%s With %q in the archive it reports %+v", tc.reason, b.has(), got)
				}
			})
		})
	}
}

// TestOff: while backups are off the server removes its logs. Only what it removed is missing later.
func TestOff(t *testing.T) {
	for name, removed := range map[string]bool{"Short": false, "Long": true} {
		t.Run(name, func(t *testing.T) {
			each(t, func(m *member, b *bucket) {
				t := m.t
				m.config.Backup.Enabled = false
				m.commit(3)
				m.runs(time.Hour)
				if diff := cmp.Diff(members.BackupReport{}, m.backup()); diff != "" || !m.logs.Purges || len(b.asked()) != 0 {
					t.Errorf("the server purges: %t, and the report is: -want +got:\n%s", m.logs.Purges, diff)
				}
				_ = m.Rotate(t.Context())
				if removed {
					_ = m.PurgeBefore(t.Context(), m.logs.Files[len(m.logs.Files)-1].Name)
				}
				m.config.Backup.Enabled = true
				m.commit(1)
				m.runs(5 * time.Minute)
				if got := m.backup(); (got.Dropped != "") != removed || got.Archive != members.ArchiveOK || !strings.HasSuffix(b.has(), "7") {
					t.Errorf("with %q in the archive it reports %+v", b.has(), got)
				}
			})
		})
	}
}

func TestKey(t *testing.T) {
	each(t, func(m *member, b *bucket) {
		t := m.t
		m.place.Key = "another"
		b.opening = &repository.NotReadyError{Message: "the backups were made with another key: bring it back", Key: members.KeyMismatch}
		m.commit(1)
		m.runs(3 * time.Minute)
		got := m.backup()
		if got.Key != members.KeyMismatch || got.Archive != members.ArchiveFailing || !strings.Contains(got.Message, "another key") || got.Label != "first" {
			t.Errorf("it reports %+v", got)
		}
		b.opening, m.place.Key = nil, ""
		m.runs(time.Minute)
		if got := m.backup(); got.Key != "" || got.Archive != members.ArchiveOK || b.has() != group+":1-4" {
			t.Errorf("with %q in the archive it reports %+v", b.has(), got)
		}
	})
}

// TestFollower keeps its logs until the archive has their transactions, and says nothing.
func TestFollower(t *testing.T) {
	each(t, func(m *member, b *bucket) {
		t := m.t
		next := newMember(t, newDisk(t, "b", numbers(t, group, 1, 3)), b)
		next.leads = false
		next.commit(2)
		_ = next.Rotate(t.Context())
		next.commit(2)
		_ = next.Rotate(t.Context())
		next.runs(20 * time.Hour)
		if got := b.asked(); len(got) != 0 {
			t.Errorf("it asks for %v while its logs are kept anyway", got)
		}
		next.runs(10 * time.Hour)
		if next.names() != "1 2 3" {
			t.Errorf("the archive lacks its logs, and only %s are left", next.names())
		}
		if got := b.asked(); got["logs"] > 61 || got["backups"] > 61 || len(got) > 2 {
			t.Errorf("it asks for %v", got)
		}
		m.commit(3)
		m.runs(2 * time.Minute)
		next.runs(time.Hour)
		if next.names() != "2 3" {
			t.Errorf("the archive lacks a transaction of the second log, and %s are left", next.names())
		}
		m.commit(1)
		m.runs(2 * time.Minute)
		next.runs(time.Hour)
		if next.names() != "3" {
			t.Errorf("the archive has all, and %s are left", next.names())
		}
		if diff := cmp.Diff(members.BackupReport{}, next.backup()); diff != "" {
			t.Errorf("it reports: -want +got:\n%s", diff)
		}
	})
}

// TestSameName: a server that copied the data of another one begins its logs again, with the same names.
func TestSameName(t *testing.T) {
	each(t, func(m *member, b *bucket) {
		t := m.t
		again := newDisk(t, "a", numbers(t, group, 1, 3))
		next := newMember(t, again, b)
		next.commit(2)
		next.runs(5 * time.Minute)
		if got := next.backup(); got.Archive != members.ArchiveOK || b.has() != group+":1-5" || b.logs[0].Server != b.logs[1].Server || m.logs.Server != next.logs.Server {
			t.Errorf("with %q in the archive it reports %+v", b.has(), got)
		}
	})
}

// TestDamaged: a log that cannot be read is a gap, and does not stop those behind it.
func TestDamaged(t *testing.T) {
	each(t, func(m *member, b *bucket) {
		t := m.t
		m.commit(2)
		if err := os.Truncate(filepath.Join(m.dir, m.logs.Files[len(m.logs.Files)-1].Name), 250); err != nil {
			t.Fatal(err)
		}
		_ = m.Rotate(t.Context())
		m.commit(2)
		m.runs(5 * time.Minute)
		if got := m.backup(); got.Archive != members.ArchiveOK || got.Dropped == "" || b.has() != group+":1-3:6-7" {
			t.Errorf("with %q in the archive it reports %+v", b.has(), got)
		}
	})
}

// TestExpired: what the oldest backup has is not brought to the archive again, and a standby may remove it.
func TestExpired(t *testing.T) {
	each(t, func(m *member, b *bucket) {
		t := m.t
		b.backups, b.logs = nil, nil
		b.backup("second", m.logs.Executed)
		next := newMember(t, newDisk(t, "b", gtid.Set{}), b)
		next.leads = false
		next.commit(3)
		_ = next.Rotate(t.Context())
		again := newMember(t, m.disk, b)
		again.runs(30 * time.Hour)
		next.runs(30 * time.Hour)
		if b.has() != "" || next.names() != "2" || again.backup().Dropped != "" {
			t.Errorf("the archive has %q, the standby the files %s, and the leader reports %+v", b.has(), next.names(), again.backup())
		}
	})
}

// TestVanished: a bucket that was emptied begins again with what members have.
func TestVanished(t *testing.T) {
	each(t, func(m *member, b *bucket) {
		t := m.t
		b.backups, b.logs = nil, nil
		m.runs(5 * time.Minute)
		if got := b.asked(); got["claim"] != 1 || b.has() != group+":1-3" {
			t.Errorf("with %q in the archive it asked for %v", b.has(), got)
		}
	})
}

// TestEarliest: a restore to the time that the report shows is never before the first backup.
func TestEarliest(t *testing.T) {
	each(t, func(m *member, b *bucket) {
		t := m.t
		second := time.Now().Truncate(time.Second)
		for _, tc := range []struct{ ended, want time.Time }{{second, second}, {second.Add(time.Millisecond), second.Add(time.Second)}} {
			b.backups[0].Ended = tc.ended
			m.runs(2 * inventoryEvery)
			if got, want := m.backup().Earliest, tc.want.UTC().Format(time.RFC3339); got != want {
				t.Errorf("a backup that ended at %s can be restored from %s, want %s", tc.ended, got, want)
			}
		}
	})
}

// TestGroup: the stanza is told of a group that took the place of the first one, whose backups it would refuse otherwise.
func TestGroup(t *testing.T) {
	each(t, func(m *member, b *bucket) {
		t := m.t
		first := b.claimed[0]
		m.logs.Group = "4f22fa47-71ca-11e1-9e33-c80aa9429562"
		m.runs(time.Minute)
		if diff := cmp.Diff([2]string{first, m.logs.Group}, b.claimed); diff != "" || first == "" || b.asked()["claim"] != 1 {
			t.Errorf("the stanza is claimed once: -want +got:\n%s", diff)
		}
	})
}

// TestIndexLost: a leader adds again what the archive has lost, as long as it has the logs.
func TestIndexLost(t *testing.T) {
	each(t, func(m *member, b *bucket) {
		t := m.t
		b.logs = nil
		m.runs(readEvery + leadEvery)
		if got := m.backup(); b.has() != group+":1-3" || got.Dropped != "" || got.Archive != members.ArchiveOK {
			t.Errorf("with %q in the archive it reports %+v", b.has(), got)
		}
	})
}

// TestFullness: a volume that cannot be measured makes nobody drop logs.
func TestFullness(t *testing.T) {
	if got := fullness(filepath.Join(t.TempDir(), "none")); got != volume.DiskOk {
		t.Errorf("a volume that cannot be measured is %s", got)
	}
}

// TestRoom: the leader reports how full the volume of backups is, also while nothing fits there any more, and a bucket has no such report.
func TestRoom(t *testing.T) {
	each(t, func(m *member, b *bucket) {
		for _, step := range []struct {
			reason string
			happen func()
			want   members.RepositoryReport
		}{
			{"A bucket.", func() {}, members.RepositoryReport{}},
			{"A volume.", func() { b.usage = vault.Usage{Percent: 43, Size: 100 << 30} }, members.RepositoryReport{Disk: volume.DiskOk, UsedPercent: 40, FileSystem: "102400Mi"}},
			{"It is full.", func() { b.usage.Percent, b.away = 100, errors.New("the volume is full") }, members.RepositoryReport{Disk: volume.DiskFull, UsedPercent: 100, FileSystem: "102400Mi"}},
			{"There is room again.", func() { b.usage.Percent, b.away = 50, nil }, members.RepositoryReport{Disk: volume.DiskOk, UsedPercent: 50, FileSystem: "102400Mi"}},
			{"Backups went to a bucket.", func() { b.usage = vault.Usage{} }, members.RepositoryReport{}},
			{"A standby reports nothing.", func() { b.usage.Size, m.leads = 1<<30, false }, members.RepositoryReport{}},
		} {
			step.happen()
			m.commit(1)
			m.runs(3 * time.Minute)
			if diff := cmp.Diff(step.want, m.backup().Repository); diff != "" {
				m.t.Errorf("%s\n-want +got:\n%s", step.reason, diff)
			}
		}
	})
}

// TestNote: a gap that was told of is not forgotten with the file that tells of it.
func TestNote(t *testing.T) {
	each(t, func(m *member, _ *bucket) {
		t := m.t
		told := note{Dropped: new(time.Now().UTC().Truncate(time.Second))}
		if err := told.write(m.keeper.Note); err != nil {
			t.Fatal(err)
		}
		m.runs(time.Minute)
		if got := m.backup().Dropped; got != stamp(told.Dropped) {
			t.Fatalf("it reports the gap %q", got)
		}
		// A folder cannot be read, nor written over.
		away := m.keeper.Note + ".away"
		if err := errors.Join(os.Rename(m.keeper.Note, away), os.Mkdir(m.keeper.Note, 0o700)); err != nil {
			t.Fatal(err)
		}
		m.runs(time.Minute)
		if got := m.backup(); got.Dropped != stamp(told.Dropped) || got.Archive != members.ArchiveOK {
			t.Errorf("while the file cannot be read it reports %+v", got)
		}
		if err := errors.Join(os.Remove(m.keeper.Note), os.WriteFile(m.keeper.Note, []byte(`{"dropped":"20`), 0o600)); err != nil {
			t.Fatal(err)
		}
		m.runs(time.Minute)
		first := m.backup().Dropped
		m.runs(time.Hour)
		if got := m.backup().Dropped; first == "" || got != first {
			t.Errorf("with half a file it reports the gap %q, and an hour later %q", first, got)
		}
	})
}

func TestVerification(t *testing.T) {
	each(t, func(m *member, b *bucket) {
		t := m.t
		m.config.Backup.Verify = &mysqlmember.Verify{}
		b.objects["verification/orders-1"] = []byte(`{"ended":"2026-11-22T03:09:30Z","backup":"first"}`)
		m.runs(2 * time.Minute)
		want := members.VerificationReport{Asked: true, Ended: "2026-11-22T03:09:30Z", Backup: "first"}
		if diff := cmp.Diff(want, m.backup().Verification); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		b.asked()
		m.runs(time.Hour)
		if diff := cmp.Diff(map[string]int{"backups": 66, "logs": 6, "read verification/orders-1": 60}, b.asked()); diff != "" {
			t.Errorf("an idle hour costs other requests: -want +got:\n%s", diff)
		}
		m.config.Backup.Verify = nil
		m.runs(leadEvery)
		if diff := cmp.Diff(members.VerificationReport{}, m.backup().Verification); diff != "" {
			t.Errorf("backups are not verified: -want +got:\n%s", diff)
		}
	})
}

func TestPoints(t *testing.T) {
	each(t, func(m *member, b *bucket) {
		t := m.t
		first := b.backups
		b.backups = nil
		m.config.Backup.RestorePoint = "v1"
		m.runs(2 * time.Minute)
		if got := m.backup(); !strings.Contains(got.RestorePointWait, "first backup") || m.logs.Executed.String() != group+":1-3" {
			t.Errorf("without a backup it reports %+v", got)
		}
		b.backups, b.away = first, nil
		m.runs(time.Minute + 10*time.Second)
		points := m.keeper.Reporter.Report().RestorePoints
		if len(points) != 1 || points[0].Name != "v1" || points[0].LSN != MarkSource("orders-1")+":1" || points[0].Stanza != "orders-1" ||
			!strings.Contains(string(b.objects["restore-points"]), `"lsn":"`+group+":1-3,"+MarkSource("orders-1")+`:1"`) || !strings.HasPrefix(points[0].Label, "v1@") || m.backup().RestorePointWait != "" || !strings.Contains(b.has(), points[0].LSN) {
			t.Fatalf("with %q in the archive it reports %+v and %+v", b.has(), points, m.backup())
		}
		m.config.Backup.RestorePoint = "v2"
		b.away = errors.New("away")
		m.runs(5 * time.Minute)
		if got := m.backup(); !strings.Contains(got.RestorePointWait, "waits for the archive") || len(m.keeper.Reporter.Report().RestorePoints) != 1 {
			t.Errorf("while the archive is away it reports %+v", got)
		}
		b.away = nil
		m.runs(time.Minute)
		m.config.Backup.RestorePoint = "v1"
		next := newMember(t, newDisk(t, "b", m.logs.Executed), b)
		next.config = m.config
		next.runs(time.Hour)
		m.runs(time.Hour)
		for name, one := range map[string]*member{"leader": m, "next": next} {
			points := one.keeper.Reporter.Report().RestorePoints
			if len(points) != 2 || points[1].Name != "v2" || points[1].LSN != MarkSource("orders-1")+":2" {
				t.Errorf("each name is given once, and the %s reports %+v", name, points)
			}
		}
		other := newMember(t, newDisk(t, "c", m.logs.Executed), b)
		other.config = mysqlmember.Config{Generation: 2, Backup: &mysqlmember.Backup{Enabled: true, Stanza: "orders-2", Queue: 1 << 20, RestorePoint: "v1"}}
		other.runs(time.Minute)
		if got := other.backup(); !strings.Contains(got.RestorePointWait, "choose another name") || len(other.keeper.Reporter.Report().RestorePoints) != 0 {
			t.Errorf("another generation reports %+v", got)
		}
	})
}

// TestPointsOfTwo: what another leader wrote down since this one read the restore points stays.
func TestPointsOfTwo(t *testing.T) {
	each(t, func(m *member, b *bucket) {
		t := m.t
		m.config.Backup.RestorePoint = "v1"
		m.runs(2 * time.Minute)
		next := newMember(t, newDisk(t, "b", m.logs.Executed), b)
		next.config.Backup.RestorePoint = "v2"
		next.runs(2 * time.Minute)
		m.logs.Executed = next.logs.Executed
		m.config.Backup.RestorePoint = "v3"
		m.runs(2 * time.Minute)
		var names []string
		for _, p := range m.keeper.Reporter.Report().RestorePoints {
			names = append(names, p.Name)
		}
		if got := strings.Join(names, " "); got != "v1 v2 v3" || m.backup().RestorePointWait != "" {
			t.Errorf("it has %q, and reports %+v", got, m.backup())
		}
	})
}

// TestPointDropped: a restore point whose log was dropped is made again.
func TestPointDropped(t *testing.T) {
	each(t, func(m *member, b *bucket) {
		t := m.t
		m.config.Backup.RestorePoint = "v1"
		m.runs(time.Second)
		b.away = errors.New("away")
		m.runs(time.Minute)
		m.config.Backup.Queue = 500
		m.commit(10)
		m.runs(3 * time.Minute)
		m.config.Backup.Queue, b.away = 1<<20, nil
		m.runs(3 * time.Minute)
		points := m.keeper.Reporter.Report().RestorePoints
		if len(points) != 1 || points[0].LSN != MarkSource("orders-1")+":2" || !strings.Contains(b.has(), MarkSource("orders-1")+":2") {
			t.Errorf("with %q in the archive it reports %+v, %+v", b.has(), points, m.backup())
		}
		raw, err := os.ReadFile(m.keeper.Note)
		var n note
		if err != nil || json.Unmarshal(raw, &n) != nil || n.Dropped == nil {
			t.Errorf("the drop is not noted: %s, %v", raw, err)
		}
	})
}
