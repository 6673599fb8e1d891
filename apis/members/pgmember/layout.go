// SPDX-License-Identifier: Apache-2.0

package pgmember

import "path"

// Programs is the folder of PostgreSQL's programs of a major version.
func Programs(major string) string { return path.Join("/usr/lib/postgresql", path.Base(major), "bin") }

// Folders of a member's container that pods mount something to.
const (
	// FolderVolume is the data volume, and FolderData the data of PostgreSQL on it.
	FolderVolume = "/data"
	FolderData   = FolderVolume + "/pgdata"
	// FolderWAL is the volume of the write-ahead log, if it has one of its own.
	FolderWAL = "/wal"
	// FolderSocket holds PostgreSQL's socket.
	FolderSocket = "/run/postgresql"
	// FolderPrivate is in memory, and no other container of the pod sees it.
	FolderPrivate = "/run/capstan"
	// FolderConfig holds the files of the ConfigMap.
	FolderConfig = "/etc/capstan/config"
	// FolderMembers and FolderServer hold the certificates of members among each other and for clients.
	FolderMembers = "/etc/capstan/tls/members"
	FolderServer  = "/etc/capstan/tls/server"
	// FolderAccess holds the verifier of the password of RoleAccess.
	FolderAccess = "/etc/capstan/access"
	// FolderBackup holds the Secret that opens the repository of backups, and FolderBackupKey the key that they are encrypted with.
	FolderBackup    = "/etc/capstan/backup"
	FolderBackupKey = "/etc/capstan/backup-key"
	// FolderSource holds the Secret of the bucket that the Database begins with, FolderSourceRepository the Secret of the volume,
	// and FolderSourceKey the key that it is encrypted with.
	FolderSource           = "/etc/capstan/source"
	FolderSourceRepository = "/etc/capstan/source-repository"
	FolderSourceKey        = "/etc/capstan/source-key"
)

// Files in FolderConfig.
const (
	FilePatroni = "patroni.yaml"
	FileConfig  = "member.json"
	// FilePatroniWAL adds to FilePatroni what holds for members whose write-ahead log has a volume of its own.
	FilePatroniWAL   = "patroni-wal.yaml"
	FilePooler       = "pgbouncer.ini"
	FilePoolerAccess = "pgbouncer_hba.conf"
)

// FileBackupKey is the value of a Secret that is a key of backups.
const FileBackupKey = "passphrase"

// Copies of certificates, which the program keeps fresh, with the mode that PostgreSQL requires. Clients see the server's; members
// show each other the members'.
const (
	FolderTLS      = FolderPrivate + "/tls"
	FileServerCert = FolderTLS + "/server.crt"
	FileServerKey  = FolderTLS + "/server.key"
	FileServerCA   = FolderTLS + "/server-ca.crt"
	FileMemberCert = FolderTLS + "/members.crt"
	FileMemberKey  = FolderTLS + "/members.key"
	FileMemberCA   = FolderTLS + "/members-ca.crt"
)

// Ports of members, poolers and hosts of repositories.
const (
	PortPostgres = 5432
	PortPatroni  = 8008
	PortHealth   = 8009
	// PortPause is where poolers take a member's request to pause their clients.
	PortPause = 8010
	// PortBackup is where pgBackRest of members and of hosts of repositories listens.
	PortBackup = 8432
	// PortRepository is where the host of a repository takes requests for backups, and keeps small objects beside them.
	PortRepository    = 8433
	PortPoolerMetrics = 9127
	PortMetrics       = 9187
)

// Roles of the server.
const (
	// RoleSuperuser is PostgreSQL's own superuser; only members log in as it.
	RoleSuperuser = "postgres"
	// RoleReplication is what standbys log in as.
	RoleReplication = "standby"
	// RoleRewind is what Patroni compares a former leader with the new one as.
	RoleRewind = "rewind"
	// RoleAccess is the login that the provider manages databases, roles and grants with.
	RoleAccess = "capstan"
	// RoleExporter is the login of the exporter of metrics.
	RoleExporter = "exporter"
	// RolePooler is the login that poolers look verifiers of passwords up with.
	RolePooler = "pooler"
	// RoleImport owns the subscriptions of an import.
	RoleImport = "capstan_import"
	// RoleRestore is the login that the schema of an import is restored as.
	RoleRestore = "capstan_restore"
)

// Common names of certificates. Each opens no more than its own door.
const (
	// MemberCommonName stands for RoleReplication and RoleRewind.
	MemberCommonName = "capstan-members"
	// PoolerCommonName stands for RolePooler.
	PoolerCommonName = "capstan-pooler"
	// BackupCommonName opens the pgBackRest of members for the pods that take backups.
	BackupCommonName = "backup"
	// RepositoryCommonName opens the repository on a volume, for archiving and restoring.
	RepositoryCommonName = "repository"
)

// Reasons of a members.Report that only PostgreSQL's members have.
const (
	// ReasonPatroniEnded: Patroni ends soon after its start.
	ReasonPatroniEnded = "PatroniEnded"
	// ReasonRolesOrExtensionsFailed: the leader could not create what only a superuser can.
	ReasonRolesOrExtensionsFailed = "RolesOrExtensionsFailed"
	// ReasonWaitingForData: another member makes the first data, and this one copies it then.
	ReasonWaitingForData = "WaitingForData"
	// ReasonWALVolumeLost: the volume of the write-ahead log is missing or has lost the log that the data needs.
	ReasonWALVolumeLost = "WALVolumeLost"
	// ReasonWALVolumeTooSmall: the write-ahead log has no room on the volume that it gets.
	ReasonWALVolumeTooSmall = "WALVolumeTooSmall"
)
