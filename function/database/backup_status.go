// SPDX-License-Identifier: Apache-2.0

package database

import (
	"fmt"
	"strconv"
	"time"

	"github.com/robfig/cron/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

// backupsFresh reports whether there are backups and the last one is as recent as the schedule asks.
func backupsFresh(s *state) xpv2.Condition {
	if s.spec.Backup == nil {
		return xpv2.Condition{}
	}
	b := s.backupReport()
	due, known := s.backupDue()
	again, failed := s.firstAgain()
	scheduled, missed := scheduledFailure(s.Observed[nameBackup])
	switch {
	case !s.takesBackups():
		return no(v1alpha1.ReasonBackupsOff, "backups are off: set spec.backup.enabled to true")
	case !b.Asked && s.placeTrouble() != "":
		return no(s.placeUnready(), s.placeTrouble())
	case !b.Asked && b.Unread != "":
		return unknown(v1alpha1.ReasonBackupUnknown, s.place()+" could not be asked: "+b.Unread)
	case !b.Asked && b.Archive == observev1alpha1.ArchiveFailing:
		return no(s.placeUnready(), b.Message)
	case !b.Asked:
		return unknown(v1alpha1.ReasonBackupUnknown, "the leader has not told yet what backups there are: see the condition Available")
	case b.Label == "" && failed:
		return no(v1alpha1.ReasonBackupFailed,
			fmt.Sprintf("the first backup failed, and is tried again at %s; %s", again.UTC().Format(time.RFC3339), s.whereToLook()))
	case b.Label == "":
		return no(v1alpha1.ReasonFirstBackupPending, "there is no backup yet; "+s.whereToLook())
	case known && s.Now.After(due):
		return no(v1alpha1.ReasonBackupOverdue, "the last backup is older than the schedule asks; "+s.whereToLook())
	case s.isNotMadeUp(scheduled, missed):
		return no(v1alpha1.ReasonBackupFailed,
			"the last backup that the schedule asked for failed; "+s.whereToLook()+"; to take one at once set spec.backup.now to a new id")
	case s.nowFailed():
		return no(v1alpha1.ReasonBackupFailed,
			fmt.Sprintf("the backup that spec.backup.now %q asks for failed; %s; to try again set another id", s.spec.Backup.Now, s.whereToLook()))
	default:
		return yes(v1alpha1.ReasonFresh, "the last backup is as recent as the schedule asks: see status.backup")
	}
}

// nowFailed reports whether the backup of spec.backup.now failed.
func (s *cluster) nowFailed() bool {
	began, _, failed := failure(s.Observed[nameBackupNowPrefix+nowName(s.spec.Backup.Now)])
	return s.isNotMadeUp(began, failed)
}

// isNotMadeUp reports whether a backup that began at a time and failed is one that none has made up for since.
func (s *cluster) isNotMadeUp(began time.Time, failed bool) bool {
	last := stamp(s.backupReport().Ended)
	return failed && (last == nil || last.Time.Before(began))
}

// place is where backups go, for people.
func (s *cluster) place() string {
	if s.isOnVolume() {
		return "the volume of backups"
	}
	return "the bucket"
}

// placeUnready is the reason of what is wrong there.
func (s *cluster) placeUnready() xpv2.ConditionReason {
	if s.isOnVolume() {
		return v1alpha1.ReasonRepositoryUnready
	}
	return v1alpha1.ReasonBucketUnready
}

// placeTrouble is what the Bucket of this Database tells when it has no bucket, or why nobody serves its volume.
func (s *cluster) placeTrouble() string {
	if s.isOnVolume() {
		return s.repositoryTrouble()
	}
	o := s.Observed[nameBackupBucket]
	if o == nil || ready(o) {
		return ""
	}
	c := compose.Condition(o.Map(), string(v1alpha1.TypeConnected))
	if c["status"] != string(corev1.ConditionFalse) {
		return ""
	}
	return fmt.Sprintf("Bucket %q: %s", s.name+"-"+suffixBackup, compose.Text(c, "message"))
}

// whereToLook says where to look.
func (s *names) whereToLook() string {
	return fmt.Sprintf("see kubectl -n %s get pods -l %s=%s and the log of the last one", s.namespace, labelBackupOf, s.name)
}

// archiveHealthy reports whether what is written comes into the archive.
func archiveHealthy(s *state) xpv2.Condition {
	if s.spec.Backup == nil {
		return xpv2.Condition{}
	}
	switch b := s.backupReport(); {
	case !s.takesBackups():
		return no(v1alpha1.ReasonBackupsOff, "nothing is archived: set spec.backup.enabled to true")
	case b.Archive == observev1alpha1.ArchiveFailing && s.repositoryDisk().Disk == diskFull:
		return no(v1alpha1.ReasonRepositoryFull, fmt.Sprintf(
			"the volume of backups (%s) is full, and what is written waits on the volume of the leader, at most %s, and cannot be restored yet: %s",
			s.repositoryClaim(), s.backlogText(), s.repositoryRoom()))
	case b.Archive == observev1alpha1.ArchiveFailing:
		return no(v1alpha1.ReasonArchiveFailing, fmt.Sprintf(
			"what is written waits on the volume of the leader, at most %s, and cannot be restored yet: %s", s.backlogText(), b.Message))
	case b.Archive == observev1alpha1.ArchiveOK:
		return yes(v1alpha1.ReasonArchiving, "what is written comes into the archive within a minute")
	default:
		return unknown(v1alpha1.ReasonBackupUnknown, "the leader has not told yet how archiving is: see the condition Available")
	}
}

// backlogText is how much may wait.
func (s *cluster) backlogText() string {
	return resource.NewQuantity(s.archiveBacklog(), resource.BinarySI).String()
}

// pitrContinuous reports whether every moment since the last backup can be restored.
func pitrContinuous(s *state) xpv2.Condition {
	if s.spec.Backup == nil {
		return xpv2.Condition{}
	}
	b := s.backupReport()
	dropped, began, earliest := stamp(b.Dropped), stamp(b.Began), stamp(b.Earliest)
	switch {
	case !s.takesBackups():
		return no(v1alpha1.ReasonBackupsOff, "nothing is archived: set spec.backup.enabled to true")
	case b.Label == "" && b.Asked:
		return no(v1alpha1.ReasonFirstBackupPending, "nothing can be restored before the first backup")
	case b.Label == "":
		return unknown(v1alpha1.ReasonBackupUnknown, "it is not known what backups there are: see the condition BackupFresh")
	case dropped != nil && dropped.After(began.Time):
		return no(v1alpha1.ReasonArchiveGap, fmt.Sprintf(
			"more than %s waited for the archive, and the oldest was let go: from shortly before status.backup.gapAt to the next backup nothing can be restored. "+
				"Once the condition ArchiveHealthy is True, take a backup: set spec.backup.now to a new id", s.backlogText()))
	case dropped != nil && dropped.After(earliest.Time):
		return yes(v1alpha1.ReasonContinuous,
			"every moment since the last backup can be restored; of those before, not the ones from shortly before status.backup.gapAt to the backup after it")
	default:
		return yes(v1alpha1.ReasonContinuous, "every moment since status.backup.earliestRestorable can be restored")
	}
}

// backupReport is what members tell.
func (s *cluster) backupReport() observev1alpha1.BackupReport {
	if s.seen.Backup == nil {
		return observev1alpha1.BackupReport{}
	}
	return *s.seen.Backup
}

// backupDue is when the next backup should be there. It is not known before the first.
func (s *cluster) backupDue() (time.Time, bool) {
	began := stamp(s.backupReport().Began)
	if !s.takesBackups() || began == nil {
		return time.Time{}, false
	}
	schedule, err := cron.ParseStandard(s.schedule())
	if err != nil {
		return time.Time{}, false
	}
	next := schedule.Next(began.UTC())
	return next.Add(backupDeadline), !next.IsZero()
}

// backupStatus tells what backups there are.
func (s *cluster) backupStatus() *v1alpha1.BackupStatus {
	if s.spec.Backup == nil || s.identity == "" {
		return nil
	}
	st := &v1alpha1.BackupStatus{Stanza: s.stanza(), Volume: s.repositoryStatus()}
	if s.takesBackups() {
		st.Schedule = s.schedule()
	}
	if s.verifies() {
		st.VerifySchedule = s.verifySchedule()
	}
	st.LastVerified, st.RestorePoints = s.verifiedStatus(), s.restorePoints()
	b := s.backupReport()
	if b.Label != "" {
		st.EarliestRestorable = stamp(b.Earliest)
		st.Last = &v1alpha1.BackupTaken{ID: b.Label, Type: b.Type, Size: bytesText(b.Size), Added: bytesText(b.Added), At: stamp(b.Ended)}
		if began, ended := stamp(b.Began), stamp(b.Ended); began != nil && ended != nil {
			st.Last.Took = ended.Sub(began.Time).String()
		}
		if b.Archive == observev1alpha1.ArchiveFailing {
			st.LatestRestorable = stamp(b.Since)
		}
	}
	if gap := stamp(b.Dropped); gap != nil && (st.EarliestRestorable == nil || gap.After(st.EarliestRestorable.Time)) {
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

// stamp of a text that members wrote, or nil.
func stamp(text string) *metav1.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return nil
	}
	return &metav1.Time{Time: t}
}
