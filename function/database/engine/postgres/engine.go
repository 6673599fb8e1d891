// SPDX-License-Identifier: Apache-2.0

// Package postgres knows PostgreSQL and Patroni: what parameters there are, which follow from the size of a member, and the files
// that members start with. It knows nothing of Kubernetes objects.
package postgres

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	credentialsv1alpha1 "github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/catalogue"
	"github.com/capstan-dev/capstan/apis/members/pgmember"
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/engine"
	inputv1alpha1 "github.com/capstan-dev/capstan/input/v1alpha1"
)

// postgreSQL with Patroni, pgBackRest and PgBouncer.
type postgreSQL struct{}

// New engine.
func New() engine.Engine { return postgreSQL{} }

func (postgreSQL) Traits() engine.Traits {
	return engine.Traits{
		Engine:           v1alpha1.EnginePostgres,
		App:              "postgres",
		PoolerApp:        "pgbouncer",
		Role:             "capstan:postgres-member",
		Resume:           "run patronictl resume in a member to end the pause",
		MemoryParameter:  parameterBuffers,
		Log:              "write-ahead log",
		LogDir:           pgmember.FolderWAL,
		BackupTool:       "pgBackRest",
		BackupPort:       "pgbackrest",
		Backups:          backups,
		CoordinationPort: "patroni",
		Imports:          &imports,
		Unmanaged:        pgmember.ReasonRolesOrExtensionsFailed,
		User:             999,
		Group:            999,
		SocketDir:        pgmember.FolderSocket,
		Ports: engine.Ports{
			Client: pgmember.PortPostgres, Coordination: pgmember.PortPatroni, Health: pgmember.PortHealth, Metrics: pgmember.PortMetrics,
			Backup: pgmember.PortBackup, Repository: pgmember.PortRepository, Pause: pgmember.PortPause, PoolerMetrics: pgmember.PortPoolerMetrics,
		},
		CommonNames: engine.CommonNames{
			Members: pgmember.MemberCommonName, Backup: pgmember.BackupCommonName, Repository: pgmember.RepositoryCommonName, Pooler: pgmember.PoolerCommonName,
			// The host of a volume takes the backups.
			RepositoryHost: pgmember.BackupCommonName,
		},
		Exporter: engine.Exporter{
			Command: []string{"prometheus-postgres-exporter"},
			// How near transaction ids are to their end is reported only on request.
			Args: []string{"--collector.database_wraparound"},
			Env:  map[string]string{"DATA_SOURCE_NAME": "host=" + pgmember.FolderSocket + " user=" + pgmember.RoleExporter + " dbname=postgres sslmode=disable"},
			// A user of its own, so that the server distinguishes it from the superuser. It shares the group, which may
			// open the socket.
			User: 998,
		},
		Access:   pgmember.RoleAccess,
		Verifier: credentialsv1alpha1.FormatSCRAM,
	}
}

// preloaded are extensions of our image whose library has to be loaded at the start, and libraries that are no extensions.
var preloaded = []string{libraryExplain, extensionCron, "pg_stat_statements", extensionAudit}

func (postgreSQL) Catalogue() ([]inputv1alpha1.DatabaseVersion, error) {
	c, err := catalogue.Postgres()
	if err != nil {
		return nil, err
	}
	versions := make([]inputv1alpha1.DatabaseVersion, 0, len(c.Majors))
	for _, m := range c.Majors {
		versions = append(versions, inputv1alpha1.DatabaseVersion{
			Version: m.Major, Minor: m.Version, Extensions: compose.SortedKeys(m.Extensions), Preload: preloaded,
		})
	}
	return versions, nil
}

func (postgreSQL) Image(s inputv1alpha1.DatabaseSettings) string { return s.Image }

// firstMajor version that members can run.
const firstMajor = 15

func (postgreSQL) CheckVersion(version string) string {
	if n, err := strconv.Atoi(version); err != nil || n < firstMajor {
		return fmt.Sprintf("must be a major version of at least %d, for instance \"17\"", firstMajor)
	}
	return ""
}

// CompareVersions of data. They are numbers: the schema takes nothing else.
func (postgreSQL) CompareVersions(a, b string) int { return major(a) - major(b) }

func major(version string) int {
	n, _ := strconv.Atoi(version)
	return n
}

