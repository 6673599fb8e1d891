// SPDX-License-Identifier: Apache-2.0

package command

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
)

func TestToPoint(t *testing.T) {
	var stanza pgbackrest.Stanza
	for label, stop := range map[string]string{"1F": "0/3000000", "2F": "0/5000000"} {
		b := pgbackrest.Backup{Label: label}
		b.LSN.Stop = stop
		stanza.Backups = append(stanza.Backups, b)
	}
	slices.SortFunc(stanza.Backups, func(a, b pgbackrest.Backup) int { return strings.Compare(a.Label, b.Label) })
	for name, tc := range map[string]struct {
		reason, lsn string
		want        []string
		err         string
	}{
		"Between": {
			"It begins with the backup before, along the timeline of then.", "0/4000000",
			[]string{"--set=1F", "--type=name", "--target=v1@x", "--target-action=promote", "--target-timeline=3"},
			"",
		},
		"Expired": {"What was before the first backup is gone.", "0/2000000", nil, "the backup before it is kept no longer"},
		"Nowhere": {"A place that is none leads nowhere.", "nowhere", nil, "cannot understand"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := toPoint(stanza, members.RestorePoint{Name: "v1", Label: "v1@x", LSN: tc.lsn, Timeline: 3})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
			if (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s: error %v, want %q", tc.reason, err, tc.err)
			}
		})
	}
}

func TestMounted(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		entries []string
		want    bool
	}{
		"NoSecret":    {"The kubelet mounts an optional Secret that is not there as its own entries alone.", []string{"..2026_11_22_21_24_01.1234567890", "..data"}, false},
		"EmptyFolder": {"Nothing is mounted.", nil, false},
		"Secret":      {"The keys are there.", []string{"..2026_11_22_21_24_01.1234567890", "..data", "tls.crt"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, e := range tc.entries {
				if err := os.WriteFile(filepath.Join(dir, e), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got := mounted(dir); got != tc.want {
				t.Errorf("%s\nmounted: got %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
	if mounted(filepath.Join(t.TempDir(), "none")) {
		t.Error("A folder that is not there has no Secret.")
	}
}
