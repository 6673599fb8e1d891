// SPDX-License-Identifier: Apache-2.0

package command

import (
	"testing"
	"time"

	"github.com/capstan-dev/capstan/apis/members/pgmember"
	"github.com/capstan-dev/capstan/images/postgres/member/internal/pgbackrest"
)

func TestCovers(t *testing.T) {
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	backup := func(kind string, age time.Duration, broken bool) pgbackrest.Backup {
		b := pgbackrest.Backup{Type: kind, Error: broken}
		b.Timestamp.Start, b.Timestamp.Stop = now.Add(-age-time.Hour).Unix(), now.Add(-age).Unix()
		return b
	}
	const day = 24 * time.Hour
	for name, tc := range map[string]struct {
		reason  string
		keep    pgmember.Backup
		backups []pgbackrest.Backup
		want    bool
	}{
		"Nothing": {"Without a backup of its own nothing is covered.", pgmember.Backup{RetentionDays: 7}, nil, false},
		"Young":   {"The days before are the former generation's.", pgmember.Backup{RetentionDays: 7}, []pgbackrest.Backup{backup(pgbackrest.Full, 6*day, false)}, false},
		"Old":     {"A full backup from before the period covers it.", pgmember.Backup{RetentionDays: 7}, []pgbackrest.Backup{backup(pgbackrest.Full, 8*day, false), backup(pgbackrest.Full, day, false)}, true},
		"Changes": {"What is no full backup does not restore alone.", pgmember.Backup{RetentionDays: 7}, []pgbackrest.Backup{backup(pgbackrest.Incremental, 8*day, false)}, false},
		"Broken":  {"Nor does one with errors.", pgmember.Backup{RetentionDays: 7}, []pgbackrest.Backup{backup(pgbackrest.Full, 8*day, true)}, false},
		"Few":     {"Two are kept and one is there.", pgmember.Backup{RetentionFull: 2}, []pgbackrest.Backup{backup(pgbackrest.Full, day, false), backup(pgbackrest.Incremental, time.Hour, false)}, false},
		"Enough":  {"As many as are kept are there.", pgmember.Backup{RetentionFull: 2}, []pgbackrest.Backup{backup(pgbackrest.Full, 2*day, false), backup(pgbackrest.Full, day, false)}, true},
		"Unknown": {"Without a retention nothing goes.", pgmember.Backup{}, []pgbackrest.Backup{backup(pgbackrest.Full, 99*day, false)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := covers(pgbackrest.Stanza{Backups: tc.backups}, tc.keep, now); got != tc.want {
				t.Errorf("%s: got %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}