// CheckConfig finds parameters that a Database cannot set, and values that a member has no room for: a server that takes more
// than its memory is killed, and one with a full volume stops.
func (postgreSQL) CheckConfig(s engine.Server) []check.Problem {
	var ps []check.Problem
	for _, name := range compose.SortedKeys(s.Config) {
		if l := parameters[name].library; l != "" && s.Image.Version != "" && !slices.Contains(s.Image.Preload, l) {
			ps = append(ps, check.Invalid("spec.config."+name, s.Config[name], fmt.Sprintf(
				"needs the library %q: remove it, or ask the platform team for an image that has it (preload of database.images in the settings)", l)))
			continue
		}
		if remedy := Check(name, s.Config[name], major(s.Image.Version), s.Extensions); remedy != "" && s.Image.Version != "" {
			ps = append(ps, check.Invalid("spec.config."+name, s.Config[name], remedy))
		}
	}
	limited := func(what string, whole resource.Quantity, names ...string) {
		for _, name := range names {
			if n, ok := bytesOf(name, s.Config[name]); ok && n > whole.Value()/2 {
				ps = append(ps, check.Invalid("spec.config."+name, s.Config[name], fmt.Sprintf(
					"must be at most half the %[1]s of a member, which is %[2]s: lower it, or give members more %[1]s", what, whole.String())))
			}
		}
	}
	if s.HugePages.Amount == 0 {
		limited("memory", s.SpecMemory, parameterBuffers)
	}
	limited("memory", s.SpecMemory, "maintenance_work_mem", "work_mem")
	ps = append(ps, server(s).checkHugePages()...)
	log := []string{"max_wal_size", "min_wal_size", "wal_keep_size", "max_slot_wal_keep_size"}
	if s.SpecWALStorage.IsZero() {
		limited("storage", s.SpecStorage, log...)
	} else {
		limited("storage for the write-ahead log", s.SpecWALStorage, log...)
	}
	return ps
}

// parameterBuffers is the memory that the server keeps data in.
const parameterBuffers = "shared_buffers"

// extensionCron lives in one database, which its parameters have to name.
const extensionCron = "pg_cron"

// extensionAudit logs what statements do.
const extensionAudit = "pgaudit"

// libraryExplain logs the plans of slow statements. It is no extension.
const libraryExplain = "auto_explain"

// CheckExtensions finds extensions that contradict the rest of the spec.
func (postgreSQL) CheckExtensions(s engine.Server) []check.Problem {
	if slices.Contains(s.Extensions, extensionCron) && len(s.Databases) > 1 {
		return []check.Problem{check.Invalid("spec.extensions", extensionCron, "can be in one database of a server only: leave one entry in spec.databases, or remove the extension")}
	}
	return nil
}

func (postgreSQL) Reserved(database string) bool {
	return slices.Contains([]string{"postgres", "template0", "template1", "capstan"}, database) || strings.HasPrefix(database, "pg_")
}

func (postgreSQL) Connections(s engine.Server) int32 {
	if n, err := strconv.ParseInt(s.Config["max_connections"], 10, 32); err == nil {
		return int32(n)
	}
	return s.Connections
}

// leastMemory of a member, which the schema and the settings know as well.
var leastMemory = resource.MustParse("256Mi")

func (postgreSQL) LeastMemory(engine.Server) resource.Quantity { return leastMemory }

// Lacks nothing.
func (postgreSQL) Lacks(engine.Feature) string { return "" }

// Libraries of extensions that the image says have to be loaded.
func (postgreSQL) Libraries(s engine.Server) []string {
	libraries := slices.DeleteFunc(slices.Clone(s.Extensions), func(e string) bool { return !slices.Contains(s.Image.Preload, e) })
	slices.Sort(libraries)
	return slices.Compact(libraries)
}

func (postgreSQL) Connection(readOnly bool) engine.Connection {
	options := map[string]credentialsv1alpha1.OptionValue{"sslmode": "verify-full"}
	jdbc := maps.Clone(options)
	if readOnly {
		options["target_session_attrs"], jdbc["targetServerType"] = "prefer-standby", "preferSecondary"
	}
	return engine.Connection{Type: credentialsv1alpha1.TypePostgreSQL, Options: options, JDBCOptions: jdbc}
}

// A Server is what the configuration of a Database's members follows from, with what PostgreSQL makes of it.
type Server struct {
	engine.Server

	// Major version.
	Major int

	// MaxConnections of each member.
	MaxConnections int32

	// Preload names libraries that are loaded at the start, sorted.
	Preload []string

	// CronDatabase is the one database that pg_cron lives in, or empty without pg_cron.
	CronDatabase string

	// Pace of failover.
	Pace Pace
}

// Pace says how soon silence counts as a loss, in seconds.
type Pace struct {
	// TTL is the life of the leader lock, LoopWait the time between two runs of Patroni's loop, RetryTimeout the time an answer of
	// the API server may take. LoopWait and twice RetryTimeout must not exceed TTL, and Patroni takes no TTL below 20.
	TTL, LoopWait, RetryTimeout int

	// SenderTimeout ends a connection of replication that is silent.
	SenderTimeout int
}

