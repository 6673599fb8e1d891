// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

// Conditions of a Database with spec.backup.
const (
	// TypeBackupFresh tells whether the last backup is as recent as the schedule
	// asks.
	TypeBackupFresh xpv2.ConditionType = "BackupFresh"

	// TypeArchiveHealthy tells whether what is written comes into the archive.
	TypeArchiveHealthy xpv2.ConditionType = "ArchiveHealthy"

	// TypePITRContinuous tells whether every moment since the last backup can be
	// restored.
	TypePITRContinuous xpv2.ConditionType = "PITRContinuous"

	// TypeBackupVerified tells whether the latest backup could be restored when that
	// was last tried. It is there with spec.backup.verify.
	TypeBackupVerified xpv2.ConditionType = "BackupVerified"

	// TypeBackupEncrypted tells whether the key of spec.backup.encryption is there and
	// opens the backups, and what depends on it. It is there with that field only.
	TypeBackupEncrypted xpv2.ConditionType = "BackupEncrypted"

	// TypeRestorePointMade tells what became of spec.backup.restorePoint.
	TypeRestorePointMade xpv2.ConditionType = "RestorePointMade"
)

// Reasons of the condition BackupVerified, beside those that it has in common with
// others: BackupsOff, BackupUnknown and RestoreFailed.
const (
	// ReasonVerified: the backup was restored, and everything about it held.
	ReasonVerified xpv2.ConditionReason = "Verified"
	// ReasonVerificationPending: no backup was verified yet.
	ReasonVerificationPending xpv2.ConditionReason = "VerificationPending"
	// ReasonVerificationOverdue: no verification was passed since the schedule asked
	// for one.
	ReasonVerificationOverdue xpv2.ConditionReason = "VerificationOverdue"
	// ReasonVerificationLost: one began and never told a result.
	ReasonVerificationLost xpv2.ConditionReason = "VerificationLost"
	// ReasonRestoreTooSlow: it took longer than spec.backup.verify.maxRestoreTime.
	ReasonRestoreTooSlow xpv2.ConditionReason = "RestoreTooSlow"
	// ReasonArchiveIncomplete: the archive goes on after the last that could be
	// replayed.
	ReasonArchiveIncomplete xpv2.ConditionReason = "ArchiveIncomplete"
	// ReasonDataDamaged: tables, indexes or checksums of what was restored are wrong.
	ReasonDataDamaged xpv2.ConditionReason = "DataDamaged"
	// ReasonAssertionFailed: an assertion of spec.backup.verify does not hold.
	ReasonAssertionFailed xpv2.ConditionReason = "AssertionFailed"
	// ReasonVerificationFailed: it failed for another reason, which the message tells.
	ReasonVerificationFailed xpv2.ConditionReason = "VerificationFailed"
)

// Reasons of the condition BackupEncrypted, beside BackupsOff and BackupUnknown.
const (
	// ReasonKeyHeld: the key is there, and opens what the bucket has.
	ReasonKeyHeld xpv2.ConditionReason = "KeyHeld"
	// ReasonKeyMissing: the Secret or its value is not there.
	ReasonKeyMissing xpv2.ConditionReason = "KeyMissing"
	// ReasonKeyInvalid: the value cannot be a key.
	ReasonKeyInvalid xpv2.ConditionReason = "KeyInvalid"
	// ReasonKeyMismatch: the backups in the bucket were made with another key, or
	// without one.
	ReasonKeyMismatch xpv2.ConditionReason = "KeyMismatch"
)

// Reasons of the condition RestorePointMade, beside BackupsOff and BackupUnknown.
const (
	// ReasonRestorePointMade: it is there, and can be restored.
	ReasonRestorePointMade xpv2.ConditionReason = "RestorePointMade"
	// ReasonRestorePointPending: it is being made, or waits for what the message tells.
	ReasonRestorePointPending xpv2.ConditionReason = "RestorePointPending"
)

// Reasons of the condition BackupFresh.
const (
	// ReasonBackupsOff: spec.backup.enabled is false. It is one of ArchiveHealthy and
	// PITRContinuous, too.
	ReasonBackupsOff xpv2.ConditionReason = "BackupsOff"
	// ReasonBackupUnknown: nobody told yet. It is one of ArchiveHealthy and
	// PITRContinuous, too.
	ReasonBackupUnknown xpv2.ConditionReason = "BackupUnknown"
	// ReasonFresh: the last backup is recent.
	ReasonFresh xpv2.ConditionReason = "Fresh"
	// ReasonFirstBackupPending: there is no backup yet. It is one of PITRContinuous,
	// too.
	ReasonFirstBackupPending xpv2.ConditionReason = "FirstBackupPending"
	// ReasonBackupFailed: a backup that was due or asked for failed, and none was taken
	// since.
	ReasonBackupFailed xpv2.ConditionReason = "BackupFailed"
	// ReasonBackupOverdue: the last backup is too old.
	ReasonBackupOverdue xpv2.ConditionReason = "BackupOverdue"
	// ReasonBucketUnready: the bucket or its Secret is not there.
	ReasonBucketUnready xpv2.ConditionReason = "BucketUnready"
	// ReasonRepositoryUnready: the volume of backups is not there, or nobody serves it.
	ReasonRepositoryUnready xpv2.ConditionReason = "RepositoryUnready"
)

// Reasons of the condition ArchiveHealthy.
const (
	// ReasonArchiving: what is written comes into the archive.
	ReasonArchiving xpv2.ConditionReason = "Archiving"
	// ReasonArchiveFailing: what is written does not come into the archive.
	ReasonArchiveFailing xpv2.ConditionReason = "ArchiveFailing"
	// ReasonRepositoryFull: it does not because the volume of backups is full.
	ReasonRepositoryFull xpv2.ConditionReason = "RepositoryFull"
)

// Reasons of the condition PITRContinuous.
const (
	// ReasonContinuous: every moment since the last backup can be restored.
	ReasonContinuous xpv2.ConditionReason = "Continuous"
	// ReasonArchiveGap: something that was written was let go.
	ReasonArchiveGap xpv2.ConditionReason = "ArchiveGap"
)
