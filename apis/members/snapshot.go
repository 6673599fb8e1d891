// SPDX-License-Identifier: Apache-2.0

package members

// Snapshots of a member's volume.
const (
	// LabelSnapshotOf is on VolumeSnapshots, and on the pods that make them. It holds the name of the Database.
	LabelSnapshotOf = "capstan.dev/snapshot-of"
	// AnnotationSnapshot of a VolumeSnapshot is the JSON of a Snapshot.
	AnnotationSnapshot = "capstan.dev/snapshot"
	// KeyRecord of the ConfigMap of snapshots is the JSON of a SnapshotRecord, and KeyFailure, if it exists, the JSON of a SnapshotFailure after it.
	KeyRecord  = "record"
	KeyFailure = "failure"
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

// A SnapshotRecord is what the last run that succeeded has made.
type SnapshotRecord struct {
	// Last snapshot that is ready, and how many there are.
	Last SnapshotTaken `json:"last"`
	Kept int           `json:"kept"`
}

// A SnapshotFailure is why a run failed, and when, in RFC 3339.
type SnapshotFailure struct {
	At      string `json:"at"`
	Message string `json:"message"`
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
