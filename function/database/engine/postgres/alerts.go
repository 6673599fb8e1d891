// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"fmt"
	"slices"

	"github.com/capstan-dev/capstan/function/database/engine"
)

// Alerts on the series of postgres_exporter.
func (postgreSQL) Alerts(w engine.Watched) engine.Alerts {
	of := w.Series
	// A series of a member that is gone lasts for five minutes: only series that are scraped now count.
	leaders := fmt.Sprintf("count((pg_replication_is_replica{%s} == 0) and on (member) (pg_up{%s} == 1))", of, of)
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
				Expr:    fmt.Sprintf("sum by (member) (pg_stat_activity_count{%s}) / on (member) max by (member) (pg_settings_max_connections{%s}) > 0.85", of, of),
				Summary: "Clients use more than 85 %% of the connections of a member of Database %s in namespace %s: close connections, or raise spec.config.max_connections.",
			},
			{
				Name: "DatabaseTransactionTooLong", Severity: engine.SeverityTicket, For: "5m",
				Expr:    fmt.Sprintf("max by (member, datname) (pg_stat_activity_max_tx_duration{%s,state!=\"idle\"}) > 3600", of),
				Summary: "A transaction in Database %s in namespace %s is open for more than an hour, so vacuum cannot remove old rows: end it.",
			},
			{
				Name: "DatabaseTransactionIDsRunOut", Severity: engine.SeverityPage, For: "15m",
				Expr:    fmt.Sprintf("max by (member) (pg_database_wraparound_age_datfrozenxid_seconds{%s}) > 1e9", of),
				Summary: "Database %s in namespace %s has used half of its transaction ids since the last VACUUM FREEZE: run one, or the server will refuse writes.",
			},
		},
	}
	if w.Replicas > 1 {
		a.Standbys = []engine.Alert{
			{
				Name: "DatabaseMemberMissing", Severity: engine.SeverityTicket, For: "10m",
				Expr:    fmt.Sprintf("(count(pg_up{%s} == 1) or vector(0)) < %d", of, w.Replicas),
				Summary: "A member of Database %s in namespace %s is missing or down.",
			},
			{
				Name: "DatabaseFollowerBehind", Severity: engine.SeverityTicket, For: "10m",
				Expr:    fmt.Sprintf("max by (member) (pg_replication_lag_seconds{%s} and pg_replication_is_replica{%s} == 1) > %d", of, of, w.LagSeconds),
				Summary: "A standby of Database %s in namespace %s is far behind the leader.",
			},
		}
	}
	if w.Standby {
		a.Leader, a.Standbys = nil, slices.DeleteFunc(a.Standbys, behindLeader)
	}
	return a
}

// behindLeader reports whether an alert is about what a standby has not replayed yet. The time of the last transaction of a standby cluster
// does not change while nothing is written to its primary.
func behindLeader(a engine.Alert) bool { return a.Name == "DatabaseFollowerBehind" }
