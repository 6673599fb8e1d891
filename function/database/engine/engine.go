// SPDX-License-Identifier: Apache-2.0

// Package engine is the seam between what a Database is and what it runs: everything that knows a certain server, its
// configuration, its backup tool or its metrics is behind these interfaces. An engine has a package of its own below this one.
package engine

import (
	"k8s.io/apimachinery/pkg/api/resource"

	credentialsv1alpha1 "github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
	"github.com/capstan-dev/capstan/apis/members"
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
	inputv1alpha1 "github.com/capstan-dev/capstan/input/v1alpha1"
)

// An Engine runs the data of a Database. All of it is pure: values in, values out.
type Engine interface {
	// Traits that are the same for every Database of the engine.
	Traits() Traits

	Versions
	Fields
	Configuration
	Restarts
	Messages
}

// Versions of an engine.
type Versions interface {
	// Catalogue of the project's own image: the versions in it, and what they have. Image is where it is.
	Catalogue() ([]inputv1alpha1.DatabaseVersion, error)
	Image(s inputv1alpha1.DatabaseSettings) string

	// CheckVersion of a platform's own image. The remedy is empty when the version can be run.
	CheckVersion(version string) (remedy string)

	// CompareVersions is negative when a is before b, and positive when it is after.
	CompareVersions(a, b string) int
}

// Checks of fields of a spec that only the engine understands.
type Checks interface {
	// Lacks is why the engine does not have a feature, and what to do instead, to end a message about a field that asks for it.
	// It is empty for a feature that it has.
	Lacks(f Feature) (remedy string)

	// CheckConfig is about spec.config.
	CheckConfig(s Server) []check.Problem

	// CheckExtensions is about spec.extensions, of an image that has them.
	CheckExtensions(s Server) []check.Problem

	// CheckReplication is about spec.replication and consumers that read changes.
	CheckReplication(s Server) []check.Problem
}

// Fields of a spec, and what the engine makes of them.
type Fields interface {
	Checks

	// Reserved reports whether the server itself uses a name of a logical database.
	Reserved(database string) bool

	// Connections that a member takes.
	Connections(s Server) int32

	// LeastMemory that a member needs.
	LeastMemory(s Server) resource.Quantity

	// Libraries of extensions that have to be loaded when the server starts, sorted.
	Libraries(s Server) []string

	// Connection that a consumer uses, as far as its kind and options go.
	Connection(readOnly bool) Connection
}

// Configuration of members, of what they agree on, and of poolers.
type Configuration interface {
	// Files that a member starts with, by name: the files of the server, and the engine's own file for the program in the member.
	Files(s Server, m Member) map[string]string

	// Recorded in the Files before. A later version has to read what an earlier one wrote.
	Recorded(files map[string]string) Recorded

	// Coordination is what all members follow at run time. It is kept as text in an annotation of one object of a generation.
	Coordination(s Server) string

	// Coordinated reads what a Coordination before says.
	Coordinated(text string) Coordinated

	// PoolerFiles configure poolers.
	PoolerFiles(p Pooler) map[string]string

	// Alerts on the metrics of members.
	Alerts(w Watched) Alerts
}

// Restarts reports what a change does to servers that run.
type Restarts interface {
	// RestartInputs are what parameters follow from that are only read when the server starts, without version, memory and
	// connections. What is empty has to be left out: a change of any entry restarts members.
	RestartInputs(s Server) map[string]any

	// Restarting are those parameters as they follow from it.
	Restarting(s Server) map[string]string

	// OwnParameters of a member, which follow from what its pod has and others may not have yet. They count more than what members agree
	// on. They are in the template of its pod, and RestartInputs has what they follow from.
	OwnParameters(s Server) map[string]string

	// NeedsRestart reports whether a parameter of spec.config is only read when the server starts.
	NeedsRestart(parameter, version string) bool

	// Restarted are the effects on members of other restart inputs, beside memory and connections.
	Restarted(before, after map[string]any) []v1alpha1.ChangeEffect

	// Reloaded are the effects of another Coordination that need no restart.
	Reloaded(r Reload) []v1alpha1.ChangeEffect
}

