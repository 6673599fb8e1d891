// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

// Conditions of a Database with spec.backup.
const (
	// TypeBackupFresh: True when the last backup is as recent as the schedule requires.
	TypeBackupFresh xpv2.ConditionType = "BackupFresh"

	// TypeArchiveHealthy: True when all writes reach the archive.
	TypeArchiveHealthy xpv2.ConditionType = "ArchiveHealthy"

	// TypePITRContinuous: True when every moment since the last backup can be restored.
	TypePITRContinuous xpv2.ConditionType = "PITRContinuous"

	// TypeBackupVerified: True when the latest test restored the backup successfully. It exists only with
	// spec.backup.verify.
	TypeBackupVerified xpv2.ConditionType = "BackupVerified"

	// TypeBackupEncrypted: True when the key of spec.backup.encryption exists and decrypts the backups. It exists only
	// with that field.
	TypeBackupEncrypted xpv2.ConditionType = "BackupEncrypted"

	// TypeSnapshotFresh: True when the last snapshot is as recent as its schedule requires. It exists only with
	// spec.backup.snapshots.
	TypeSnapshotFresh xpv2.ConditionType = "SnapshotFresh"

	// TypeRestorePointMade: True when the restore point of spec.backup.restorePoint exists. It exists only with that
	// field.
	TypeRestorePointMade xpv2.ConditionType = "RestorePointMade"
)

// Reasons of the condition BackupVerified, beside BackupsOff, BackupUnknown and RestoreFailed, which other conditions
// share.
const (
	// ReasonVerified: the backup was restored, and every check passed. Nothing to do.
	ReasonVerified xpv2.ConditionReason = "Verified"
	// ReasonVerificationPending: no backup has been verified yet. Wait.
	ReasonVerificationPending xpv2.ConditionReason = "VerificationPending"
	// ReasonVerificationOverdue: no verification has passed since the last scheduled time. Read the events of the
	// verification pods.
	ReasonVerificationOverdue xpv2.ConditionReason = "VerificationOverdue"
	// ReasonVerificationLost: a verification started and never reported a result. Read the events of its pod.
	ReasonVerificationLost xpv2.ConditionReason = "VerificationLost"
	// ReasonRestoreTooSlow: it took longer than spec.backup.verify.maxRestoreTime. More frequent backups leave less to
	// replay.
	ReasonRestoreTooSlow xpv2.ConditionReason = "RestoreTooSlow"
	// ReasonArchiveIncomplete: the archive has a gap, so later moments cannot be restored. Take a backup.
	ReasonArchiveIncomplete xpv2.ConditionReason = "ArchiveIncomplete"
	// ReasonDataDamaged: tables, indexes or checksums of the restored data are wrong. Check the members with pg_amcheck
	// or CHECK TABLE, and raise the retention meanwhile.
	ReasonDataDamaged xpv2.ConditionReason = "DataDamaged"
	// ReasonAssertionFailed: an assertion of spec.backup.verify is not true. Check the data and the assertion.
	ReasonAssertionFailed xpv2.ConditionReason = "AssertionFailed"
	// ReasonVerificationFailed: it failed for another reason, which the message has.
	ReasonVerificationFailed xpv2.ConditionReason = "VerificationFailed"
)

// Reasons of the condition SnapshotFresh, beside BackupsOff and Fresh.
const (
	// ReasonFirstSnapshotPending: there is no snapshot yet. Wait for the schedule.
	ReasonFirstSnapshotPending xpv2.ConditionReason = "FirstSnapshotPending"
	// ReasonSnapshotFailed: the last one failed. The message has the cause.
	ReasonSnapshotFailed xpv2.ConditionReason = "SnapshotFailed"
	// ReasonSnapshotOverdue: the last one is older than the schedule allows. Read the events of the snapshot pods.
	ReasonSnapshotOverdue xpv2.ConditionReason = "SnapshotOverdue"
)

