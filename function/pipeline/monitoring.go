// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/jobpod"
	"github.com/capstan-dev/capstan/function/pipeline/names"
	"github.com/capstan-dev/capstan/function/scrape"
)

// Labels of series of the program. The value of the second is the name of the Job, which every run has.
const (
	seriesPipeline = "pipeline"
	seriesRun      = "run"

	// metaIndex of a pod within its run.
	metaIndex = "__meta_kubernetes_pod_label_batch_kubernetes_io_job_completion_index"
)

// monitor lets Prometheus scrape the program's own metrics, in the pod of index 0: with Spark it has the driver. Without the Prometheus Operator
// there is none.
func monitor(d *compose.Draft, p *pass) {
	m := p.spec.Metrics
	if m == nil || m.Port == nil || !p.available(scrape.PodMonitorGVK, names.Monitor) {
		return
	}
	d.Offer(names.Monitor, compose.NewManifest(scrape.PodMonitorGVK.GroupVersion().String(), scrape.PodMonitorGVK.Kind, p.Metadata(p.Shared()),
		monitoringv1.PodMonitorSpec{
			Selector: metav1.LabelSelector{MatchLabels: p.Pods()},
			PodMetricsEndpoints: []monitoringv1.PodMetricsEndpoint{scrape.Program(jobpod.PortState, *m.Port, m.ServedAt(),
				monitoringv1.RelabelConfig{SourceLabels: []monitoringv1.LabelName{metaIndex}, Regex: "0", Action: "keep"},
				scrape.Label("capstan_dev_pipeline", seriesPipeline),
				scrape.Label("batch_kubernetes_io_job_name", seriesRun),
			)},
		}))
}
