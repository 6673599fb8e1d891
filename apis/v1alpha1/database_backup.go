// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DatabaseBackup says how the Database is backed up. With backups on, everything
// that is written goes where backups go within a minute as well, so that every moment
// since the first backup can be restored.
//
// +kubebuilder:validation:XValidation:rule="has(self.encryption) == has(oldSelf.encryption)",fieldPath=".encryption",message="cannot be added or removed: pgBackRest encrypts a repository from its first backup on, or never; another Secret with the same value is fine, and for the other kind make another Database with spec.from.database"
type DatabaseBackup struct {
	// Enabled takes backups and archives what is written. When it is switched off,
	// what the bucket has stays. A Database that never had backups is restarted
	// member by member when they are switched on, and later not again.
	//
	// +kubebuilder:default=true
	// +kubebuilder:example=true
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// Schedule of backups in UTC, in the five fields of cron: minute, hour, day,
	// month, weekday. Default: once a day between midnight and six, at a minute that
	// follows from namespace and name. One a week is full, and the others hold what
	// changed since the one before.
	//
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-0-9A-Za-z*/,]+( [-0-9A-Za-z*/,]+){4}$')",message="must have five fields with a space between: minute, hour, day, month, weekday, for instance 0 */6 * * *"
	// +kubebuilder:example="0 */6 * * *"
	// +optional
	Schedule string `json:"schedule,omitempty"`

	// Retention says what is kept: 30d keeps all that it takes to restore every
	// moment of the last 30 days, 14 keeps the last 14 full backups with all that
	// builds on them. What is older is removed after the next backup.
	//
	// +kubebuilder:default="30d"
	// +kubebuilder:validation:MaxLength=5
	// +kubebuilder:validation:XValidation:rule="self.matches('^[1-9][0-9]{0,3}d?$')",message="must be days such as 30d, or a number of full backups such as 14"
	// +kubebuilder:example="30d"
	// +optional
	Retention string `json:"retention,omitempty"`

	// To is where backups go. Default: a bucket of its own, on the S3 server that
	// the platform has, or a volume of its own where the platform says so. What a
	// Database has been given stays, whatever the platform says later.
	//
	// +optional
	To *DatabaseBackupTarget `json:"to,omitempty"`

	// Encryption encrypts backups and archive with a key of yours, by AES-256, before
	// they leave the cluster. Whoever loses the key loses the backups: Capstan has no
	// copy of it, and nobody can read them without. The value of the key cannot be
	// changed either.
	//
	// +optional
	Encryption *BackupEncryption `json:"encryption,omitempty"`

	// OnDelete says what becomes of the bucket or volume that Capstan made when the
	// Database is deleted: Keep leaves it with all that is in it, Delete removes both.
	// A bucket of spec.backup.to.connectionSecretRef always stays.
	//
	// +kubebuilder:default=Keep
	// +kubebuilder:example=Keep
	// +optional
	OnDelete BackupDeletion `json:"onDelete,omitempty"`

	// OnExisting says what a new Database does when the bucket has backups under its
	// name already, and none of its volumes are there: Hold waits, so that nobody
	// takes an empty Database for the one that was backed up, and waits, too, while
	// the bucket cannot be asked; StartEmpty begins beside them. Those backups are
	// never overwritten.
	//
	// +kubebuilder:default=Hold
	// +kubebuilder:example=Hold
	// +optional
	OnExisting BackupsExisting `json:"onExisting,omitempty"`

	// Now asks for a backup at once: each id is one backup. Applying the same again
	// takes no other.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",message="must be letters, digits, '-', '_' and '.', with a letter or digit at both ends"
	// +kubebuilder:example="before-migration-7"
	// +optional
	Now string `json:"now,omitempty"`

	// Verify proves by restoring them that backups can be restored. Without it that is
	// not known.
	//
	// +optional
	Verify *BackupVerification `json:"verify,omitempty"`

	// RestorePoint gives the moment a name, once for each name, which spec.from of
	// another Database can ask for. Applying the same again moves nothing. It takes a
	// backup, and waits for the first.
	//
	// +kubebuilder:example="3f2a9c1b7d"
	// +optional
	RestorePoint RestorePointName `json:"restorePoint,omitempty"`

	// MaxArchiveBacklog is how much of what was written may wait on the volume while
	// the bucket cannot be reached. Beyond it the oldest is let go, so that writes go
	// on: then not every moment until the next backup can be restored, which the
	// condition PITRContinuous tells. At most half of spec.storage. Default: a fifth
	// of spec.storage.
	//
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('128Mi')) >= 0",message="must be a quantity of at least 128Mi, for instance 5Gi"
	// +kubebuilder:example="5Gi"
	// +optional
	MaxArchiveBacklog *resource.Quantity `json:"maxArchiveBacklog,omitempty"`
}

