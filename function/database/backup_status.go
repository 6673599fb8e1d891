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

// backupsFresh tells whether there are backups and the last one is as recent as the
// schedule asks.
func backupsFresh(s *state) error {
	if s.spec.Backup == nil {
		return nil
	}

	say := func(status corev1.ConditionStatus, reason xpv2.ConditionReason, message string) error {
		s.tell(v1alpha1.TypeBackupFresh, status, reason, message)
		return nil
	}

	b := s.toldOfBackups()
	due, known := s.backupDue()
	again, failed := s.firstAgain()

	switch {
	case !s.backsUp():
		return say(corev1.ConditionFalse, v1alpha1.ReasonBackupsOff, "backups are off: set spec.backup.enabled to true")
	case !b.Asked && s.placeTrouble() != "":
		return say(corev1.ConditionFalse, s.placeUnready(), s.placeTrouble())
	case !b.Asked && b.Unread != "":
		return say(corev1.ConditionUnknown, v1alpha1.ReasonBackupUnknown, s.place()+" could not be asked: "+b.Unread)
	case !b.Asked && b.Archive == observev1alpha1.ArchiveFailing:
		return say(corev1.ConditionFalse, s.placeUnready(), b.Message)
	case !b.Asked:
		return say(corev1.ConditionUnknown, v1alpha1.ReasonBackupUnknown, "the leader has not told yet what backups there are: see the condition Available")
	case b.Label == "" && failed:
		return say(corev1.ConditionFalse, v1alpha1.ReasonBackupFailed,
			fmt.Sprintf("the first backup failed, and is tried again at %s; %s", again.UTC().Format(time.RFC3339), s.howBackupsFare()))
	case b.Label == "":
		return say(corev1.ConditionFalse, v1alpha1.ReasonFirstBackupPending, "there is no backup yet; "+s.howBackupsFare())
	case known && s.Now.After(due):
		return say(corev1.ConditionFalse, v1alpha1.ReasonBackupOverdue, "the last backup is older than the schedule asks; "+s.howBackupsFare())
	case s.unmade(scheduledFailure(s.Observed[nameBackup])):
		return say(corev1.ConditionFalse, v1alpha1.ReasonBackupFailed,
			"the last backup that the schedule asked for failed; "+s.howBackupsFare()+"; to take one at once set spec.backup.now to a new id")
	case s.nowFailed():
		return say(corev1.ConditionFalse, v1alpha1.ReasonBackupFailed,
			fmt.Sprintf("the backup that spec.backup.now %q asks for failed; %s; to try again set another id", s.spec.Backup.Now, s.howBackupsFare()))
	default:
		return say(corev1.ConditionTrue, v1alpha1.ReasonFresh, "the last backup is as recent as the schedule asks: see status.backup")
	}
}

// nowFailed tells whether the backup of spec.backup.now failed.
func (s *state) nowFailed() bool {
	began, _, failed := failure(s.Observed[nameBackupNowPrefix+nowName(s.spec.Backup.Now)])

	return s.unmade(began, failed)
}

// unmade tells whether a backup that began at a time and failed is one that none has
// made up for since.
func (s *state) unmade(began time.Time, failed bool) bool {
	last := stamp(s.toldOfBackups().Ended)

	return failed && (last == nil || last.Time.Before(began))
}

// place is where backups go, for people.
func (s *state) place() string {
	if s.volumed() {
		return "the volume of backups"
	}

	return "the bucket"
}

// placeUnready is the reason of what is wrong there.
func (s *state) placeUnready() xpv2.ConditionReason {
	if s.volumed() {
		return v1alpha1.ReasonRepositoryUnready
	}

	return v1alpha1.ReasonBucketUnready
}

