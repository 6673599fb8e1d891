// SPDX-License-Identifier: Apache-2.0

// Package layout says where things are in a member's container that nothing outside has to know, and who the member is. What pods
// mount is in package pgmember.
package layout

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
)

// Programs, and what they are started with.
const (
	Patroni       = "/usr/bin/patroni"
	Configuration = pgmember.FolderConfig + "/" + pgmember.FilePatroni
	// Configurations is a folder of what Patroni of a member reads beside the Configuration, if it does: what differs for members whose
	// write-ahead log has a volume of its own, and how this member marks lines of its log.
	Configurations   = pgmember.FolderPrivate + "/patroni"
	ConfigurationWAL = pgmember.FolderConfig + "/" + pgmember.FilePatroniWAL

	Bouncer = "/usr/sbin/pgbouncer"
	Pooling = pgmember.FolderConfig + "/" + pgmember.FilePooler
	// Config is the pgmember.Config.
	Config = pgmember.FolderConfig + "/" + pgmember.FileConfig
	// Verifier is the SCRAM verifier of the login that the platform manages databases with.
	Verifier = pgmember.FolderAccess + "/verifier"
	// Compiled is where Python keeps what it compiled.
	Compiled = "/tmp/capstan-python"
)

// Files of a running member.
const (
	// Rewind is what Patroni runs as pg_rewind.
	Rewind = pgmember.FolderPrivate + "/pg_rewind"
	// Diverged holds the data of a former leader that could not follow.
	Diverged = pgmember.FolderData + ".diverged"
	// Beginning exists from before this member makes the first data until it first has clients. What a member that was ended meanwhile has
	// may be incomplete: data without its tables, or without the roles that standbys come with.
	Beginning = pgmember.FolderVolume + "/beginning"
	// Mark says which Database the volume belongs to.
	Mark = pgmember.FolderVolume + "/capstan.json"
	// Reinitialized is the last request to copy this member again, and what became of it.
	Reinitialized = pgmember.FolderVolume + "/reinitialized.json"
	// Stopped is the last request to stop this member, and what became of it.
	Stopped = pgmember.FolderVolume + "/fence.json"
	// Socket is where the running member receives notes from the programs that Patroni and PostgreSQL call.
	Socket = pgmember.FolderPrivate + "/member.sock"
)

// Folders and files of backups.
const (
	// PgBackRest is the configuration of the member's pgBackRest, and PgBackRestSource that for the backup that it begins with.
	PgBackRest       = pgmember.FolderPrivate + "/pgbackrest.conf"
	PgBackRestSource = pgmember.FolderPrivate + "/pgbackrest-source.conf"
	// Restored exists once a backup was restored, even if PostgreSQL could not start on it.
	Restored = pgmember.FolderPrivate + "/restored"
	// Lock holds pgBackRest's locks, and Spool segments on their way to the archive.
	Lock  = pgmember.FolderPrivate + "/pgbackrest-lock"
	Spool = pgmember.FolderVolume + "/spool"
	// SourceSpool holds segments of the backup that the member begins with. They are wanted during the restore only.
	SourceSpool = "/tmp/capstan-source"
	// Unmasked is where a backup is restored to that is masked before it becomes the data, and Masking what is needed meanwhile.
	Unmasked = pgmember.FolderVolume + "/unmasked"
	Masking  = pgmember.FolderPrivate + "/masking"
	// Snapshot is the data that a volume showed which was filled from a snapshot, until it becomes the member's.
	Snapshot = pgmember.FolderVolume + "/snapshot"
	// Failed is where Patroni moves data that it could not begin with.
	Failed = pgmember.FolderData + ".failed"
	// SourceStanza is the stanza that is followed, once that is known.
	SourceStanza = pgmember.FolderPrivate + "/source-stanza"
	// Fetch exists while PostgreSQL may read the archive, because this standby cannot follow without it.
	Fetch = pgmember.FolderPrivate + "/fetch"
	// Archive is the last result of archiving. It outlasts a restart.
	Archive = pgmember.FolderVolume + "/archive.json"
	// Repository is where the host of a repository keeps backups on its volume, and Objects where it keeps small objects beside
	// them.
	Repository = pgmember.FolderVolume + "/repository"
	Objects    = pgmember.FolderVolume + "/objects"
)

// ImportSchema is where the schema of a server that is imported is kept while it is restored. It is removed afterwards.
const ImportSchema = pgmember.FolderVolume + "/import"