// BackupDeletion says what becomes of backups when their Database is deleted.
//
// +kubebuilder:validation:Enum=Keep;Delete
type BackupDeletion string

// What becomes of backups when their Database is deleted.
const (
	// BackupsKept: the bucket or volume stays with all that is in it.
	BackupsKept BackupDeletion = "Keep"
	// BackupsDeleted: the bucket or volume is removed with all that is in it.
	BackupsDeleted BackupDeletion = "Delete"
)

// BackupsExisting says what a new Database does beside backups of its name.
//
// +kubebuilder:validation:Enum=Hold;StartEmpty
type BackupsExisting string

// What a new Database does beside backups of its name.
const (
	// ExistingHeld: it waits.
	ExistingHeld BackupsExisting = "Hold"
	// ExistingLeft: it begins beside them.
	ExistingLeft BackupsExisting = "StartEmpty"
)

// DatabaseSource is what a new Database begins with.
//
// +kubebuilder:validation:ExactlyOneOf=database;backup
type DatabaseSource struct {
	// Database of this namespace to copy, from its backups. It is not touched, and
	// may be down.
	//
	// +optional
	Database *DatabaseSourceDatabase `json:"database,omitempty"`

	// Backup to restore, also of a Database that is gone.
	//
	// +optional
	Backup *DatabaseSourceBackup `json:"backup,omitempty"`
}

// Moment is a time of RFC 3339 with its zone, to the second or finer.
//
// +kubebuilder:validation:MaxLength=40
// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,6})?(Z|[+-][0-9]{2}:[0-9]{2})$')",message="must be a time with its zone, for instance 2026-11-21T08:59:00Z"
type Moment string

// DatabaseSourceDatabase is a Database of this namespace.
//
// +kubebuilder:validation:AtMostOneOf=at;restorePoint
type DatabaseSourceDatabase struct {
	// Name of the Database.
	//
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="must be the name of a Database"
	// +kubebuilder:example="orders-db"
	Name string `json:"name"`

	// At is the moment to restore, to the second or finer: what was committed by
	// then is there, and nothing later. Default: the latest there is.
	//
	// +kubebuilder:example="2026-11-21T08:59:00Z"
	// +optional
	At Moment `json:"at,omitempty"`

	// RestorePoint is the moment to restore by its name, which spec.backup.restorePoint
	// of that Database gave it: what was committed by then is there, and nothing later.
	//
	// +kubebuilder:example="3f2a9c1b7d"
	// +optional
	RestorePoint RestorePointName `json:"restorePoint,omitempty"`

	// Encryption names the key that the backups are encrypted with, if they are:
	// what spec.backup.encryption of that Database says.
	//
	// +optional
	Encryption *BackupEncryption `json:"encryption,omitempty"`
}

