// SPDX-License-Identifier: Apache-2.0

package database

import (
	"fmt"
	"time"

	"github.com/robfig/cron/v3"
)

// looked is how many runs of a schedule its longest pause is looked for in.
const looked = 100

// backupAlarms of a Database that is backed up.
func (s *state) backupAlarms(of string) []alarm {
	if !s.backsUp() {
		return nil
	}

	// The provider tells of all Databases; what scrapes it may have given the label
	// another name.
	last := fmt.Sprintf("capstan_database_last_backup_timestamp_seconds{exported_namespace=%q,database=%q} or capstan_database_last_backup_timestamp_seconds{%s}",
		s.namespace, s.name, of)

	return []alarm{
		{
			"DatabaseArchiveFailing", severityPage,
			fmt.Sprintf("sum(increase(pg_stat_archiver_failed_count{%s}[10m])) > 0 unless sum(increase(pg_stat_archiver_archived_count{%s}[10m])) > 0", of, of),
			"5m", "What is written in Database %s of namespace %s does not come into the archive, and waits on the leader's volume.",
		},
		{
			"DatabaseBackupOverdue", severityTicket,
			fmt.Sprintf("time() - max(%s) > %.0f", last, (longestPause(s.schedule()) + backupDeadline).Seconds()),
			"10m", "The last backup of Database %s of namespace %s is older than its schedule asks.",
		},
	}
}

// longestPause between two runs of a schedule. It is looked for from a fixed day on,
// so that it is the same in every pass.
func longestPause(schedule string) time.Duration {
	parsed, err := cron.ParseStandard(schedule)
	if err != nil {
		return 0
	}

	var longest time.Duration

	at := parsed.Next(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	for range looked {
		next := parsed.Next(at)
		if next.IsZero() {
			break
		}

		longest, at = max(longest, next.Sub(at)), next
	}

	return longest
}
