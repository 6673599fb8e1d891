// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/apis/crew"
	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/modelserver"
)

// collectTimeout is how long the cache may take to list Runs.
const collectTimeout = 5 * time.Second

// Counts of Trainings as metrics. What is gone leaves no series behind, because they are read at each scrape.
type counts struct {
	kube client.Reader

	phase, missing, stuck, silent, blocked, checkpoint, overdue *prometheus.Desc

	faults *prometheus.CounterVec
}

func newCounts(kube client.Reader) *counts {
	of := []string{modelserver.LabelTrainingNamespace, modelserver.LabelTraining}
	desc := func(name, help string, more ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, append(of[:2:2], more...), nil)
	}
	return &counts{
		kube:    kube,
		phase:   desc(modelserver.MetricTrainingPhase, "The phase that the run of a Training is in, as 1.", modelserver.LabelPhase),
		missing: desc(modelserver.MetricTrainingMissing, "Members of the crew of a Training that are missing."),
		stuck:   desc("capstan_training_attempts_without_progress", "Attempts in a row of a Training that ended without progress."),
		silent:  desc(modelserver.MetricTrainingSilent, "Whether the coordinator of a Training runs and does not answer."),
		blocked: desc(modelserver.MetricTrainingBlocked, "What blocks pods of a Training, as 1.", modelserver.LabelReason),
		checkpoint: desc("capstan_training_last_checkpoint_timestamp_seconds",
			"When the newest complete checkpoint of a Training became known, in seconds since 1970, as of the status of its Run."),
		overdue: desc(modelserver.MetricTrainingOverdue, "Whether ranks of a Training make steps and no checkpoint becomes complete for three times checkpoint.every."),
		faults: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "capstan_training_faults_total",
			Help: "Faults that ended attempts of Trainings, by namespace and class.",
		}, []string{modelserver.LabelTrainingNamespace, "class"}),
	}
}

// fault of a Run, if it is another one than before.
func (c *counts) fault(namespace string, was, is *v1alpha1.RunFault) {
	if is != nil && (was == nil || was.Attempt != is.Attempt || was.Index != is.Index) {
		c.faults.WithLabelValues(namespace, is.Class).Inc()
	}
}

// Describe the metrics.
func (c *counts) Describe(into chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.phase, c.missing, c.stuck, c.silent, c.blocked, c.checkpoint, c.overdue} {
		into <- d
	}
}

// Collect the metrics from the cache. While it cannot be read there are none.
func (c *counts) Collect(into chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), collectTimeout)
	defer cancel()
	l := &v1alpha1.RunList{}
	if err := c.kube.List(ctx, l, client.UnsafeDisableDeepCopy); err != nil {
		return
	}
	seen := map[[2]string]bool{}
	for i := range l.Items {
		// Two Runs of one Training would be the same series twice, and spoil all others.
		of := [2]string{l.Items[i].GetNamespace(), training(&l.Items[i])}
		if seen[of] {
			continue
		}
		seen[of] = true
		c.collect(into, of, &l.Items[i].Status.AtProvider)
	}
}

func (c *counts) collect(into chan<- prometheus.Metric, of [2]string, at *v1alpha1.RunObservation) {
	gauge := func(d *prometheus.Desc, v float64, more ...string) {
		into <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, append(of[:2:2], more...)...)
	}
	if at.Pods != nil {
		gauge(c.blocked, 1, at.Pods.Reason)
	}
	if at.Checkpoint != nil {
		gauge(c.checkpoint, float64(at.Checkpoint.At.Unix()))
	}
	if at.Phase == "" {
		return // No coordinator has answered yet.
	}
	is := map[bool]float64{true: 1}
	gauge(c.phase, 1, at.Phase)
	gauge(c.missing, float64(len(at.Missing)))
	gauge(c.stuck, float64(at.WithoutProgress))
	gauge(c.silent, is[at.Silent != ""])
	gauge(c.overdue, is[at.OverdueSince != nil])
}

// training that a Run belongs to.
func training(r *v1alpha1.Run) string {
	if name := r.GetLabels()[crew.LabelTraining]; name != "" {
		return name
	}
	return r.GetName()
}
