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
	const group, later = "3e11fa47-71ca-11e1-9e33-c80aa9429562", "4f22fa47-71ca-11e1-9e33-c80aa9429562"
	set := func(text string) gtid.Set {
		s, err := gtid.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	backup := func(began int, numbers, of string) manifest {
		return manifest{Backup: Backup{Began: now.Add(time.Duration(began) * time.Hour), Set: set(numbers), Group: of}}
	}
	// The second one is of a member that lagged behind the first one's.
	one := []manifest{backup(1, group+":1-100", group), backup(2, group+":1-90", group)}
	// A group began with less than was archived, and had done nothing when its first backup was taken.
	begun := []manifest{backup(5, group+":1-100", later), backup(6, group+":1-100,"+later+":1-9", later)}
	for name, tc := range map[string]struct {
		reason        string
		backups       []manifest
		previous, set string
		last          int
		want          bool
	}{
		"Old":     {"Every backup has it.", one, group + ":1-39", group + ":40-90", 0, false},
		"Empty":   {"Nothing is in it.", one, group + ":1-200", "", 9, false},
		"Lagged":  {"One of the backups lacks the end of it.", one, group + ":1-84", group + ":85-95", 0, true},
		"New":     {"It came later than all.", one, group + ":1-100", group + ":101-120", 3, true},
		"Ended":   {"No backup that is kept is of the history that ended with it.", begun, group + ":1-100", group + ":101-105", 3, false},
		"Before":  {"A backup from before the history ended may be restored with it.", append(one, begun...), group + ":1-100", group + ":101-105", 3, true},
		"Unclear": {"What was committed after a backup began may be of its history.", begun, group + ":1-100", group + ":101-105", 7, true},
		"Goes":    {"What the group did since then follows on its backups.", begun, group + ":1-100," + later + ":1-9", later + ":10-20", 7, true},
	} {
		t.Run(name, func(t *testing.T) {
			l := Log{Previous: set(tc.previous), Set: set(tc.set), Last: now.Add(time.Duration(tc.last) * time.Hour)}
			if got := needed(l, tc.backups); got != tc.want {
				t.Errorf("%s: it is needed: %t", tc.reason, got)
			}
		})
	}
}
