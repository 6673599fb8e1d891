// SPDX-License-Identifier: Apache-2.0

// Package layout says where things are in a member's container that nothing outside has to know, and who the member is. What pods
// mount is in package mysqlmember.
package layout

import (
	"fmt"
	"hash/fnv"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/repository"
)

// Programs of the image, and data that comes with it.
const (
	Server    = "/usr/sbin/mysqld"
	ZonesTool = "/usr/bin/mysql_tzinfo_to_sql"
	Zones     = "/usr/share/zoneinfo"
)

// Files that pods mount.
const (
	// Base is the part of the server's configuration that is the same for all members.
	Base = mysqlmember.FolderConfig + "/" + mysqlmember.FileServer
	// Config is the mysqlmember.Config.
	Config = mysqlmember.FolderConfig + "/" + mysqlmember.FileConfig
	// Verifier is of the password of the login that the platform manages databases with.
	Verifier = mysqlmember.FolderAccess + "/verifier"
)

// Files of a running member.
const (
	// Mark says which Database the volume belongs to.
	Mark = mysqlmember.FolderVolume + "/capstan.json"
	// Fresh is where data is made. It is renamed to the data folder when it is whole.
	Fresh = mysqlmember.FolderData + ".new"
	// Archive is how archiving is.
	Archive = mysqlmember.FolderVolume + "/archive.json"
	// Former is in data that a copy replaces, so that its absence proves the copy.
	Former = mysqlmember.FolderData + "/capstan.reinitialize"
	// Reinitialized is the last request to copy this member again, and what became of it.
	Reinitialized = mysqlmember.FolderVolume + "/reinitialized.json"
	// Requested is when this member first saw that request, and what was known then.
	Requested = mysqlmember.FolderVolume + "/requested.json"
	// Stopped is the last request to stop this member, and what became of it.
	Stopped = mysqlmember.FolderVolume + "/fence.json"
	// Temporary is for what queries sort and copy.
	Temporary = mysqlmember.FolderVolume + "/tmp"
	// Settings is the configuration that the server runs with.
	Settings = mysqlmember.FolderPrivate + "/my.cnf"
	// Hosts are where other members were last, for a time without the API server.
	Hosts = mysqlmember.FolderPrivate + "/hosts.json"
	// Stopping is written when the pod is about to stop. It holds what became of the handover.
	Stopping = mysqlmember.FolderPrivate + "/stopping"
)

// Vault is where the host of a volume of backups keeps what it serves.
const Vault = mysqlmember.FolderVolume + "/repository"

// Scratch is for files of a repository that are of no use after the program ends.
const Scratch = mysqlmember.FolderVolume + "/scratch"

// Verification is the object with the results of verifications of a stanza. The leader reads them there, because the pod that verifies reaches
// nothing else.
func Verification(b mysqlmember.Backup) string { return "verification/" + b.Stanza }

// Archived is the object with the transactions that the archive of a stanza had last. What is lost at its end, log and index, leaves no other trace.
func Archived(stanza string) string { return "archived/" + stanza }

// RestorePoints is the object with the restore points of all stanzas.
const RestorePoints = "restore-points"

// Repository of the backups of a Database.
func Repository(b mysqlmember.Backup) repository.Place {
	p := repository.Place{Path: b.Path, Stanza: b.Stanza, Secret: mysqlmember.FolderBackup, Server: servedAt(b.Repository), Scratch: Scratch}
	if b.Encrypted {
		p.Key = mysqlmember.FolderBackupKey
	}
	return p
}

// Source is the repository of the backup that a generation begins with.
func Source(s mysqlmember.Source) repository.Place {
	p := repository.Place{Path: s.Path, Stanza: s.Stanza, Secret: mysqlmember.FolderSource, Server: servedAt(s.Repository), Scratch: Scratch}
	if s.Encrypted {
		p.Key = mysqlmember.FolderSourceKey
	}
	return p
}

// Volume is the repository of a source on the volume of the other Database, if its backups are there.
func Volume(s mysqlmember.Source) repository.Place {
	p := Source(s)
	p.Secret, p.Server = mysqlmember.FolderSourceRepository, servedAt(s.Either)
	return p
}

