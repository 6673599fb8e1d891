// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "github.com/capstan-dev/capstan/apis/members"

// States of the archive.
const (
	ArchiveOK      = members.ArchiveOK
	ArchiveFailing = members.ArchiveFailing
)

// BackupReport is what members tell of archive and backups.
type BackupReport = members.BackupReport
