// SPDX-License-Identifier: Apache-2.0

package members

// Snapshots of a member's volume.
const (
	// LabelSnapshotOf is on VolumeSnapshots, and on the pods that make them. It holds the name of the Database.
	LabelSnapshotOf = "capstan.dev/snapshot-of"
	// AnnotationSnapshot of a VolumeSnapshot is the JSON of a Snapshot.
	AnnotationSnapshot = "capstan.dev/snapshot"
	// KeyRecord of the ConfigMap of snapshots is the JSON of a SnapshotRecord.
	KeyRecord = "record"
)

// A Snapshot is what a VolumeSnapshot of a member's volume shows.
type Snapshot struct {
	// Database and Identity that the volume belongs to.
	Database string `json:"database"`
	Identity string `json:"identity"`
	// Stanza with the archive of the data, and Version of the data.
	Stanza  string `json:"stanza"`
	Version string `json:"version"`
	// Member whose volume it is.
	Member string `json:"member,omitempty"`
	// Cut is a time by which it was taken, in RFC 3339. Without one it is not known to be of any use.
	Cut string `json:"cut,omitempty"`
}

// A SnapshotRecord is how the last run went.
type SnapshotRecord struct {
	// Last snapshot that is ready, and how many there are.
	Last *SnapshotTaken `json:"last,omitempty"`
	Kept int            `json:"kept,omitempty"`
	// FailedAt is when a run failed after that, and Failure its cause.
	FailedAt string `json:"failedAt,omitempty"`
	Failure  string `json:"failure,omitempty"`
}

// A SnapshotTaken is one that is ready.
type SnapshotTaken struct {
	Name   string `json:"name"`
	Member string `json:"member"`
	// Began, Cut and Ready are times in RFC 3339.
	Began string `json:"began"`
	Cut   string `json:"cut"`
	Ready string `json:"ready"`
	// Size that a volume needs to be filled from it.
	Size string `json:"size,omitempty"`
}
