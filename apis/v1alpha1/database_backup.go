// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DatabaseBackup defines how the Database is backed up. All writes are archived as well, within a minute, so that every
// moment since the first backup can be restored.
//
// +kubebuilder:validation:XValidation:rule="has(self.encryption) == has(oldSelf.encryption)",fieldPath=".encryption",message="encryption cannot be added or removed, because backups are encrypted from the first one on or never: make another Database with spec.from.database; another Secret with the same value is allowed"
type DatabaseBackup struct {
	// Enabled takes backups and archives all writes. If you disable it later, existing backups stay. The first time
	// backups are enabled, members restart one by one; later changes restart nothing. Default: true.
	//
	// +kubebuilder:example=true
	// +optional
	// +capstan:form:title="Take backups",order=60,group=basic
	Enabled *bool `json:"enabled,omitempty"`

	// Schedule of backups in UTC, as five cron fields: minute, hour, day, month, weekday. With PostgreSQL one backup per
	// week is full, the others hold only changes since the previous one. With MySQL every backup is full, and adds to
	// the bucket only what changed. Default: once a day between midnight and six, at a minute derived from namespace and
	// name.
	//
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-0-9A-Za-z*/,]+( [-0-9A-Za-z*/,]+){4}$')",message="must have five fields with a space between: minute, hour, day, month, weekday, for instance 0 */6 * * *"
	// +kubebuilder:example="0 */6 * * *"
	// +optional
	// +capstan:form:title="Time of backups (cron, UTC)",order=70,group=basic
	Schedule string `json:"schedule,omitempty"`

	// Retention is what to keep: 30d keeps everything to restore any moment of the last 30 days, 14 keeps the last 14
	// full backups and all that depend on them. Older backups are removed after the next backup. Default: 30d.
	//
	// +kubebuilder:default="30d"
	// +kubebuilder:validation:MaxLength=5
	// +kubebuilder:validation:XValidation:rule="self.matches('^[1-9][0-9]{0,3}d?$')",message="must be days such as 30d, or a number of full backups such as 14"
	// +kubebuilder:example="30d"
	// +optional
	// +capstan:form:title="Keep backups for",order=80,group=basic
	Retention string `json:"retention,omitempty"`

	// To is where backups go. Default: an own bucket on the platform's S3 server, or an own volume if the platform's
	// settings choose that. A later change of the settings does not move the backups of an existing Database.
	//
	// +optional
	To *DatabaseBackupTarget `json:"to,omitempty"`

	// Encryption encrypts backups and archive with your own key before they leave the cluster. If you lose the key, you
	// lose the backups: Capstan has no copy of it. This field cannot be added or removed later, and the value of the key
	// cannot change. Another Secret with the same value is allowed; it restarts the members one by one.
	//
	// +optional
	Encryption *BackupEncryption `json:"encryption,omitempty"`

	// OnDelete is what happens to the bucket or volume that Capstan created when the Database is deleted: Keep leaves
	// it and its content, Delete removes both. A bucket of spec.backup.to.connectionSecretRef always stays. Default:
	// Keep.
	//
	// +kubebuilder:default=Keep
	// +kubebuilder:example=Keep
	// +optional
	OnDelete BackupDeletion `json:"onDelete,omitempty"`

	// OnExisting is what a new Database does when the bucket already has backups under its name and none of its volumes
	// exist. Hold waits, so that no client mistakes the empty Database for the one in the backups; it also waits while
	// the bucket is unreachable. StartEmpty starts an empty Database beside them. Those backups are never overwritten.
	// Default: Hold.
	//
	// +kubebuilder:default=Hold
	// +kubebuilder:example=Hold
	// +optional
	OnExisting BackupsExisting `json:"onExisting,omitempty"`

	// Now requests a backup at once: each ID is one backup. Applying the same ID again does nothing.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",message="must be letters, digits, '-', '_' and '.', with a letter or digit at both ends"
	// +kubebuilder:example="before-migration-7"
	// +optional
	// +capstan:form:title="Back up now",group=acts
	Now string `json:"now,omitempty"`

	// Verify restores backups regularly to prove that they can be restored. Default: no verification.
	//
	// +optional
	Verify *BackupVerification `json:"verify,omitempty"`

	// Snapshots are VolumeSnapshots of one member's volume, from which a new Database begins in the time that the
	// storage takes to fill a volume. They need a CSI driver that offers them. They do not replace backups, because most
	// drivers keep them on the same storage. Default: none. MySQL does not have them yet.
	//
	// +optional
	Snapshots *DatabaseSnapshots `json:"snapshots,omitempty"`

	// RestorePoint gives the current moment a name, once for each name. spec.from of another Database can use it.
	// Applying the same name again changes nothing. It needs a backup, and waits for the first one.
	//
	// +kubebuilder:example="3f2a9c1b7d"
	// +optional
	RestorePoint RestorePointName `json:"restorePoint,omitempty"`

	// MaxArchiveBacklog is how much of the log of writes can wait on the volume while the bucket is unreachable, at most
	// half of spec.storage. Beyond it the oldest log is dropped, so that writes can continue. Then some moments before
	// the next backup cannot be restored, which the condition PITRContinuous reports. By default a fifth of spec.storage can wait,
	// and more as long as the volume is not nearly full.
	//
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('128Mi')) >= 0",message="must be a quantity of at least 128Mi, for instance 5Gi"
	// +kubebuilder:example="5Gi"
	// +optional
	MaxArchiveBacklog *resource.Quantity `json:"maxArchiveBacklog,omitempty"`
}

