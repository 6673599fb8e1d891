// SPDX-License-Identifier: Apache-2.0

package jobhistory

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/modelserver"
)

// collectTimeout is how long the cache may take to list JobHistories.
const collectTimeout = 5 * time.Second

// Counts of Pipelines as metrics. What is gone leaves no series behind, because they are read at each scrape.
type counts struct {
	kube client.Reader

	phase, blocked, success *prometheus.Desc
}

func newCounts(kube client.Reader) *counts {
	of := []string{modelserver.LabelPipelineNamespace, modelserver.LabelPipeline}
	desc := func(name, help string, more ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, append(of[:2:2], more...), nil)
	}
	return &counts{
		kube:    kube,
		phase:   desc(modelserver.MetricPipelinePhase, "The phase of the newest run of a Pipeline, as 1.", modelserver.LabelPhase),
		blocked: desc(modelserver.MetricPipelineBlocked, "What blocks pods of a Pipeline, as 1.", modelserver.LabelReason),
		success: desc("capstan_pipeline_last_success_timestamp_seconds",
			"When the newest run of a Pipeline that succeeded ended, in seconds since 1970, as long as its Job exists."),
	}
}

// Describe the metrics.
func (c *counts) Describe(into chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.phase, c.blocked, c.success} {
		into <- d
	}
}

// Collect the metrics from the cache. While it cannot be read there are none.
func (c *counts) Collect(into chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), collectTimeout)
	defer cancel()
	l := &v1alpha1.JobHistoryList{}
	if err := c.kube.List(ctx, l, client.UnsafeDisableDeepCopy); err != nil {
		return
	}
	seen := map[[2]string]bool{}
	for i := range l.Items {
		// Two JobHistories of one Pipeline would be the same series twice, and spoil all others.
		of := [2]string{l.Items[i].GetNamespace(), l.Items[i].Spec.ForProvider.Pipeline}
		if seen[of] {
			continue
		}
		seen[of] = true
		c.collect(into, of, &l.Items[i].Status.AtProvider)
	}
}

func (c *counts) collect(into chan<- prometheus.Metric, of [2]string, at *v1alpha1.JobHistoryObservation) {
	gauge := func(d *prometheus.Desc, v float64, more ...string) {
		into <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, append(of[:2:2], more...)...)
	}
	if at.Pods != nil {
		gauge(c.blocked, 1, at.Pods.Reason)
	}
	for i, j := range at.Jobs {
		if i == 0 {
			gauge(c.phase, 1, j.Phase)
		}
		if j.Phase == phaseSucceeded && j.Ended != nil {
			gauge(c.success, float64(j.Ended.Unix()))
			break
		}
	}
}