// Messages to people.
type Messages interface {
	// Filling explains what fills a volume of a member, and what to do about it.
	Filling(database, member string, volume *observev1alpha1.VolumeReport) string
}

// The program of members and poolers, and the label of the pods of poolers.
const (
	Program     = members.Program
	LabelPooler = members.LabelPooler
)

// Traits of an engine.
type Traits struct {
	Engine v1alpha1.Engine

	// App is the label app.kubernetes.io/name of members, and the name of the container and of the port of the server. Other pods
	// of the Database have labels that begin with it.
	App string

	// PoolerApp is the same label of poolers.
	PoolerApp string

	// Role is the ClusterRole of package/platform.yaml that members are bound to. Crossplane may bind it and no other.
	Role string

	// Resume says how a person ends a pause of failover, for messages; "" for an engine without such a pause.
	Resume string

	// Majority reports that members take writes only while more than half of them are there.
	Majority bool

	// MemoryParameter follows from the memory of a member and needs a restart.
	MemoryParameter string

	// Log is what a server writes before it changes data, in words, and LogDir where a volume for it alone is mounted; "" for an engine that
	// has none.
	Log, LogDir string

	// BackupTool is the name of what takes backups, and BackupPort the name of the port where the host of a volume serves it; "" where that
	// host serves objects only, and the pods that take backups write them.
	BackupTool, BackupPort string

	// Backups is what the pods that take and verify backups need.
	Backups Backups

	// CoordinationPort is the name of the port where members talk to each other, if they do. PeersPort is the name of the port where
	// their programs do.
	CoordinationPort, PeersPort string

	// Imports is how Databases are filled from a running server; nil when none can be.
	Imports *Imports

	// Unmanaged is the reason of a leader that could not create what only a superuser may.
	Unmanaged string

	// User and Group that members run as.
	User, Group int64

	// SocketDir is where the server listens for programs in its pod.
	SocketDir string

	Ports       Ports
	CommonNames CommonNames
	Exporter    Exporter

	// Access is the login that databases and logins are made with, and Verifier what the server is given in place of its
	// password.
	Access   string
	Verifier credentialsv1alpha1.Format

	// AccessEngine is the engine of the Access that makes them; "" for its default.
	AccessEngine string
}

// Ports of the pods of a Database.
type Ports struct {
	Client, Coordination, Health, Metrics int32

	// Peers is where the programs of members ask each other, if they do.
	Peers int32

	// Backup is where pods that take backups reach members, and where the host of a volume serves the backup tool. Repository is
	// where that host takes requests for backups.
	Backup, Repository int32

	// Pause is where members ask poolers to wait, PoolerMetrics where Prometheus asks poolers.
	Pause, PoolerMetrics int32
}

// Backups is what the pods that take and verify backups need.
type Backups struct {
	// Copies reports that a pod that takes a backup first copies the data of a member to a volume of its own, as large as a member's.
	Copies bool

	// Taking and Verifying are the memory of pods that do so with few processes. A pod with more processes may take more.
	Taking, Verifying Memory
}

// Memory that a container requests, and the most that it may take.
type Memory struct{ Request, Most resource.Quantity }

// CommonNames of the certificates that the programs of a Database show each other. Each stands for other rights. RepositoryHost is what the host
// of a volume of backups shows.
type CommonNames struct{ Members, Backup, Repository, RepositoryHost, Pooler string }

// Exporter of metrics that runs beside each server.
type Exporter struct {
	Command, Args []string
	Env           map[string]string
	User          int64
}

