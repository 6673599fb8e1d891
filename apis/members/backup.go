// SPDX-License-Identifier: Apache-2.0

package members

// States of the archive.
const (
	// ArchiveOK: the last segment came through.
	ArchiveOK = "Ok"
	// ArchiveFailing: none comes through.
	ArchiveFailing = "Failing"
)

// BackupReport is what members tell of archive and backups. Times are those of RFC
// 3339, to the second. It changes only when a fact changes: nothing in it counts or
// ticks.
type BackupReport struct {
	// Archive is Ok or Failing; nothing while it is not known.
	//
	// +optional
	Archive string `json:"archive,omitempty"`

	// Since when the archive is failing.
	//
	// +optional
	Since string `json:"since,omitempty"`

	// Message tells why the archive is failing.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// Dropped is when a segment of the write-ahead log was let go last, because too
	// many waited for the archive.
	//
	// +optional
	Dropped string `json:"dropped,omitempty"`

	// Asked tells that the bucket said what backups there are.
	//
	// +optional
	Asked bool `json:"asked,omitempty"`

	// Unread tells why the bucket could not be asked.
	//
	// +optional
	Unread string `json:"unread,omitempty"`

	// Label of the last backup.
	//
	// +optional
	Label string `json:"label,omitempty"`

	// Type of the last backup: full, diff or incr.
	//
	// +optional
	Type string `json:"type,omitempty"`

	// Size of the data in the last backup, in bytes, and Added what it took in the
	// bucket.
	//
	// +optional
	Size int64 `json:"size,omitempty"`

	// Added is what the last backup took in the bucket, in bytes.
	//
	// +optional
	Added int64 `json:"added,omitempty"`

	// Began is when the last backup began.
	//
	// +optional
	Began string `json:"began,omitempty"`

	// Ended is when the last backup ended.
	//
	// +optional
	Ended string `json:"ended,omitempty"`

	// Earliest is the first time that can be restored.
	//
	// +optional
	Earliest string `json:"earliest,omitempty"`
}