// servedAt is where a host serves a volume of backups; "" for no host.
func servedAt(host string) string {
	if host == "" {
		return ""
	}
	return net.JoinHostPort(host, strconv.Itoa(mysqlmember.PortRepository))
}

// Version of the program.
type Version string

// Names are who this member is, from the environment of its container.
type Names struct {
	Pod       string `env:"POD_NAME"         help:"Name of the pod."                                   placeholder:"NAME"                                     required:""`
	Namespace string `env:"POD_NAMESPACE"    help:"Namespace of the pod."                              placeholder:"NAME"                                     required:""`
	IP        string `env:"POD_IP"           help:"Address of the pod."                                placeholder:"ADDRESS"                                  required:""`
	Database  string `env:"CAPSTAN_DATABASE" help:"Name of the Database."                              placeholder:"NAME"                                     required:""`
	Name      string `env:"CAPSTAN_MEMBER"   help:"Name of the member."                                placeholder:"NAME"                                     required:""`
	Scope     string `env:"CAPSTAN_SCOPE"    help:"Scope that the names of the ConfigMaps begin with." placeholder:"NAME"                                     required:""`
	Identity  string `env:"CAPSTAN_IDENTITY" help:"Identity of the Database, which its volumes carry." placeholder:"HEX"                                      required:""`
	Version   string `env:"CAPSTAN_VERSION"  help:"Series of MySQL, as in 9.7."                        placeholder:"SERIES"                                   required:""`
	Listen    string `default:"*"            env:"CAPSTAN_LISTEN_ADDRESS"                              help:"Address that the server listens to for clients."`
}

// ReadConfig reads the mysqlmember.Config that the ConfigMap is mounted as.
func ReadConfig() (mysqlmember.Config, error) {
	raw, err := os.ReadFile(Config)
	if err != nil {
		return mysqlmember.Config{}, fmt.Errorf("cannot read the configuration of the member: %w", err)
	}
	return mysqlmember.ParseConfig(raw)
}

// Pod of a member, and Member of a pod: each member is a StatefulSet of one.
func Pod(member string) string { return member + "-0" }

// Member of a pod.
func Member(pod string) string { return strings.TrimSuffix(pod, "-0") }

// Host of a member, whose pods are below a domain.
func Host(member, domain string) string { return Pod(member) + "." + domain }

// MemberOf a host.
func MemberOf(host string) string {
	pod, _, _ := strings.Cut(host, ".")
	return Member(pod)
}

// Inner is where other members reach the server of a host, which may be an address.
func Inner(host string) string { return net.JoinHostPort(host, strconv.Itoa(mysqlmember.PortMembers)) }

// What the numbers in an id of a server are bounded by: members of a generation, by their letters, generations, and Databases.
const (
	mostMembers     = 16
	mostGenerations = 1 << 12
	mostDatabases   = 1<<15 - 1
)

// ServerID has 15 bits of a hash of the Database's identity, 12 bits of the generation, and four of the place of the member's letter in the
// alphabet. Generations must not share ids, because a server skips events that carry its own id. Two Databases should not, because a server
// follows none of its own id, as an import does. No id is below 65536.
func (n Names) ServerID(generation int) (uint32, error) {
	letter := n.Name[strings.LastIndexByte(n.Name, '-')+1:]
	if len(letter) != 1 || letter[0] < 'a' || letter[0] >= 'a'+mostMembers || generation < 1 || generation >= mostGenerations {
		return 0, fmt.Errorf("cannot give the server an id: %q is no name of a member, or %d no generation", n.Name, generation)
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(n.Identity))
	return ((1+hash.Sum32()%mostDatabases)*mostGenerations+uint32(generation))*mostMembers + uint32(letter[0]-'a'), nil
}

// GroupName is the first name of the group of a generation. Each generation has its own, so that two histories never share transaction ids.
func (n Names) GroupName(generation int) string { return n.group(strconv.Itoa(generation)) }

// AnotherGroup is the name of a group that begins with less than all transactions. No group had it before, also when the record of former ones is
// lost: two histories would share transaction ids.
func AnotherGroup() string { return uuid.NewString() }

func (n Names) group(of string) string {
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte("capstan.dev/"+n.Identity+"/"+of)).String()
}