// Reasons of the condition Accepted of a spec that asks for snapshots.
const (
	// ReasonSnapshotsUnavailable: the cluster has no VolumeSnapshots, or not the class or the snapshot that the spec
	// names.
	ReasonSnapshotsUnavailable xpv2.ConditionReason = "SnapshotsUnavailable"
)

// Reasons of the condition BackupEncrypted, beside BackupsOff and BackupUnknown.
const (
	// ReasonKeyHeld: the key exists and decrypts the content of the bucket. Keep a copy of it outside the cluster.
	ReasonKeyHeld xpv2.ConditionReason = "KeyHeld"
	// ReasonKeyMissing: the Secret or its value is missing. Restore it from your copy, with the same value.
	ReasonKeyMissing xpv2.ConditionReason = "KeyMissing"
	// ReasonKeyInvalid: the value cannot be a key. It must be one line of 24 to 1024 printable ASCII characters.
	ReasonKeyInvalid xpv2.ConditionReason = "KeyInvalid"
	// ReasonKeyMismatch: the backups in the bucket have another key, or none. Restore that key.
	ReasonKeyMismatch xpv2.ConditionReason = "KeyMismatch"
)

// Reasons of the condition RestorePointMade, beside BackupsOff and BackupUnknown.
const (
	// ReasonRestorePointMade: it exists and can be restored. Nothing to do.
	ReasonRestorePointMade xpv2.ConditionReason = "RestorePointMade"
	// ReasonRestorePointPending: it is being created, or waits for what the message names.
	ReasonRestorePointPending xpv2.ConditionReason = "RestorePointPending"
)

// Reasons of the condition BackupFresh.
const (
	// ReasonBackupsOff: spec.backup.enabled is false. ArchiveHealthy and PITRContinuous have it as well.
	ReasonBackupsOff xpv2.ConditionReason = "BackupsOff"
	// ReasonBackupUnknown: there is no report yet. ArchiveHealthy and PITRContinuous have it as well.
	ReasonBackupUnknown xpv2.ConditionReason = "BackupUnknown"
	// ReasonFresh: the last backup is recent. Nothing to do.
	ReasonFresh xpv2.ConditionReason = "Fresh"
	// ReasonFirstBackupPending: there is no backup yet. PITRContinuous has it as well.
	ReasonFirstBackupPending xpv2.ConditionReason = "FirstBackupPending"
	// ReasonBackupFailed: a scheduled or requested backup failed, and none has succeeded since. Read the log of its
	// pod.
	ReasonBackupFailed xpv2.ConditionReason = "BackupFailed"
	// ReasonBackupOverdue: the last backup is too old. Read the log and events of the backup pods.
	ReasonBackupOverdue xpv2.ConditionReason = "BackupOverdue"
	// ReasonBucketUnready: the bucket or its Secret does not exist. See the conditions of the Bucket.
	ReasonBucketUnready xpv2.ConditionReason = "BucketUnready"
	// ReasonRepositoryUnready: the volume for backups does not exist, or its pod does not run. The message has the
	// cause.
	ReasonRepositoryUnready xpv2.ConditionReason = "RepositoryUnready"
)

// Reasons of the condition ArchiveHealthy.
const (
	// ReasonArchiving: all writes reach the archive. Nothing to do.
	ReasonArchiving xpv2.ConditionReason = "Archiving"
	// ReasonArchiveFailing: writes do not reach the archive. The message has the error; it recovers when the bucket
	// responds.
	ReasonArchiveFailing xpv2.ConditionReason = "ArchiveFailing"
	// ReasonRepositoryFull: archiving fails because the volume for backups is full. Raise its size or lower the
	// retention.
	ReasonRepositoryFull xpv2.ConditionReason = "RepositoryFull"
)

// Reasons of the condition PITRContinuous.
const (
	// ReasonContinuous: every moment since the last backup can be restored. Nothing to do.
	ReasonContinuous xpv2.ConditionReason = "Continuous"
	// ReasonArchiveGap: writes were dropped before they were archived. Once the archive works, take a backup.
	ReasonArchiveGap xpv2.ConditionReason = "ArchiveGap"
)
