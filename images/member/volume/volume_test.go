// SPDX-License-Identifier: Apache-2.0

package volume

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/members"
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
			files:  map[string]string{"capstan.json": `{"identity":"xyz","version":"17"}`}, want: members.ReasonVolumeOfAnother, mark: `{"identity":"xyz","version":"17"}`,
		},
		"Unmarked": {
			reason: "Data that nobody marked may be anybody's.",
			files:  map[string]string{"pgdata/PG_VERSION": "17"}, want: members.ReasonVolumeOfAnother,
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

func TestCheckImage(t *testing.T) {
	dir := write(t, map[string]string{"postgres": ""})
	if err := CheckImage(filepath.Join(dir, "postgres")); err != nil {
		t.Errorf("a program that is there: %v", err)
	}
	if got := reasonOf(CheckImage(filepath.Join(dir, "postgres"), filepath.Join(dir, "patroni"))); got != members.ReasonImageUnsuitable {
		t.Errorf("a program that is missing: got %q, want %q", got, members.ReasonImageUnsuitable)
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
