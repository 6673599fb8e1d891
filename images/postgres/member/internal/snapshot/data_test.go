// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// filled volume with the mark of a Database, and some files.
func filled(t *testing.T, identity string, files ...string) Volume {
	t.Helper()
	folder := t.TempDir()
	v := Volume{Folder: folder, Mark: filepath.Join(folder, "capstan.json"), Data: filepath.Join(folder, "pgdata"), Aside: filepath.Join(folder, "snapshot")}
	put := func(name, content string) {
		at := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range files {
		put(name, name)
	}
	if identity != "" {
		put("capstan.json", `{"identity":"`+identity+`","version":"17"}`)
	}
	return v
}

// content of a volume: its files.
func content(t *testing.T, v Volume) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(v.Folder, func(at string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			out = append(out, strings.TrimPrefix(at, v.Folder+"/"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestSetAside(t *testing.T) {
	for name, tc := range map[string]struct {
		reason        string
		mark          string
		files, wanted []string
	}{
		"Snapshot": {
			"The data is kept, and what else the other Database had is not.",
			"theirs",
			[]string{"pgdata/PG_VERSION", "spool/1", "archive.json", "snapshot/old", "lost+found/1"},
			[]string{"lost+found/1", "snapshot/PG_VERSION"},
		},
		"Ended":   {"The program ended between two steps.", "theirs", []string{"snapshot/PG_VERSION", "spool/1"}, []string{"snapshot/PG_VERSION"}},
		"Own":     {"It is the member's own.", "ours", []string{"pgdata/PG_VERSION", "spool/1"}, []string{"capstan.json", "pgdata/PG_VERSION", "spool/1"}},
		"Another": {"It is of a Database that has nothing to do with it.", "others", []string{"pgdata/PG_VERSION"}, []string{"capstan.json", "pgdata/PG_VERSION"}},
		"New":     {"It is nobody's.", "", []string{"pgdata/PG_VERSION"}, []string{"pgdata/PG_VERSION"}},
	} {
		t.Run(name, func(t *testing.T) {
			v := filled(t, tc.mark, tc.files...)
			for range 2 { // A second time changes nothing.
				if err := v.SetAside("ours", func() (string, error) { return "theirs", nil }); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tc.wanted, content(t, v)); diff != "" {
					t.Errorf("\n%s\nthe volume: -want, +got:\n%s", tc.reason, diff)
				}
			}
		})
	}
}

// TestBegin: what a server leaves that lost power, and what was of the other members, is not there when PostgreSQL starts.
func TestBegin(t *testing.T) {
	v := filled(t, "", "snapshot/PG_VERSION", "snapshot/postmaster.pid", "snapshot/postmaster.opts", "snapshot/standby.signal", "snapshot/pg_replslot/orders_db_c/state", "snapshot/pg_wal/1")
	auto := filepath.Join(v.Aside, "postgresql.auto.conf")
	if err := os.WriteFile(auto, []byte("# a comment\nwork_mem = '8MB'\nprimary_conninfo = 'host=x'\nrecovery_target_time='x'\nrestore_command = 'x'"), 0o600); err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 21, 8, 0, 0, 500_000_000, time.FixedZone("", 3600))
	if err := v.Begin(Recovery{Command: `fetch 'x' %f "%p"`, At: &at}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"pgdata/PG_VERSION", "pgdata/pg_wal/1", "pgdata/postgresql.auto.conf", "pgdata/recovery.signal"}, content(t, v)); diff != "" {
		t.Errorf("the volume: -want, +got:\n%s", diff)
	}
	got, err := os.ReadFile(filepath.Join(v.Data, "postgresql.auto.conf"))
	if err != nil {
		t.Fatal(err)
	}
	want := "# a comment\nwork_mem = '8MB'\nrestore_command = 'fetch ''x'' %f \"%p\"'\nrecovery_target_time = '2026-11-21 07:00:00.5+00'\nrecovery_target_action = 'promote'\n"
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("settings: -want, +got:\n%s", diff)
	}
	// PostgreSQL could not begin. Nothing else has the data.
	failed := v.Data + ".failed"
	if err := os.Rename(v.Data, failed); err != nil {
		t.Fatal(err)
	}
	if err := v.Again(failed); err != nil {
		t.Fatal(err)
	}
	if err := v.Begin(Recovery{Command: "fetch"}); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(filepath.Join(v.Data, "postgresql.auto.conf")); string(got) != "# a comment\nwork_mem = '8MB'\nrestore_command = 'fetch'\n" {
		t.Errorf("settings of another attempt:\n%s", got)
	}
	if err := v.Begin(Recovery{Command: "fetch"}); err == nil {
		t.Errorf("without a snapshot the data must stay: %v", err)
	}
}
