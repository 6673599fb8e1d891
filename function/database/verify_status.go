// SPDX-License-Identifier: Apache-2.0

package database

import (
	"fmt"
	"time"

	"github.com/robfig/cron/v3"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// kindsOfFailure of a verification that are reasons of the condition. Others, of a member of another version, are told as what
// they are: failures.
var kindsOfFailure = map[string]xpv2.ConditionReason{
	observev1alpha1.VerifyRestore:   v1alpha1.ReasonRestoreFailed,
	observev1alpha1.VerifySlow:      v1alpha1.ReasonRestoreTooSlow,
	observev1alpha1.VerifyArchive:   v1alpha1.ReasonArchiveIncomplete,
	observev1alpha1.VerifyData:      v1alpha1.ReasonDataDamaged,
	observev1alpha1.VerifyAssertion: v1alpha1.ReasonAssertionFailed,
}

// backupVerified reports whether the latest backup could be restored when that was last tried.
func backupVerified(s *state) xpv2.Condition {
	if s.spec.Backup == nil || s.spec.Backup.Verify == nil {
		return xpv2.Condition{}
	}
	again := "; to verify at once set spec.backup.verify.now to a new id"
	see := fmt.Sprintf("see kubectl -n %s get pods -l %s=%s", s.namespace, labelVerificationOf, s.name)
	b := s.backupReport()
	v := b.Verification
	lost, begun := s.verifyLost()
	due, known := s.verifyDue()
	switch {
	case !s.takesBackups():
		return no(v1alpha1.ReasonBackupsOff, "backups are off: set spec.backup.enabled to true")
	case !v.Asked:
		return unknown(v1alpha1.ReasonBackupUnknown, "the leader has not told yet what verifications came to: see the condition BackupFresh")
	case v.Failure != "":
		reason, ok := kindsOfFailure[v.Failure]
		if !ok {
			reason = v1alpha1.ReasonVerificationFailed
		}
		message := v.Message
		if v.Backup != "" {
			message = fmt.Sprintf("backup %s: %s", v.Backup, v.Message)
		}
		return no(reason, message+again)
	case s.past(lost, begun):
		return no(v1alpha1.ReasonVerificationLost,
			"a verification began and was ended before it told a result: its node or its memory was taken away; "+see+again)
	case s.isVerificationSilent():
		return no(v1alpha1.ReasonVerificationLost, "the last verification ended without success and told no result; "+see+again)
	case s.past(due, known):
		return no(v1alpha1.ReasonVerificationOverdue, "no backup was verified since the schedule asked for it: "+see+again)
	case v.Ended == "" && b.Label == "":
		return unknown(v1alpha1.ReasonVerificationPending, "there is no backup yet: see the condition BackupFresh")
	case v.Ended == "":
		return unknown(v1alpha1.ReasonVerificationPending, "the first backup is being verified: "+see)
	default:
		return yes(v1alpha1.ReasonVerified, "the latest backup was restored when it was last tried, and all that is asked of it held: see status.backup.lastVerified")
	}
}

// past reports whether a time that is known has passed.
func (s *cluster) past(at time.Time, known bool) bool { return known && s.Now.After(at) }

// isVerificationSilent reports whether a verification ended without success, and nobody told why.
func (s *cluster) isVerificationSilent() bool {
	if !s.verifies() {
		return false
	}
	told := stamp(s.backupReport().Verification.Ended)
	silent := func(began time.Time, failed bool) bool { return failed && (told == nil || told.Time.Before(began)) }
	for _, name := range []string{firstVerify, nowName(s.spec.Backup.Verify.Now)} {
		if began, _, failed := failure(s.Observed[nameVerifyNowPrefix+name]); silent(began, failed) {
			return true
		}
	}
	return silent(scheduledFailure(s.Observed[nameVerify]))
}

// verifyLost is when a verification that began cannot go on any longer.
func (s *cluster) verifyLost() (time.Time, bool) {
	began := stamp(s.backupReport().Verification.Began)
	if !s.verifies() || began == nil {
		return time.Time{}, false
	}
	return began.Add(verifyDeadline), true
}

// verifyDue is when the next verification should have ended. Before the first it is not known, but that a backup was there since.
func (s *cluster) verifyDue() (time.Time, bool) {
	if !s.verifies() {
		return time.Time{}, false
	}
	b := s.backupReport()
	from := stamp(b.Verification.Ended)
	if from == nil {
		from = stamp(b.Earliest)
	}
	schedule, err := cron.ParseStandard(s.verifySchedule())
	if err != nil || from == nil {
		return time.Time{}, false
	}
	next := schedule.Next(from.UTC())
	return next.Add(verifyDeadline), !next.IsZero()
}

// verifiedStatus is the last verification that was passed.
func (s *cluster) verifiedStatus() *v1alpha1.BackupVerified {
	p := s.backupReport().Verification.Passed
	if p.Backup == "" {
		return nil
	}
	return &v1alpha1.BackupVerified{
		Backup: p.Backup, At: stamp(p.At), Took: (time.Duration(p.Seconds) * time.Second).String(), ReplayedTo: stamp(p.ReplayedTo), Assertions: p.Assertions,
	}
}
