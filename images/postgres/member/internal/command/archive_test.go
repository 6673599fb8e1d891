// SPDX-License-Identifier: Apache-2.0

package command

import (
	"testing"
	"time"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
)

// TestReleasedIsNoted: what is released unarchived leaves a gap, also while backups are off.
func TestReleasedIsNoted(t *testing.T) {
	c := &Archive{Path: "pg_wal/000000010000000000000001"}
	got, err := c.result(t.Context(), pgmember.Backup{}, pgbackrest.Archived{})
	if err != nil || got.Dropped == nil {
		t.Fatalf("while backups are off: got %+v, %v, want a gap", got, err)
	}
	if again := letGo(got); again.Dropped != got.Dropped {
		t.Errorf("within a minute it is noted again: %s after %s", again.Dropped, got.Dropped)
	}
	before := time.Now().Add(-2 * time.Minute)
	if later := letGo(pgbackrest.Archived{Dropped: &before}); !later.Dropped.After(before) {
		t.Errorf("later it is not noted: %s", later.Dropped)
	}
}

// TestIsFull: without a bound of the spec nothing is dropped while the volume has room.
func TestIsFull(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		waits    int64
		untilLow bool
		volume   bool
		want     bool
	}{
		"Few":         {"What is within the bound waits.", 10, false, true, false},
		"Many":        {"A bound of the spec counts whatever the volume has room for.", 11, false, false, true},
		"ManyButRoom": {"A bulk load that is quicker than the bucket loses nothing.", 11, true, false, false},
		"ManyAndFull": {"A volume that is nearly full is kept from filling.", 11, true, true, true},
		"FewAndFull":  {"What fills it is something else.", 10, true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := pgmember.Backup{Queue: 10, UntilLow: tc.untilLow}
			if got := isFull(s, tc.waits, func() bool { return tc.volume }); got != tc.want {
				t.Errorf("%s: got %t", tc.reason, got)
			}
		})
	}
}
