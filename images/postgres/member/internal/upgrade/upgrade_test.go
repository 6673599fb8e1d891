// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgdata"
)

func TestControl(t *testing.T) {
	whole := `pg_control version number:            1300
Database system identifier:           7575532344011223344
Database cluster state:               shut down in recovery
Latest checkpoint location:           0/4015A20
Latest checkpoint's REDO location:    0/4015A20
Latest checkpoint's TimeLineID:       3
max_connections setting:              100
max_worker_processes setting:         8
max_wal_senders setting:              20
max_prepared_xacts setting:           0
max_locks_per_xact setting:           64
`
	for name, tc := range map[string]struct {
		reason string
		said   string
		want   Control
		fails  bool
	}{
		"Whole": {
			reason: "What a follower needs at least is known by the names of parameters.",
			said:   whole,
			want: Control{
				State: "shut down in recovery", System: "7575532344011223344", Position: "0/4015A20", Timeline: 3,
				Settings: map[string]string{
					"max_connections": "100", "max_worker_processes": "8", "max_wal_senders": "20", "max_prepared_transactions": "0", "max_locks_per_transaction": "64",
				},
			},
		},
		"NoSetting":  {reason: "Without one of them a follower would stop.", said: strings.Replace(whole, "max_wal_senders setting", "other", 1), fails: true},
		"NoPosition": {reason: "Without the position nobody can tell whether it has all.", said: strings.Replace(whole, "checkpoint location", "other", 1), fails: true},
		"Timeline":   {reason: "A timeline is a number.", said: strings.Replace(whole, "TimeLineID:       3", "TimeLineID: x", 1), fails: true},
		"Nothing":    {reason: "Nothing is no control file.", fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := control(pgdata.ParseControl(tc.said))
			if (err != nil) != tc.fails {
				t.Fatalf("%s: error %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" && !tc.fails {
				t.Errorf("%s\ncontrol(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestFindings(t *testing.T) {
	said := `Performing Consistency Checks on Old Live Server
------------------------------------------------
Checking cluster versions                                     ok
Checking for presence of required libraries                   fatal

Your installation references loadable libraries that are missing from the
new installation.  A list of
problem libraries is in the file:
    /data/upgrade/data/pg_upgrade_output.d/20261122T161209.608/loadable_libraries.txt
Failure, exiting
`
	want := "Checking for presence of required libraries Your installation references loadable libraries that are missing from the new installation. " +
		"A list of problem libraries is in the file:"
	if diff := cmp.Diff(want, findings(said, t.TempDir())); diff != "" {
		t.Errorf("findings(...): -want, +got:\n%s", diff)
	}
}

func TestDBName(t *testing.T) {
	for name, want := range map[string]string{
		"shop":       `dbname='shop'`,
		"host=a":     `dbname='host=a'`,
		`it's a \ q`: `dbname='it\'s a \\ q'`,
	} {
		if diff := cmp.Diff(want, dbname(name)); diff != "" {
			t.Errorf("dbname(%q): -want, +got:\n%s", name, diff)
		}
	}
}

func TestArguments(t *testing.T) {
	j := &Job{From: "15", To: "17"}
	got := j.arguments("/data/upgrade/data", []string{"shared_preload_libraries=pgaudit,pg_cron", "cron.database_name=it's"})
	want := []string{`--new-options=-c 'huge_pages=off'`, `--new-options=-c 'shared_preload_libraries=pgaudit,pg_cron'`, `--new-options=-c 'cron.database_name=it'\''s'`}
	if diff := cmp.Diff(want, got[len(got)-3:]); diff != "" {
		t.Errorf("arguments(...): -want, +got:\n%s", diff)
	}
}

// TestSettings of the copy's server, which runs beside another one in a pod whose huge pages are for neither.
func TestSettings(t *testing.T) {
	for name, tc := range map[string]struct{ reason, copied, want string }{
		"Ordinary": {"A server in ordinary memory has buffers that fit it.", "huge_pages = 'off'\nshared_buffers = '1GB'\n", "huge_pages = off\n"},
		"Huge":     {"Buffers in huge pages may be larger than the memory.", "shared_buffers = '30GB'\nhuge_pages = 'on'\n", "huge_pages = off\nshared_buffers = 128MB\n"},
		"None":     {"Without a file nothing is known.", "", "huge_pages = off\n"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "postgresql.conf")
			if tc.copied != "" {
				if err := os.WriteFile(file, []byte(tc.copied), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := ordinaryMemory(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, "\n")+"\n"); diff != "" {
				t.Errorf("%s -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestUsage(t *testing.T) {
	dir := t.TempDir()
	for name, n := range map[string]int{"a": 100, "b/c": 24} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, make([]byte, n), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := usage(dir); n != 124 || err != nil {
		t.Errorf("usage(...) = %d, %v, want 124", n, err)
	}
	if n, err := usage(filepath.Join(dir, "none")); n != 0 || err != nil {
		t.Errorf("usage(none) = %d, %v, want 0", n, err)
	}
}

func TestReplays(t *testing.T) {
	for title, want := range map[string]string{
		"postgres: orders-db.g2: startup recovering 000000020000000000000007": "000000020000000000000007",
		"postgres: startup recovering 000000020000000000000007":               "000000020000000000000007",
		"postgres: startup waiting for 000000020000000000000007":              "",
		"postgres: walreceiver streaming 0/7000088":                           "",
		"": "",
	} {
		if diff := cmp.Diff(want, replays(title)); diff != "" {
			t.Errorf("replays(%q): -want, +got:\n%s", title, diff)
		}
	}
}

func TestFit(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		state  State
		want   bool
	}{
		"Copying":      {"There is no copy.", State{Stage: Copying, Verdict: &Verdict{}}, false},
		"Untried":      {"It is not known whether it can be upgraded.", State{Stage: Following}, false},
		"Incompatible": {"It cannot be upgraded.", State{Stage: Following, Verdict: &Verdict{Findings: "no"}}, false},
		"Fit":          {"It can.", State{Stage: Following, Verdict: &Verdict{}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.state.Fit(); got != tc.want {
				t.Errorf("%s: got %t", tc.reason, got)
			}
		})
	}
}

func TestStripped(t *testing.T) {
	for name, tc := range map[string]struct{ reason, line, want string }{
		"Alone":    {"A statement that sets nothing else goes.", "ALTER TABLE ONLY public.item ALTER COLUMN id SET (pg_attver=24521024);\n", ""},
		"Foreign":  {"Columns of foreign tables have it as well.", "ALTER FOREIGN TABLE ONLY public.item ALTER COLUMN id SET (pg_attver=1);\n", ""},
		"Behind":   {"What an owner has set stays.", "ALTER TABLE ONLY a.b ALTER COLUMN c SET (n_distinct=5, pg_attver=7);\n", "ALTER TABLE ONLY a.b ALTER COLUMN c SET (n_distinct=5);\n"},
		"Before":   {"It may come first.", "ALTER TABLE ONLY a.b ALTER COLUMN c SET (pg_attver=7, n_distinct=5);\n", "ALTER TABLE ONLY a.b ALTER COLUMN c SET (n_distinct=5);\n"},
		"Between":  {"Or between others.", "ALTER TABLE ONLY a.b ALTER COLUMN c SET (n_distinct=5, pg_attver=7, n_distinct_inherited=6);", "ALTER TABLE ONLY a.b ALTER COLUMN c SET (n_distinct=5, n_distinct_inherited=6);"},
		"Other":    {"Other statements stay as they are.", "ALTER TABLE ONLY a.b ALTER COLUMN c SET STATISTICS 5;\n", "ALTER TABLE ONLY a.b ALTER COLUMN c SET STATISTICS 5;\n"},
		"Function": {"The text of a function that mentions it stays.", "  -- SET (pg_attver=1);\n", "  -- SET (pg_attver=1);\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := stripped(tc.line); got != tc.want {
				t.Errorf("%s\nstripped(%q): got %q, want %q", tc.reason, tc.line, got, tc.want)
			}
		})
	}
}