// Server is what the configuration of the members of a generation follows from.
type Server struct {
	// Database is the value of the label of the pods, and Scope the name that members find each other by.
	Database, Scope, Namespace string

	// Version of the data, as the spec writes it.
	Version string

	// Image that has this version. It is zero while there is none.
	Image inputv1alpha1.DatabaseVersion

	// Members that count.
	Members int32

	// Memory and Storage that every member has, in bytes, and SpecMemory and SpecStorage that the spec asks for.
	Memory, Storage         int64
	SpecMemory, SpecStorage resource.Quantity

	// WALStorage is the volume that every member has for its log alone, in bytes, and 0 without. While members get it, WALMoves
	// reports that some have the log beside the data. SpecWALStorage is what the spec asks for, zero without.
	WALStorage     int64
	WALMoves       bool
	SpecWALStorage resource.Quantity

	// HugePages that the pod of a member has in addition to its memory.
	HugePages HugePages

	// Connections of each member, unless spec.config says otherwise.
	Connections int32

	// Config, Extensions and Databases of the spec.
	Config     map[string]string
	Extensions []string
	Databases  []string

	// Pinned parameters: those that need a restart, as they were computed when the spec asked for them; nil before.
	Pinned map[string]string

	// Profile of failover.
	Profile v1alpha1.FailoverProfile

	// Synchronous reports that a commit waits for another member, and Strict that it does so even when there is none.
	Synchronous, Strict bool

	// Archives reports that the server can archive without another restart, and Archiving that it does.
	Archives, Archiving bool

	// Restored reports that the data begins with a backup.
	Restored bool

	// Follows reports that the data follows another Database's archive, or did before it was promoted. Standby reports that it does now: no
	// member takes writes.
	Follows, Standby bool

	// Followed reports that a generation of a later version copies this one and replays its writes. A Fence with an identifier stops the
	// leader in favour of that generation: no other member is promoted.
	Followed bool
	Fence    Fence

	// Paused reports that failover was switched off by hand.
	Paused bool

	// Pooled reports that there are poolers.
	Pooled bool

	// Slots report that the spec lists replication slots for consumers of changes, and Replicating names the consumers that may read
	// changes. Plugins write what the slots keep.
	Slots       bool
	Plugins     []string
	Replicating []string
}

// HugePages of a pod: the size of one, and of all, in bytes; zero for none.
type HugePages struct{ Page, Amount int64 }

// Coordinated is the Coordination that members got before, as far as Capstan depends on it.
type Coordinated struct {
	// Paused reports that failover is off, by hand or by a fence.
	Paused bool

	// Fence, Followed, Strict and Standby mean what they mean in Server.
	Fence                     Fence
	Followed, Strict, Standby bool
}

// A Fence of a generation that another one is about to take over from.
type Fence struct {
	// ID of the upgrade; "" for no fence.
	ID string

	// To is the name of the other generation when members decide the outcome themselves, and Seconds how long they wait for it then.
	// Without it the fence stays until it is removed here.
	To      string
	Seconds int64

	// Withdraw asks the members to end the fence, unless the other generation was quicker.
	Withdraw bool
}

// Reload is a change of the Coordination.
type Reload struct {
	Before, After string
	Server        Server

	// Set are parameters of spec.config that took effect at once before this pass.
	Set []string

	// OwnMemory reports that spec.resources sets the memory, and no plan does. HugePages reports that members get others.
	OwnMemory, HugePages bool
}

// Pooler is what the configuration of poolers follows from.
type Pooler struct {
	// Host of the leader, or of the standbys for poolers of Readers.
	Host    string
	Readers bool

	// Databases that clients connect to.
	Databases []string

	Mode v1alpha1.PoolerMode

	// PoolSize is the number of connections to the server of each login in each database. MaxClients is the number of
	// clients' connections.
	PoolSize, MaxClients int32

	// Limits are the numbers of connections to the server in databases whose logins take turns.
	Limits map[string]int32

	// ServerAuthority reports that the server's certificate and the members' certificates have different authorities.
	ServerAuthority bool
}

// Connection of a consumer.
type Connection struct {
	Type                 string
	Options, JDBCOptions map[string]credentialsv1alpha1.OptionValue
}

// Severities of alerts.
const (
	// SeverityPage is for what a person has to look at now.
	SeverityPage = "critical"
	// SeverityTicket is for what a person has to look at in the next days.
	SeverityTicket = "warning"
)

// An Alert is an expression about a Database, and how long it has to hold. Its summary has verbs for name and namespace.
type Alert struct{ Name, Severity, Expr, For, Summary string }

// Watched is the Database that alerts are about.
type Watched struct {
	// Series selects the metrics of its members.
	Series string

	Replicas int32

	// LagSeconds that a standby may be behind.
	LagSeconds int

	// Standby reports that no member takes writes, because the Database is a standby of another one.
	Standby bool
}

// Alerts on the metrics of an engine, by what they are about.
type Alerts struct{ Leader, Server, Standbys []Alert }
