// SPDX-License-Identifier: Apache-2.0

// Package postgres knows PostgreSQL and Patroni: what parameters there are, which
// follow from the size of a member, and the files that members start with. It
// knows nothing of Kubernetes objects.
package postgres

// Where members keep what configuration names. The program of the members makes
// the files before it starts Patroni.
const (
	// DataDir is the folder of the data, on the volume.
	DataDir = "/data/pgdata"

	// SocketDir holds the socket of the server.
	SocketDir = "/run/postgresql"

	// runDir holds copies of certificates with the mode that PostgreSQL wants.
	runDir = "/run/capstan"
)

// Files of certificates. Those named server are shown to clients, those named
// members to each other.
const (
	fileServerCert = runDir + "/tls/server.crt"
	fileServerKey  = runDir + "/tls/server.key"
	fileServerCA   = runDir + "/tls/server-ca.crt"
	fileMemberCert = runDir + "/tls/members.crt"
	fileMemberKey  = runDir + "/tls/members.key"
	fileMemberCA   = runDir + "/tls/members-ca.crt"
)

// Roles of the server.
const (
	// RoleAccess makes databases and logins for Capstan.
	RoleAccess = "capstan"

	roleSuperuser   = "postgres"
	roleReplication = "standby"
	roleRewind      = "rewind"
	roleExporter    = "exporter"
	rolePooler      = "pooler"
)

// MemberCommonName is the common name of the certificate that members show each
// other. It stands for the roles of replication and of pg_rewind.
const MemberCommonName = "capstan-members"

// PoolerCommonName is the common name of the certificate that poolers show the
// server. It stands for the role that looks verifiers of passwords up, and for no
// other.
const PoolerCommonName = "capstan-pooler"

// memberProgram runs a member.
const memberProgram = "/usr/local/bin/capstan-member"

// A Server is what the configuration of a Database's members follows from.
type Server struct {
	// Database and Scope are the names that Patroni finds members and its own
	// objects by.
	Database, Scope string

	// Namespace of both. Patroni of a member is told by its pod; this is for
	// patronictl, which somebody begins who does not know what a pod is told.
	Namespace string

	// Major version.
	Major int

	// Members that are asked for.
	Members int32

	// Memory and Storage of each member, in bytes.
	Memory, Storage int64

	// MaxConnections of each member.
	MaxConnections int32

	// Preload names libraries that are loaded at the start, sorted.
	Preload []string

	// CronDatabase is the one database that pg_cron lives in, if it is asked for.
	CronDatabase string

	// Config of the Database, and its Pinned parameters: those that need a restart,
	// as they were computed when the Database asked for them.
	Config, Pinned map[string]string

	// Pace of failover.
	Pace Pace

	// Synchronous tells that a commit waits for another member, and Strict that it
	// does so even when there is none.
	Synchronous, Strict bool

	// Archives tells that the server can archive its write-ahead log without another
	// restart, and Archiving that it does, so that a minute of it is lost at most.
	Archives, Archiving bool

	// Restored tells that the data begins with a backup.
	Restored bool

	// Followed tells that a generation of a later major version copies and follows
	// this one. Fence, when not empty, stops the leader for good in favour of the
	// generation of that identifier: nobody else is promoted.
	Followed bool
	Fence    string

	// Paused tells that somebody has switched failover off.
	Paused bool

	// Pooled tells that there are poolers, which look passwords up and wait while a
	// leader stops.
	Pooled bool
}

// Pace says how soon silence counts as a loss, in seconds.
type Pace struct {
	// TTL is the life of the leader's lock, LoopWait the time between two looks,
	// RetryTimeout the time an answer of the API server may take. LoopWait and twice
	// RetryTimeout must not exceed TTL, and Patroni takes no TTL below 20.
	TTL, LoopWait, RetryTimeout int

	// SenderTimeout ends a connection of replication that is silent.
	SenderTimeout int
}

// Paces by how soon another member leads.
var (
	Fast     = Pace{TTL: 20, LoopWait: 5, RetryTimeout: 5, SenderTimeout: 5}
	Balanced = Pace{TTL: 30, LoopWait: 10, RetryTimeout: 10, SenderTimeout: 10}
	Patient  = Pace{TTL: 90, LoopWait: 10, RetryTimeout: 35, SenderTimeout: 10}
)
