// SPDX-License-Identifier: Apache-2.0

package database

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// restorePointMade tells what became of the restore point that is asked for. The
// leader makes it, and writes it down in the bucket.
func restorePointMade(s *state) error {
	if s.spec.Backup == nil || s.spec.Backup.RestorePoint == "" {
		return nil
	}

	say := func(status corev1.ConditionStatus, reason xpv2.ConditionReason, message string) error {
		s.tell(v1alpha1.TypeRestorePointMade, status, reason, message)
		return nil
	}

	name, b := string(s.spec.Backup.RestorePoint), s.toldOfBackups()

	switch {
	case !s.backsUp():
		return say(corev1.ConditionFalse, v1alpha1.ReasonBackupsOff, "backups are off: set spec.backup.enabled to true")
	case slices.ContainsFunc(s.seen.RestorePoints, func(p observev1alpha1.RestorePoint) bool { return p.Name == name }):
		return say(corev1.ConditionTrue, v1alpha1.ReasonRestorePointMade, name+" can be restored: see status.backup.restorePoints")
	case b.RestorePointWait != "":
		return say(corev1.ConditionFalse, v1alpha1.ReasonRestorePointPending, name+": "+b.RestorePointWait)
	case !b.Asked:
		return say(corev1.ConditionUnknown, v1alpha1.ReasonBackupUnknown, "the leader has not told yet what the bucket has: see the condition BackupFresh")
	default:
		return say(corev1.ConditionFalse, v1alpha1.ReasonRestorePointPending, name+
			" is not among those that can be restored: the leader makes it within a minute, unless this name was given before and the backups that it needs are kept no longer: then choose another name")
	}
}

// restorePoints that can be restored.
func (s *state) restorePoints() []v1alpha1.RestorePoint {
	out := make([]v1alpha1.RestorePoint, 0, len(s.seen.RestorePoints))
	for _, p := range s.seen.RestorePoints {
		out = append(out, v1alpha1.RestorePoint{Name: p.Name, At: stamp(p.At), LSN: p.LSN, Label: p.Label})
	}

	return out
}
