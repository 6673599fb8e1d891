// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"fmt"
	"slices"

	"github.com/capstan-dev/capstan/function/database/backup"
	"github.com/capstan-dev/capstan/function/database/engine"
	"github.com/capstan-dev/capstan/function/database/facts"
)

// backupAlarms of a Database that is backed up.
func backupAlerts(s *facts.Cluster, archive []engine.Alert) []engine.Alert {
	if !s.TakesBackups() {
		return nil
	}
	// The provider tells of all Databases; what scrapes it may have given the label another name.
	told := fmt.Sprintf("namespace=%q,database=%q", s.Namespace, s.Base())
	last := fmt.Sprintf("capstan_database_last_backup_timestamp_seconds{exported_namespace=%q,database=%q} or capstan_database_last_backup_timestamp_seconds{%s}",
		s.Namespace, s.Base(), told)
	alerts := append(slices.Clone(archive),
		engine.Alert{
			Name: "DatabaseBackupOverdue", Severity: engine.SeverityTicket, For: "10m",
			Expr:    fmt.Sprintf("time() - max(%s) > %.0f", last, (backup.LongestPause(backup.Schedule(s)) + backup.Deadline).Seconds()),
			Summary: "The last backup of Database %s of namespace %s is older than its schedule asks.",
		})
	series := func(name string) string {
		return fmt.Sprintf("(%s{exported_namespace=%q,database=%q} or %s{%s})", name, s.Namespace, s.Base(), name, told)
	}
	if backup.IsOnVolume(s) {
		alerts = append(alerts, engine.Alert{
			Name: "DatabaseBackupVolumeLow", Severity: engine.SeverityTicket, For: "5m",
			Expr:    fmt.Sprintf("max(%s) >= 85", series("capstan_database_backup_volume_used_percent")),
			Summary: "The volume of backups of Database %s of namespace %s fills up. When it is full, nothing is archived.",
		})
	}
	if !backup.Verifies(s) {
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
			Expr:    fmt.Sprintf("time() - max(%s) > %.0f", series("capstan_database_last_verification_timestamp_seconds"), (backup.LongestPause(backup.VerifySchedule(s)) + backup.VerifyDeadline).Seconds()),
			Summary: "No backup of Database %s of namespace %s was verified since the schedule asked for it.",
		})
}
