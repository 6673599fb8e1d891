// SPDX-License-Identifier: Apache-2.0

// Package mysql knows MySQL and Group Replication: what parameters there are, which follow from the size of a member, and the files
// that members start with. It knows nothing of Kubernetes objects.
package mysql

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	credentialsv1alpha1 "github.com/capstan-dev/capstan/apis/credentials/v1alpha1"
	"github.com/capstan-dev/capstan/apis/members/catalogue"
	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/database/engine"
	inputv1alpha1 "github.com/capstan-dev/capstan/input/v1alpha1"
)

// mySQL with Group Replication.
type mySQL struct{}

// New engine.
func New() engine.Engine { return mySQL{} }

func (mySQL) Traits() engine.Traits {
	return engine.Traits{
		Engine:           v1alpha1.EngineMySQL,
		App:              "mysql",
		Role:             "capstan:mysql-member",
		Majority:         true,
		MemoryParameter:  parameterBufferPool,
		BackupTool:       "Capstan",
		Backups:          backups,
		CoordinationPort: "members",
		PeersPort:        "peers",
		Unmanaged:        mysqlmember.ReasonAccountsFailed,
		User:             mysqlmember.UIDServer,
		Group:            mysqlmember.GIDServer,
		SocketDir:        mysqlmember.FolderSocket,
		Ports: engine.Ports{
			Client: mysqlmember.PortMySQL, Coordination: mysqlmember.PortMembers, Health: mysqlmember.PortHealth, Metrics: mysqlmember.PortMetrics,
			Peers: mysqlmember.PortPeers,
			// Data is copied where members replicate.
			Backup: mysqlmember.PortMembers, Repository: mysqlmember.PortRepository,
		},
		CommonNames: engine.CommonNames{
			Members: mysqlmember.MemberCommonName, Backup: mysqlmember.BackupCommonName,
			Repository: mysqlmember.RepositoryCommonName, RepositoryHost: mysqlmember.RepositoryHostCommonName,
		},
		Exporter: engine.Exporter{
			Command: []string{"prometheus-mysqld-exporter"},
			Args: []string{
				"--mysqld.address=unix://" + mysqlmember.FileSocket,
				"--mysqld.username=" + mysqlmember.AccountExporter,
				// What the alerts are about, beside what it collects anyway.
				"--collect.info_schema.innodb_metrics",
				"--collect.perf_schema.replication_applier_status_by_worker",
				"--collect.perf_schema.replication_group_member_stats",
				"--collect.perf_schema.replication_group_members",
			},
			// A user of its own, by which the server knows it. It shares the group, which may open the socket.
			User: mysqlmember.UIDExporter,
		},
		Access:       mysqlmember.AccountAccess,
		AccessEngine: string(v1alpha1.EngineMySQL),
		Verifier:     credentialsv1alpha1.FormatCachingSHA2,
		Imports:      &imports,
	}
}

func (mySQL) Catalogue() ([]inputv1alpha1.DatabaseVersion, error) {
	c, err := catalogue.MySQL()
	if err != nil {
		return nil, err
	}
	versions := make([]inputv1alpha1.DatabaseVersion, 0, len(c.Majors))
	for _, m := range c.Majors {
		versions = append(versions, inputv1alpha1.DatabaseVersion{Version: m.Major, Minor: m.Version})
	}
	return versions, nil
}

func (mySQL) Image(s inputv1alpha1.DatabaseSettings) string { return s.MySQLImage }

// firstSeries that members can run.
const firstSeries = "9.7"

func (e mySQL) CheckVersion(version string) string {
	if _, ok := series(version); !ok || e.CompareVersions(version, firstSeries) < 0 {
		return fmt.Sprintf("must be a series of at least %[1]s, for instance %[1]q", firstSeries)
	}
	return ""
}

// CompareVersions number by number: 9.7 is before 28.4, which is before 28.10.
func (mySQL) CompareVersions(a, b string) int {
	m, _ := series(a)
	n, _ := series(b)
	return cmp.Or(m[0]-n[0], m[1]-n[1])
}

// series of a version: its two numbers.
func series(version string) (numbers [2]int, ok bool) {
	first, second, found := strings.Cut(version, ".")
	m, err := strconv.Atoi(first)
	n, errSecond := strconv.Atoi(second)
	return [2]int{m, n}, found && err == nil && errSecond == nil
}

// schemas of the server itself, and the name of the account that databases are made with.
var schemas = []string{"mysql", "sys", "information_schema", "performance_schema", mysqlmember.AccountAccess}

func (mySQL) Reserved(database string) bool { return slices.Contains(schemas, database) }

func (mySQL) Connections(s engine.Server) int32 {
	if n, err := strconv.ParseInt(s.Config[parameterConnections], 10, 32); err == nil {
		return int32(n)
	}
	return s.Connections
}

// Libraries of extensions: there are none.
func (mySQL) Libraries(engine.Server) []string { return nil }

// Connection of a consumer. Clients of MySQL have no common name for an option, so that only the two most common are set.
func (mySQL) Connection(bool) engine.Connection {
	return engine.Connection{
		Type:        credentialsv1alpha1.TypeMySQL,
		Options:     map[string]credentialsv1alpha1.OptionValue{"ssl-mode": "VERIFY_IDENTITY"},
		JDBCOptions: map[string]credentialsv1alpha1.OptionValue{"sslMode": "VERIFY_IDENTITY"},
	}
}

// PoolerFiles of poolers: there are none.
func (mySQL) PoolerFiles(engine.Pooler) map[string]string { return nil }

func (mySQL) Filling(_, member string, v *observev1alpha1.VolumeReport) string {
	if v == nil {
		return ""
	}
	switch v.Fill {
	case observev1alpha1.FillWAL:
		return fmt.Sprintf("binary logs fill the volume of %s: with backups check the condition ArchiveHealthy, else lower %s in spec.config", member, parameterBinlogExpiry)
	case observev1alpha1.FillData:
		return "data fills it"
	default:
		return ""
	}
}

// Coordinated reads nothing: no generation of a later version copies another one, and no person can pause failover.
func (mySQL) Coordinated(string) engine.Coordinated { return engine.Coordinated{} }
