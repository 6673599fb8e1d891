// SPDX-License-Identifier: Apache-2.0

package mysqlmember

// Folders of a member's container that pods mount something to.
const (
	// FolderVolume is the data volume, and FolderData the data of MySQL on it.
	FolderVolume = "/data"
	FolderData   = FolderVolume + "/mysql"
	// FolderSocket holds MySQL's socket.
	FolderSocket = "/run/mysqld"
	// FolderPrivate is in memory, and no other container of the pod sees it.
	FolderPrivate = "/run/capstan"
	// FolderConfig holds the files of the ConfigMap.
	FolderConfig = "/etc/capstan/config"
	// FolderMembers and FolderServer hold the certificates of members among each other and for clients.
	FolderMembers = "/etc/capstan/tls/members"
	FolderServer  = "/etc/capstan/tls/server"
	// FolderAccess holds the verifier of the password of AccountAccess.
	FolderAccess = "/etc/capstan/access"
	// FolderBackup holds the Secret that opens the bucket of backups, or the certificate that opens their volume, and FolderBackupKey the key that
	// they are encrypted with.
	FolderBackup    = "/etc/capstan/backup"
	FolderBackupKey = "/etc/capstan/backup-key"
	// FolderSource holds the Secret of the bucket that a generation begins with, FolderSourceRepository the certificate that opens the volume of
	// backups of another Database, and FolderSourceKey the key of what is in either.
	FolderSource           = "/etc/capstan/source"
	FolderSourceRepository = "/etc/capstan/source-repository"
	FolderSourceKey        = "/etc/capstan/source-key"
)

// FileBackupKey is the value of a Secret that is a key of backups.
const FileBackupKey = "passphrase"

// FileSocket is where the server listens for programs in its pod.
const FileSocket = FolderSocket + "/mysqld.sock"

// Files in FolderConfig.
const (
	// FileServer is the configuration of the server that is the same for all members. The program adds what is a member's own: addresses,
	// ids, and paths.
	FileServer = "my.cnf"
	FileConfig = "member.json"
)

// Copies of certificates, which the program keeps fresh. Clients see the server's; members show each other the members'.
const (
	FolderTLS      = FolderPrivate + "/tls"
	FileServerCert = FolderTLS + "/server.crt"
	FileServerKey  = FolderTLS + "/server.key"
	FileServerCA   = FolderTLS + "/server-ca.crt"
	FileMemberCert = FolderTLS + "/members.crt"
	FileMemberKey  = FolderTLS + "/members.key"
	FileMemberCA   = FolderTLS + "/members-ca.crt"
)

// Ports of members.
const (
	PortMySQL = 3306
	// PortMembers is MySQL's administrative port. Members replicate, clone and agree by it, with certificates of their own.
	PortMembers = 33062
	PortHealth  = 8009
	// PortPeers is where the programs of members ask each other, with the certificates of members.
	PortPeers = 8010
	// PortRepository is where the host of a volume of backups serves it.
	PortRepository = 8433
	PortMetrics    = 9104
)

// Accounts of the server.
const (
	// AccountMember is what the program logs in as by the socket, without a password.
	AccountMember = "capstan_member"
	// AccountReplication is what members log in as with their certificate.
	AccountReplication = "capstan_replication"
	// AccountBackup is what a pod that takes a backup logs in as with its certificate, to copy the data of a member.
	AccountBackup = "capstan_backup"
	// AccountAccess is the login that the provider manages databases, logins and grants with.
	AccountAccess = "capstan"
	// AccountImport is what changes of the source of an import are applied as, while there is one. It has rights in the databases that are filled.
	AccountImport = "capstan_import"
	// AccountExporter is the login of the exporter of metrics, by the socket.
	AccountExporter = "exporter"
)

// Accounts of the platform.
func Accounts() []string {
	return []string{AccountMember, AccountReplication, AccountBackup, AccountAccess, AccountImport, AccountExporter}
}

// Users of the image: the server and the program run as UserServer, which owns AccountMember, the exporter as UserExporter.
const (
	UserServer   = "mysql"
	UserExporter = "exporter"
	UIDServer    = 999
	UIDExporter  = 998
	GIDServer    = 999
)

// Common names of certificates. Each opens no more than its own account.
const (
	// MemberCommonName stands for AccountReplication.
	MemberCommonName = "capstan-members"
	// BackupCommonName stands for AccountBackup.
	BackupCommonName = "capstan-backup"
	// RepositoryCommonName opens the volume of backups at its host, which shows RepositoryHostCommonName. Neither opens anything at members.
	RepositoryCommonName     = "capstan-repository"
	RepositoryHostCommonName = "capstan-repository-host"
)

// Reasons of a members.Report that only MySQL's members have.
const (
	// ReasonServerEnded: mysqld ends soon after its start.
	ReasonServerEnded = "ServerEnded"
	// ReasonAccountsFailed: the leader could not make the accounts of the platform.
	ReasonAccountsFailed = "AccountsFailed"
	// ReasonNoMajority: the group lost its majority, and no member takes writes.
	ReasonNoMajority = "NoMajority"
	// ReasonRecoveryNeedsDecision: the whole group is down, and no member that is there has all that may have been acknowledged.
	ReasonRecoveryNeedsDecision = "RecoveryNeedsDecision"
	// ReasonLeftGroup: the member could not stay in the group, and tries again.
	ReasonLeftGroup = "LeftGroup"
	// ReasonExtraTransactions: the member has transactions that the group has not, and is kept out of it.
	ReasonExtraTransactions = "ExtraTransactions"
)
