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
	told := fmt.Sprintf("namespace=%q,database=%q", s.namespace, s.base())
	last := fmt.Sprintf("capstan_database_last_backup_timestamp_seconds{exported_namespace=%q,database=%q} or capstan_database_last_backup_timestamp_seconds{%s}",
		s.namespace, s.base(), told)

	alarms := []alarm{
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

	series := func(name string) string {
		return fmt.Sprintf("(%s{exported_namespace=%q,database=%q} or %s{%s})", name, s.namespace, s.base(), name, told)
	}

	if s.volumed() {
		alarms = append(alarms, alarm{
			"DatabaseBackupVolumeLow", severityTicket, fmt.Sprintf("max(%s) >= 85", series("capstan_database_backup_volume_used_percent")),
			"5m", "The volume of backups of Database %s of namespace %s fills up. When it is full, nothing is archived.",
		})
	}

	if !s.verifies() {
		return alarms
	}

	return append(alarms,
		alarm{
			"DatabaseBackupUnverified", severityPage, fmt.Sprintf("max(%s) > 0", series("capstan_database_backup_verification_failed")),
			"5m", "The latest backup of Database %s of namespace %s could not be restored, or what was restored is wrong.",
		},
		alarm{
			"DatabaseVerificationOverdue", severityTicket,
			fmt.Sprintf("time() - max(%s) > %.0f", series("capstan_database_last_verification_timestamp_seconds"), (longestPause(s.verifySchedule()) + verifyDeadline).Seconds()),
			"10m", "No backup of Database %s of namespace %s was verified since the schedule asked for it.",
		})
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
