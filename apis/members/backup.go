// SPDX-License-Identifier: Apache-2.0

package members

// States of the archive.
const (
	// ArchiveOK: the last part of the log came through: a segment with PostgreSQL, a binary log with MySQL.
	ArchiveOK = "Ok"
	// ArchiveFailing: none comes through.
	ArchiveFailing = "Failing"
)

// What is wrong with the key that backups are encrypted with.
const (
	// KeyMissing: it is not there.
	KeyMissing = "Missing"
	// KeyInvalid: what is there cannot be a key.
	KeyInvalid = "Invalid"
	// KeyMismatch: what the bucket has was made with another key, or without one.
	KeyMismatch = "Mismatch"
)

// BackupReport is what members report of archive and backups. Times are in RFC
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

	// Message says why the archive is failing.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// Dropped is when the archive lost a part of the log last: too much waited for it,
	// or the leader does not have what it lacks.
	//
	// +optional
	Dropped string `json:"dropped,omitempty"`

	// Asked reports whether the bucket was read for the backups there are.
	//
	// +optional
	Asked bool `json:"asked,omitempty"`

	// Unread says why the bucket could not be read.
	//
	// +optional
	Unread string `json:"unread,omitempty"`

	// Key is what is wrong with the key that backups are encrypted with: Missing,
	// Invalid or Mismatch. Nothing is wrong without it.
	//
	// +optional
	Key string `json:"key,omitempty"`

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

	// Verification has the results of verifications of backups.
	//
	// +optional
	Verification VerificationReport `json:"verification,omitzero"`

	// Repository is how full the volume is that backups go to, if it is one.
	//
	// +optional
	Repository RepositoryReport `json:"repository,omitzero"`

	// RestorePointWait says why the requested restore point is not made yet.
	//
	// +optional
	RestorePointWait string `json:"restorePointWait,omitempty"`
}

// RepositoryReport is how full a volume of backups is.
type RepositoryReport struct {
	// Disk is Ok, Low or Full.
	//
	// +optional
	Disk string `json:"disk,omitempty"`

	// UsedPercent of the volume, in steps of 5.
	//
	// +optional
	UsedPercent int32 `json:"usedPercent,omitempty"`

	// FileSystem is the size of its file system.
	//
	// +optional
	FileSystem string `json:"fileSystem,omitempty"`
}

// What is wrong with a backup that failed its verification.
const (
	VerifyRestore   = "RestoreFailed"
	VerifySlow      = "RestoreTooSlow"
	VerifyArchive   = "ArchiveIncomplete"
	VerifyData      = "DataDamaged"
	VerifyAssertion = "AssertionFailed"
	VerifyOther     = "VerificationFailed"
)

// VerificationReport has the results of verifications of backups.
type VerificationReport struct {
	// Asked reports whether the bucket was read for the results of verifications.
	//
	// +optional
	Asked bool `json:"asked,omitempty"`

	// Began is when a verification began that has no result yet.
	//
	// +optional
	Began string `json:"began,omitempty"`

	// ID of the last verification that was requested and ended.
	//
	// +optional
	ID string `json:"id,omitempty"`

	// Ended is when the last verification ended.
	//
	// +optional
	Ended string `json:"ended,omitempty"`

	// Backup that the last verification was of.
	//
	// +optional
	Backup string `json:"backup,omitempty"`

	// Failure is what was wrong in one word; nothing when it was passed.
	//
	// +optional
	Failure string `json:"failure,omitempty"`

	// Message says more about the failure.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// Passed is the last verification that was passed.
	//
	// +optional
	Passed VerificationPassed `json:"passed,omitzero"`
}

// VerificationPassed is a verification that was passed.
type VerificationPassed struct {
	// Backup that was restored.
	//
	// +optional
	Backup string `json:"backup,omitempty"`

	// At is when the verification ended.
	//
	// +optional
	At string `json:"at,omitempty"`

	// Seconds that the restore took, until all was replayed.
	//
	// +optional
	Seconds int64 `json:"seconds,omitempty"`

	// ReplayedTo is when the last transaction was committed that the copy had.
	//
	// +optional
	ReplayedTo string `json:"replayedTo,omitempty"`

	// Assertions that held.
	//
	// +optional
	Assertions int32 `json:"assertions,omitempty"`
}

// RestorePoint is a moment with a name, which can be restored.
type RestorePoint struct {
	// Name that was requested.
	Name string `json:"name"`

	// Label that it has in the write-ahead log: the name, and what makes it unique.
	//
	// +optional
	Label string `json:"label,omitempty"`

	// Stanza that it is in the archive of.
	//
	// +optional
	Stanza string `json:"stanza,omitempty"`

	// At is when it was made.
	//
	// +optional
	At string `json:"at,omitempty"`

	// LSN is its place in the write-ahead log, and Timeline the one that it is on. With
	// MySQL it is the transaction that marks it; among the backups it has all
	// transactions up to that.
	//
	// +optional
	LSN string `json:"lsn,omitempty"`

	// Timeline that it is on.
	//
	// +optional
	Timeline int64 `json:"timeline,omitempty"`
}
