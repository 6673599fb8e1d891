// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/members"
)

func TestStep(t *testing.T) {
	cases := map[string]struct {
		reason          string
		before, percent int
		want            int
	}{
		"First":  {"It is rounded down.", 0, 87, 85},
		"Up":     {"A step up is told at once.", 85, 90, 90},
		"Same":   {"Within a step nothing is told.", 85, 89, 85},
		"Border": {"A little less is not told, or it would go back and forth.", 85, 83, 85},
		"Down":   {"More is.", 85, 82, 80},
		"Grown":  {"A volume that has grown is.", 100, 52, 50},
		"Full":   {"The last step is that of a full volume.", 95, 100, 100},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Step(tc.before, tc.percent); got != tc.want {
				t.Errorf("\n%s\nStep(%d, %d): want %d, got %d", tc.reason, tc.before, tc.percent, tc.want, got)
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
		slot     string
		held     int64
		fill, by string
	}{
		"Half":    {reason: "What is not even half full is filled by nothing.", percent: 49, log: Log{Bytes: 4 * gib}},
		"Data":    {reason: "The log has its usual share.", percent: 90, log: Log{Bytes: gib}, slot: "cdc", held: gib, fill: members.FillData},
		"Slot":    {reason: "A slot holds most of the log.", percent: 90, log: Log{Bytes: 5 * gib}, slot: "cdc", held: 4 * gib, fill: members.FillSlot, by: "cdc"},
		"Archive": {reason: "Most of it waits for the archive.", percent: 90, log: Log{Bytes: 5 * gib, Unarchived: 4 * gib}, fill: members.FillArchive},
		"Both":    {reason: "What is not archived is kept with or without a slot.", percent: 90, log: Log{Bytes: 5 * gib, Unarchived: 4 * gib}, slot: "cdc", held: 5 * gib, fill: members.FillArchive},
		"Unknown": {reason: "A small slot explains nothing.", percent: 90, log: Log{Bytes: 5 * gib}, slot: "cdc", held: gib, fill: members.FillWAL},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			fill, by := Fill(Usage{Percent: tc.percent, Size: 10 * gib}, tc.log, tc.slot, tc.held)
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
