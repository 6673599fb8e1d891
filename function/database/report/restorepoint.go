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

// restorePointMade reports whether the restore point of the spec exists. The leader creates it, and records it beside the backups.
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
		return unknown(v1alpha1.ReasonBackupUnknown, "the leader has not reported its restore points yet: see the condition BackupFresh")
	default:
		return no(v1alpha1.ReasonRestorePointPending, name+
			" cannot be restored yet: the leader creates it within a minute. If this name was used before and its backups have expired, choose another name")
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
