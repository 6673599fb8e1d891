// SPDX-License-Identifier: Apache-2.0

package database

import (
	"fmt"
	"slices"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/capstan-dev/capstan/function/database/engine"
)

// looked is how many runs of a schedule its longest pause is looked for in.
const looked = 100

// backupAlarms of a Database that is backed up.
func (s *cluster) backupAlerts(archive []engine.Alert) []engine.Alert {
	if !s.takesBackups() {
		return nil
	}
	// The provider tells of all Databases; what scrapes it may have given the label another name.
	told := fmt.Sprintf("namespace=%q,database=%q", s.namespace, s.base())
	last := fmt.Sprintf("capstan_database_last_backup_timestamp_seconds{exported_namespace=%q,database=%q} or capstan_database_last_backup_timestamp_seconds{%s}",
		s.namespace, s.base(), told)
	alerts := append(slices.Clone(archive),
		engine.Alert{
			Name: "DatabaseBackupOverdue", Severity: engine.SeverityTicket, For: "10m",
			Expr:    fmt.Sprintf("time() - max(%s) > %.0f", last, (longestPause(s.schedule()) + backupDeadline).Seconds()),
			Summary: "The last backup of Database %s of namespace %s is older than its schedule asks.",
		})
	series := func(name string) string {
		return fmt.Sprintf("(%s{exported_namespace=%q,database=%q} or %s{%s})", name, s.namespace, s.base(), name, told)
	}
	if s.isOnVolume() {
		alerts = append(alerts, engine.Alert{
			Name: "DatabaseBackupVolumeLow", Severity: engine.SeverityTicket, For: "5m",
			Expr:    fmt.Sprintf("max(%s) >= 85", series("capstan_database_backup_volume_used_percent")),
			Summary: "The volume of backups of Database %s of namespace %s fills up. When it is full, nothing is archived.",
		})
	}
	if !s.verifies() {
		return alerts
	}
	return append(alerts,
		engine.Alert{
			Name: "DatabaseBackupUnverified", Severity: engine.SeverityPage, For: "5m",
			Expr:    fmt.Sprintf("max(%s) > 0", series("capstan_database_backup_verification_failed")),
			Summary: "The latest backup of Database %s of namespace %s could not be restored, or what was restored is wrong.",
		},
		engine.Alert{
			Name: "DatabaseVerificationOverdue", Severity: engine.SeverityTicket, For: "10m",
			Expr:    fmt.Sprintf("time() - max(%s) > %.0f", series("capstan_database_last_verification_timestamp_seconds"), (longestPause(s.verifySchedule()) + verifyDeadline).Seconds()),
			Summary: "No backup of Database %s of namespace %s was verified since the schedule asked for it.",
		})
}

// longestPause between two runs of a schedule. It is looked for from a fixed day on, so that it is the same in every pass.
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
