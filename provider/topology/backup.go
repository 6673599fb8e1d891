// SPDX-License-Identifier: Apache-2.0

package topology

import (
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
	for _, field := range []*string{&b.Archive, &b.Label, &b.Type} {
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