// ImportDump is where a dump in a directory is kept while it is restored, and lists of what is restored. It is removed afterwards.
const ImportDump = pgmember.FolderVolume + "/import-dump"

// Folders of an upgrade to a later major version, on the volume of the member that does it. They are removed when it is done.
const (
	Upgrade = pgmember.FolderVolume + "/upgrade"
	// UpgradeState is how far the upgrade is.
	UpgradeState = Upgrade + "/state.json"
	// UpgradeCopy is the copy of the former data, in its version, and UpgradeData what it is converted to. In the end UpgradeData
	// is renamed to the data folder, which completes the upgrade.
	UpgradeCopy = Upgrade + "/copy"
	UpgradeData = Upgrade + "/data"
	// UpgradeTrial is where data of the later version is tried and made. It may be half done, which UpgradeData never is before
	// pg_upgrade.
	UpgradeTrial = Upgrade + "/trial"
	// UpgradeWork holds the output of programs and the sockets of servers.
	UpgradeWork = Upgrade + "/work"
)

// Version of the program.
type Version string

// Names are who this member is, from the environment of its container.
type Names struct {
	Pod       string `env:"POD_NAME"         help:"Name of the pod."                                   placeholder:"NAME"    required:""`
	Namespace string `env:"POD_NAMESPACE"    help:"Namespace of the pod."                              placeholder:"NAME"    required:""`
	IP        string `env:"POD_IP"           help:"Address of the pod."                                placeholder:"ADDRESS" required:""`
	Database  string `env:"CAPSTAN_DATABASE" help:"Name of the Database."                              placeholder:"NAME"    required:""`
	Name      string `env:"CAPSTAN_MEMBER"   help:"Name of the member."                                placeholder:"NAME"    required:""`
	Scope     string `env:"CAPSTAN_SCOPE"    help:"Scope that Patroni keeps its objects under."        placeholder:"NAME"    required:""`
	Identity  string `env:"CAPSTAN_IDENTITY" help:"Identity of the Database, which its volumes carry." placeholder:"HEX"     required:""`
	Version   string `env:"CAPSTAN_VERSION"  help:"Major version of PostgreSQL."                       placeholder:"MAJOR"   required:""`
}

// ReadConfig reads the pgmember.Config that the ConfigMap is mounted as.
func ReadConfig() (pgmember.Config, error) {
	raw, err := os.ReadFile(Config)
	if err != nil {
		return pgmember.Config{}, fmt.Errorf("cannot read the configuration of the member: %w", err)
	}
	return pgmember.ParseConfig(raw)
}

// Address is where other members reach a port of this one. It is no name: a failover must not wait for the cluster's DNS, which
// may have been on the node that was lost.
func (m Names) Address(port int) string {
	return net.JoinHostPort(m.IP, strconv.Itoa(port))
}

// PodHost is the name of a pod of this Database, of any generation, which its certificate is for.
func (m Names) PodHost(pod string) string {
	database, _, _ := strings.Cut(m.Database, ".")
	return pod + "." + members.ServicePods(database) + "." + m.Namespace + ".svc"
}

// Environment is what Patroni has to know of this member beyond its configuration, which is the same for all members.
func (m Names) Environment() []string {
	return []string{
		"PATRONI_NAME=" + m.Pod, // Patroni labels the pod of this name
		"PATRONI_KUBERNETES_NAMESPACE=" + m.Namespace,
		"PATRONI_KUBERNETES_POD_IP=" + m.IP,
		"PATRONI_POSTGRESQL_CONNECT_ADDRESS=" + m.Address(pgmember.PortPostgres),
		"PATRONI_RESTAPI_CONNECT_ADDRESS=" + m.Address(pgmember.PortPatroni),
		// The address of the pod and no other, whichever version of IP it is of.
		"PATRONI_RESTAPI_LISTEN=" + m.Address(pgmember.PortPatroni),
		"PATRONI_POSTGRESQL_BIN_PG_REWIND=" + Rewind,
		// Patroni starts a Python of its own for each start of PostgreSQL. With what an earlier one compiled, that takes 0.25 s
		// of processor time instead of 0.9 s, and a killed PostgreSQL is back that much earlier.
		"PYTHONDONTWRITEBYTECODE=", "PYTHONPYCACHEPREFIX=" + Compiled,
	}
}
