// SPDX-License-Identifier: Apache-2.0

package names

import "github.com/capstan-dev/capstan/function/database/engine"

// Suffixes of what belongs to backups. The Secrets begin with pg-, which no consumer does, so that none has the name of a
// consumer's.
const (
	SuffixBackup       = "backup"
	SuffixBackupBucket = "pg-backup-bucket"
	SuffixBackupClient = "pg-backup"
	SuffixVerify       = "verify"

	LabelBackupOf = "capstan.dev/backup-of"
)

// Names of the objects of backups within the composition.
const (
	BackupBucket      = "backup-bucket"
	BackupCertificate = "backup-certificate"
	Backup            = "backup"
	BackupNowPrefix   = "backup-now-"
)

// External within the composition.
const External = "external"

const SuffixExternal = "external"

// Names of the objects of hooks within the composition.
const (
	Hooks              = "hooks"
	HooksNetworkPolicy = "hooks-networkpolicy"
	HookPrefix         = "hook-"
)

// LabelHookOf is on the pods of hooks, which members find them by, and holds the name of the Database.
const LabelHookOf = "capstan.dev/hook-of"

// Names within the composition.
const (
	Pooler                  = "pooler"
	PoolerBudget            = "pooler-pdb"
	PoolerCertificate       = "pooler-certificate"
	PoolerConfig            = "pooler-config"
	PoolerMonitor           = "pooler-monitor"
	PoolerNetworkPolicy     = "pooler-networkpolicy"
	PoolerServerCertificate = "pooler-server-certificate"
	PoolerService           = "pooler-service"
)

// Suffixes of the names of what poolers have.
const (
	SuffixPooler       = "pooler"
	SuffixPoolerServer = "pooler-server"
)

// LabelPooler is on the pods of poolers, which members find them by, and holds the name of the Database. They do not have the
// label of its members.
const LabelPooler = engine.LabelPooler

// Suffixes of what belongs to the host of a volume of backups.
const (
	SuffixRepository       = "repository"
	SuffixRepositoryClient = "pg-repository"
	SuffixRepositoryServer = "pg-repository-server"
)

// Names of the objects of a volume of backups within the composition.
const (
	Repository                  = "repository"
	RepositoryCertificate       = "repository-certificate"
	RepositoryClientCertificate = "repository-client-certificate"
	RepositoryNetworkPolicy     = "repository-networkpolicy"
	RepositoryService           = "repository-service"
	RepositoryVolumeClaim       = "repository-volumeclaim"
)

// Labels of what has to do with a volume of backups.
const (
	// LabelRepositoryOf is on the pod that serves it, and on its claim.
	LabelRepositoryOf = "capstan.dev/repository-of"

	// LabelCopyOf is on the pods of members that begin with the backups of another Database of their namespace, whose volume lets
	// them in by it.
	LabelCopyOf = "capstan.dev/copy-of"
)

// Names of the objects of verifications within the composition.
const (
	Verify          = "verify"
	VerifyPolicy    = "verify-networkpolicy"
	VerifyNowPrefix = "verify-now-"
)

const (
	LabelVerificationOf = "capstan.dev/verification-of"
)
