// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// BackupVerification says how it is proved that backups can be restored: a pod of its
// own restores the latest backup with all that was archived since, starts PostgreSQL
// on it without a network, checks the data, asks what it is told to, and removes it
// all. The condition BackupVerified tells what that came to.
type BackupVerification struct {
	// Schedule of verifications in UTC, in the five fields of cron: minute, hour, day,
	// month, weekday. Default: once a week, at a time that follows from namespace and
	// name. The first backup is verified at once.
	//
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-0-9A-Za-z*/,]+( [-0-9A-Za-z*/,]+){4}$')",message="must have five fields with a space between: minute, hour, day, month, weekday, for instance 0 3 * * 0"
	// +kubebuilder:example="0 3 * * 0"
	// +optional
	Schedule string `json:"schedule,omitempty"`

	// Assertions about the data, which hold in every good copy of it. They are asked
	// of what was restored, in a transaction that only reads, by a login that is no
	// superuser and may read everything, for at most ten minutes each.
	//
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	Assertions []BackupAssertion `json:"assertions,omitempty"`

	// MaxRestoreTime is how long a restore may take, from its begin until PostgreSQL
	// has replayed all that was archived. One that takes longer is ended, and the
	// verification has failed. Default: no bound but that of the whole verification,
	// which is 12h.
	//
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,3})?(ms|s|m|h)){1,4}$') && duration(self) >= duration('1s') && duration(self) <= duration('11h')",message="must be a time between 1s and 11h, for instance 45m"
	// +kubebuilder:example="45m"
	// +optional
	MaxRestoreTime *metav1.Duration `json:"maxRestoreTime,omitempty"`

	// Now asks for a verification at once: each id is one. Applying the same again
	// begins no other.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",message="must be letters, digits, '-', '_' and '.', with a letter or digit at both ends"
	// +kubebuilder:example="after-migration-7"
	// +optional
	Now string `json:"now,omitempty"`
}

// BackupAssertion is a question about the data.
type BackupAssertion struct {
	// Database that it is asked of, by its name in spec.databases.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:example="orders_db"
	Database string `json:"database"`

	// SQL of one statement that yields one row with one value, which has to be true.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2000
	// +kubebuilder:example="select count(*) > 0 from orders"
	SQL string `json:"sql"`
}

// RestorePointName names a moment, for instance by a Git commit.
//
// +kubebuilder:validation:MaxLength=45
// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",message="must be letters, digits, '-', '_' and '.', with a letter or digit at both ends"
type RestorePointName string

// BackupVerified is a verification that was passed.
type BackupVerified struct {
	// Backup that was restored, by its ID.
	Backup string `json:"backup"`

	// At is when the verification ended.
	//
	// +optional
	At *metav1.Time `json:"at,omitempty"`

	// Took is how long the restore took, until all that was archived was replayed.
	//
	// +optional
	Took string `json:"took,omitempty"`

	// ReplayedTo is when the last transaction was committed that the copy had.
	//
	// +optional
	ReplayedTo *metav1.Time `json:"replayedTo,omitempty"`

	// Assertions that held, by number.
	//
	// +optional
	Assertions int32 `json:"assertions,omitempty"`
}

// RestorePoint is a moment with a name.
type RestorePoint struct {
	// Name of it.
	Name string `json:"name"`

	// At is when it was.
	//
	// +optional
	At *metav1.Time `json:"at,omitempty"`

	// LSN is its place in the write-ahead log, and Label the name that it has there.
	//
	// +optional
	LSN string `json:"lsn,omitempty"`

	// Label that it has in the write-ahead log, for PostgreSQL's recovery_target_name.
	//
	// +optional
	Label string `json:"label,omitempty"`
}
