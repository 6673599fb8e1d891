// SPDX-License-Identifier: Apache-2.0

package database

import (
	"slices"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// restorePointMade tells what became of the restore point that is asked for. The leader makes it, and writes it down in the
// bucket.
func restorePointMade(s *state) xpv2.Condition {
	if s.spec.Backup == nil || s.spec.Backup.RestorePoint == "" {
		return xpv2.Condition{}
	}
	name, b := string(s.spec.Backup.RestorePoint), s.backupReport()
	switch {
	case !s.takesBackups():
		return no(v1alpha1.ReasonBackupsOff, "backups are off: set spec.backup.enabled to true")
	case slices.ContainsFunc(s.seen.RestorePoints, func(p observev1alpha1.RestorePoint) bool { return p.Name == name }):
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
func (s *cluster) restorePoints() []v1alpha1.RestorePoint {
	out := make([]v1alpha1.RestorePoint, 0, len(s.seen.RestorePoints))
	for _, p := range s.seen.RestorePoints {
		out = append(out, v1alpha1.RestorePoint{Name: p.Name, At: stamp(p.At), LSN: p.LSN, Label: p.Label})
	}
	return out
}
