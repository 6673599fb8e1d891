// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"encoding/json"
	"time"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/names"
)

// Names of what the plan of a Database with snapshots requires.
const (
	RequiredSnapshotClass  = "snapshotclass"
	RequiredSourceSnapshot = "sourcesnapshot"
)

// TakesSnapshots reports whether snapshots are taken.
func (s *Cluster) TakesSnapshots() bool { return s.BacksUp() && s.Spec.Backup.Snapshots != nil }

// SourceSnapshot is the VolumeSnapshot that the Database begins with, or "".
func (s *Cluster) SourceSnapshot() string {
	from := s.Spec.From
	switch {
	case from == nil || s.Generation > 1:
		return ""
	case from.Database != nil:
		return from.Database.Snapshot
	case from.Backup != nil:
		return from.Backup.Snapshot
	}
	return ""
}

// SourceName is the name of the Database that this one begins with the backups of.
func (s *Cluster) SourceName() string {
	switch from := s.Spec.From; {
	case from == nil:
		return ""
	case from.Database != nil:
		return from.Database.Name
	case from.Backup != nil:
		return from.Backup.Database
	}
	return ""
}

// Begun reports whether members have had data.
func (s *Cluster) Begun() bool {
	o := s.Observed[s.In(names.DCS)]
	return o != nil && compose.Text(o.Map(), "metadata", "annotations", members.AnnotationInitialize) != ""
}

// FillsVolume reports whether the volume of the first member must be filled from a snapshot. A Database that has volumes already
// takes them back.
func (s *Cluster) FillsVolume() bool {
	return s.SourceSnapshot() != "" && len(s.Sets) == 0 && !s.Begun() && (!s.HasTopology || len(s.Seen.Volumes) == 0)
}

// Filled reports whether there is a claim for that volume.
func (s *Cluster) Filled() bool {
	for _, v := range s.OnDisk.Volumes {
		if v.Name == s.DataClaim(names.Letters[0]) {
			return true
		}
	}
	return false
}

// SnapshotShown is what the source snapshot shows, as far as that is known now.
func (s *Cluster) SnapshotShown() (members.Snapshot, bool) {
	o := s.Required[RequiredSourceSnapshot]
	if o == nil || s.SourceSnapshot() == "" {
		return members.Snapshot{}, false
	}
	var shown members.Snapshot
	err := json.Unmarshal([]byte(compose.Text(o.Map(), "metadata", "annotations", members.AnnotationSnapshot)), &shown)
	return shown, err == nil
}

// SnapshotRecord is what the last run that succeeded has made, if any, and why one failed after it, if one did.
func (s *Cluster) SnapshotRecord() (r members.SnapshotRecord, failure members.SnapshotFailure) {
	if o := s.Observed[names.SnapshotsRecord]; o != nil {
		// What cannot be understood says nothing.
		_ = json.Unmarshal([]byte(compose.Text(o.Map(), "data", members.KeyRecord)), &r)
		_ = json.Unmarshal([]byte(compose.Text(o.Map(), "data", members.KeyFailure)), &failure)
	}
	return r, failure
}

// SourceMoment is the moment that spec.from requests, or nil for the latest.
func (s *Cluster) SourceMoment() *time.Time {
	switch from := s.Spec.From; {
	case from == nil:
		return nil
	case from.Database != nil:
		return Moment(from.Database.At)
	case from.Backup != nil:
		return Moment(from.Backup.At)
	}
	return nil
}
