// SPDX-License-Identifier: Apache-2.0

package layout

// Folders and files of backups.
const (
	// Bucket is where the connection Secret of the bucket for backups is mounted, and Source that of the bucket that the Database
	// begins with.
	Bucket = "/etc/capstan/backup"
	Source = "/etc/capstan/source"
	// SourceRepository is where the certificate is mounted that opens the volume that the Database begins with, if it is one.
	SourceRepository = "/etc/capstan/source-repository"
	// BackupKey and SourceKey are where the keys are mounted that they are encrypted with, if they are.
	BackupKey = "/etc/capstan/backup-key"
	SourceKey = "/etc/capstan/source-key"
	// PgBackRest is the configuration of the member's pgBackRest, and PgBackRestSource that for the backup that it begins with.
	PgBackRest       = Private + "/pgbackrest.conf"
	PgBackRestSource = Private + "/pgbackrest-source.conf"
	// Restored tells that a backup was restored, whatever became of it.
	Restored = Private + "/restored"
	// Lock is where pgBackRest notes who works, and Spool where segments are that are on their way.
	Lock  = Private + "/pgbackrest-lock"
	Spool = Volume + "/spool"
	// Archive is what archiving last came to. It outlasts a restart.
	Archive = Volume + "/archive.json"
	// Repository is where the host of a repository keeps backups on its volume, and Objects where it keeps what stands beside them.
	Repository = Volume + "/repository"
	Objects    = Volume + "/objects"
)
