// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"cmp"
	"fmt"
	"time"

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/engine"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/names"
)

const (
	// FirstBackup is the id of the backup that is taken as soon as there is a leader: without one nothing can be restored.
	FirstBackup = "first"

	// firstBackupAgain is how long after the first backup failed it is tried again.
	firstBackupAgain = 10 * time.Minute

	// FirstVerify names the verification that begins as soon as there is a backup.
	FirstVerify = "first"
)

// FirstAgain is when the first backup is tried again, if it failed.
func FirstAgain(s *facts.Cluster) (time.Time, bool) {
	_, ended, failed := Failure(s.Observed[names.BackupNowPrefix+NowName(FirstBackup)])
	return ended.Add(firstBackupAgain), failed
}

// GapBackup is the id of the backup that follows a gap in the archive by itself.
const GapBackup = "after a gap"

// Gap reports whether changes are missing in the archive since the last backup began, so that only another backup makes the time
// from now on restorable.
func Gap(s *facts.Cluster) bool {
	b := s.BackupReport()
	dropped, began := facts.Stamp(b.Dropped), facts.Stamp(b.Began)
	return s.TakesBackups() && b.Label != "" && dropped != nil && began != nil && dropped.After(began.Time)
}

// GapAgain is when a backup after a gap may be taken again, if the last one ended.
func GapAgain(s *facts.Cluster) (time.Time, bool) {
	job := s.Observed[names.BackupNowPrefix+NowName(GapBackup)]
	if job == nil {
		return time.Time{}, false
	}
	for _, end := range []batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobFailed} {
		c := compose.Condition(job.Map(), string(end))
		if at := facts.Stamp(compose.Text(c, "lastTransitionTime")); at != nil && compose.Text(c, "status") == string(corev1.ConditionTrue) {
			return at.Add(firstBackupAgain), true
		}
	}
	return time.Time{}, false
}

// FollowsGap reports whether there has to be a Job for a backup after a gap: one that runs is kept until it ends, and one that
// ended for a while, because the leader learns of the backup a moment later.
func FollowsGap(s *facts.Cluster) bool {
	again, ended := GapAgain(s)
	if s.Observed[names.BackupNowPrefix+NowName(GapBackup)] != nil && !ended {
		return true
	}
	return Gap(s) && s.BackupReport().Archive == observev1alpha1.ArchiveOK && !Past(s, again, ended)
}

// NowName of an id, which may be longer than there is room in a name.
func NowName(id string) string { return compose.Hash([]byte(id)) }

// runsCompared is the number of runs of a schedule among which its longest pause is found.
const runsCompared = 100

// LongestPause between two runs of a schedule. It counts from a fixed day, so that it is the same in every pass.
func LongestPause(schedule string) time.Duration {
	parsed, err := cron.ParseStandard(schedule)
	if err != nil {
		return 0
	}
	var longest time.Duration
	at := parsed.Next(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	for range runsCompared {
		next := parsed.Next(at)
		if next.IsZero() {
			break
		}
		longest, at = max(longest, next.Sub(at)), next
	}
	return longest
}

// Due is when the next backup should be there. It is not known before the first.
func Due(s *facts.Cluster) (time.Time, bool) {
	began := facts.Stamp(s.BackupReport().Began)
	if !s.TakesBackups() || began == nil {
		return time.Time{}, false
	}
	return dueAfter(began.Time, Schedule(s), Deadline(s))
}

// dueAfter a time: when the next run of a schedule, which may take as long as a deadline, should have ended.
func dueAfter(at time.Time, schedule string, deadline time.Duration) (time.Time, bool) {
	parsed, err := cron.ParseStandard(schedule)
	if err != nil {
		return time.Time{}, false
	}
	next := parsed.Next(at.UTC())
	return next.Add(deadline), !next.IsZero()
}

// Failure is when a Job began and when it failed, if it did: none of its pods is started again.
func Failure(job compose.Object) (began, ended time.Time, failed bool) {
	if job == nil {
		return time.Time{}, time.Time{}, false
	}
	c := compose.Condition(job.Map(), string(batchv1.JobFailed))
	from, to := facts.Stamp(compose.Text(job.Map(), "status", "startTime")), facts.Stamp(compose.Text(c, "lastTransitionTime"))
	if compose.Text(c, "status") != string(corev1.ConditionTrue) || from == nil || to == nil {
		return time.Time{}, time.Time{}, false
	}
	return from.Time, to.Time, true
}

// ScheduledFailure is when the Job began that a CronJob made last, if that has ended without success.
func ScheduledFailure(cron compose.Object) (time.Time, bool) {
	if cron == nil {
		return time.Time{}, false
	}
	status := compose.Map(cron.Map(), "status")
	began, succeeded := facts.Stamp(compose.Text(status, "lastScheduleTime")), facts.Stamp(compose.Text(status, "lastSuccessfulTime"))
	if began == nil || len(compose.List(status, "active")) > 0 || succeeded != nil && !succeeded.Before(began) {
		return time.Time{}, false
	}
	return began.Time, true
}

// Past reports whether a time that is known has passed.
func Past(s *facts.Cluster, at time.Time, known bool) bool { return known && s.Now.After(at) }

// VerifyLost is the deadline of a verification that began.
func VerifyLost(s *facts.Cluster) (time.Time, bool) {
	began := facts.Stamp(s.BackupReport().Verification.Began)
	if !Verifies(s) || began == nil {
		return time.Time{}, false
	}
	return began.Add(VerifyDeadline(s)), true
}

// VerifyDue is when the next verification should have ended. Before the first it is not known, but that a backup was there since.
func VerifyDue(s *facts.Cluster) (time.Time, bool) {
	if !Verifies(s) {
		return time.Time{}, false
	}
	b := s.BackupReport()
	from := facts.Stamp(b.Verification.Ended)
	if from == nil {
		from = facts.Stamp(b.Earliest)
	}
	if from == nil {
		return time.Time{}, false
	}
	return dueAfter(from.Time, VerifySchedule(s), VerifyDeadline(s))
}

// Verifies reports whether backups are verified.
func Verifies(s *facts.Cluster) bool { return s.TakesBackups() && s.Spec.Backup.Verify != nil }

func verifyFile(s *facts.Cluster) *engine.Verify {
	if !Verifies(s) {
		return nil
	}
	f := &engine.Verify{Preload: s.Engine.Libraries(s.Fields())}
	for _, a := range s.Spec.Backup.Verify.Assertions {
		f.Assertions = append(f.Assertions, engine.Assertion(a))
	}
	if d := s.Spec.Backup.Verify.MaxRestoreTime; d != nil {
		f.MaxRestoreSeconds = max(1, int64(d.Seconds()))
	}
	return f
}

// VerifySchedule is the one in the spec, or once a week in the hours after those in which backups are taken.
func VerifySchedule(s *facts.Cluster) string {
	n := s.Hashed()
	minute := n % (hoursOfNight * 60)
	return cmp.Or(s.Spec.Backup.Verify.Schedule, fmt.Sprintf("%d %d * * %d", minute%60, hoursOfNight+minute/60, n/(hoursOfNight*60)%7))
}