// paces by how soon a standby becomes the leader.
var paces = map[v1alpha1.FailoverProfile]Pace{
	v1alpha1.FailoverFast:     {TTL: 20, LoopWait: 5, RetryTimeout: 5, SenderTimeout: 5},
	v1alpha1.FailoverBalanced: {TTL: 30, LoopWait: 10, RetryTimeout: 10, SenderTimeout: 10},
	v1alpha1.FailoverPatient:  {TTL: 90, LoopWait: 10, RetryTimeout: 35, SenderTimeout: 10},
}

// server with what PostgreSQL and Patroni make of its values.
func server(s engine.Server) Server {
	return Server{
		Server: s, Major: major(s.Version), MaxConnections: s.Connections, Preload: postgreSQL{}.Libraries(s), CronDatabase: cronDatabase(s),
		Pace: cmp.Or(paces[s.Profile], paces[v1alpha1.FailoverBalanced]),
	}
}

// cronDatabase is the database of the extension pg_cron, if it is requested.
func cronDatabase(s engine.Server) string {
	if !slices.Contains(s.Extensions, extensionCron) {
		return ""
	}
	return s.Databases[0]
}

// must is for what encodes plain data, which cannot fail.
func must(text string, err error) string {
	if err != nil {
		panic(err)
	}
	return text
}

// Files of a member: Patroni's file, what differs for members with a volume for the write-ahead log, and the file of the program that runs it.
func (postgreSQL) Files(s engine.Server, m engine.Member) map[string]string {
	files := map[string]string{pgmember.FilePatroni: must(server(s).Patroni()), pgmember.FileConfig: memberFile(m)}
	if s.WALStorage > 0 {
		files[pgmember.FilePatroniWAL] = must(server(s).PatroniWAL())
	}
	return files
}

// Coordination is the dynamic configuration of Patroni.
func (postgreSQL) Coordination(s engine.Server) string { return must(server(s).Dynamic()) }

// Coordinated reads a dynamic configuration. People may write anything into it with patronictl.
func (postgreSQL) Coordinated(text string) engine.Coordinated {
	var c struct {
		Pause    any                       `json:"pause"`
		Fence    string                    `json:"capstan_fence"`
		To       string                    `json:"capstan_fence_to"`
		Seconds  int64                     `json:"capstan_fence_seconds"`
		Withdraw bool                      `json:"capstan_fence_withdraw"`
		Slots    map[string]map[string]any `json:"slots"`
		Strict   bool                      `json:"synchronous_mode_strict"`
		// Standby is what a standby cluster follows.
		Standby map[string]any `json:"standby_cluster"`
	}
	if json.Unmarshal([]byte(text), &c) != nil {
		return engine.Coordinated{}
	}
	return engine.Coordinated{
		Paused: c.Pause == true, Fence: engine.Fence{ID: c.Fence, To: c.To, Seconds: c.Seconds, Withdraw: c.Withdraw},
		Followed: len(c.Slots[members.FollowerSlot]) > 0, Strict: c.Strict, Standby: len(c.Standby) > 0,
	}
}

func (postgreSQL) PoolerFiles(p engine.Pooler) map[string]string {
	return map[string]string{pgmember.FilePooler: Pooler(p).Config(), pgmember.FilePoolerAccess: PoolerAccess}
}

func (postgreSQL) Filling(database, member string, v *observev1alpha1.VolumeReport) string {
	if v == nil {
		return ""
	}
	switch v.Fill {
	case observev1alpha1.FillSlot:
		if strings.HasPrefix(v.Slot, strings.ReplaceAll(database, "-", "_")+"_") {
			return fmt.Sprintf("%s keeps write-ahead log for a standby that does not stream it (slot %q): check the condition HighlyAvailable", member, v.Slot)
		}
		return fmt.Sprintf("%s keeps write-ahead log for replication slot %q: start the slot's consumer, or drop the slot with "+
			"select pg_drop_replication_slot('%s')", member, v.Slot, v.Slot)
	case observev1alpha1.FillArchive:
		return member + " cannot archive its write-ahead log: check the condition ArchiveHealthy for the cause"
	case observev1alpha1.FillWAL:
		return fmt.Sprintf("write-ahead log fills the volume of %s: lower wal_keep_size, max_wal_size or max_slot_wal_keep_size in spec.config, or drop replication slots", member)
	case observev1alpha1.FillData:
		return "data fills it"
	default:
		return ""
	}
}