// BackupDeletion is what happens to backups when their Database is deleted.
//
// +kubebuilder:validation:Enum=Keep;Delete
type BackupDeletion string

// What happens to backups when their Database is deleted.
const (
	// BackupsKept: the bucket or volume stays with its content.
	BackupsKept BackupDeletion = "Keep"
	// BackupsDeleted: the bucket or volume is removed with its content.
	BackupsDeleted BackupDeletion = "Delete"
)

// BackupsExisting is what a new Database does when backups under its name exist.
//
// +kubebuilder:validation:Enum=Hold;StartEmpty
type BackupsExisting string

// What a new Database does when backups under its name exist.
const (
	// ExistingHeld: it waits.
	ExistingHeld BackupsExisting = "Hold"
	// ExistingLeft: it starts empty beside them.
	ExistingLeft BackupsExisting = "StartEmpty"
)

// DatabaseSource is the initial data of a new Database.
//
// +kubebuilder:validation:ExactlyOneOf=database;backup;server;dump
// +kubebuilder:validation:XValidation:rule="!has(self.mask) || !has(self.server)",fieldPath=".mask",message="must not be set with server: rows that are copied while it runs would not be masked"
// +kubebuilder:validation:XValidation:rule="!has(self.mask) || !has(self.dump)",fieldPath=".mask",message="must not be set with dump: rows of a dump are restored into a server that runs"
// +kubebuilder:validation:XValidation:rule="!has(self.mask) || !has(self.backup) || !has(self.backup.follow) || !self.backup.follow",fieldPath=".mask",message="must not be set with backup.follow: a standby has the data of its primary"
// +kubebuilder:validation:XValidation:rule="!has(self.mask) || !(has(self.database) && has(self.database.snapshot) || has(self.backup) && has(self.backup.snapshot))",fieldPath=".mask",message="must not be set with a snapshot: mask a copy of a backup"
type DatabaseSource struct {
	// Database of this namespace to copy, from its backups. It is not changed and need not run.
	//
	// +optional
	Database *DatabaseSourceDatabase `json:"database,omitempty"`

	// Backup to restore, also of a Database that no longer exists.
	//
	// +optional
	Backup *DatabaseSourceBackup `json:"backup,omitempty"`

	// Server that runs, anywhere: its databases are copied, and their changes are followed until spec.cutOver. Until
	// then no consumer can log in here.
	//
	// +optional
	Server *DatabaseSourceServer `json:"server,omitempty"`

	// Dump that pg_dump wrote into a bucket, in any of its formats. It is restored once. Until it is, no consumer can log
	// in here.
	//
	// +optional
	Dump *DatabaseSourceDump `json:"dump,omitempty"`

	// Mask is SQL that changes the restored data before any client can connect: names, addresses and all else that a copy must not have.
	// The statements run one after the other, on a server that no network reaches. Until all of them have succeeded, the Database has no
	// data that a client could reach. After a failure the restored data is removed, and the condition PodsHealthy names the statement.
	// Default: the data stays as it is.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	Mask []MaskStatement `json:"mask,omitempty"`
}

