// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/backup"
	"github.com/capstan-dev/capstan/function/database/decision"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/names"
)

// ofBackups is a condition that exists only with spec.backup, and is False while backups are off.
func ofBackups(of func(*decision.Pass) xpv2.Condition) func(*decision.Pass) xpv2.Condition {
	return func(s *decision.Pass) xpv2.Condition {
		if s.Spec.Backup == nil {
			return xpv2.Condition{}
		}
		c := of(s)
		if c.Status != "" && s.Standby() {
			return no(v1alpha1.ReasonStandby, "a standby archives nothing and is not backed up: its own backups begin after its promotion")
		}
		if c.Status != "" && !s.TakesBackups() {
			return no(v1alpha1.ReasonBackupsOff, "backups are off: set spec.backup.enabled to true")
		}
		return c
	}
}

// backupsFresh reports whether there are backups and the last one is as recent as the schedule requires.
func backupsFresh(s *decision.Pass) xpv2.Condition {
	b, see := s.BackupReport(), seePods(&s.Names, names.LabelBackupOf)+" and read the log of the newest pod"
	due, known := backup.Due(s.Cluster)
	again, failed := backup.FirstAgain(s.Cluster)
	place, unready := place(s.Cluster)
	scheduled, missed := backup.ScheduledFailure(s.Observed[names.Backup])
	now, _, nowFailed := backup.Failure(s.Observed[names.BackupNowPrefix+backup.NowName(s.Spec.Backup.Now)])
	signal, asked, signalFailed := backup.SignalFailure(s.Cluster)
	switch {
	case !b.Asked && placeTrouble(s.Cluster) != "":
		return no(unready, placeTrouble(s.Cluster))
	case !b.Asked && b.Unread != "":
		return unknown(v1alpha1.ReasonBackupUnknown, "the leader cannot read "+place+": "+b.Unread)
	case !b.Asked && b.Archive == observev1alpha1.ArchiveFailing:
		return no(unready, b.Message)
	case !b.Asked:
		return unknown(v1alpha1.ReasonBackupUnknown, "the leader has not reported its backups yet: see the condition Available")
	case b.Label == "" && failed:
		return no(v1alpha1.ReasonBackupFailed,
			fmt.Sprintf("the first backup failed, and Capstan tries again at %s; %s", again.UTC().Format(time.RFC3339), see))
	case b.Label == "":
		return no(v1alpha1.ReasonFirstBackupPending, "there is no backup yet; "+see)
	case known && s.Now.After(due):
		return no(v1alpha1.ReasonBackupOverdue, "the last backup is older than spec.backup.schedule allows; "+see)
	case isNotMadeUp(s.Cluster, scheduled, missed):
		return no(v1alpha1.ReasonBackupFailed,
			"the last scheduled backup failed; "+see+"; to take a backup now, set spec.backup.now to a new id")
	case isNotMadeUp(s.Cluster, now, nowFailed):
		return no(v1alpha1.ReasonBackupFailed,
			fmt.Sprintf("the backup of spec.backup.now %q failed; %s; to try again, set spec.backup.now to a new id", s.Spec.Backup.Now, see))
	case isNotMadeUp(s.Cluster, asked, signalFailed):
		return no(v1alpha1.ReasonBackupFailed,
			fmt.Sprintf("the backup that Signal %q asked for failed; %s; to try again, set spec.backup.now to a new id", signal, see))
	default:
		return yes(v1alpha1.ReasonFresh, "the last backup is as recent as spec.backup.schedule requires: see status.backup")
	}
}

// isNotMadeUp reports whether a backup that began at a time has failed, and none has succeeded since.
func isNotMadeUp(s *facts.Cluster, began time.Time, failed bool) bool {
	last := facts.Stamp(s.BackupReport().Ended)
	return failed && (last == nil || last.Time.Before(began))
}

// place where backups go, for people, and the reason for a problem there.
func place(s *facts.Cluster) (string, xpv2.ConditionReason) {
	if backup.IsOnVolume(s) {
		return "the backup volume", v1alpha1.ReasonRepositoryUnready
	}
	return "the bucket", v1alpha1.ReasonBucketUnready
}

// placeTrouble is what the Bucket of this Database reports when it has no bucket, or why its backup volume is not served.
func placeTrouble(s *facts.Cluster) string {
	if backup.IsOnVolume(s) {
		return backup.RepositoryTrouble(s)
	}
	o := s.Observed[names.BackupBucket]
	if o == nil || facts.Ready(o) {
		return ""
	}
	c := compose.Condition(o.Map(), string(v1alpha1.TypeConnected))
	if c["status"] != string(corev1.ConditionFalse) {
		return ""
	}
	return fmt.Sprintf("Bucket %q: %s", s.Name+"-"+names.SuffixBackup, compose.Text(c, "message"))
}

// seePods is how to list the pods that a label selects.
func seePods(s *names.Names, label string) string {
	return fmt.Sprintf("run kubectl -n %s get pods -l %s=%s", s.Namespace, label, s.Name)
}

