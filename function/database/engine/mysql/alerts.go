// SPDX-License-Identifier: Apache-2.0

package mysql

import (
	"fmt"

	"github.com/capstan-dev/capstan/function/database/engine"
)

// behind are standbys that lag behind by more than some seconds. One applies old transactions: the series is zero while it has none. Or it receives
// less than another one, while that applies new ones: such a standby may have nothing to apply. A member that was the leader applies nothing until
// the next transaction.
func behind(of string, seconds int) string {
	const series = "mysql_perf_schema_%s_transaction_original_commit_timestamp_seconds{%s,channel_name=\"group_replication_applier\"}"
	applying, last := fmt.Sprintf(series, "applying", of), fmt.Sprintf(series, "last_applied", of)
	standbys := fmt.Sprintf("max by (member) (%s and on (member) mysql_global_variables_super_read_only{%s} == 1)", last, of)
	return fmt.Sprintf("max by (member) (time() - (%[1]s > 0)) > %[4]d or (scalar(max(%[2]s)) - %[3]s > %[4]d and on () time() - max(%[2]s) < 60)", applying, last, standbys, seconds)
}

// Alerts on the series of mysqld_exporter.
func (mySQL) Alerts(w engine.Watched) engine.Alerts {
	of := w.Series
	// A series of a member that is gone lasts for five minutes: only series that are scraped now count. A member that the group has
	// left takes no session of the exporter.
	leaders := fmt.Sprintf("count((mysql_global_variables_super_read_only{%s} == 0) and on (member) (mysql_up{%s} == 1))", of, of)
	a := engine.Alerts{
		Leader: []engine.Alert{
			{
				Name: "DatabaseHasNoLeader", Severity: engine.SeverityPage, For: "2m",
				Expr:    fmt.Sprintf("absent(%s)", leaders),
				Summary: "Database %s in namespace %s has no leader: no member takes writes.",
			},
			{
				Name: "DatabaseHasTwoLeaders", Severity: engine.SeverityPage, For: "2m",
				Expr:    leaders + " > 1",
				Summary: "Two members of Database %s in namespace %s report that they are the leader.",
			},
		},
		Server: []engine.Alert{
			{
				Name: "DatabaseConnectionsNearlyUsedUp", Severity: engine.SeverityTicket, For: "5m",
				Expr:    fmt.Sprintf("max by (member) (mysql_global_status_threads_connected{%s}) / on (member) max by (member) (mysql_global_variables_max_connections{%s}) > 0.85", of, of),
				Summary: "Clients use more than 85 %% of the connections of a member of Database %s in namespace %s: close connections, or raise spec.config.max_connections.",
			},
			{
				Name: "DatabaseTransactionTooLong", Severity: engine.SeverityTicket, For: "5m",
				Expr:    fmt.Sprintf("max by (member) (mysql_info_schema_innodb_metrics_transaction_trx_rseg_history_len{%s}) > 1e6", of),
				Summary: "A transaction in Database %s in namespace %s is open for long, so that more than a million changes cannot be purged: end it.",
			},
		},
	}
	if w.Replicas > 1 {
		a.Standbys = []engine.Alert{
			{
				Name: "DatabaseMemberMissing", Severity: engine.SeverityTicket, For: "10m",
				Expr:    fmt.Sprintf("(count(mysql_up{%s} == 1) or vector(0)) < %d", of, w.Replicas),
				Summary: "A member of Database %s in namespace %s is missing or down.",
			},
			{
				Name: "DatabaseFollowerBehind", Severity: engine.SeverityTicket, For: "10m",
				Expr:    behind(of, w.LagSeconds),
				Summary: "A standby of Database %s in namespace %s is far behind the leader.",
			},
		}
	}
	return a
}
