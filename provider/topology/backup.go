// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"time"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

// backup is the state of archive and backups: what the leader reports, and the newest time at which any member dropped WAL.
// Between two leaders it is the last report.
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

// following is what the leader reports of the archive that it follows; between two leaders the last report.
func (v *view) following(leader string) *v1alpha1.FollowReport {
	for i := range v.pods {
		if leader != "" && memberOf(&v.pods[i]) == leader && running(&v.pods[i]) {
			if told := report(&v.pods[i]).Following; told != (v1alpha1.FollowReport{}) {
				return &told
			}
			return nil
		}
	}
	return v.was.Following
}

// later of two times of RFC 3339 in UTC; either may be missing.
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

// restorePoints that the leader reports; between two leaders the last ones.
func (v *view) restorePoints(leader string) []v1alpha1.RestorePoint {
	for i := range v.pods {
		if leader != "" && memberOf(&v.pods[i]) == leader && running(&v.pods[i]) {
			return report(&v.pods[i]).RestorePoints
		}
	}
	return v.was.RestorePoints
}
