// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/repository"
)

const group = "3f2a9c1b-0000-4000-8000-000000000001"

func set(numbers string) gtid.Set {
	if numbers == "" {
		return gtid.Set{}
	}
	s, err := gtid.Parse(group + ":" + numbers)
	if err != nil {
		panic(err)
	}
	return s
}

// minute of a day.
func minute(m int) time.Time { return time.Date(2026, 11, 26, 3, m, 0, 0, time.UTC) }

func TestChoose(t *testing.T) {
	backup := func(label string, ended int, numbers string) repository.Backup {
		return repository.Backup{Label: label, Began: minute(ended - 1), Ended: minute(ended), Set: set(numbers)}
	}
	log := func(server, file, previous, numbers string, first, last int) repository.Log {
		return repository.Log{Server: server, File: file, Previous: set(previous), Set: set(numbers), First: minute(first), Last: minute(last)}
	}
	backups := []repository.Backup{backup("one", 10, "1-100"), backup("two", 30, "1-250")}
	// b leads from 24 on. It has what it received of a in its own logs as well, and its first log is from when it joined.
	logs := []repository.Log{
		log("b", "binlog.000007", "1-180", "181-220:1000001-1000020", 18, 25),
		log("a", "binlog.000001", "", "1-50", 1, 5),
		log("a", "binlog.000002", "1-50", "51-150", 5, 15),
		log("a", "binlog.000003", "1-150", "151-200", 15, 20),
		log("b", "binlog.000008", "1-220:1000001-1000020", "221-250:1000021-1000100", 25, 40),
	}
	without := func(file string) (out []repository.Log) {
		for _, l := range logs {
			if l.File != file {
				out = append(out, l)
			}
		}
		return out
	}
	at := func(m int) Target { m2 := minute(m); return Target{At: &m2} }
	point := func(numbers string) Target { return Target{Point: &Point{Name: "v1", At: "then", Set: set(numbers)}} }
	for name, tc := range map[string]struct {
		reason string
		logs   []repository.Log
		target Target
		backup string
		want   []string
		err    string
	}{
		"Latest":      {"The latest backup is continued by what it lacks.", logs, Target{}, "two", []string{"b7", "b8"}, ""},
		"Time":        {"A time begins with the backup before it, and ends with the log that it is in.", logs, at(19), "one", []string{"a2", "a3", "b7"}, ""},
		"Between":     {"A log that begins after the time is not replayed.", logs, at(17), "one", []string{"a2", "a3"}, ""},
		"Failover":    {"Logs of the next leader go on where those of the former one end.", logs, at(26), "one", []string{"a2", "a3", "b7", "b8"}, ""},
		"AtBackup":    {"A backup has what was committed when it ended.", logs, at(30), "two", []string{"b7", "b8"}, ""},
		"Early":       {"Nothing is there from before the first backup.", logs, at(9), "", nil, "the first time that can be restored is 2026-11-26T03:10:00Z"},
		"Late":        {"Nothing is known of what was not archived.", logs, at(41), "", nil, "ends with what was committed at 2026-11-26T03:40:00Z"},
		"BeforeGap":   {"What is before a gap can be restored.", without("binlog.000003"), at(14), "one", []string{"a2"}, ""},
		"AcrossGap":   {"What is after it cannot.", without("binlog.000003"), at(19), "", nil, "between 2026-11-26T03:15:00Z and 2026-11-26T03:18:00Z, at least " + group + ":151-180. Choose a time up to 2026-11-26T03:15:00Z, or one from 2026-11-26T03:30:00Z on"},
		"LatestGap":   {"The latest is refused as well when something before it is missing.", without("binlog.000007"), Target{}, "", nil, "at least " + group + ":1000001-1000020"},
		"Point":       {"A restore point begins with the backup before it.", logs, point("1-170"), "one", []string{"a2", "a3"}, ""},
		"EarlyPoint":  {"Its backup may have expired.", logs, point("1-99"), "", nil, "the backup before it is kept no longer"},
		"UnknownPast": {"Or what leads to it was not archived.", logs[:1], point("1-170"), "", nil, "the archive has a gap"},
		"LatePoint":   {"Or is not archived yet.", logs, point("1-250:1000001-1000200"), "", nil, `does not reach the restore point "v1": it lacks ` + group + ":1000101-1000200"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Choose(backups, tc.logs, tc.target)
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Fatalf("%s: got the error %v, want %q", tc.reason, err, tc.err)
			}
			var files []string
			for _, l := range got.Logs {
				files = append(files, l.Server+l.File[len(l.File)-1:])
			}
			if diff := cmp.Diff([]any{tc.backup, tc.want}, []any{got.Backup.Label, files}); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
	if _, err := Choose(nil, logs, Target{}); err == nil || !strings.Contains(err.Error(), "there is no backup") {
		t.Errorf("without a backup: %v", err)
	}
}

// TestChooseIdle: when nothing was committed after the last log, a backup that was begun after the moment shows that all is there, by what the
// leader had then. It was taken of a standby, which may be behind.
func TestChooseIdle(t *testing.T) {
	backups := []repository.Backup{
		{Label: "one", Began: minute(9), Ended: minute(10), Set: set("1-100")}, {Label: "two", Began: minute(40), Ended: minute(41), Set: set("1-140"), Leader: set("1-150")},
	}
	logs := []repository.Log{{Server: "a", File: "binlog.000002", Previous: set("1-50"), Set: set("51-150"), First: minute(5), Last: minute(15)}}
	at := minute(30)
	if p, err := Choose(backups, logs, Target{At: &at}); err != nil || p.Backup.Label != "one" {
		t.Errorf("got %v, %v", p, err)
	}
	backups[1].Leader = set("1-151")
	if _, err := Choose(backups, logs, Target{At: &at}); err == nil {
		t.Error("a transaction that is not archived may be from before the moment")
	}
	backups[1].Leader = gtid.Set{}
	if _, err := Choose(backups, logs, Target{At: &at}); err == nil {
		t.Error("nobody knows what a leader had that did not answer")
	}
}

// TestChooseClocks: the clock of a backup's pod may be behind the leader's, and the backup has what was committed after the moment.
func TestChooseClocks(t *testing.T) {
	backups := []repository.Backup{
		{Label: "one", Began: minute(9), Ended: minute(10), Set: set("1-100")}, {Label: "two", Began: minute(18), Ended: minute(19), Set: set("1-170")},
	}
	logs := []repository.Log{
		{Server: "a", File: "binlog.000002", Previous: set("1-50"), Set: set("51-150"), First: minute(5), Last: minute(15)},
		{Server: "a", File: "binlog.000003", Previous: set("1-150"), Set: set("151-200"), First: minute(21), Last: minute(25)},
	}
	at := minute(20)
	if p, err := Choose(backups, logs, Target{At: &at}); err != nil || p.Backup.Label != "one" || len(p.Logs) != 1 {
		t.Errorf("got %v, %v", p, err)
	}
}

// TestChooseHistory: a had committed and archived 101 to 105 when it was lost with its volume. A person let a group of another name begin with
// c, which has 1 to 100.
func TestChooseHistory(t *testing.T) {
	const begun = "4f22fa47-71ca-11e1-9e33-c80aa9429562"
	own := func(text string) gtid.Set {
		s, err := gtid.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	line := func(numbers string) gtid.Set { return set("1-100").Union(own(begun + ":" + numbers)) }
	before := repository.Backup{Label: "before", Began: minute(1), Ended: minute(2), Set: set("1-80"), Group: group}
	ended := repository.Backup{Label: "ended", Began: minute(9), Ended: minute(9), Set: set("1-103"), Group: group}
	idle := repository.Backup{Label: "idle", Began: minute(18), Ended: minute(19), Set: set("1-100"), Group: begun, Leader: set("1-100")}
	after := repository.Backup{Label: "after", Began: minute(29), Ended: minute(30), Set: line("1-4"), Group: begun}
	logs := []repository.Log{
		{Server: "a", File: "binlog.000001", Previous: set("1-70"), Set: set("71-100"), First: minute(1), Last: minute(7)},
		{Server: "a", File: "binlog.000002", Previous: set("1-100"), Set: set("101-105"), First: minute(8), Last: minute(10)},
		{Server: "c", File: "binlog.000003", Previous: set("1-100"), Set: own(begun + ":1-9"), First: minute(20), Last: minute(35)},
	}
	// A group that began with nothing knows nothing of the former one.
	empty := repository.Backup{Label: "empty", Began: minute(29), Ended: minute(30), Set: own(begun + ":1-4"), Group: begun}
	alone := func(first, last int) []repository.Log {
		return append(slices.Clone(logs[:2]), repository.Log{Server: "c", File: "binlog.000001", Set: own(begun + ":1-9"), First: minute(first), Last: minute(last)})
	}
	at := func(m int) Target { m2 := minute(m); return Target{At: &m2} }
	point := func(s gtid.Set) Target { return Target{Point: &Point{Name: "v1", At: "then", Set: s}} }
	for name, tc := range map[string]struct {
		reason  string
		backups []repository.Backup
		logs    []repository.Log
		target  Target
		backup  string
		want    []string
		err     string
	}{
		"Latest":    {"What ended is not replayed over data that went another way.", []repository.Backup{before, after}, logs, Target{}, "after", []string{"c3"}, ""},
		"Old":       {"Nor from a backup that both have.", []repository.Backup{before}, logs, Target{}, "before", []string{"a1", "c3"}, ""},
		"Ended":     {"A backup of what ended is passed over.", []repository.Backup{before, ended}, logs, Target{}, "before", []string{"a1", "c3"}, ""},
		"OnlyEnded": {"Without another one nothing can be restored to now.", []repository.Backup{ended}, logs, Target{}, "", nil, "all 1 backups are of a history that ended"},
		"Idle":      {"A group goes another way before its first transaction.", []repository.Backup{before, idle}, logs[:2], Target{}, "idle", nil, ""},
		"Since":     {"A time after the new beginning is in its history.", []repository.Backup{before, ended}, logs, at(34), "before", []string{"a1", "c3"}, ""},
		"Then":      {"A time before it is in the one that ended.", []repository.Backup{before, after}, logs, at(9), "before", []string{"a1", "a2"}, ""},
		"Between":   {"What was committed until then is not known.", []repository.Backup{before, after}, logs, at(15), "", nil, "ends with what was committed at 2026-11-26T03:10:00Z"},
		"NoProof":   {"A backup of the next history says nothing of what ended.", []repository.Backup{before, idle}, logs[:2], at(15), "", nil, "ends with what was committed at 2026-11-26T03:10:00Z"},
		"Point":     {"A restore point of what ended has it.", []repository.Backup{before, after}, logs, point(set("1-104")), "before", []string{"a1", "a2"}, ""},
		"LatePoint": {"One of the next does not.", []repository.Backup{before, ended}, logs, point(line("1-8")), "before", []string{"a1", "c3"}, ""},
		"Empty":     {"One that began with nothing is known by its time.", []repository.Backup{before, empty}, alone(20, 35), Target{}, "empty", []string{"c1"}, ""},
		"Stray":     {"A member that was written to by itself has no later history.", []repository.Backup{before, {Label: "stray", Began: minute(3), Ended: minute(4), Set: set("1-90").Union(own(begun + ":1"))}}, logs[:2], Target{}, "", nil, "has " + begun + ":1 alone"},
		"Unsure":    {"As long as clocks may differ by more it is not sure.", []repository.Backup{before}, alone(8, 10), Target{}, "", nil, "one ends at 2026-11-26T03:10:00Z and has " + group + ":1-105 alone, one ends at 2026-11-26T03:10:00Z and has " + begun + ":1-9 alone. Choose a time before 2026-11-26T03:01:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Choose(tc.backups, tc.logs, tc.target)
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Fatalf("%s: got the error %v, want %q", tc.reason, err, tc.err)
			}
			var files []string
			for _, l := range got.Logs {
				files = append(files, l.Server+l.File[len(l.File)-1:])
			}
			if diff := cmp.Diff([]any{tc.backup, tc.want}, []any{got.Backup.Label, files}); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestChoosePoint: what has nothing beyond a restore point is replayed before a log that has to be cut.
func TestChoosePoint(t *testing.T) {
	backups := []repository.Backup{{Label: "one", Began: minute(1), Ended: minute(2), Set: set("1-100")}}
	logs := []repository.Log{
		{Server: "b", File: "binlog.000001", Previous: set("1-100"), Set: set("101-150"), First: minute(3), Last: minute(9)},
		{Server: "a", File: "binlog.000001", Previous: set("1-100"), Set: set("101-120"), First: minute(3).Add(time.Second), Last: minute(5)},
		{Server: "a", File: "binlog.000002", Previous: set("1-120"), Set: set("121-140"), First: minute(6), Last: minute(8)},
	}
	for name, tc := range map[string]struct {
		reason, point string
		want          []string
	}{
		"Whole": {"The log that ends with it needs no other.", "1-120", []string{"a1"}},
		"Cut":   {"What it lacks then is in the next one of any server.", "1-130", []string{"a1", "b1"}},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Choose(backups, logs, Target{Point: &Point{Name: "v1", At: "then", Set: set(tc.point)}})
			if err != nil {
				t.Fatal(err)
			}
			var files []string
			for _, l := range p.Logs {
				files = append(files, l.Server+l.File[len(l.File)-1:])
			}
			if diff := cmp.Diff(tc.want, files); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestChooseBack: the log of the next leader, whose clock is behind, is read as well, because it may have something from before the time.
func TestChooseBack(t *testing.T) {
	backups := []repository.Backup{{Label: "one", Began: minute(1), Ended: minute(2), Set: set("1-100")}}
	logs := []repository.Log{
		{Server: "a", File: "binlog.000001", Previous: set("1-100"), Set: set("101-120"), First: minute(3), Last: minute(9)},
		{Server: "a", File: "binlog.000002", Previous: set("1-120"), Set: set("121-140"), First: minute(12), Last: minute(15)},
		{Server: "b", File: "binlog.000003", Previous: set("1-140"), Set: set("141-150"), First: minute(8), Last: minute(20)},
		{Server: "b", File: "binlog.000004", Previous: set("1-150"), Set: set("151-160"), First: minute(21), Last: minute(30)},
	}
	at := minute(10)
	p, err := Choose(backups, logs, Target{At: &at})
	if err != nil || len(p.Logs) != 3 {
		t.Errorf("got %v, %v", p.Logs, err)
	}
	// And what is behind a gap may be from before it, though a log from after it is there.
	logs[2].Previous = set("1-145")
	if p, err = Choose(backups, logs, Target{At: &at}); err == nil || !strings.Contains(err.Error(), "at least "+group+":141-145") {
		t.Errorf("got %v, %v", p.Logs, err)
	}
}
