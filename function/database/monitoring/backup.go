// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"fmt"

	"github.com/capstan-dev/capstan/function/database/backup"
	"github.com/capstan-dev/capstan/function/database/engine"
	"github.com/capstan-dev/capstan/function/database/facts"
)

// backupAlerts of a Database that is backed up.
func backupAlerts(s *facts.Cluster) []engine.Alert {
	if !s.BacksUp() {
		return nil
	}
	series := func(name string) string { return exported(s, name) }
	// The server's own counters take a discarded change for an archived one.
	alerts := []engine.Alert{
		{
			Name: "DatabaseArchiveFailing", Severity: engine.SeverityPage, For: "5m",
			Expr:    fmt.Sprintf("max((%s)) > 0", series("capstan_database_archive_failing")),
			Summary: "Database %s in namespace %s cannot archive changes, which wait on the leader's volume and fill it: check the condition ArchiveHealthy.",
		},
		{
			Name: "DatabaseArchiveGap", Severity: engine.SeverityPage, For: "5m",
			Expr:    fmt.Sprintf("max((%s)) > 0", series("capstan_database_archive_gap")),
			Summary: "Changes of Database %s in namespace %s are missing in the archive and cannot be restored until the next backup ends: check the condition PITRContinuous.",
		},
		{
			Name: "DatabaseBackupOverdue", Severity: engine.SeverityTicket, For: "10m",
			Expr:    fmt.Sprintf("time() - max(%s) > %.0f", series("capstan_database_last_backup_timestamp_seconds"), (backup.LongestPause(backup.Schedule(s)) + backup.Deadline(s)).Seconds()),
			Summary: "The last backup of Database %s in namespace %s is older than spec.backup.schedule allows: check the condition BackupFresh.",
		},
	}
	if backup.IsOnVolume(s) {
		alerts = append(alerts, engine.Alert{
			Name: "DatabaseBackupVolumeLow", Severity: engine.SeverityTicket, For: "5m",
			Expr:    fmt.Sprintf("max((%s)) >= 85", series("capstan_database_backup_volume_used_percent")),
			Summary: "The backup volume of Database %s in namespace %s is over 85 %% full. When it is full, archiving stops: raise spec.backup.to.volume.size.",
		})
	}
	if s.TakesSnapshots() {
		alerts = append(alerts, snapshotAlerts(s)...)
	}
	if !backup.Verifies(s) {
		return alerts
	}
	return append(alerts,
		engine.Alert{
			Name: "DatabaseBackupUnverified", Severity: engine.SeverityPage, For: "5m",
			Expr:    fmt.Sprintf("max((%s)) > 0", series("capstan_database_backup_verification_failed")),
			Summary: "The verification of the latest backup of Database %s in namespace %s failed: a restore may fail or lose data.",
		},
		engine.Alert{
			Name: "DatabaseVerificationOverdue", Severity: engine.SeverityTicket, For: "10m",
			Expr:    fmt.Sprintf("time() - max((%s)) > %.0f", series("capstan_database_last_verification_timestamp_seconds"), (backup.LongestPause(backup.VerifySchedule(s)) + backup.VerifyDeadline(s)).Seconds()),
			Summary: "No backup of Database %s in namespace %s was verified on time: check the Jobs of spec.backup.verify.",
		})
}

// snapshotAlerts of a Database that has snapshots taken, in each generation of its members. A run that ends without a word is noticed once
// the next snapshot is overdue.
func snapshotAlerts(s *facts.Cluster) []engine.Alert {
	return []engine.Alert{
		{
			Name: "DatabaseSnapshotFailed", Severity: engine.SeverityTicket, For: "10m",
			Expr:    fmt.Sprintf("max((%s)) > 0", exportedOf(s, "capstan_database_snapshot_failed", s.Name)),
			Summary: "The last snapshot of Database %s in namespace %s failed: check the condition SnapshotFresh.",
		},
		{
			Name: "DatabaseSnapshotOverdue", Severity: engine.SeverityTicket, For: "10m",
			Expr:    fmt.Sprintf("time() - max((%s)) > %.0f", exportedOf(s, "capstan_database_last_snapshot_timestamp_seconds", s.Name), (backup.LongestPause(backup.SnapshotSchedule(s)) + backup.Deadline(s)).Seconds()),
			Summary: "The last snapshot of Database %s in namespace %s is older than spec.backup.snapshots.schedule allows: check the condition SnapshotFresh.",
		},
	}
}
