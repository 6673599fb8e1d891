// SPDX-License-Identifier: Apache-2.0

package flinkjob

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

// collectTimeout is how long the cache may take to list FlinkJobs.
const collectTimeout = 5 * time.Second

// Counts of streams as metrics. What is gone leaves no series behind, because they are read at each scrape.
type counts struct {
	kube client.Reader

	phase, checkpoint, fault, savepoint, restarts, blocked *prometheus.Desc
}

func newCounts(kube client.Reader) *counts {
	desc := func(name, help string, more ...string) *prometheus.Desc {
		return prometheus.NewDesc("capstan_stream_"+name, help, append([]string{"pipeline_namespace", "pipeline"}, more...), nil)
	}
	return &counts{
		kube:  kube,
		phase: desc("phase", "The phase that a stream with Flink is in, as 1.", "phase"),
		checkpoint: desc("last_checkpoint_timestamp_seconds",
			"When the newest checkpoint of a stream became complete, in seconds since 1970, as of the status of its FlinkJob."),
		fault:     desc("checkpoint_failed", "Whether the last checkpoint of a stream failed."),
		savepoint: desc("savepoint_failed", "Whether the last stop of a stream took no savepoint."),
		restarts:  desc("restarts", "How often the revision of a stream restarted."),
		blocked:   desc("pods_blocked", "What blocks pods of a stream, as 1.", "reason"),
	}
}

// Describe the metrics.
func (c *counts) Describe(into chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.phase, c.checkpoint, c.fault, c.savepoint, c.restarts, c.blocked} {
		into <- d
	}
}

// Collect the metrics from the cache. While it cannot be read there are none.
func (c *counts) Collect(into chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), collectTimeout)
	defer cancel()
	l := &v1alpha1.FlinkJobList{}
	if err := c.kube.List(ctx, l, client.UnsafeDisableDeepCopy); err != nil {
		return
	}
	seen := map[[2]string]bool{}
	for i := range l.Items {
		// Two FlinkJobs of one Pipeline would be the same series twice, and spoil all others.
		of := [2]string{l.Items[i].GetNamespace(), l.Items[i].Spec.ForProvider.Pipeline}
		if seen[of] {
			continue
		}
		seen[of] = true
		c.collect(into, of, &l.Items[i].Status.AtProvider)
	}
}

func (c *counts) collect(into chan<- prometheus.Metric, of [2]string, at *v1alpha1.FlinkJobObservation) {
	gauge := func(d *prometheus.Desc, v float64, more ...string) {
		into <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, append(of[:2:2], more...)...)
	}
	yes := func(is bool) float64 {
		if is {
			return 1
		}
		return 0
	}
	if at.Pods != nil {
		gauge(c.blocked, 1, at.Pods.Reason)
	}
	if at.Phase == "" {
		return // No companion has answered yet.
	}
	gauge(c.phase, 1, at.Phase)
	gauge(c.fault, yes(at.CheckpointFault != ""))
	gauge(c.savepoint, yes(at.SavepointError != ""))
	gauge(c.restarts, float64(at.Restarts))
	if at.Checkpoint != nil {
		gauge(c.checkpoint, float64(at.Checkpoint.At.Unix()))
	}
}
