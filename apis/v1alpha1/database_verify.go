// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// BackupVerification proves that backups can be restored. A separate pod restores the latest backup with the whole
// archive and starts a server on it without a network. It checks the data, evaluates the assertions, and removes
// everything. The condition BackupVerified reports the result.
type BackupVerification struct {
	// Schedule of verifications in UTC, as five cron fields: minute, hour, day, month, weekday. The first backup is
	// verified at once. Default: once a week, at a time derived from namespace and name.
	//
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-0-9A-Za-z*/,]+( [-0-9A-Za-z*/,]+){4}$')",message="must have five fields with a space between: minute, hour, day, month, weekday, for instance 0 3 * * 0"
	// +kubebuilder:example="0 3 * * 0"
	// +optional
	Schedule string `json:"schedule,omitempty"`

	// Assertions are SQL queries that must be true in every good copy of the data. They run on the restored copy in
	// read-only transactions, as a role that can read everything and is not a superuser, for at most ten minutes each.
	//
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	Assertions []BackupAssertion `json:"assertions,omitempty"`

	// MaxRestoreTime is the maximum duration of a restore, from its start until the server has replayed the whole
	// archive, from 1s to 11h. A longer restore is aborted, and the verification fails. Default: only the limit of the
	// whole verification, 12h.
	//
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,3})?(ms|s|m|h)){1,4}$') && duration(self) >= duration('1s') && duration(self) <= duration('11h')",message="must be a time between 1s and 11h, for instance 45m"
	// +kubebuilder:example="45m"
	// +optional
	MaxRestoreTime *metav1.Duration `json:"maxRestoreTime,omitempty"`

	// Now requests a verification at once: each ID is one verification. Applying the same ID again does nothing.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",message="must be letters, digits, '-', '_' and '.', with a letter or digit at both ends"
	// +kubebuilder:example="after-migration-7"
	// +optional
	Now string `json:"now,omitempty"`
}

// BackupAssertion is a query about the data.
type BackupAssertion struct {
	// Database of the query, by its name in spec.databases.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:example="orders_db"
	Database string `json:"database"`

	// SQL of one statement that returns one row with one value, which must be true.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2000
	// +kubebuilder:example="select count(*) > 0 from orders"
	SQL string `json:"sql"`
}

// RestorePointName names a moment, for instance after a Git commit.
//
// +kubebuilder:validation:MaxLength=45
// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",message="must be letters, digits, '-', '_' and '.', with a letter or digit at both ends"
type RestorePointName string

// BackupVerified is a successful verification.
type BackupVerified struct {
	// Backup that was restored, by its ID.
	Backup string `json:"backup"`

	// At is when the verification ended.
	//
	// +optional
	At *metav1.Time `json:"at,omitempty"`

	// Took is the duration of the restore, until the whole archive was replayed.
	//
	// +optional
	Took string `json:"took,omitempty"`

	// ReplayedTo is the time of the last commit in the restored copy.
	//
	// +optional
	ReplayedTo *metav1.Time `json:"replayedTo,omitempty"`

	// Assertions that were true, by number.
	//
	// +optional
	Assertions int32 `json:"assertions,omitempty"`
}

// RestorePoint is a moment with a name.
type RestorePoint struct {
	// Name of the restore point.
	Name string `json:"name"`

	// At is the time of the restore point.
	//
	// +optional
	At *metav1.Time `json:"at,omitempty"`

	// LSN is its position in PostgreSQL's write-ahead log, or the transaction that marks it in MySQL.
	//
	// +optional
	LSN string `json:"lsn,omitempty"`

	// Label makes it unique. It is its name in PostgreSQL's write-ahead log, for recovery_target_name.
	//
	// +optional
	Label string `json:"label,omitempty"`
}
