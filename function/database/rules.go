// SPDX-License-Identifier: Apache-2.0

package database

import (
	"fmt"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

// portMetrics is the name of the exporter's port.
const portMetrics = "metrics"

// Severities of alerts.
const (
	// severityPage is for what somebody has to look at now.
	severityPage = "critical"
	// severityTicket is for what somebody has to look at in the next days.
	severityTicket = "warning"
)

// rules raise alerts for what the conditions of a Database cannot tell, because
// nobody looks at them at night.
func rules(s *state) error {
	// Nobody is woken up for members that are stopped on purpose.
	if !s.exports() || s.asleep() {
		s.letGo(nameRules)
		return nil
	}

	if s.Kinds[PrometheusRuleGVK] != compose.Available {
		return nil
	}

	s.offer(nameRules, compose.NewManifest(PrometheusRuleGVK.GroupVersion().String(), PrometheusRuleGVK.Kind, s.metadata(s.called(suffixOfMembers)),
		monitoringv1.PrometheusRuleSpec{
			Groups: []monitoringv1.RuleGroup{{Name: "capstan-database-" + s.name, Rules: s.alerts()}},
		}))

	return nil
}

// An alarm is one alert: an expression about this Database, and how long it has to
// hold.
type alarm struct {
	name, severity, expr, lasts, summary string
}

func (s *state) alerts() []monitoringv1.Rule {
	of := fmt.Sprintf("namespace=%q,database=%q", s.namespace, s.name)
	claims := fmt.Sprintf(`namespace=%q,persistentvolumeclaim=~"data-%s[a-i]-0"`, s.namespace, s.memberPrefix())

	// A series of a member that is gone lasts for five minutes: who leads is asked of
	// those that are scraped now.
	leaders := fmt.Sprintf("count((pg_replication_is_replica{%s} == 0) and on (member) (pg_up{%s} == 1))", of, of)

	alarms := []alarm{
		{
			"DatabaseHasNoLeader", severityPage, fmt.Sprintf("absent(%s)", leaders), "2m",
			"No member of Database %s of namespace %s takes writes.",
		},
		{
			"DatabaseHasTwoLeaders", severityPage, leaders + " > 1", "2m",
			"Two members of Database %s of namespace %s tell that they lead.",
		},
		{
			"DatabaseVolumeNearlyFull", severityTicket,
			fmt.Sprintf("max by (persistentvolumeclaim) (1 - kubelet_volume_stats_available_bytes{%s} / kubelet_volume_stats_capacity_bytes{%s}) > 0.85", claims, claims),
			"10m", "A volume of Database %s of namespace %s is over 85 %% full.",
		},
		{
			"DatabaseVolumeFull", severityPage,
			fmt.Sprintf("max by (persistentvolumeclaim) (1 - kubelet_volume_stats_available_bytes{%s} / kubelet_volume_stats_capacity_bytes{%s}) > 0.95", claims, claims),
			"2m", "A volume of Database %s of namespace %s is over 95 %% full, and the server is about to stop.",
		},
		{
			"DatabaseConnectionsNearlyUsedUp", severityTicket,
			fmt.Sprintf("sum by (member) (pg_stat_activity_count{%s}) / on (member) max by (member) (pg_settings_max_connections{%s}) > 0.85", of, of),
			"5m", "A member of Database %s of namespace %s has over 85 %% of its connections in use.",
		},
		{
			"DatabaseTransactionTooLong", severityTicket,
			fmt.Sprintf("max by (member, datname) (pg_stat_activity_max_tx_duration{%s,state!=\"idle\"}) > 3600", of), "5m",
			"A transaction in Database %s of namespace %s is open for more than an hour, and keeps vacuum from cleaning up.",
		},
		{
			"DatabaseTransactionIDsRunOut", severityPage,
			fmt.Sprintf("max by (member) (pg_database_wraparound_age_datfrozenxid_seconds{%s}) > 1e9", of), "15m",
			"Database %s of namespace %s has used half of its transaction ids since the last vacuum that froze: without one it will refuse writes.",
		},
	}

	alarms = append(alarms, s.poolerAlarms(of)...)

	alarms = append(alarms, s.backupAlarms(of)...)

	if s.spec.Replicas > 1 {
		alarms = append(alarms,
			alarm{
				"DatabaseMemberMissing", severityTicket, fmt.Sprintf("(count(pg_up{%s} == 1) or vector(0)) < %d", of, s.spec.Replicas), "10m",
				"A member of Database %s of namespace %s is away.",
			},
			alarm{
				"DatabaseFollowerBehind", severityTicket,
				fmt.Sprintf("max by (member) (pg_replication_lag_seconds{%s} and pg_replication_is_replica{%s} == 1) > %d", of, of, s.lagBound()), "10m",
				"A member of Database %s of namespace %s is far behind the leader.",
			})
	}

	rs := make([]monitoringv1.Rule, 0, len(alarms))
	for _, a := range alarms {
		rs = append(rs, monitoringv1.Rule{
			Alert:  a.name,
			Expr:   intstr.FromString(a.expr),
			For:    new(monitoringv1.Duration(a.lasts)),
			Labels: map[string]string{"severity": a.severity, "namespace": s.namespace, seriesDatabase: s.name},
			Annotations: map[string]string{
				"summary":     fmt.Sprintf(a.summary, s.name, s.namespace),
				"description": fmt.Sprintf("kubectl -n %s describe database %s tells more.", s.namespace, s.name),
			},
		})
	}

	return rs
}

// lagBound in seconds. Where commits wait for followers, one that is behind matters
// sooner.
func (s *state) lagBound() int {
	if s.spec.Availability.Durability == v1alpha1.DurabilityAsynchronous {
		return 300
	}

	return 60
}
