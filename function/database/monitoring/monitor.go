// SPDX-License-Identifier: Apache-2.0

// Package monitoring composes what Prometheus scrapes, and the alerts.
package monitoring

import (
	"regexp"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/names"
	"github.com/capstan-dev/capstan/function/database/objects"
	"github.com/capstan-dev/capstan/function/scrape"
)

// Labels of the series of a Database.
const (
	SeriesDatabase = "database"
	seriesMember   = "member"
)

// Monitor makes Prometheus scrape the exporters of the pods, and labels their series with Database and member. The label database
// of the exporter is a database in the server, and becomes datname.
func Monitor(d *compose.Draft, s *facts.Cluster) {
	Scrape(d, s, names.Monitor, names.SuffixOfMembers, map[string]string{observev1alpha1.LabelDatabase: s.Name},
		append([]monitoringv1.RelabelConfig{
			scrape.Label("capstan_dev_database", SeriesDatabase), scrape.Label("capstan_dev_member", seriesMember),
		}, relabelled(&s.Names)...)...)
}

// Scrape the port metrics of the pods of a Service with some labels, if the Database exports metrics.
func Scrape(d *compose.Draft, s *facts.Cluster, resource, suffix string, of map[string]string, relabel ...monitoringv1.RelabelConfig) {
	if !s.Exports() {
		d.Remove(resource)
		return
	}
	if s.Kinds[names.ServiceMonitorGVK] != compose.Available {
		return
	}
	d.Offer(resource, objects.Manifest(names.ServiceMonitorGVK, s.Metadata(s.Called(suffix)), monitoringv1.ServiceMonitorSpec{
		Selector:  metav1.LabelSelector{MatchLabels: of},
		Endpoints: []monitoringv1.Endpoint{{Port: names.PortMetrics, RelabelConfigs: relabel}},
	}))
}

// relabelled series: only series of the generation that clients are switched to have the name of the Database, so that alerts do
// not take the leader of another generation for a second one.
func relabelled(s *names.Names) []monitoringv1.RelabelConfig {
	if s.Generation <= 1 {
		return nil
	}
	rename := func(from, to string) monitoringv1.RelabelConfig {
		return monitoringv1.RelabelConfig{
			SourceLabels: []monitoringv1.LabelName{SeriesDatabase}, Regex: regexp.QuoteMeta(from), TargetLabel: SeriesDatabase, Replacement: &to,
		}
	}
	return []monitoringv1.RelabelConfig{rename(s.Name, s.Name+".g1"), rename(s.Base(), s.Name)}
}
