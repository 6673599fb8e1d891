// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/algorithm/rollout"
)

// mostSettle is the longest time that does not count after the weights have changed.
const mostSettle = 30 * time.Second

// Port on which pods serve their metrics.
func Port(spec *v1alpha1.AlgorithmSpec) int32 {
	if p := spec.Metrics.Port; p != nil {
		return *p
	}
	return *spec.Port
}

// OwnPort reports whether metrics have another port than requests.
func OwnPort(spec *v1alpha1.AlgorithmSpec) bool { return Port(spec) != *spec.Port }

// Availability is the share of requests that spec.slo asks for, in percent.
func Availability(spec *v1alpha1.AlgorithmSpec) float64 {
	// The digits that people write are enough, and the same on every machine.
	return math.Round(*spec.Objectives.SuccessRatio*1e10) / 1e8
}

// Parameters are the questions to Prometheus about the pods, or nil where the spec needs no metrics.
func Parameters(spec *v1alpha1.AlgorithmSpec, e *rollout.Experiment, d rollout.Decision, uncounted string) *observev1alpha1.MetricsParameters {
	m := spec.Metrics
	if m == nil {
		return nil
	}
	p := &observev1alpha1.MetricsParameters{
		Interval: &metav1.Duration{Duration: m.Interval()}, Window: m.Window, Slots: []string{d.Live.Slot}, Checks: Checks(spec),
		Canary: canary(spec, e, d, uncounted),
	}
	// Until evidence is gathered. To take the trial back before would be a change of its own, which the provider answers and Crossplane
	// follows.
	if d.Rollout != nil && d.Ledger.Testing() && d.Ledger.Evidence == 0 {
		p.Trial = asked(spec, e, d.Ledger).checks(true, uncounted)
	}
	if d.Coming {
		p.Slots = append(p.Slots, d.Beside.Slot)
	}
	if o := spec.SLO; o != nil {
		p.SLO = &observev1alpha1.SLOParameters{Availability: Availability(spec), LatencyMs: o.FailedAfterMs, Window: o.Window}
	}
	if q := ownQueries(m); q != (observev1alpha1.Queries{}) {
		p.Queries = &q
	}
	if RecordsLatency(spec) {
		p.RecordLatency = new(spec.Objectives.LatencyPercentile)
	}
	if sc := spec.Scaling; sc != nil && sc.MinReplicas == 0 {
		p.IdleAfterSeconds = sc.IdleAfterSeconds
	}
	if sc := spec.Scaling; sc != nil && sc.Signal != "" {
		p.Scaling = &observev1alpha1.ScalingParameters{
			Slot: d.Live.Slot, Signal: observev1alpha1.Signal(sc.Signal), Query: loadQuery(spec), PerReplica: sc.PerReplica,
			TargetLatencyMs: sc.TargetLatencyMs, Percentile: spec.Objectives.LatencyPercentile,
		}
	}
	return p
}

// canary asks for evidence, while there is something to learn.
func canary(spec *v1alpha1.AlgorithmSpec, e *rollout.Experiment, d rollout.Decision, uncounted string) *observev1alpha1.CanaryParameters {
	l := d.Ledger
	if spec.Lifecycle == nil || l.Evidence == 0 {
		return nil
	}
	criteria := asked(spec, e, l)
	p := &observev1alpha1.CanaryParameters{
		Epoch:      l.Evidence,
		Settle:     &metav1.Duration{Duration: min(spec.Metrics.Interval(), mostSettle)},
		MinSamples: criteria.minSamples,
	}
	if e != nil && l.Experiment != nil {
		p.Experiment = &observev1alpha1.ExperimentParameters{
			Kind: observev1alpha1.ExperimentKind(e.Metric.Kind), Events: e.Metric.Query, Of: e.Metric.Of, WithinMs: e.Metric.WithinMs,
			LowerIsBetter: e.Metric.Direction == v1alpha1.DirectionLower,
			MinEffect:     *e.Metric.MinEffect, MinSamples: *e.Stop.MinSamples, Confidence: *e.Stop.Confidence,
		}
	}
	switch l.Standing() {
	case v1alpha1.RolloutMirroring, v1alpha1.RolloutStepping:
		p.Slot, p.Baseline = names.Other(l.Slot), l.Slot
		if l.Experiment == nil {
			p.DecidesAt = new(metav1.NewTime(l.Began.Add(spec.Lifecycle.Soak.Duration)))
		}
		// Where the Gateway draws each request, the numbers of both show whether all of them were drawn.
		if l.Experiment == nil && l.Weight > 0 && l.Weight < 100 && spec.Route != nil && d.Share == nil && len(spec.Lifecycle.Match) == 0 {
			p.Percent = new(l.Weight)
		}
	case v1alpha1.RolloutPromoting, v1alpha1.RolloutBaking:
		p.Slot = l.Slot
		p.DecidesAt = new(metav1.NewTime(l.Began.Add(spec.Lifecycle.Bake.Duration)))
	default:
		return nil
	}
	if p.Checks = criteria.checks(p.Baseline != "", uncounted); len(p.Checks) == 0 {
		return nil
	}
	return p
}
