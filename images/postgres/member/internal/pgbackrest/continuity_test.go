// SPDX-License-Identifier: Apache-2.0

package pgbackrest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRequeue: what a new leader has of earlier timelines is archived again from shortly before the last that the archive has.
func TestRequeue(t *testing.T) {
	data := t.TempDir()
	status := filepath.Join(data, "pg_wal", "archive_status")
	if err := os.MkdirAll(status, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"pg_wal/000000010000000000000010", "pg_wal/archive_status/000000010000000000000010.done",
		"pg_wal/000000010000000000000061", "pg_wal/archive_status/000000010000000000000061.done",
		"pg_wal/000000010000000000000062", "pg_wal/archive_status/000000010000000000000062.ready",
		"pg_wal/archive_status/000000010000000000000063.done", // it is recycled
		"pg_wal/000000020000000000000064", "pg_wal/archive_status/000000020000000000000064.done",
		"pg_wal/00000002.history", "pg_wal/archive_status/00000002.history.done",
	} {
		if err := os.WriteFile(filepath.Join(data, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	n, err := Requeue(data, 2, 0x60*SegmentSize)
	if n != 1 || err != nil {
		t.Errorf("Requeue(...): got %d, %v", n, err)
	}
	list, err := os.ReadDir(status)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range list {
		got = append(got, e.Name())
	}
	want := []string{
		"000000010000000000000010.done", "000000010000000000000061.ready", "000000010000000000000062.ready", "000000010000000000000063.done",
		"00000002.history.done", "000000020000000000000064.done",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if n, err := Requeue(data, 2, 0); n != 1 || err != nil {
		t.Errorf("Requeue(...) of an archive that does not answer: got %d, %v, want all", n, err)
	}
}

// TestHole: an archive without holes has every segment from the start of its last backup on, there or waiting.
func TestHole(t *testing.T) {
	const repo = `#!/bin/sh
case "$3" in
archive/s/17-1) echo 0000000100000000; echo 0000000200000000 ;;
archive/s/17-1/0000000100000000) echo 000000010000000000000001-ab.zst; echo 000000010000000000000010-ab.zst; echo 000000010000000000000011-ab.zst ;;
archive/s/17-1/0000000200000000) echo 000000020000000000000013-ab.zst ;;
esac
`
	program := filepath.Join(t.TempDir(), "pgbackrest")
	if err := os.WriteFile(program, []byte(repo), 0o700); err != nil {
		t.Fatal(err)
	}
	stanza := Stanza{Name: "s", Archives: []Archive{{ID: "17-1", Max: "000000020000000000000013"}}, Backups: make([]Backup, 1)}
	for name, tc := range map[string]struct {
		reason  string
		start   string
		waiting []string
		want    LSN
		found   bool
	}{
		"Hole":    {"Segment 12 is missing on every timeline.", "000000010000000000000010", nil, 0x12 * SegmentSize, true},
		"Waits":   {"It waits for the archive.", "000000010000000000000010", []string{"000000010000000000000012.ready"}, 0, false},
		"Ignored": {"What PostgreSQL takes for archived does not wait.", "000000010000000000000010", []string{"000000010000000000000012.done"}, 0x12 * SegmentSize, true},
		"Before":  {"What is missing before the last backup is no hole of it.", "000000010000000000000013", nil, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			data := t.TempDir()
			status := filepath.Join(data, "pg_wal", "archive_status")
			if err := os.MkdirAll(status, 0o700); err != nil {
				t.Fatal(err)
			}
			for _, w := range tc.waiting {
				if err := os.WriteFile(filepath.Join(status, w), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			stanza.Backups[0].Archive.Start = tc.start
			got, found, err := Runner{Program: program}.Hole(t.Context(), stanza, data)
			if got != tc.want || found != tc.found || err != nil {
				t.Errorf("%s: got %s, %t, %v, want %s, %t", tc.reason, got, found, err, tc.want, tc.found)
			}
		})
	}
}
