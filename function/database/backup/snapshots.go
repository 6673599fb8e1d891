// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"cmp"
	"fmt"
	"time"

	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/engine"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/names"
)

// SnapshotSchedule is the one in the spec, or once a day in the hours after verifications.
func SnapshotSchedule(s *facts.Cluster) string {
	minute := s.Hashed() % (hoursOfNight * 60)
	return cmp.Or(s.Spec.Backup.Snapshots.Schedule, fmt.Sprintf("%d %d * * *", minute%60, 2*hoursOfNight+minute/60))
}

// SnapshotDue is when the next snapshot should be ready. It is not known before the first.
func SnapshotDue(s *facts.Cluster) (time.Time, bool) {
	r, _ := s.SnapshotRecord()
	began := facts.Stamp(r.Last.Began)
	if !s.TakesSnapshots() || began == nil {
		return time.Time{}, false
	}
	return dueAfter(began.Time, SnapshotSchedule(s), Deadline(s))
}

// Requires are the objects of snapshots that the next plan has to look at. They depend on the spec and on what is observed only, because
// Crossplane asks until the same is required twice.
func Requires(s *facts.Cluster) map[string]compose.Requirement {
	all := map[string]compose.Requirement{}
	if s.TakesSnapshots() && s.Kinds[names.VolumeSnapshotClassGVK] == compose.Available {
		all[facts.RequiredSnapshotClass] = compose.Requirement{Kind: names.VolumeSnapshotClassGVK, Name: s.Spec.Backup.Snapshots.ClassName}
	}
	if name := s.SourceSnapshot(); name != "" && !s.Begun() && s.Kinds[names.VolumeSnapshotGVK] == compose.Available {
		all[facts.RequiredSourceSnapshot] = compose.Requirement{Kind: names.VolumeSnapshotGVK, Namespace: s.Namespace, Name: name}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// snapshotFile is what the volume that the Database begins with shows; nil without one, or while that is unknown.
func snapshotFile(s *facts.Cluster) *engine.Snapshot {
	shown, known := s.SnapshotShown()
	if !known {
		return nil
	}
	return &engine.Snapshot{Identity: shown.Identity, Stanza: shown.Stanza, Member: s.Member(names.Letters[0])}
}
