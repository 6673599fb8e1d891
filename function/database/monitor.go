// SPDX-License-Identifier: Apache-2.0

package database

import (
	"regexp"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

// Kinds of the Prometheus Operator.
var (
	ServiceMonitorGVK = monitoringv1.SchemeGroupVersion.WithKind(monitoringv1.ServiceMonitorsKind)
	PrometheusRuleGVK = monitoringv1.SchemeGroupVersion.WithKind(monitoringv1.PrometheusRuleKind)
)

// Labels of the series of a Database.
const (
	seriesDatabase = "database"
	seriesMember   = "member"
)

// monitor lets Prometheus scrape the exporters by way of the pods, and labels what it finds there with Database and member. The
// label database of the exporter is a database in the server, and becomes datname.
func monitor(d *compose.Draft, s *cluster) {
	if !s.exports() {
		d.Remove(nameMonitor)
		return
	}
	if s.Kinds[ServiceMonitorGVK] != compose.Available {
		return
	}
	label := func(pod, series string) monitoringv1.RelabelConfig {
		return monitoringv1.RelabelConfig{
			SourceLabels: []monitoringv1.LabelName{monitoringv1.LabelName("__meta_kubernetes_pod_label_" + pod)},
			TargetLabel:  series,
		}
	}
	d.Offer(nameMonitor, compose.NewManifest(ServiceMonitorGVK.GroupVersion().String(), ServiceMonitorGVK.Kind, s.metadata(s.called(suffixOfMembers)),
		monitoringv1.ServiceMonitorSpec{
			Selector: metav1.LabelSelector{MatchLabels: map[string]string{observev1alpha1.LabelDatabase: s.name}},
			Endpoints: []monitoringv1.Endpoint{{
				Port: portMetrics,
				RelabelConfigs: append([]monitoringv1.RelabelConfig{
					label("capstan_dev_database", seriesDatabase),
					label("capstan_dev_member", seriesMember),
				}, s.relabelled()...),
			}},
		}))
}

// relabelled series: those of the generation that clients are switched to have the name of the Database, and those of another one
// have not, so that alerts do not take its leader for a second one.
func (s *names) relabelled() []monitoringv1.RelabelConfig {
	if s.generation <= 1 {
		return nil
	}
	rename := func(from, to string) monitoringv1.RelabelConfig {
		return monitoringv1.RelabelConfig{
			SourceLabels: []monitoringv1.LabelName{seriesDatabase}, Regex: regexp.QuoteMeta(from), TargetLabel: seriesDatabase, Replacement: &to,
		}
	}
	return []monitoringv1.RelabelConfig{rename(s.name, s.name+".g1"), rename(s.base(), s.name)}
}
