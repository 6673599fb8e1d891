// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
	var p *Problem
	switch {
	case err == nil:
		return ""
	case errors.As(err, &p):
		return p.Reason
	}
	return "error"
}

func TestClaim(t *testing.T) {
	cases := map[string]struct {
		reason string
		files  map[string]string
		want   string
		mark   string
	}{
		"New": {
			reason: "A volume without anything on it is taken.",
			files:  map[string]string{"lost+found/.keep": ""}, mark: `{"identity":"abc","version":"17"}` + "\n",
		},
		"Own": {
			reason: "A volume of this Database is taken, whatever version it was made for.",
			files:  map[string]string{"capstan.json": `{"identity":"abc","version":"15"}`, "pgdata/PG_VERSION": "17"}, mark: `{"identity":"abc","version":"15"}`,
		},
		"Another": {
			reason: "A volume of another Database is refused and left alone.",
			files:  map[string]string{"capstan.json": `{"identity":"xyz","version":"17"}`}, want: OfAnother, mark: `{"identity":"xyz","version":"17"}`,
		},
		"Unmarked": {
			reason: "Data that nobody marked may be anybody's.",
			files:  map[string]string{"pgdata/PG_VERSION": "17"}, want: OfAnother,
		},
		"Broken": {
			reason: "A mark that cannot be read is not overwritten.",
			files:  map[string]string{"capstan.json": `{`}, want: "error", mark: `{`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := write(t, tc.files)
			mark := filepath.Join(dir, "capstan.json")
			got := reasonOf(Claim(mark, filepath.Join(dir, "pgdata"), "abc", "17"))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nClaim(...): -want, +got:\n%s", tc.reason, diff)
			}
			raw, _ := os.ReadFile(mark)
			if diff := cmp.Diff(tc.mark, string(raw)); diff != "" {
				t.Errorf("\n%s\nmark: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestCheckVersion(t *testing.T) {
	for name, tc := range map[string]struct {
		files map[string]string
		want  string
	}{
		"Same":    {files: map[string]string{"PG_VERSION": "17\n"}},
		"Another": {files: map[string]string{"PG_VERSION": "15\n"}, want: OfAnotherVersion},
		"None":    {files: map[string]string{"base/1": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, reasonOf(CheckVersion(write(t, tc.files), "17"))); diff != "" {
				t.Errorf("CheckVersion(...): -want, +got:\n%s", diff)
			}
		})
	}
}

func TestCheckImage(t *testing.T) {
	dir := write(t, map[string]string{"postgres": ""})
	if err := CheckImage(filepath.Join(dir, "postgres")); err != nil {
		t.Errorf("a program that is there: %v", err)
	}
	if got := reasonOf(CheckImage(filepath.Join(dir, "postgres"), filepath.Join(dir, "patroni"))); got != ImageUnsuitable {
		t.Errorf("a program that is missing: got %q, want %q", got, ImageUnsuitable)
	}
}

func TestClass(t *testing.T) {
	for _, tc := range []struct {
		before  string
		percent int
		want    string
	}{
		{"", 0, DiskOk},
		{"", 85, DiskOk},
		{"", 86, DiskLow},
		{"", 95, DiskLow},
		{"", 96, DiskFull},
		{DiskLow, 83, DiskLow},
		{DiskLow, 82, DiskOk},
		{DiskFull, 94, DiskFull},
		{DiskFull, 93, DiskLow},
		{DiskFull, 50, DiskOk},
		{DiskOk, 84, DiskOk},
	} {
		if got := Class(tc.before, tc.percent); got != tc.want {
			t.Errorf("Class(%q, %d): got %q, want %q", tc.before, tc.percent, got, tc.want)
		}
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
	got, err := parse(out)
	if err != nil {
		t.Fatal(err)
	}
	// It was promoted and ended before its next checkpoint.
	want := Content{Timeline: 4, Position: "0/41F4C88", System: "7710917092870250535"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("parse(...): -want, +got:\n%s", diff)
	}
	for state, clean := range map[string]bool{"shut down": true, "shut down in recovery": false, "shutting down": false, "in production": false} {
		got, err := parse(strings.Replace(out, "in production", state, 1))
		if err != nil || got.Clean != clean {
			t.Errorf("parse(...) in the state %q: clean is %t (%v), want %t: only a leader that was shut down has nothing after its checkpoint", state, got.Clean, err, clean)
		}
	}
	if _, err := parse("nothing of use"); err == nil {
		t.Error("parse(...): want an error")
	}
}
