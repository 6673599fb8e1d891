// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/database/backup"
	"github.com/capstan-dev/capstan/function/database/decision"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/names"
)

// kindsOfFailure of a verification that are reasons of the condition. Others, from a member of another version, are reported as
// failures.
var kindsOfFailure = map[string]xpv2.ConditionReason{
	observev1alpha1.VerifyRestore:   v1alpha1.ReasonRestoreFailed,
	observev1alpha1.VerifySlow:      v1alpha1.ReasonRestoreTooSlow,
	observev1alpha1.VerifyArchive:   v1alpha1.ReasonArchiveIncomplete,
	observev1alpha1.VerifyData:      v1alpha1.ReasonDataDamaged,
	observev1alpha1.VerifyAssertion: v1alpha1.ReasonAssertionFailed,
}

// backupVerified reports whether the latest backup could be restored when that was last tried.
func backupVerified(s *decision.Pass) xpv2.Condition {
	if s.Spec.Backup.Verify == nil {
		return xpv2.Condition{}
	}
	again := "; to verify now, set spec.backup.verify.now to a new id"
	see := seePods(&s.Names, names.LabelVerificationOf)
	b := s.BackupReport()
	v := b.Verification
	lost, begun := backup.VerifyLost(s.Cluster)
	due, known := backup.VerifyDue(s.Cluster)
	switch {
	case !v.Asked:
		return unknown(v1alpha1.ReasonBackupUnknown, "the leader has not reported the results of verifications yet: see the condition BackupFresh")
	case v.Failure != "":
		message := v.Message
		if v.Backup != "" {
			message = fmt.Sprintf("backup %s: %s", v.Backup, v.Message)
		}
		return no(cmp.Or(kindsOfFailure[v.Failure], v1alpha1.ReasonVerificationFailed), message+again)
	case backup.Past(s.Cluster, lost, begun):
		return no(v1alpha1.ReasonVerificationLost,
			"a verification began but ended without a result, because its pod lost its node or ran out of memory; "+see+again)
	case isVerificationSilent(s.Cluster):
		return no(v1alpha1.ReasonVerificationLost, "the last verification failed and reported no result; "+see+again)
	case backup.Past(s.Cluster, due, known):
		return no(v1alpha1.ReasonVerificationOverdue, "the verification of spec.backup.verify.schedule is overdue: "+see+again)
	case v.Ended == "" && b.Label == "":
		return unknown(v1alpha1.ReasonVerificationPending, "there is no backup yet: see the condition BackupFresh")
	case v.Ended == "":
		return unknown(v1alpha1.ReasonVerificationPending, "the first backup is being verified: "+see)
	default:
		return yes(v1alpha1.ReasonVerified, "the last verification restored the latest backup, and every check passed: see status.backup.lastVerified")
	}
}

// isVerificationSilent reports whether a verification ended without success and without a report.
func isVerificationSilent(s *facts.Cluster) bool {
	if !backup.Verifies(s) {
		return false
	}
	reported := facts.Stamp(s.BackupReport().Verification.Ended)
	silent := func(began time.Time, failed bool) bool {
		return failed && (reported == nil || reported.Time.Before(began))
	}
	for _, name := range []string{backup.FirstVerify, backup.NowName(s.Spec.Backup.Verify.Now)} {
		if began, _, failed := backup.Failure(s.Observed[names.VerifyNowPrefix+name]); silent(began, failed) {
			return true
		}
	}
	return silent(backup.ScheduledFailure(s.Observed[names.Verify]))
}

// verifiedStatus is the last verification that was passed.
func verifiedStatus(s *facts.Cluster) *v1alpha1.BackupVerified {
	p := s.BackupReport().Verification.Passed
	if p.Backup == "" {
		return nil
	}
	return &v1alpha1.BackupVerified{
		Backup: p.Backup, At: facts.Stamp(p.At), Took: (time.Duration(p.Seconds) * time.Second).String(), ReplayedTo: facts.Stamp(p.ReplayedTo), Assertions: p.Assertions,
	}
}
