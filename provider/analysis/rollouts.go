// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"context"
	"encoding/json"
	"regexp"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/modelserver"
)

// collectTimeout is how long the cache may take to list Analyses.
const collectTimeout = 5 * time.Second

// word is what a phase or reason looks like. Any other text in the annotation makes no series.
var word = regexp.MustCompile(`^[A-Z][A-Za-z]{0,63}$`)

// Rollouts of Algorithms as metrics, by an annotation of their Analyses. What is gone leaves no series behind, because they are
// read at each scrape.
type rollouts struct {
	kube         client.Reader
	phase, since *prometheus.Desc
}

func newRollouts(kube client.Reader) *rollouts {
	of := []string{modelserver.LabelAlgorithmNamespace, modelserver.LabelAlgorithm}
	return &rollouts{
		kube: kube,
		phase: prometheus.NewDesc(modelserver.MetricRolloutPhase, "The phase that the rollout of an Algorithm is in, as 1.",
			append(of[:2:2], modelserver.LabelPhase, modelserver.LabelReason), nil),
		since: prometheus.NewDesc(modelserver.MetricRolloutSince, "When the phase began that the rollout of an Algorithm is in, in seconds since 1970.", of, nil),
	}
}

// Describe the metrics.
func (r *rollouts) Describe(into chan<- *prometheus.Desc) {
	into <- r.phase
	into <- r.since
}

// Collect the metrics from the cache. While it cannot be read there are none.
func (r *rollouts) Collect(into chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), collectTimeout)
	defer cancel()
	l := &v1alpha1.AnalysisList{}
	if err := r.kube.List(ctx, l, client.UnsafeDisableDeepCopy); err != nil {
		return
	}
	seen := map[[2]string]bool{}
	for i := range l.Items {
		a := &l.Items[i]
		at := v1alpha1.RolloutTold{}
		if err := json.Unmarshal([]byte(a.GetAnnotations()[v1alpha1.AnnotationRollout]), &at); err != nil ||
			!word.MatchString(at.Phase) || at.Reason != "" && !word.MatchString(at.Reason) {
			continue
		}
		// Two Analyses of one Algorithm would be the same series twice, and spoil all others.
		of := [2]string{a.GetNamespace(), a.Spec.ForProvider.Algorithm}
		if seen[of] {
			continue
		}
		seen[of] = true
		into <- prometheus.MustNewConstMetric(r.phase, prometheus.GaugeValue, 1, of[0], of[1], at.Phase, at.Reason)
		if at.Since != nil {
			into <- prometheus.MustNewConstMetric(r.since, prometheus.GaugeValue, float64(at.Since.Unix()), of[0], of[1])
		}
	}
}
