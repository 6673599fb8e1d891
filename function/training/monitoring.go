// SPDX-License-Identifier: Apache-2.0

package training

import (
	"strconv"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/jobpod"
	"github.com/capstan-dev/capstan/function/training/names"
)

// PodMonitorGVK is the optional kind of the Prometheus Operator that scrapes pods without a Service.
var PodMonitorGVK = monitoringv1.SchemeGroupVersion.WithKind(monitoringv1.PodMonitorsKind)

// Labels of series of the program. The value of the last is the index of the pod within its run, which Kubernetes has as a label.
const (
	seriesTraining = "training"
	seriesRun      = "run"
	seriesWorker   = "worker"

	// seriesEndpoint is the Prometheus Operator's: without this value it would be the port of the state.
	seriesEndpoint    = "endpoint"
	endpointOfProgram = "metrics"

	// seriesOtherNamespace has the namespace in series of the provider. Alerts believe it.
	seriesOtherNamespace = "training_namespace"
)

// monitor lets Prometheus scrape the state of the run, and the program's own metrics where they have a port. Without the Prometheus
// Operator there is none.
//
// The port of the program is not in the pod template, because a run cannot change it: a target is found by the port of the state, and its
// address then gets the other one. The series of the state have the labels training and run already.
//
// Series of the provider have names of Capstan and a label for the namespace, by which alerts name others' Trainings. What a tenant's pod
// serves cannot be taken for them.
func monitor(d *compose.Draft, p *pass) {
	m := p.spec.Metrics
	if m == nil || !p.available(PodMonitorGVK, names.Monitor) {
		return
	}
	endpoints := []monitoringv1.PodMetricsEndpoint{{
		Port: new(jobpod.PortState),
		Path: crew.MetricsPath,
		MetricRelabelConfigs: []monitoringv1.RelabelConfig{
			{SourceLabels: []monitoringv1.LabelName{"__name__"}, Regex: "capstan_training_.+", Action: "keep"},
			{Regex: seriesOtherNamespace, Action: "labeldrop"},
		},
	}}
	if m.Port != nil {
		endpoints = append(endpoints, monitoringv1.PodMetricsEndpoint{
			Port: new(jobpod.PortState),
			Path: m.ServedAt(),
			MetricRelabelConfigs: []monitoringv1.RelabelConfig{
				{SourceLabels: []monitoringv1.LabelName{"__name__"}, Regex: "capstan[_:].+", Action: "drop"},
			},
			RelabelConfigs: []monitoringv1.RelabelConfig{
				{SourceLabels: []monitoringv1.LabelName{"__address__"}, Regex: `(.+):\d+`, TargetLabel: "__address__", Replacement: new("$1:" + strconv.Itoa(int(*m.Port)))},
				{TargetLabel: seriesEndpoint, Replacement: new(endpointOfProgram)},
				label("capstan_dev_training", seriesTraining),
				label("capstan_dev_run", seriesRun),
				label("batch_kubernetes_io_job_completion_index", seriesWorker),
			},
		})
	}
	d.Offer(names.Monitor, compose.NewManifest(PodMonitorGVK.GroupVersion().String(), PodMonitorGVK.Kind, p.Metadata(p.Crew()),
		monitoringv1.PodMonitorSpec{Selector: metav1.LabelSelector{MatchLabels: p.Pods()}, PodMetricsEndpoints: endpoints}))
}

// label of series with the value of a label of pods.
func label(pod, series string) monitoringv1.RelabelConfig {
	return monitoringv1.RelabelConfig{
		SourceLabels: []monitoringv1.LabelName{monitoringv1.LabelName("__meta_kubernetes_pod_label_" + pod)}, TargetLabel: series,
	}
}
