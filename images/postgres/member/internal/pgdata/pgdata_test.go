// SPDX-License-Identifier: Apache-2.0

package pgdata

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/member/volume"
)

// write files into a new folder.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// reasonOf an error, or its kind.
func reasonOf(err error) string {
	var p *volume.Problem
	switch {
	case err == nil:
		return ""
	case errors.As(err, &p):
		return p.Reason
	}
	return "error"
}

func TestCheckVersion(t *testing.T) {
	for name, tc := range map[string]struct {
		files map[string]string
		want  string
	}{
		"Same":    {files: map[string]string{"PG_VERSION": "17\n"}},
		"Another": {files: map[string]string{"PG_VERSION": "15\n"}, want: members.ReasonDataOfAnotherVersion},
		"None":    {files: map[string]string{"base/1": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, reasonOf(CheckVersion(write(t, tc.files), "17"))); diff != "" {
				t.Errorf("CheckVersion(...): -want, +got:\n%s", diff)
			}
		})
	}
}

func TestFill(t *testing.T) {
	const gib = int64(1) << 30
	cases := map[string]struct {
		reason   string
		percent  int
		log      Log
		alone    bool
		slot     string
		held     int64
		fill, by string
	}{
		"Half":    {reason: "What is not even half full is filled by nothing.", percent: 49, log: Log{Bytes: 4 * gib}},
		"Data":    {reason: "The log has its usual share.", percent: 90, log: Log{Bytes: gib}, slot: "cdc", held: gib, fill: members.FillData},
		"Alone":   {reason: "A volume of the log has no data.", percent: 90, log: Log{Bytes: gib}, alone: true, fill: members.FillWAL},
		"Slot":    {reason: "A slot holds most of the log.", percent: 90, log: Log{Bytes: 5 * gib}, slot: "cdc", held: 4 * gib, fill: members.FillSlot, by: "cdc"},
		"Archive": {reason: "Most of it waits for the archive.", percent: 90, log: Log{Bytes: 5 * gib, Unarchived: 4 * gib}, fill: members.FillArchive},
		"Both":    {reason: "What is not archived is kept with or without a slot.", percent: 90, log: Log{Bytes: 5 * gib, Unarchived: 4 * gib}, slot: "cdc", held: 5 * gib, fill: members.FillArchive},
		"Unknown": {reason: "A small slot explains nothing.", percent: 90, log: Log{Bytes: 5 * gib}, slot: "cdc", held: gib, fill: members.FillWAL},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			fill, by := Fill(volume.Usage{Percent: tc.percent, Size: 10 * gib}, tc.log, tc.alone, tc.slot, tc.held)
			if diff := cmp.Diff([]string{tc.fill, tc.by}, []string{fill, by}); diff != "" {
				t.Errorf("\n%s\nFill(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestMeasureLog(t *testing.T) {
	data := t.TempDir()
	if got, err := MeasureLog(data); err != nil || got != (Log{}) {
		t.Errorf("A folder without a server has no log, got %+v, %v", got, err)
	}
	for name, size := range map[string]int{
		"pg_wal/000000010000000000000001": 1000, "pg_wal/000000010000000000000002": 2000, "pg_wal/xlogtemp.7": 10,
		"pg_wal/archive_status/000000010000000000000001.ready": 0, "pg_wal/archive_status/000000010000000000000000.done": 0,
	} {
		path := filepath.Join(data, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := MeasureLog(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Log{Bytes: 3010, Unarchived: 1000}, got); diff != "" {
		t.Errorf("MeasureLog(...): -want, +got:\n%s", diff)
	}
}

func TestParse(t *testing.T) {
	const out = `pg_control version number:            1700
Database system identifier:           7710917092870250535
Database cluster state:               in production
Latest checkpoint location:           0/41F4C88
Latest checkpoint's REDO location:    0/41F4C88
Latest checkpoint's TimeLineID:       3
Latest checkpoint's PrevTimeLineID:   3
Minimum recovery ending location:     0/4300000
Min recovery ending loc's timeline:   4
`
	got, err := content(ParseControl(out))
	if err != nil {
		t.Fatal(err)
	}
	// It was promoted and ended before its next checkpoint.
	want := volume.Content{Timeline: 4, Position: "0/41F4C88", System: "7710917092870250535"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("content(...): -want, +got:\n%s", diff)
	}
	for state, clean := range map[string]bool{"shut down": true, "shut down in recovery": false, "shutting down": false, "in production": false} {
		got, err := content(ParseControl(strings.Replace(out, "in production", state, 1)))
		if err != nil || got.Clean != clean {
			t.Errorf("content(...) in the state %q: clean is %t (%v), want %t: only a leader that was shut down has nothing after its checkpoint", state, got.Clean, err, clean)
		}
	}
	if _, err := content(ParseControl("nothing of use")); err == nil {
		t.Error("content(...): want an error")
	}
}

// TestTakesWrites of a server by the signals in its data. It is a new Database that recovers from a snapshot or a backup as fast as its Patroni
// begins, and must not be taken for a leader without one.
func TestTakesWrites(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		signals []string
		want    bool
	}{
		"Leader":     {"It has no signal.", nil, true},
		"Standby":    {"It follows.", []string{"standby.signal"}, false},
		"Recovering": {"It replays an archive.", []string{"recovery.signal"}, false},
		"Both":       {"PostgreSQL follows then.", []string{"recovery.signal", "standby.signal"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			data := t.TempDir()
			for _, name := range tc.signals {
				if err := os.WriteFile(filepath.Join(data, name), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got, err := TakesWrites(data); got != tc.want || err != nil {
				t.Errorf("\n%s\nTakesWrites(...): want %t, got %t, %v", tc.reason, tc.want, got, err)
			}
		})
	}
}
