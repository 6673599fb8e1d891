// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"slices"
	"time"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/words"
)

// backup tells how archive and backups are: what the leader tells, and what was let
// go by whichever member. Between two leaders it is what the last one told.
func (v *view) backup(leader string) *v1alpha1.BackupReport {
	var (
		out     v1alpha1.BackupReport
		dropped string
	)

	if v.was.Backup != nil {
		out, dropped = *v.was.Backup, v.was.Backup.Dropped
	}

	for i := range v.pods {
		told := report(&v.pods[i]).Backup
		dropped = later(dropped, told.Dropped)

		if leader != "" && memberOf(&v.pods[i]) == leader && running(&v.pods[i]) {
			out = told
		}
	}

	out.Dropped = dropped

	if out == (v1alpha1.BackupReport{}) {
		return nil
	}

	return &out
}

// later of two times of RFC 3339 in UTC, of which either may be missing.
func later(a, b string) string {
	x, errA := time.Parse(time.RFC3339, a)
	y, errB := time.Parse(time.RFC3339, b)

	switch {
	case errB != nil:
		return a
	case errA != nil || y.After(x):
		return b
	default:
		return a
	}
}

// bound what a member tells of backups: whoever may annotate a pod could write it.
func bound(b *v1alpha1.BackupReport) {
	for _, field := range []*string{&b.Archive, &b.Key, &b.Label, &b.Type} {
		*field = words.Bounded(words.OneLine(*field), maxReason)
	}

	for _, field := range []*string{&b.Message, &b.Unread} {
		*field = words.Bounded(words.OneLine(*field), maxMessage)
	}

	for _, at := range []*string{&b.Since, &b.Dropped, &b.Began, &b.Ended, &b.Earliest} {
		if _, err := time.Parse(time.RFC3339, *at); err != nil {
			*at = ""
		}
	}

	b.Size, b.Added = max(b.Size, 0), max(b.Added, 0)
	b.Repository.UsedPercent = min(max(b.Repository.UsedPercent, 0), 100)
	b.Repository.Disk = words.Bounded(words.OneLine(b.Repository.Disk), maxReason)
	b.Repository.FileSystem = words.Bounded(words.OneLine(b.Repository.FileSystem), maxReason)
	b.RestorePointWait = words.Bounded(words.OneLine(b.RestorePointWait), maxMessage)
	boundVerification(&b.Verification)
}

// boundVerification bounds what verifications came to.
func boundVerification(v *v1alpha1.VerificationReport) {
	for _, field := range []*string{&v.ID, &v.Backup, &v.Failure, &v.Passed.Backup} {
		*field = words.Bounded(words.OneLine(*field), maxReason)
	}

	v.Message = words.Bounded(words.OneLine(v.Message), maxMessage)

	for _, at := range []*string{&v.Began, &v.Ended, &v.Passed.At, &v.Passed.ReplayedTo} {
		if _, err := time.Parse(time.RFC3339, *at); err != nil {
			*at = ""
		}
	}

	v.Passed.Seconds, v.Passed.Assertions = max(v.Passed.Seconds, 0), max(v.Passed.Assertions, 0)
}

// maxPoints is how many restore points are told.
const maxPoints = 17

// restorePoints that the leader tells; between two leaders those of the last.
func (v *view) restorePoints(leader string) []v1alpha1.RestorePoint {
	for i := range v.pods {
		if leader != "" && memberOf(&v.pods[i]) == leader && running(&v.pods[i]) {
			return report(&v.pods[i]).RestorePoints
		}
	}

	return v.was.RestorePoints
}

// boundPoints bounds restore points, of which there is one of a name.
func boundPoints(points []v1alpha1.RestorePoint) []v1alpha1.RestorePoint {
	var known []v1alpha1.RestorePoint

	for _, p := range points[max(0, len(points)-maxPoints):] {
		for _, field := range []*string{&p.Name, &p.Label, &p.At, &p.LSN} {
			*field = words.Bounded(words.OneLine(*field), maxReason)
		}

		if !slices.ContainsFunc(known, func(k v1alpha1.RestorePoint) bool { return k.Name == p.Name }) {
			known = append(known, p)
		}
	}

	return known
}

// verification of a Database: when the last one that was passed ended, in seconds
// since 1970, and whether the last one failed. There is none before the first.
func verification(t *v1alpha1.Topology) (at, failed float64, ended bool) {
	b := t.Status.AtProvider.Backup
	if b == nil || b.Verification.Ended == "" {
		return 0, 0, false
	}

	if b.Verification.Failure != "" {
		failed = 1
	}

	// Without any it is as long ago as can be.
	if passed, err := time.Parse(time.RFC3339, b.Verification.Passed.At); err == nil {
		at = float64(passed.Unix())
	}

	return at, failed, true
}

// lastBackup of a Database, in seconds since 1970, if it has one.
func lastBackup(t *v1alpha1.Topology) (float64, bool) {
	b := t.Status.AtProvider.Backup
	if b == nil {
		return 0, false
	}

	at, err := time.Parse(time.RFC3339, b.Ended)

	return float64(at.Unix()), err == nil
}

// volumeUsed is how much of the volume is used that the backups of a Database go to,
// in percent, if it is a volume and somebody told.
func volumeUsed(t *v1alpha1.Topology) (float64, bool) {
	b := t.Status.AtProvider.Backup
	if b == nil || b.Repository.FileSystem == "" {
		return 0, false
	}

	return float64(b.Repository.UsedPercent), true
}