// archiveHealthy reports whether changes reach the archive.
func archiveHealthy(s *decision.Pass) xpv2.Condition {
	switch b := s.BackupReport(); {
	case b.Archive == observev1alpha1.ArchiveFailing && backup.RepositoryDisk(s.Cluster).Disk == facts.DiskFull:
		return no(v1alpha1.ReasonRepositoryFull, fmt.Sprintf(
			"the backup volume (%s) is full; changes wait on the volume of the leader, at most %s, and cannot be restored yet: %s",
			backup.RepositoryClaim(&s.Names), waitsText(s.Cluster), backup.RepositoryRoom(s.Cluster)))
	case b.Archive == observev1alpha1.ArchiveFailing:
		return no(v1alpha1.ReasonArchiveFailing, fmt.Sprintf(
			"archiving fails; changes wait on the volume of the leader, at most %s, and cannot be restored yet: %s", waitsText(s.Cluster), b.Message))
	case b.Archive == observev1alpha1.ArchiveOK:
		return yes(v1alpha1.ReasonArchiving, "changes reach the archive within a minute")
	default:
		return unknown(v1alpha1.ReasonBackupUnknown, "the leader has not reported yet whether archiving works: see the condition Available")
	}
}

func backlogText(s *facts.Cluster) string {
	return resource.NewQuantity(backup.ArchiveBacklog(s), resource.BinarySI).String()
}

// waitsText is how much waits for the archive at most.
func waitsText(s *facts.Cluster) string {
	if s.Spec.Backup.MaxArchiveBacklog != nil {
		return backlogText(s)
	}
	return backlogText(s) + " once the volume is nearly full"
}

// pitrContinuous reports whether every moment since the last backup can be restored.
func pitrContinuous(s *decision.Pass) xpv2.Condition {
	b := s.BackupReport()
	dropped, began, earliest := facts.Stamp(b.Dropped), facts.Stamp(b.Began), facts.Stamp(b.Earliest)
	switch {
	case b.Label == "" && b.Asked:
		return no(v1alpha1.ReasonFirstBackupPending, "nothing can be restored until the first backup is complete")
	case b.Label == "":
		return unknown(v1alpha1.ReasonBackupUnknown, "the leader has not reported its backups yet: see the condition BackupFresh")
	case dropped != nil && dropped.After(began.Time):
		return no(v1alpha1.ReasonArchiveGap, fmt.Sprintf(
			"some changes did not reach the archive, because backups were off, more than %s waited, or the leader changed before: nothing between shortly before status.backup.gapAt and the next backup can be restored. "+
				"That backup begins by itself once the condition ArchiveHealthy is True", backlogText(s.Cluster)))
	case dropped != nil && dropped.After(earliest.Time):
		return yes(v1alpha1.ReasonContinuous,
			"every moment since the last backup can be restored, and every earlier one except from shortly before status.backup.gapAt to the next backup after it")
	default:
		return yes(v1alpha1.ReasonContinuous, "every moment since status.backup.earliestRestorable can be restored")
	}
}

// backupStatus is what backups there are.
func backupStatus(s *facts.Cluster) *v1alpha1.BackupStatus {
	if s.Spec.Backup == nil || s.Identity == "" {
		return nil
	}
	st := &v1alpha1.BackupStatus{Stanza: backup.Stanza(s), Volume: backup.RepositoryStatus(s)}
	if s.TakesBackups() {
		st.Schedule = backup.Schedule(s)
	}
	if backup.Verifies(s) {
		st.VerifySchedule = backup.VerifySchedule(s)
	}
	st.Snapshots = snapshotsStatus(s)
	st.LastVerified, st.RestorePoints = verifiedStatus(s), restorePoints(s)
	b := s.BackupReport()
	if b.Label != "" {
		st.EarliestRestorable = facts.Stamp(b.Earliest)
		st.Last = &v1alpha1.BackupTaken{ID: b.Label, Type: b.Type, Size: bytesText(b.Size), Added: bytesText(b.Added), At: facts.Stamp(b.Ended)}
		if began, ended := facts.Stamp(b.Began), facts.Stamp(b.Ended); began != nil && ended != nil {
			st.Last.Took = ended.Sub(began.Time).String()
		}
		if b.Archive == observev1alpha1.ArchiveFailing {
			st.LatestRestorable = facts.Stamp(b.Since)
		}
	}
	if gap := facts.Stamp(b.Dropped); gap != nil && (st.EarliestRestorable == nil || gap.After(st.EarliestRestorable.Time)) {
		st.GapAt = gap
	}
	return st
}

// bytesText of a number, rounded to what people read.
func bytesText(n int64) string {
	for _, u := range []struct {
		name string
		size int64
	}{{"Gi", 1 << 30}, {"Mi", 1 << 20}, {"Ki", 1 << 10}} {
		if n >= u.size {
			return fmt.Sprintf("%.1f%s", float64(n)/float64(u.size), u.name)
		}
	}
	return strconv.FormatInt(n, 10)
}

// restorePointMade reports whether the restore point of the spec exists. The leader creates it, and records it beside the backups.
func restorePointMade(s *decision.Pass) xpv2.Condition {
	if s.Spec.Backup.RestorePoint == "" {
		return xpv2.Condition{}
	}
	name, b := string(s.Spec.Backup.RestorePoint), s.BackupReport()
	switch {
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

func restorePoints(s *facts.Cluster) []v1alpha1.RestorePoint {
	out := make([]v1alpha1.RestorePoint, 0, len(s.Seen.RestorePoints))
	for _, p := range s.Seen.RestorePoints {
		out = append(out, v1alpha1.RestorePoint{Name: p.Name, At: facts.Stamp(p.At), LSN: p.LSN, Label: p.Label})
	}
	return out
}