// Moment is a time in RFC 3339 format with its zone, to the second or finer.
//
// +kubebuilder:validation:MaxLength=40
// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{1,6})?(Z|[+-][0-9]{2}:[0-9]{2})$')",message="must be a time with its zone, for instance 2026-11-21T08:59:00Z"
type Moment string

// DatabaseSourceDatabase is a Database of this namespace.
//
// +kubebuilder:validation:AtMostOneOf=at;restorePoint
// +kubebuilder:validation:XValidation:rule="!has(self.snapshot) || !has(self.restorePoint)",fieldPath=".snapshot",message="must not be set with restorePoint: set at to the time of the restore point"
type DatabaseSourceDatabase struct {
	// Name of the Database.
	//
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="must be the name of a Database"
	// +kubebuilder:example="orders-db"
	Name string `json:"name"`

	// At is the moment to restore, to the second or finer: the result has every commit up to then and no later one.
	// Default: the latest moment.
	//
	// +kubebuilder:example="2026-11-21T08:59:00Z"
	// +optional
	At Moment `json:"at,omitempty"`

	// RestorePoint is the moment to restore by its name, from spec.backup.restorePoint of that Database: the result has
	// every commit up to then and no later one.
	//
	// +kubebuilder:example="3f2a9c1b7d"
	// +optional
	RestorePoint RestorePointName `json:"restorePoint,omitempty"`

	// Encryption names the key of encrypted backups: the same as spec.backup.encryption of that Database.
	//
	// +optional
	Encryption *BackupEncryption `json:"encryption,omitempty"`

	// Snapshot is a VolumeSnapshot of this namespace that spec.backup.snapshots of that Database made: the volume of the
	// first member is filled from it, and the archive is replayed from there. Default: a backup is restored.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="must be the name of a VolumeSnapshot"
	// +kubebuilder:example="orders-db-20261121-060000"
	// +optional
	Snapshot string `json:"snapshot,omitempty"`
}

