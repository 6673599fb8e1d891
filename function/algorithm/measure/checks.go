// SPDX-License-Identifier: Apache-2.0

// Package measure makes the parameters of an Algorithm's Analysis, and interprets what the Analysis reports.
package measure

import (
	"fmt"
	"math"
	"strings"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/rollout"
)

// Names of the built-in checks.
const (
	CheckSuccess        = "success"
	CheckLatency        = "latency"
	CheckSuccessAgainst = "success-against-baseline"
	CheckLatencyAgainst = "latency-against-baseline"
	CheckDrift          = rollout.CheckDrift
	CheckDataDrift      = "data-drift"
)

// Checks of the live slot: what the spec asks of the metrics, and beside it the load, which people want to see.
func Checks(spec *v1alpha1.AlgorithmSpec) []observev1alpha1.Check {
	m := spec.Metrics
	cs := []observev1alpha1.Check{
		{Name: "request-rate", Kind: observev1alpha1.CheckRequestRate},
		{Name: "in-flight", Kind: observev1alpha1.CheckInFlight},
	}
	if m.SuccessRatio != nil {
		cs = append(cs, observev1alpha1.Check{Name: CheckSuccess, Kind: observev1alpha1.CheckSuccessRatio, Min: m.SuccessRatio})
	}
	if sc := spec.Scaling; sc != nil && sc.TargetLatencyMs != nil {
		cs = append(cs, observev1alpha1.Check{
			Name: CheckLatency, Kind: observev1alpha1.CheckLatency, Percentile: sc.Percentile, Max: new(float64(*sc.TargetLatencyMs)),
		})
	}
	if d := drift(spec); d != nil && ComparesData(spec) {
		cs = append(cs, observev1alpha1.Check{
			Name: CheckDataDrift, Kind: observev1alpha1.CheckDrift, Query: d.Query,
			Method: observev1alpha1.DriftMethod(d.Method), Max: d.Max, Reference: d.Reference,
		})
	}
	for _, c := range m.Checks {
		cs = append(cs, observev1alpha1.Check{Name: c.Name, Kind: observev1alpha1.CheckQuery, Query: c.Query, Min: c.Min, Max: c.Max})
	}
	return cs
}

// drift to measure, or nil where nothing is named or known to measure it by.
func drift(spec *v1alpha1.AlgorithmSpec) *v1alpha1.Drift {
	if lc := spec.Lifecycle; lc != nil && lc.Drift != nil && lc.Drift.Query != "" {
		return lc.Drift
	}
	return nil
}

// DriftNotMeasured reports whether the spec asks for drift, and nothing is named or known to measure it by.
func DriftNotMeasured(spec *v1alpha1.AlgorithmSpec) bool {
	return spec.Lifecycle != nil && spec.Lifecycle.Drift != nil && drift(spec) == nil
}

// WithDistribution is a lifecycle whose drift is measured by a histogram that the pods are known to have, unless it names another.
func WithDistribution(lc *v1alpha1.Lifecycle, histogram string) *v1alpha1.Lifecycle {
	if lc == nil || lc.Drift == nil || lc.Drift.Query != "" || histogram == "" {
		return lc
	}
	lc = lc.DeepCopy()
	lc.Drift.Query = fmt.Sprintf("increase(%s[$window])", histogram)
	return lc
}

// ComparesData reports whether the live revision is compared with an earlier time.
func ComparesData(spec *v1alpha1.AlgorithmSpec) bool {
	lc := spec.Lifecycle
	return lc != nil && lc.Drift != nil && lc.Drift.Reference != nil
}

// asked is what a candidate has to meet: the lifecycle, or for arm B the guardrails.
func asked(spec *v1alpha1.AlgorithmSpec, l rollout.Ledger) *v1alpha1.Lifecycle {
	e := spec.Experiment
	if l.Experiment == nil || e == nil {
		return spec.Lifecycle
	}
	return &v1alpha1.Lifecycle{
		SuccessThreshold: e.Guardrails.SuccessThreshold, Latency: e.Guardrails.Latency, MinSamples: e.Stop.MinSamples,
	}
}

