// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

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

// An Engine is PostgreSQL with Patroni, pgBackRest and PgBouncer.
type Engine struct{}

var _ engine.Engine = Engine{}

// Traits of PostgreSQL.
func (Engine) Traits() engine.Traits {
	return engine.Traits{
		Engine:           v1alpha1.EnginePostgres,
		App:              "postgres",
		PoolerApp:        "pgbouncer",
		Role:             "capstan:postgres-member",
		Resume:           "run patronictl resume in a member to end the pause",
		BackupTool:       "pgBackRest",
		BackupPort:       "pgbackrest",
		CoordinationPort: "patroni",
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

// preloaded are extensions of our image whose library has to be loaded at the start.
var preloaded = []string{extensionCron, "pg_stat_statements", "pgaudit"}

// Catalogue of our image.
func (Engine) Catalogue() ([]inputv1alpha1.DatabaseVersion, error) {
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

// firstMajor version that members can run.
const firstMajor = 15

// CheckVersion of a platform's own image.
func (Engine) CheckVersion(version string) string {
	if n, err := strconv.Atoi(version); err != nil || n < firstMajor {
		return fmt.Sprintf("must be a major version of at least %d, for instance \"17\"", firstMajor)
	}
	return ""
}

// CompareVersions of data. They are numbers: the schema takes nothing else.
func (Engine) CompareVersions(a, b string) int { return major(a) - major(b) }

func major(version string) int {
	n, _ := strconv.Atoi(version)
	return n
}

// CheckConfig finds parameters that a Database cannot set, and values that a member has no room for: a server that takes more
// than its memory is killed, and one with a full volume stops.
func (Engine) CheckConfig(s engine.Server) []check.Problem {
	var ps []check.Problem
	for _, name := range compose.SortedKeys(s.Config) {
		if remedy := Check(name, s.Config[name], major(s.Image.Version), s.Extensions); remedy != "" && s.Image.Version != "" {
			ps = append(ps, check.Invalid("spec.config."+name, s.Config[name], remedy))
		}
	}
	for _, l := range []struct{ name, what string }{
		{"shared_buffers", "memory"},
		{"maintenance_work_mem", "memory"},
		{"work_mem", "memory"},
		{"max_wal_size", "storage"},
		{"wal_keep_size", "storage"},
		{"max_slot_wal_keep_size", "storage"},
	} {
		whole := s.SpecMemory
		if l.what == "storage" {
			whole = s.SpecStorage
		}
		value, set := s.Config[l.name]
		if n, ok := Bytes(l.name, value); set && ok && n > whole.Value()/2 {
			ps = append(ps, check.Invalid("spec.config."+l.name, value, fmt.Sprintf("must be at most half the %s of a member, which is %s: lower it, or give members more %s", l.what, whole.String(), l.what)))
		}
	}
	return ps
}

// extensionCron lives in one database, which its parameters have to name.
const extensionCron = "pg_cron"

// CheckExtensions finds extensions that contradict the rest of the spec.
func (Engine) CheckExtensions(s engine.Server) []check.Problem {
	if slices.Contains(s.Extensions, extensionCron) && len(s.Databases) > 1 {
		return []check.Problem{check.Invalid("spec.extensions", extensionCron, "can be in one database of a server only: leave one entry in spec.databases, or remove the extension")}
	}
	return nil
}

// Reserved names of databases.
func (Engine) Reserved(database string) bool {
	return slices.Contains([]string{"postgres", "template0", "template1", "capstan"}, database) || strings.HasPrefix(database, "pg_")
}

// Connections that a member takes.
func (Engine) Connections(s engine.Server) int32 {
	if n, err := strconv.ParseInt(s.Config["max_connections"], 10, 32); err == nil {
		return int32(n)
	}
	return s.Connections
}

// Libraries of extensions that the image says have to be loaded.
func (Engine) Libraries(s engine.Server) []string { return Preloads(s.Extensions, s.Image.Preload) }

// Connection of a consumer.
func (Engine) Connection(readOnly bool) engine.Connection {
	c := engine.Connection{
		Type:        credentialsv1alpha1.TypePostgreSQL,
		Options:     map[string]credentialsv1alpha1.OptionValue{"sslmode": "verify-full"},
		JDBCOptions: map[string]credentialsv1alpha1.OptionValue{"sslmode": "verify-full"},
	}
	if readOnly {
		c.Options["target_session_attrs"] = "prefer-standby"
		c.JDBCOptions["targetServerType"] = "preferSecondary"
	}
	return c
}

// server with what PostgreSQL and Patroni make of its values.
func server(s engine.Server) Server {
	pace, ok := map[v1alpha1.FailoverProfile]Pace{v1alpha1.FailoverFast: Fast, v1alpha1.FailoverPatient: Patient}[s.Profile]
	if !ok {
		pace = Balanced
	}
	return Server{
		Server: s, Major: major(s.Version), MaxConnections: s.Connections,
		Preload: Preloads(s.Extensions, s.Image.Preload), CronDatabase: cronDatabase(s), Pace: pace,
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

// Files of a member: Patroni's file, and the file of the program that runs it.
func (Engine) Files(s engine.Server, m engine.Member) map[string]string {
	return map[string]string{pgmember.FilePatroni: must(server(s).Patroni()), pgmember.FileConfig: memberFile(m)}
}

// Coordination is the dynamic configuration of Patroni.
func (Engine) Coordination(s engine.Server) string { return must(server(s).Dynamic()) }

// Coordinated reads a dynamic configuration. People may write anything into it with patronictl.
func (Engine) Coordinated(text string) engine.Coordinated {
	var c struct {
		Pause  any                       `json:"pause"`
		Fence  string                    `json:"capstan_fence"`
		Slots  map[string]map[string]any `json:"slots"`
		Strict bool                      `json:"synchronous_mode_strict"`
	}
	if json.Unmarshal([]byte(text), &c) != nil {
		return engine.Coordinated{}
	}
	return engine.Coordinated{Paused: c.Pause == true, Fence: c.Fence, Followed: len(c.Slots[members.FollowerSlot]) > 0, Strict: c.Strict}
}

// PoolerFiles are PgBouncer's files.
func (Engine) PoolerFiles(p engine.Pooler) map[string]string {
	mode := PoolTransactions
	if p.Mode == v1alpha1.PoolSession {
		mode = PoolSessions
	}
	return map[string]string{
		pgmember.FilePooler: Pooler{
			Host: p.Host, Databases: slices.Sorted(slices.Values(p.Databases)), Mode: mode, PoolSize: p.PoolSize, MaxClients: p.MaxClients,
			Limits: p.Limits, ServerAuthority: p.ServerAuthority,
		}.Config(),
		pgmember.FilePoolerAccess: PoolerAccess,
	}
}

// Filling explains what fills the volume of a member, and what to do about it.
func (Engine) Filling(database, member string, v *observev1alpha1.VolumeReport) string {
	switch {
	case v == nil:
		return ""
	case v.Fill == observev1alpha1.FillSlot && strings.HasPrefix(v.Slot, strings.ReplaceAll(database, "-", "_")+"_"):
		return fmt.Sprintf("%s keeps write-ahead log for a standby that does not stream it (slot %q): check the condition HighlyAvailable", member, v.Slot)
	case v.Fill == observev1alpha1.FillSlot:
		return fmt.Sprintf("%s keeps write-ahead log for replication slot %q: start the slot's consumer, or drop the slot with "+
			"select pg_drop_replication_slot('%s')", member, v.Slot, v.Slot)
	case v.Fill == observev1alpha1.FillArchive:
		return fmt.Sprintf("%s cannot archive its write-ahead log: check the condition ArchiveHealthy for the cause", member)
	case v.Fill == observev1alpha1.FillWAL:
		return fmt.Sprintf("write-ahead log fills the volume of %s: lower wal_keep_size, max_wal_size or max_slot_wal_keep_size in spec.config, or drop replication slots", member)
	case v.Fill == observev1alpha1.FillData:
		return "data fills it"
	default:
		return ""
	}
}
