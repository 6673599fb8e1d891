// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/database/backup"
	"github.com/capstan-dev/capstan/function/database/decision"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/names"
)

// snapshotFresh reports whether the last snapshot is as recent as its schedule requires.
func snapshotFresh(s *decision.Pass) xpv2.Condition {
	if s.Spec.Backup.Snapshots == nil {
		return xpv2.Condition{}
	}
	r, failure := s.SnapshotRecord()
	see := seePods(&s.Names, names.LabelSnapshotOf) + " and read the log of the newest pod"
	due, known := backup.SnapshotDue(s.Cluster)
	began, failed := backup.ScheduledFailure(s.Observed[names.Snapshots])
	if last := facts.Stamp(r.Last.Began); last != nil {
		failed = failed && last.Time.Before(began)
	}
	switch {
	case failure.Message != "":
		return no(v1alpha1.ReasonSnapshotFailed, fmt.Sprintf("the last snapshot failed: %s. The next one begins by spec.backup.snapshots.schedule", failure.Message))
	case failed:
		return no(v1alpha1.ReasonSnapshotFailed, "the last snapshot failed; "+see)
	case r.Last.Name == "":
		return unknown(v1alpha1.ReasonFirstSnapshotPending, "there is no snapshot yet: the first one begins by spec.backup.snapshots.schedule, which is "+backup.SnapshotSchedule(s.Cluster))
	case backup.Past(s.Cluster, due, known):
		return no(v1alpha1.ReasonSnapshotOverdue, "the last snapshot is older than spec.backup.snapshots.schedule allows; "+see)
	default:
		return yes(v1alpha1.ReasonFresh, "the last snapshot is as recent as spec.backup.snapshots.schedule requires: see status.backup.snapshots")
	}
}

// snapshotsStatus is what snapshots there are.
func snapshotsStatus(s *facts.Cluster) *v1alpha1.SnapshotsStatus {
	if !s.TakesSnapshots() {
		return nil
	}
	r, _ := s.SnapshotRecord()
	st := &v1alpha1.SnapshotsStatus{Schedule: backup.SnapshotSchedule(s), Kept: int32(r.Kept)} //nolint:gosec // At most a hundred.
	if l := r.Last; l.Name != "" {
		st.Last = &v1alpha1.SnapshotTaken{Name: l.Name, Member: l.Member, At: facts.Stamp(l.Cut), Size: l.Size}
		if began, ready := facts.Stamp(l.Began), facts.Stamp(l.Ready); began != nil && ready != nil {
			st.Last.Took = ready.Sub(began.Time).String()
		}
	}
	return st
}
