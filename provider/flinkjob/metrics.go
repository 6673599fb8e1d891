// SPDX-License-Identifier: Apache-2.0

package flinkjob

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/apis/flink"
	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/runner"
	"github.com/capstan-dev/capstan/provider/modelserver"
)

// collectTimeout is how long the cache may take to list FlinkJobs.
const collectTimeout = 5 * time.Second

// Counts of streams as metrics. What is gone leaves no series behind, because they are read at each scrape.
type counts struct {
	kube, pods client.Reader

	phase, checkpoint, interval, fault, savepoint, restarts, silent, blocked *prometheus.Desc
}

func newCounts(kube, pods client.Reader) *counts {
	desc := func(name, help string, more ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, append([]string{modelserver.LabelPipelineNamespace, modelserver.LabelPipeline}, more...), nil)
	}
	return &counts{
		kube:  kube,
		pods:  pods,
		phase: desc(modelserver.MetricStreamPhase, "The phase that a stream with Flink is in, as 1.", modelserver.LabelPhase),
		checkpoint: desc(modelserver.MetricStreamCheckpoint,
			"When the newest checkpoint of a stream became complete, in seconds since 1970, as of the status of its FlinkJob."),
		interval:  desc(modelserver.MetricStreamInterval, "The time between two checkpoints of a stream, as its JobManager has it."),
		fault:     desc(modelserver.MetricStreamFailed, "Whether the last checkpoint of a stream failed."),
		savepoint: desc("capstan_stream_savepoint_failed", "Whether the last stop of a stream took no savepoint."),
		restarts:  desc(modelserver.MetricStreamRestarts, "How often the revision of a stream restarted."),
		silent:    desc(modelserver.MetricStreamSilent, "Whether the JobManager of a stream runs and its companion does not answer."),
		blocked:   desc(modelserver.MetricStreamBlocked, "What blocks pods of a stream, as 1.", modelserver.LabelReason),
	}
}

// Describe the metrics.
func (c *counts) Describe(into chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.phase, c.checkpoint, c.interval, c.fault, c.savepoint, c.restarts, c.silent, c.blocked} {
		into <- d
	}
}

// Collect the metrics from the caches. While one cannot be read there are none of it.
func (c *counts) Collect(into chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), collectTimeout)
	defer cancel()
	c.intervals(ctx, into)
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
	gauge(c.silent, yes(at.Silent != ""))
	if at.Checkpoint != nil {
		gauge(c.checkpoint, float64(at.Checkpoint.At.Unix()))
	}
}

// intervals between checkpoints, by the plans of JobManagers. With two of one Pipeline, while one goes, the longest counts.
func (c *counts) intervals(ctx context.Context, into chan<- prometheus.Metric) {
	l := &corev1.PodList{}
	if err := c.pods.List(ctx, l, client.MatchingLabels{flink.LabelRole: flink.RoleJobManager}, client.UnsafeDisableDeepCopy); err != nil {
		return
	}
	longest := map[[2]string]int{}
	for i := range l.Items {
		p := &l.Items[i]
		plan, err := flink.ParsePlan([]byte(p.GetAnnotations()[runner.AnnotationPlan]))
		if err != nil {
			continue
		}
		of := [2]string{p.GetNamespace(), p.GetLabels()[runner.LabelPipeline]}
		longest[of] = max(longest[of], plan.CheckpointSeconds)
	}
	for of, seconds := range longest {
		into <- prometheus.MustNewConstMetric(c.interval, prometheus.GaugeValue, float64(seconds), of[:]...)
	}
}
