// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/encoding"
	"github.com/capstan-dev/capstan/function/database/engine"
)

// fixed are what every member of any size has. Several differ between series by default, so they are set although they are
// the default of one. The program of the member adds what has a path, an address, an id or a certificate in it, and the plugins.
var fixed = map[string]string{
	// Clients come with TLS, and members by a port of their own.
	"port":                         strconv.Itoa(mysqlmember.PortMySQL),
	"admin_port":                   strconv.Itoa(mysqlmember.PortMembers),
	"create_admin_listener_thread": "ON",
	"require_secure_transport":     "ON",
	"tls_version":                  "TLSv1.2,TLSv1.3",
	"skip_name_resolve":            "ON",
	"mysqlx":                       "OFF",
	"local_infile":                 "OFF",
	"secure_file_priv":             "NULL",

	// What a client sets with SET PERSIST ends with a restart, and only the group lets a member take writes.
	"persisted_globals_load": "OFF",
	"super_read_only":        "ON",
	// The name of a database is no pattern in a grant.
	"partial_revokes": "ON",

	"character_set_server":   "utf8mb4",
	"lower_case_table_names": "0",
	"default_time_zone":      utc,

	// A group replicates only tables of InnoDB with a primary key.
	"disabled_storage_engines": "MyISAM,BLACKHOLE,FEDERATED,ARCHIVE,MEMORY",
	"sql_require_primary_key":  "ON",

	// What was acknowledged is on the leader's disk. What a member received and did not execute is not thrown away at its start: if
	// the leader's volume is lost in the same outage, it is all there is.
	"sync_binlog":                    "1",
	"innodb_flush_log_at_trx_commit": "1",
	"relay_log_recovery":             "OFF",
	"gtid_mode":                      "ON",
	"enforce_gtid_consistency":       "ON",
	"log_bin":                        "binlog",
	"relay_log":                      "relay",
	"log_replica_updates":            "ON",
	// Members replicate rows, and consumers may make functions and triggers.
	"log_bin_trust_function_creators": "ON",
	"skip_replica_start":              "ON",
	"replica_parallel_workers":        "4",
	"replica_preserve_commit_order":   "ON",

	// By the node's memory it would be too large.
	"innodb_dedicated_server":    "OFF",
	"innodb_adaptive_hash_index": "OFF",
	parameterIO:                  "1000",
	parameterIOMax:               "2000",

	"group_replication_communication_stack":              "MYSQL",
	"group_replication_start_on_boot":                    "OFF",
	"group_replication_bootstrap_group":                  "OFF",
	"group_replication_single_primary_mode":              "ON",
	"group_replication_enforce_update_everywhere_checks": "OFF",
	"group_replication_paxos_single_leader":              "ON",
	"group_replication_consistency":                      "BEFORE_ON_PRIMARY_FAILOVER",
	"group_replication_exit_state_action":                "OFFLINE_MODE",
	"group_replication_autorejoin_tries":                 "3",
	"group_replication_transaction_size_limit":           "150000000",
	"group_replication_recovery_use_ssl":                 "ON",
	"group_replication_recovery_ssl_verify_server_cert":  "ON",
}

// Files of a member: the configuration of its server, and the file of the program that runs it.
func (mySQL) Files(s engine.Server, m engine.Member) map[string]string {
	return map[string]string{
		mysqlmember.FileServer: server(s),
		mysqlmember.FileConfig: encoding.JSON(mysqlmember.Config{
			Generation: m.Generation, Domain: m.Domain, Volumes: m.Volumes, Reinitialize: m.Reinitialize, Fence: m.Fence, Backup: backupFile(m.Backup),
			From: sourceFile(m.From), Begun: m.Begun, Replicators: m.Replicators, Import: m.Import.File(imports.TLS),
		}),
	}
}

// server is the configuration that all members start with. Parameters of the spec that take effect at once are not in it: members set
// them by the Coordination, and one that is removed there goes back to what is written here.
func server(s engine.Server) string {
	ps := base(s)
	if s.Pinned != nil {
		maps.Copy(ps, s.Pinned)
	} else {
		maps.Copy(ps, restarting(s))
	}
	var b strings.Builder
	b.WriteString("[mysqld]\n")
	for _, name := range compose.SortedKeys(ps) {
		fmt.Fprintf(&b, "%s=%s\n", name, ps[name])
	}
	return b.String()
}

// Recorded in a file of the member.
func (mySQL) Recorded(files map[string]string) engine.Recorded {
	var c mysqlmember.Config
	if json.Unmarshal([]byte(files[mysqlmember.FileConfig]), &c) != nil {
		return engine.Recorded{}
	}
	return engine.Recorded{Volumes: c.Volumes, Begun: c.Begun}
}

// Coordination is what members set while the server runs.
func (mySQL) Coordination(s engine.Server) string {
	return encoding.JSON(mysqlmember.Dynamic{Parameters: reloading(s)})
}
