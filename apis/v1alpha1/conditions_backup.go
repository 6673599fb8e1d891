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
	// ReasonBackupOverdue: the last backup is too old.
	ReasonBackupOverdue xpv2.ConditionReason = "BackupOverdue"
	// ReasonBucketUnready: the bucket or its Secret is not there.
	ReasonBucketUnready xpv2.ConditionReason = "BucketUnready"
)

// Reasons of the condition ArchiveHealthy.
const (
	// ReasonArchiving: what is written comes into the archive.
	ReasonArchiving xpv2.ConditionReason = "Archiving"
	// ReasonArchiveFailing: what is written does not come into the archive.
	ReasonArchiveFailing xpv2.ConditionReason = "ArchiveFailing"
)

// Reasons of the condition PITRContinuous.
const (
	// ReasonContinuous: every moment since the last backup can be restored.
	ReasonContinuous xpv2.ConditionReason = "Continuous"
	// ReasonArchiveGap: something that was written was let go.
	ReasonArchiveGap xpv2.ConditionReason = "ArchiveGap"
)
