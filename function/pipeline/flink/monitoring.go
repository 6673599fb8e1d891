// SPDX-License-Identifier: Apache-2.0

package flink

import (
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-dev/capstan/apis/flink"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/pipeline/flink/names"
	"github.com/capstan-dev/capstan/function/pipeline/flink/pods"
	"github.com/capstan-dev/capstan/function/scrape"
)

// Labels of series.
const (
	seriesPipeline = "pipeline"
	seriesRevision = "revision"
	seriesRole     = "role"

	// seriesOtherNamespace has the namespace in series of the provider. Alerts believe it.
	seriesOtherNamespace = "pipeline_namespace"
)

// monitor lets Prometheus scrape what the companion of the JobManager knows of the stream, and Flink's own metrics in every pod where they have
// a port. Without the Prometheus Operator there is none.
func monitor(d *compose.Draft, p *pass) {
	m := p.spec.Metrics
	if m == nil || p.Kinds[scrape.PodMonitorGVK] != compose.Available && p.Observed[names.Monitor] == nil {
		return
	}
	labels := []monitoringv1.RelabelConfig{
		scrape.Label("capstan_dev_pipeline", seriesPipeline),
		scrape.Label("capstan_dev_stream_revision", seriesRevision),
	}
	endpoints := []monitoringv1.PodMetricsEndpoint{scrape.State(pods.PortState, flink.MetricsPath, "capstan_stream_", seriesOtherNamespace, labels...)}
	if m.Port != nil {
		endpoints = append(endpoints, scrape.AnyProgram(*m.Port, m.ServedAt(), append(labels, scrape.Label("capstan_dev_stream_role", seriesRole))...))
	}
	d.Offer(names.Monitor, compose.NewManifest(scrape.PodMonitorGVK.GroupVersion().String(), scrape.PodMonitorGVK.Kind, p.Metadata(p.Flink()),
		monitoringv1.PodMonitorSpec{Selector: metav1.LabelSelector{MatchLabels: p.Pods()}, PodMetricsEndpoints: endpoints}))
}
