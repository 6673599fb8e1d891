// SPDX-License-Identifier: Apache-2.0

package report

import (
	"slices"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/database/decision"
	"github.com/capstan-dev/capstan/function/database/facts"
)

// restorePointMade tells what became of the restore point that is asked for. The leader makes it, and writes it down in the
// bucket.
func restorePointMade(s *decision.Pass) xpv2.Condition {
	if s.Spec.Backup == nil || s.Spec.Backup.RestorePoint == "" {
		return xpv2.Condition{}
	}
	name, b := string(s.Spec.Backup.RestorePoint), s.BackupReport()
	switch {
	case !s.TakesBackups():
		return no(v1alpha1.ReasonBackupsOff, "backups are off: set spec.backup.enabled to true")
	case slices.ContainsFunc(s.Seen.RestorePoints, func(p observev1alpha1.RestorePoint) bool { return p.Name == name }):
		return yes(v1alpha1.ReasonRestorePointMade, name+" can be restored: see status.backup.restorePoints")
	case b.RestorePointWait != "":
		return no(v1alpha1.ReasonRestorePointPending, name+": "+b.RestorePointWait)
	case !b.Asked:
		return unknown(v1alpha1.ReasonBackupUnknown, "the leader has not told yet what the bucket has: see the condition BackupFresh")
	default:
		return no(v1alpha1.ReasonRestorePointPending, name+
			" is not among those that can be restored: the leader makes it within a minute, unless this name was given before and the backups that it needs are kept no longer: then choose another name")
	}
}

// restorePoints that can be restored.
func restorePoints(s *facts.Cluster) []v1alpha1.RestorePoint {
	out := make([]v1alpha1.RestorePoint, 0, len(s.Seen.RestorePoints))
	for _, p := range s.Seen.RestorePoints {
		out = append(out, v1alpha1.RestorePoint{Name: p.Name, At: facts.Stamp(p.At), LSN: p.LSN, Label: p.Label})
	}
	return out
}
