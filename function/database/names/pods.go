// SPDX-License-Identifier: Apache-2.0

package names

// Suffixes of what belongs to backups. The Secrets begin with pg-, which no consumer does, so that none has the name of a
// consumer's.
const (
	VolumeBackup = "backup"
	VolumeSource = "source"

	// VolumeSourceRepository has what opens the source's volume of backups, if it has one.
	VolumeSourceRepository = "source-repository"
)

// Lives of certificates. That of an authority is long, because clients have a copy of it.
const (
	KeyOfCertificate = "ca.crt"
)

const (
	VolumeBackupKey = "backup-key"
	VolumeSourceKey = "source-key"
)

// VolumeHook holds the Secret of the consumer that a hook runs SQL as.
const VolumeHook = "connection"

// Volumes.
const (
	VolumeData    = "data"
	VolumeSocket  = "run"
	VolumeTLS     = "tls"
	VolumeTmp     = "tmp"
	VolumeShared  = "shared-memory"
	VolumeConfig  = "config"
	VolumeMembers = "members"
	VolumeServer  = "server"
	VolumeAccess  = "access"
	VolumeToken   = "token"
)

// Keys of the first Credential.
const (
	KeyPassword = "password"
	KeyVerifier = "verifier"
)

// PortMetrics is the name of the exporter's port.
const PortMetrics = "metrics"
