// SPDX-License-Identifier: Apache-2.0

// Package layout says where things are in a member's container, and who the member is.
package layout

import (
	"net"
	"path/filepath"
	"strconv"
)

// Folders and files of a member's container.
const (
	// Volume is where the data volume is mounted, and Data PostgreSQL's folder on it.
	Volume = "/data"
	Data   = Volume + "/pgdata"
	// Mark says which Database the volume belongs to.
	Mark = Volume + "/capstan.json"

	// Private is a folder in memory that no other container of the pod sees.
	Private = "/run/capstan"
	// TLS holds the copies of keys and certificates that PostgreSQL and Patroni use.
	TLS = Private + "/tls"
	// Socket is where the running member hears of callbacks.
	Socket = Private + "/member.sock"
	// Postgres is the folder of PostgreSQL's socket.
	Postgres = "/run/postgresql"

	// Compiled is where Python keeps what it compiled.
	Compiled = "/tmp/capstan-python"

	// Patroni is the program, and Configuration what it is started with.
	Patroni       = "/usr/bin/patroni"
	Configuration = "/etc/capstan/config/patroni.yaml"
	// Wanted is what the program itself is told about the Database, as JSON.
	Wanted = "/etc/capstan/config/member.json"
	// Members and Server are where certificates are mounted: that of members among each other, and that for clients.
	Members = "/etc/capstan/tls/members"
	Server  = "/etc/capstan/tls/server"
	// Bouncer is the program of a pooler, and Pooling what it is started with.
	Bouncer = "/usr/sbin/pgbouncer"
	Pooling = "/etc/capstan/config/pgbouncer.ini"
	// Verifier is the SCRAM verifier of the login that the platform manages databases with.
	Verifier = "/etc/capstan/access/verifier"
)

// Ports of a member.
const (
	PortPostgres = 5432
	PortPatroni  = 8008
	PortHealth   = 8009
	PortPause    = 8010
)

// LabelPooler is the label of the pods of poolers, with the name of the Database.
const LabelPooler = "capstan.dev/pooler"

// MemberCommonName is the common name of the certificate of members.
const MemberCommonName = "capstan-members"

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

// Programs is the folder of PostgreSQL's programs of a major version.
func Programs(major string) string {
	return filepath.Join("/usr/lib/postgresql", filepath.Base(major), "bin")
}

// Address is where other members reach a port of this one. It is no name: a failover must not wait for the cluster's DNS, which may
// have been on the node that was lost.
func (m Names) Address(port int) string {
	return net.JoinHostPort(m.IP, strconv.Itoa(port))
}

// Environment is what Patroni is to know of this member beyond its configuration, which is the same for all members.
func (m Names) Environment() []string {
	return []string{
		"PATRONI_NAME=" + m.Pod, // Patroni takes the name for that of the pod whose labels it writes
		"PATRONI_KUBERNETES_NAMESPACE=" + m.Namespace,
		"PATRONI_KUBERNETES_POD_IP=" + m.IP,
		"PATRONI_POSTGRESQL_CONNECT_ADDRESS=" + m.Address(PortPostgres),
		"PATRONI_RESTAPI_CONNECT_ADDRESS=" + m.Address(PortPatroni),
		// Patroni starts a Python of its own for each start of PostgreSQL. With what an earlier one compiled, that takes 0.25 s of
		// processor time instead of 0.9 s, and a killed PostgreSQL is back that much earlier.
		"PYTHONDONTWRITEBYTECODE=", "PYTHONPYCACHEPREFIX=" + Compiled,
	}
}
