// SPDX-License-Identifier: Apache-2.0

package repository

import (
	"testing"
	"time"

	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
)

func TestRetention(t *testing.T) {
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	ago := func(days ...float64) (all []time.Time) {
		for _, d := range days {
			all = append(all, now.Add(-time.Duration(d*float64(day))))
		}
		return all
	}
	for name, tc := range map[string]struct {
		reason string
		keep   Retention
		ended  []time.Time
		kept   int
		covers bool
	}{
		"None":        {"Nothing is kept of nothing.", Retention{Days: 7}, nil, 0, false},
		"Days":        {"The first day of seven begins with a backup before it.", Retention{Days: 7}, ago(9, 8, 7.5, 6, 1), 3, true},
		"Young":       {"All are needed before seven days are over.", Retention{Days: 7}, ago(6, 5, 1), 3, false},
		"Stopped":     {"The last one stays, however old it is.", Retention{Days: 7}, ago(40, 30), 1, true},
		"Moment":      {"One at the very moment does not reach before it.", Retention{Days: 7}, ago(8, 7, 1), 3, true},
		"Number":      {"As many stay as are promised.", Retention{Full: 2}, ago(3, 2, 1), 2, true},
		"Few":         {"There may be fewer.", Retention{Full: 5}, ago(3, 2), 2, false},
		"Unspecified": {"Without any retention the last one stays.", Retention{}, ago(3, 2), 1, true},
		"Both":        {"Days count before a number.", Retention{Days: 1, Full: 5}, ago(3, 2, 0.5), 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			if kept, covers := tc.keep.kept(tc.ended, now), tc.keep.covers(tc.ended, now); kept != tc.kept || covers != tc.covers {
				t.Errorf("%s: %d are kept and cover %t, want %d and %t", tc.reason, kept, covers, tc.kept, tc.covers)
			}
		})
	}
}

func TestNeeded(t *testing.T) {
	const group = "3e11fa47-71ca-11e1-9e33-c80aa9429562:"
	set := func(numbers string) gtid.Set {
		if numbers == "" {
			return gtid.Set{}
		}
		s, err := gtid.Parse(group + numbers)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	// The second one is of a member that lagged behind the first one's.
	backups := []manifest{{Backup: Backup{Set: set("1-100")}}, {Backup: Backup{Set: set("1-90")}}}
	for name, tc := range map[string]struct {
		reason, set string
		want        bool
	}{
		"Old":    {"Every backup has it.", "40-90", false},
		"Empty":  {"Nothing is in it.", "", false},
		"Lagged": {"One of the backups lacks the end of it.", "85-95", true},
		"New":    {"It came later than all.", "101-120", true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := needed(Log{Set: set(tc.set)}, backups); got != tc.want {
				t.Errorf("%s: it is needed: %t", tc.reason, got)
			}
		})
	}
}
