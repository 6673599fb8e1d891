// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "github.com/capstan-dev/capstan/apis/members"

// States of the archive.
const (
	ArchiveOK      = members.ArchiveOK
	ArchiveFailing = members.ArchiveFailing
)

// Problems of the key that encrypts backups.
const (
	KeyMissing  = members.KeyMissing
	KeyInvalid  = members.KeyInvalid
	KeyMismatch = members.KeyMismatch
)

// Problems of a backup that failed its verification.
const (
	VerifyRestore   = members.VerifyRestore
	VerifySlow      = members.VerifySlow
	VerifyArchive   = members.VerifyArchive
	VerifyData      = members.VerifyData
	VerifyAssertion = members.VerifyAssertion
)

// BackupReport is the report of members about archive and backups.
type BackupReport = members.BackupReport

// RepositoryReport is how full a volume of backups is.
type RepositoryReport = members.RepositoryReport

// VerificationReport is the result of verifications of backups.
type VerificationReport = members.VerificationReport

// VerificationPassed is a successful verification.
type VerificationPassed = members.VerificationPassed

// UpgradeReport is the progress of an upgrade, without the time of the latest attempt.
type UpgradeReport = members.UpgradeReport

// FollowReport is the report of the leader about the archive that its Database follows.
type FollowReport = members.FollowReport

// ImportReport is the report of the leader about the import from another server or from dumps.
type ImportReport = members.ImportReport

// States of an import.
const (
	ImportChecking     = members.ImportChecking
	ImportIncompatible = members.ImportIncompatible
	ImportCopying      = members.ImportCopying
	ImportFollowing    = members.ImportFollowing
	ImportFailing      = members.ImportFailing
	ImportCuttingOver  = members.ImportCuttingOver
	ImportCutOver      = members.ImportCutOver
	ImportRestored     = members.ImportRestored
)

// States of a standby cluster.
const (
	FollowCaughtUp      = members.FollowCaughtUp
	FollowBehind        = members.FollowBehind
	FollowUnreachable   = members.FollowUnreachable
	FollowReplaced      = members.FollowReplaced
	FollowSecondPrimary = members.FollowSecondPrimary
)

// RestorePoint is a moment with a name, which can be restored.
type RestorePoint = members.RestorePoint
