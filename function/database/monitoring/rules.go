// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"fmt"
	"slices"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/engine"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/names"
	"github.com/capstan-dev/capstan/function/database/objects"
	"github.com/capstan-dev/capstan/internal/runbook"
)

// Rules raise alerts, because no person watches conditions at night.
func Rules(d *compose.Draft, s *facts.Cluster) {
	// Members that are stopped on purpose must wake up no one.
	if !s.Exports() || s.Asleep() {
		d.Remove(names.Rules)
		return
	}
	if s.Kinds[names.PrometheusRuleGVK] != compose.Available {
		return
	}
	d.Offer(names.Rules, objects.Manifest(names.PrometheusRuleGVK, s.Metadata(s.Called(names.SuffixOfMembers)),
		monitoringv1.PrometheusRuleSpec{
			Groups: []monitoringv1.RuleGroup{{Name: "capstan-database-" + s.Name, Rules: alerts(s)}},
		}))
}

func alerts(s *facts.Cluster) []monitoringv1.Rule {
	of := fmt.Sprintf("namespace=%q,database=%q", s.Namespace, s.Name)
	full := func(volume string) string {
		return fmt.Sprintf(`max by (persistentvolumeclaim) (1 - kubelet_volume_stats_available_bytes{%[1]s} / kubelet_volume_stats_capacity_bytes{%[1]s})`,
			fmt.Sprintf(`namespace=%q,persistentvolumeclaim=~"%s-%s[a-j]-0"`, s.Namespace, volume, s.MemberPrefix()))
	}
	own := s.Engine.Alerts(engine.Watched{Series: of, Replicas: s.Spec.Replicas, LagSeconds: lagBound(s), Standby: s.Standby()})
	volumes := []engine.Alert{
		{
			Name: "DatabaseVolumeNearlyFull", Severity: engine.SeverityTicket, For: "10m",
			Expr:    full(names.VolumeData) + " > 0.85",
			Summary: "A volume of Database %s in namespace %s is over 85 %% full: raise spec.storage, or delete data.",
		},
		{
			Name: "DatabaseVolumeFull", Severity: engine.SeverityPage, For: "2m",
			Expr:    full(names.VolumeData) + " > 0.95",
			Summary: "A volume of Database %s in namespace %s is over 95 %% full, and the server is about to stop: raise spec.storage now.",
		},
	}
	if s.Spec.WALStorage != nil {
		volumes = append(volumes, engine.Alert{
			Name: "DatabaseWALVolumeNearlyFull", Severity: engine.SeverityTicket, For: "10m",
			Expr:    full(names.VolumeWAL) + " > 0.85",
			Summary: "A volume for the " + s.Traits.Log + " of Database %s in namespace %s is over 85 %% full: the condition StorageHealthy names what keeps the log.",
		}, engine.Alert{
			Name: "DatabaseWALVolumeFull", Severity: engine.SeverityPage, For: "2m",
			Expr:    full(names.VolumeWAL) + " > 0.95",
			Summary: "A volume for the " + s.Traits.Log + " of Database %s in namespace %s is over 95 %% full, and the server is about to stop: raise spec.walStorage now.",
		})
	}
	alerts := slices.Concat(own.Leader, volumes, own.Server, poolerAlerts(s, of), queryAlerts(s, of), backupAlerts(s), standbyAlerts(s), importAlerts(s), own.Standbys)
	rules := make([]monitoringv1.Rule, 0, len(alerts))
	for _, a := range alerts {
		rules = append(rules, monitoringv1.Rule{
			Alert:  a.Name,
			Expr:   intstr.FromString(a.Expr),
			For:    new(monitoringv1.Duration(a.For)),
			Labels: map[string]string{"severity": a.Severity, "namespace": s.Namespace, SeriesDatabase: s.Name},
			Annotations: map[string]string{
				"summary":          fmt.Sprintf(a.Summary, s.Name, s.Namespace),
				"description":      fmt.Sprintf("For details run: kubectl -n %s describe database %s", s.Namespace, s.Name),
				runbook.Annotation: runbook.URL(s.Settings.Alerts.RunbookPage, a.Name),
			},
		})
	}
	return rules
}

// lagBound in seconds. Where commits wait for standbys, a standby that is behind matters sooner.
func lagBound(s *facts.Cluster) int {
	if s.Spec.Availability.Durability == v1alpha1.DurabilityAsynchronous {
		return 300
	}
	return 60
}

// queryAlerts of a Database with queries of its own.
func queryAlerts(s *facts.Cluster, of string) []engine.Alert {
	if len(s.Spec.Monitoring.Queries) == 0 {
		return nil
	}
	return []engine.Alert{{
		Name: "DatabaseQueryFails", Severity: engine.SeverityTicket, For: "15m",
		Expr:    fmt.Sprintf("min by (query) (capstan_queries_up{%s}) == 0", of),
		Summary: "A query for metrics of Database %s in namespace %s fails: see its condition QueriesHealthy.",
	}}
}

// poolerAlerts of a Database with poolers. of selects the poolers' series.
func poolerAlerts(s *facts.Cluster, of string) []engine.Alert {
	if !s.Pooled() {
		return nil
	}
	return []engine.Alert{
		{
			Name: "DatabasePoolerClientsWait", Severity: engine.SeverityTicket, For: "5m",
			Expr:    fmt.Sprintf("max by (login) (capstan_pooler_longest_wait_seconds{%s}) > 5", of),
			Summary: "Clients of Database %s in namespace %s wait more than 5 s for a connection of its poolers: raise spec.pooler.poolSize, or end long transactions.",
		},
		{
			Name: "DatabasePoolerClientsNearlyUsedUp", Severity: engine.SeverityTicket, For: "5m",
			Expr:    fmt.Sprintf("max(sum by (pod) (capstan_pooler_clients{%s})) / %d > 0.85", of, *s.Spec.Pooler.MaxClients),
			Summary: "A pooler of Database %s in namespace %s has over 85 %% of the clients it can take: raise spec.pooler.maxClients or spec.pooler.replicas.",
		},
	}
}
