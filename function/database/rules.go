// SPDX-License-Identifier: Apache-2.0

package database

import (
	"fmt"
	"slices"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/engine"
)

// portMetrics is the name of the exporter's port.
const portMetrics = "metrics"

// rules raise alerts for what the conditions of a Database cannot tell, because nobody looks at them at night.
func rules(d *compose.Draft, s *cluster) {
	// Nobody is woken up for members that are stopped on purpose.
	if !s.exports() || s.asleep() {
		d.Remove(nameRules)
		return
	}
	if s.Kinds[PrometheusRuleGVK] != compose.Available {
		return
	}
	d.Offer(nameRules, compose.NewManifest(PrometheusRuleGVK.GroupVersion().String(), PrometheusRuleGVK.Kind, s.metadata(s.called(suffixOfMembers)),
		monitoringv1.PrometheusRuleSpec{
			Groups: []monitoringv1.RuleGroup{{Name: "capstan-database-" + s.name, Rules: s.alerts()}},
		}))
}

func (s *cluster) alerts() []monitoringv1.Rule {
	of := fmt.Sprintf("namespace=%q,database=%q", s.namespace, s.name)
	full := fmt.Sprintf(`max by (persistentvolumeclaim) (1 - kubelet_volume_stats_available_bytes{%[1]s} / kubelet_volume_stats_capacity_bytes{%[1]s})`,
		fmt.Sprintf(`namespace=%q,persistentvolumeclaim=~"data-%s[a-i]-0"`, s.namespace, s.memberPrefix()))
	own := s.engine.Alerts(engine.Watched{Series: of, Replicas: s.spec.Replicas, LagSeconds: s.lagBound()})
	volumes := []engine.Alert{
		{
			Name: "DatabaseVolumeNearlyFull", Severity: engine.SeverityTicket, For: "10m",
			Expr:    full + " > 0.85",
			Summary: "A volume of Database %s of namespace %s is over 85 %% full.",
		},
		{
			Name: "DatabaseVolumeFull", Severity: engine.SeverityPage, For: "2m",
			Expr:    full + " > 0.95",
			Summary: "A volume of Database %s of namespace %s is over 95 %% full, and the server is about to stop.",
		},
	}
	alerts := slices.Concat(own.Leader, volumes, own.Server, s.poolerAlerts(of), s.backupAlerts(own.Archive), own.Standbys)
	rules := make([]monitoringv1.Rule, 0, len(alerts))
	for _, a := range alerts {
		rules = append(rules, monitoringv1.Rule{
			Alert:  a.Name,
			Expr:   intstr.FromString(a.Expr),
			For:    new(monitoringv1.Duration(a.For)),
			Labels: map[string]string{"severity": a.Severity, "namespace": s.namespace, seriesDatabase: s.name},
			Annotations: map[string]string{
				"summary":     fmt.Sprintf(a.Summary, s.name, s.namespace),
				"description": fmt.Sprintf("kubectl -n %s describe database %s tells more.", s.namespace, s.name),
			},
		})
	}
	return rules
}

// lagBound in seconds. Where commits wait for followers, one that is behind matters sooner.
func (s *cluster) lagBound() int {
	if s.spec.Availability.Durability == v1alpha1.DurabilityAsynchronous {
		return 300
	}
	return 60
}
