// SPDX-License-Identifier: Apache-2.0

package training

import (
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/jobpod"
	"github.com/capstan-dev/capstan/function/scrape"
	"github.com/capstan-dev/capstan/function/training/names"
)

// Labels of series of the program. The value of the last is the index of the pod within its run, which Kubernetes has as a label.
const (
	seriesTraining = "training"
	seriesRun      = "run"
	seriesWorker   = "worker"

	// seriesOtherNamespace has the namespace in series of the provider. Alerts believe it.
	seriesOtherNamespace = "training_namespace"
)

// monitor lets Prometheus scrape the state of the run, and the program's own metrics where they have a port. Without the Prometheus
// Operator there is none.
//
// The series of the state have the labels training and run already.
func monitor(d *compose.Draft, p *pass) {
	m := p.spec.Metrics
	if m == nil || !p.available(scrape.PodMonitorGVK, names.Monitor) {
		return
	}
	endpoints := []monitoringv1.PodMetricsEndpoint{scrape.State(jobpod.PortState, crew.MetricsPath, "capstan_training_", seriesOtherNamespace)}
	if m.Port != nil {
		endpoints = append(endpoints, scrape.Program(jobpod.PortState, *m.Port, m.ServedAt(),
			scrape.Label("capstan_dev_training", seriesTraining),
			scrape.Label("capstan_dev_run", seriesRun),
			scrape.Label("batch_kubernetes_io_job_completion_index", seriesWorker),
		))
	}
	d.Offer(names.Monitor, compose.NewManifest(scrape.PodMonitorGVK.GroupVersion().String(), scrape.PodMonitorGVK.Kind, p.Metadata(p.Crew()),
		monitoringv1.PodMonitorSpec{Selector: metav1.LabelSelector{MatchLabels: p.Pods()}, PodMetricsEndpoints: endpoints}))
}
