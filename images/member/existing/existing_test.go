// SPDX-License-Identifier: Apache-2.0

package existing_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/member/existing"
	"github.com/capstan-dev/capstan/images/member/volume"
)

func TestCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		last    existing.Backup
		err     error
		want    string
		message string
	}{
		"None":    {"An empty repository is in nobody's way.", existing.Backup{}, nil, "", ""},
		"Unknown": {"What is there may be of this name.", existing.Backup{}, errors.New("away"), members.ReasonWaitingForBucket, "the bucket has backups of this name: away"},
		"There": {
			"The Database would look like the one that was backed up.",
			existing.Backup{Stanza: "orders-1", Ended: time.Unix(0, 0)},
			nil,
			members.ReasonBackupsExist, "stanza orders-1, the last of 1970-01-01T00:00:00Z",
		},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			r := existing.Repository{Place: "the bucket", Instead: existing.FromBackup, Last: func(context.Context) (existing.Backup, error) {
				asked++
				return tc.last, tc.err
			}}
			var b existing.Backups
			_ = b.Check(t.Context(), r)
			err := b.Check(t.Context(), r)
			var wait *volume.Wait
			if errors.As(err, &wait) != (tc.want != "") || wait != nil && (wait.Reason != tc.want || !strings.Contains(wait.Message, tc.message)) || asked != 1 {
				t.Errorf("%s After %d questions: %v", tc.reason, asked, err)
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
			if got := existing.Mounted(dir); got != tc.want {
				t.Errorf("%s\nMounted: got %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
	if existing.Mounted(filepath.Join(t.TempDir(), "none")) {
		t.Error("A folder that is not there has no Secret.")
	}
}