// placeTrouble is what the Bucket of this Database tells when it has no bucket, or why
// nobody serves its volume.
func (s *state) placeTrouble() string {
	if s.volumed() {
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

// howBackupsFare says where to look.
func (s *state) howBackupsFare() string {
	return fmt.Sprintf("see kubectl -n %s get pods -l %s=%s and the log of the last one", s.namespace, labelBackupOf, s.name)
}

// archiveHealthy tells whether what is written comes into the archive.
func archiveHealthy(s *state) error {
	if s.spec.Backup == nil {
		return nil
	}

	say := func(status corev1.ConditionStatus, reason xpv2.ConditionReason, message string) error {
		s.tell(v1alpha1.TypeArchiveHealthy, status, reason, message)
		return nil
	}

	switch b := s.toldOfBackups(); {
	case !s.backsUp():
		return say(corev1.ConditionFalse, v1alpha1.ReasonBackupsOff, "nothing is archived: set spec.backup.enabled to true")
	case b.Archive == observev1alpha1.ArchiveFailing && s.repositoryDisk().Disk == diskFull:
		return say(corev1.ConditionFalse, v1alpha1.ReasonRepositoryFull, fmt.Sprintf(
			"the volume of backups (%s) is full, and what is written waits on the volume of the leader, at most %s, and cannot be restored yet: %s",
			s.repositoryClaim(), s.backlogText(), s.repositoryRoom()))
	case b.Archive == observev1alpha1.ArchiveFailing:
		return say(corev1.ConditionFalse, v1alpha1.ReasonArchiveFailing, fmt.Sprintf(
			"what is written waits on the volume of the leader, at most %s, and cannot be restored yet: %s", s.backlogText(), b.Message))
	case b.Archive == observev1alpha1.ArchiveOK:
		return say(corev1.ConditionTrue, v1alpha1.ReasonArchiving, "what is written comes into the archive within a minute")
	default:
		return say(corev1.ConditionUnknown, v1alpha1.ReasonBackupUnknown, "the leader has not told yet how archiving is: see the condition Available")
	}
}

// backlogText is how much may wait.
func (s *state) backlogText() string {
	return resource.NewQuantity(s.archiveBacklog(), resource.BinarySI).String()
}

// pitrContinuous tells whether every moment since the last backup can be restored.
func pitrContinuous(s *state) error {
	if s.spec.Backup == nil {
		return nil
	}

	say := func(status corev1.ConditionStatus, reason xpv2.ConditionReason, message string) error {
		s.tell(v1alpha1.TypePITRContinuous, status, reason, message)
		return nil
	}

	b := s.toldOfBackups()
	dropped, began, earliest := stamp(b.Dropped), stamp(b.Began), stamp(b.Earliest)

	switch {
	case !s.backsUp():
		return say(corev1.ConditionFalse, v1alpha1.ReasonBackupsOff, "nothing is archived: set spec.backup.enabled to true")
	case b.Label == "" && b.Asked:
		return say(corev1.ConditionFalse, v1alpha1.ReasonFirstBackupPending, "nothing can be restored before the first backup")
	case b.Label == "":
		return say(corev1.ConditionUnknown, v1alpha1.ReasonBackupUnknown, "it is not known what backups there are: see the condition BackupFresh")
	case dropped != nil && dropped.After(began.Time):
		return say(corev1.ConditionFalse, v1alpha1.ReasonArchiveGap, fmt.Sprintf(
			"more than %s waited for the archive, and the oldest was let go: from shortly before status.backup.gapAt to the next backup nothing can be restored. "+
				"Once the condition ArchiveHealthy is True, take a backup: set spec.backup.now to a new id", s.backlogText()))
	case dropped != nil && dropped.After(earliest.Time):
		return say(corev1.ConditionTrue, v1alpha1.ReasonContinuous,
			"every moment since the last backup can be restored; of those before, not the ones from shortly before status.backup.gapAt to the backup after it")
	default:
		return say(corev1.ConditionTrue, v1alpha1.ReasonContinuous, "every moment since status.backup.earliestRestorable can be restored")
	}
}

// toldOfBackups is what members tell.
func (s *state) toldOfBackups() observev1alpha1.BackupReport {
	if s.seen.Backup == nil {
		return observev1alpha1.BackupReport{}
	}

	return *s.seen.Backup
}

// backupDue is when the next backup should be there. It is not known before the
// first.
func (s *state) backupDue() (time.Time, bool) {
	began := stamp(s.toldOfBackups().Began)
	if !s.backsUp() || began == nil {
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
func (s *state) backupStatus() *v1alpha1.BackupStatus {
	if s.spec.Backup == nil || s.identity == "" {
		return nil
	}

	st := &v1alpha1.BackupStatus{Stanza: s.stanza(), Volume: s.repositoryStatus()}
	if s.backsUp() {
		st.Schedule = s.schedule()
	}

	if s.verifies() {
		st.VerifySchedule = s.verifySchedule()
	}

	st.LastVerified, st.RestorePoints = s.verifiedStatus(), s.restorePoints()

	b := s.toldOfBackups()
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