const (
	// usualThreshold takes the place of a successThreshold of 0, which allows no margin.
	usualThreshold = 0.99
	// usualIncrease is the default of spec.lifecycle.maxFailureIncreasePercent.
	usualIncrease = 25
)

// margin by which the share of requests that succeed may be below the share of the baseline: a part of what the objective lets
// fail.
func margin(lc *v1alpha1.Lifecycle) float64 {
	threshold, percent := *lc.SuccessThreshold, int32(usualIncrease)
	if threshold == 0 {
		threshold = usualThreshold
	}
	if p := lc.MaxFailureIncreasePercent; p != nil {
		percent = *p
	}
	// The digits that people write are enough, and the same on every machine.
	return math.Round((1-threshold)*float64(percent)*1e6) / 1e8
}

// candidateChecks of a candidate. Without a baseline beside it only what is not relative can be checked, and failures are only
// compared where they are counted.
func candidateChecks(lc *v1alpha1.Lifecycle, beside bool, uncounted string) []observev1alpha1.Check {
	var cs []observev1alpha1.Check
	add := func(c observev1alpha1.Check) {
		if beside || c.RelativeTo == "" {
			cs = append(cs, c)
		}
	}
	if t := *lc.SuccessThreshold; t > 0 {
		add(observev1alpha1.Check{Name: CheckSuccess, Kind: observev1alpha1.CheckSuccessRatio, Min: &t})
	}
	if uncounted == "" {
		add(observev1alpha1.Check{
			Name: CheckSuccessAgainst, Kind: observev1alpha1.CheckSuccessRatio, Max: new(margin(lc)), RelativeTo: observev1alpha1.RelativeToBaseline,
		})
	}
	if l := lc.Latency; l != nil && l.MaxMs != nil {
		add(observev1alpha1.Check{Name: CheckLatency, Kind: observev1alpha1.CheckLatency, Percentile: l.Percentile, Max: new(float64(*l.MaxMs))})
	}
	if l := lc.Latency; l != nil && l.MaxRegressionPercent != nil {
		add(observev1alpha1.Check{
			Name: CheckLatencyAgainst, Kind: observev1alpha1.CheckLatency, Percentile: l.Percentile,
			Max: new(1 + float64(*l.MaxRegressionPercent)/100), RelativeTo: observev1alpha1.RelativeToBaseline,
		})
	}
	if d := lc.Drift; d != nil && d.Query != "" && d.Action == v1alpha1.DriftRollback {
		add(observev1alpha1.Check{
			Name: CheckDrift, Kind: observev1alpha1.CheckDrift, Query: d.Query, Method: observev1alpha1.DriftMethod(d.Method),
			Max: d.Max, RelativeTo: observev1alpha1.RelativeToBaseline,
		})
	}
	for _, m := range lc.Metrics {
		add(observev1alpha1.Check{
			Name: m.Name, Kind: observev1alpha1.CheckQuery, Query: m.Query, Min: m.Min, Max: m.Max, RelativeTo: observev1alpha1.Baseline(m.RelativeTo),
		})
	}
	return cs
}

// askedInWords is what a check of a candidate asks.
func askedInWords(c observev1alpha1.Check) string {
	var words []string
	switch {
	case c.Kind == observev1alpha1.CheckDrift:
		return fmt.Sprintf("%s to the baseline at most %g", c.Method, *c.Max)
	case c.Kind == observev1alpha1.CheckSuccessRatio && c.RelativeTo != "":
		return fmt.Sprintf("at most %.4g less than the baseline", *c.Max)
	case c.Kind == observev1alpha1.CheckLatency:
		words = append(words, fmt.Sprintf("p%d", c.Percentile))
	}
	if c.Min != nil {
		words = append(words, fmt.Sprintf("at least %g", *c.Min))
	}
	if c.Max != nil {
		words = append(words, fmt.Sprintf("at most %g", *c.Max))
	}
	text := strings.Join(words, ", ")
	switch {
	case c.RelativeTo != "":
		return text + " times the baseline"
	case c.Kind == observev1alpha1.CheckLatency:
		return text + " ms"
	default:
		return text
	}
}