// DatabaseSourceBackup is what a bucket has of a Database.
//
// +kubebuilder:validation:AtMostOneOf=at;restorePoint
type DatabaseSourceBackup struct {
	// ConnectionSecretRef names the connection Secret of a Bucket of this namespace.
	// One with the management policy Observe is enough: the bucket is only read.
	ConnectionSecretRef LocalReference `json:"connectionSecretRef"`

	// Database whose backups they are, by its name.
	//
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="must be the name of a Database"
	// +kubebuilder:example="orders-db"
	Database string `json:"database"`

	// Namespace that the Database was in. Default: this one.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be the name of a namespace"
	// +kubebuilder:example="shop"
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Stanza that the backups are kept under, as status.backup.stanza of the
	// Database told. Default: the one with the most recent backup; only Databases of
	// this name that were made anew leave several.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="must be lower case letters, digits and '-'"
	// +kubebuilder:example="orders-db-3f2a9c1b-17"
	// +optional
	Stanza string `json:"stanza,omitempty"`

	// At is the moment to restore, to the second or finer: what was committed by
	// then is there, and nothing later. Default: the latest there is.
	//
	// +kubebuilder:example="2026-11-21T08:59:00Z"
	// +optional
	At Moment `json:"at,omitempty"`

	// RestorePoint is the moment to restore by its name, which spec.backup.restorePoint
	// of the Database gave it: what was committed by then is there, and nothing later.
	//
	// +kubebuilder:example="3f2a9c1b7d"
	// +optional
	RestorePoint RestorePointName `json:"restorePoint,omitempty"`

	// Encryption names the key that the backups are encrypted with, if they are:
	// what spec.backup.encryption of the Database said.
	//
	// +optional
	Encryption *BackupEncryption `json:"encryption,omitempty"`
}

// BackupStatus tells what backups there are.
type BackupStatus struct {
	// Stanza that the backups are kept under.
	//
	// +optional
	Stanza string `json:"stanza,omitempty"`

	// Schedule that is followed, in UTC.
	//
	// +optional
	Schedule string `json:"schedule,omitempty"`

	// Volume that they go to, if it is not a bucket.
	//
	// +optional
	Volume *BackupVolumeStatus `json:"volume,omitempty"`

	// Last backup.
	//
	// +optional
	Last *BackupTaken `json:"last,omitempty"`

	// EarliestRestorable is the first moment that can be restored.
	//
	// +optional
	EarliestRestorable *metav1.Time `json:"earliestRestorable,omitempty"`

	// LatestRestorable is the last moment that can be restored, while the archive
	// does not work. While it works that is a minute ago or less, and this is left
	// out.
	//
	// +optional
	LatestRestorable *metav1.Time `json:"latestRestorable,omitempty"`

	// GapAt is when something that was written did not come into the archive: from a
	// little before until the next backup not every moment can be restored.
	//
	// +optional
	GapAt *metav1.Time `json:"gapAt,omitempty"`

	// VerifySchedule is when the latest backup is restored to see whether it can be,
	// in UTC.
	//
	// +optional
	VerifySchedule string `json:"verifySchedule,omitempty"`

	// LastVerified is the last verification that was passed.
	//
	// +optional
	LastVerified *BackupVerified `json:"lastVerified,omitempty"`

	// RestorePoints that can be restored, the last ones, oldest first.
	//
	// +listType=map
	// +listMapKey=name
	// +optional
	RestorePoints []RestorePoint `json:"restorePoints,omitempty"`
}

// BackupTaken is one backup.
type BackupTaken struct {
	// ID of the backup.
	ID string `json:"id"`

	// Type: full, or incr, which holds what changed since the one before.
	//
	// +optional
	Type string `json:"type,omitempty"`

	// Size of the data.
	//
	// +optional
	Size string `json:"size,omitempty"`

	// Added is what it took where backups go.
	//
	// +optional
	Added string `json:"added,omitempty"`

	// At is when it ended.
	//
	// +optional
	At *metav1.Time `json:"at,omitempty"`

	// Took is how long it took.
	//
	// +optional
	Took string `json:"took,omitempty"`
}