// DatabaseSourceBackup is the backups of a Database in a bucket.
//
// +kubebuilder:validation:AtMostOneOf=at;restorePoint
// +kubebuilder:validation:XValidation:rule="!has(self.follow) || !self.follow || !has(self.at) && !has(self.restorePoint)",fieldPath=".follow",message="follow must not be set with at or restorePoint: a standby replays everything that is archived"
// +kubebuilder:validation:XValidation:rule="!has(self.snapshot) || !has(self.restorePoint)",fieldPath=".snapshot",message="must not be set with restorePoint: set at to the time of the restore point"
// +kubebuilder:validation:XValidation:rule="!has(self.snapshot) || !has(self.follow) || !self.follow",fieldPath=".snapshot",message="must not be set with follow: a standby begins with a backup"
type DatabaseSourceBackup struct {
	// ConnectionSecretRef names the connection Secret of a Bucket of this namespace. A Bucket with the management
	// policy Observe is sufficient, because the bucket is only read.
	ConnectionSecretRef LocalReference `json:"connectionSecretRef"`

	// Database is the name of the Database in the backups.
	//
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="must be the name of a Database"
	// +kubebuilder:example="orders-db"
	Database string `json:"database"`

	// Namespace of that Database. Default: this namespace.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be the name of a namespace"
	// +kubebuilder:example="shop"
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Stanza with the backups, from status.backup.stanza of that Database. Several exist only if Databases with this
	// name were deleted and created again. Default: the stanza with the most recent backup.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="must be lower case letters, digits and '-'"
	// +kubebuilder:example="orders-db-3f2a9c1b-17"
	// +optional
	Stanza string `json:"stanza,omitempty"`

	// At is the moment to restore, to the second or finer: the result has every commit up to then and no later one.
	// Default: the latest moment.
	//
	// +kubebuilder:example="2026-11-21T08:59:00Z"
	// +optional
	At Moment `json:"at,omitempty"`

	// RestorePoint is the moment to restore by its name, from spec.backup.restorePoint of that Database: the result has
	// every commit up to then and no later one.
	//
	// +kubebuilder:example="3f2a9c1b7d"
	// +optional
	RestorePoint RestorePointName `json:"restorePoint,omitempty"`

	// Encryption names the key of encrypted backups: the same as spec.backup.encryption of that Database.
	//
	// +optional
	Encryption *BackupEncryption `json:"encryption,omitempty"`

	// Snapshot is a VolumeSnapshot of this namespace that spec.backup.snapshots of that Database made: the volume of the
	// first member is filled from it, and the archive is replayed from there. Default: a backup is restored.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="must be the name of a VolumeSnapshot"
	// +kubebuilder:example="orders-db-20261121-060000"
	// +optional
	Snapshot string `json:"snapshot,omitempty"`

	// Follow makes this Database a standby of that one, the primary: it restores the latest backup, and then replays
	// what the primary archives. It takes no writes until spec.promote. It only reads the bucket. Its version must be
	// the primary's. Default: false.
	//
	// +kubebuilder:example=false
	// +optional
	Follow bool `json:"follow,omitempty"`
}

// BackupStatus is the state of the backups.
type BackupStatus struct {
	// Stanza that holds the backups.
	//
	// +optional
	Stanza string `json:"stanza,omitempty"`

	// Schedule in effect, in UTC.
	//
	// +optional
	Schedule string `json:"schedule,omitempty"`

	// Volume of the backups, if they do not go to a bucket.
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

	// LatestRestorable is the last moment that can be restored while archiving fails. While archiving works that is at
	// most a minute ago, and this field is absent.
	//
	// +optional
	LatestRestorable *metav1.Time `json:"latestRestorable,omitempty"`

	// GapAt is when writes were lost for the archive. From a little before until the next backup, not every
	// moment can be restored.
	//
	// +optional
	GapAt *metav1.Time `json:"gapAt,omitempty"`

	// VerifySchedule is when the latest backup is restored as a test, in UTC.
	//
	// +optional
	VerifySchedule string `json:"verifySchedule,omitempty"`

	// LastVerified is the latest successful verification.
	//
	// +optional
	LastVerified *BackupVerified `json:"lastVerified,omitempty"`

	// Snapshots is the state of spec.backup.snapshots.
	//
	// +optional
	Snapshots *SnapshotsStatus `json:"snapshots,omitempty"`

	// RestorePoints are the latest restore points, oldest first.
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

	// Type: full, or incr, which holds the changes since the previous backup.
	//
	// +optional
	Type string `json:"type,omitempty"`

	// Size of the data.
	//
	// +optional
	Size string `json:"size,omitempty"`

	// Added is the space that it uses in the bucket or volume.
	//
	// +optional
	Added string `json:"added,omitempty"`

	// At is when it ended.
	//
	// +optional
	At *metav1.Time `json:"at,omitempty"`

	// Took is its duration.
	//
	// +optional
	Took string `json:"took,omitempty"`
}
