// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "github.com/capstan-dev/capstan/apis/members"

// States of the archive.
const (
	ArchiveOK      = members.ArchiveOK
	ArchiveFailing = members.ArchiveFailing
)

// What is wrong with the key that backups are encrypted with.
const (
	KeyMissing  = members.KeyMissing
	KeyInvalid  = members.KeyInvalid
	KeyMismatch = members.KeyMismatch
)

// What is wrong with a backup that failed its verification.
const (
	VerifyRestore   = members.VerifyRestore
	VerifySlow      = members.VerifySlow
	VerifyArchive   = members.VerifyArchive
	VerifyData      = members.VerifyData
	VerifyAssertion = members.VerifyAssertion
)

// BackupReport is what members tell of archive and backups.
type BackupReport = members.BackupReport

// RepositoryReport is how full a volume of backups is.
type RepositoryReport = members.RepositoryReport

// VerificationReport is what verifications of backups came to.
type VerificationReport = members.VerificationReport

// VerificationPassed is a verification that was passed.
type VerificationPassed = members.VerificationPassed

// UpgradeReport is how far an upgrade is. When it was last tried is left out of what is
// told here.
type UpgradeReport = members.UpgradeReport

// RestorePoint is a moment with a name, which can be restored.
type RestorePoint = members.RestorePoint
