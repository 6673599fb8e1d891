// SPDX-License-Identifier: Apache-2.0

package names

// Volumes of the pods of a Database.
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

	// VolumeBackup has what opens the bucket, or the volume, that backups go to, and VolumeBackupKey the key of the backups.
	VolumeBackup    = "backup"
	VolumeBackupKey = "backup-key"

	// VolumeSource and VolumeSourceKey have the same of the backup that a Database begins with.
	VolumeSource    = "source"
	VolumeSourceKey = "source-key"

	// VolumeSourceRepository has what opens the source's volume of backups, if it has one.
	VolumeSourceRepository = "source-repository"

	// VolumeHook holds the Secret of the consumer that a hook runs SQL as.
	VolumeHook = "connection"
)

// Keys of Secrets.
const (
	// KeyPassword and KeyVerifier are keys of the first Credential; Credentials of consumers have the password, too.
	KeyPassword = "password"
	KeyVerifier = "verifier"

	// KeyOfCertificate is what a certificate is checked with.
	KeyOfCertificate = "ca.crt"
)

// PortMetrics is the name of the exporter's port.
const PortMetrics = "metrics"
