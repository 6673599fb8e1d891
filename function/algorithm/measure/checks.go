// SPDX-License-Identifier: Apache-2.0

// Package measure makes the parameters of an Algorithm's Analysis, and interprets what the Analysis reports.
package measure

import (
	"cmp"
	"fmt"
	"math"
	"slices"
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
	CheckFirstToken     = "time-to-first-token"
	CheckEachToken      = "time-per-output-token" //nolint:gosec // The name of a check and no secret.
)

// Checks of the live slot: what the spec asks of the metrics, and beside it the load, which people want to see.
func Checks(spec *v1alpha1.AlgorithmSpec) []observev1alpha1.Check {
	m := spec.Metrics
	cs := []observev1alpha1.Check{
		{Name: "request-rate", Kind: observev1alpha1.CheckRequestRate},
		{Name: "in-flight", Kind: observev1alpha1.CheckInFlight},
	}
	o := spec.Objectives
	if o.SuccessRatio != nil {
		cs = append(cs, observev1alpha1.Check{Name: CheckSuccess, Kind: observev1alpha1.CheckSuccessRatio, Min: o.SuccessRatio})
	}
	if o.LatencyMs != nil {
		cs = append(cs, observev1alpha1.Check{
			Name: CheckLatency, Kind: observev1alpha1.CheckLatency, Percentile: o.LatencyPercentile, Max: new(float64(*o.LatencyMs)),
		})
	}
	if of := tokens(o); len(of) > 0 {
		cs = append(cs, of...)
		cs = append(cs,
			observev1alpha1.Check{Name: "tokens-per-second", Kind: observev1alpha1.CheckTokenRate},
			observev1alpha1.Check{Name: "requests-waiting", Kind: observev1alpha1.CheckWaiting},
			observev1alpha1.Check{Name: "cache-use", Kind: observev1alpha1.CheckCacheUse})
	}
	if d := drift(spec); d != nil && ComparesData(spec) {
		cs = append(cs, observev1alpha1.Check{
			Name: CheckDataDrift, Kind: observev1alpha1.CheckDrift, Query: m.Query(v1alpha1.QueryOutputs),
			Method: observev1alpha1.DriftMethod(d.Method), Max: d.Max, Reference: d.Reference,
		})
	}
	return append(cs, ownChecks(m, v1alpha1.CheckLive, v1alpha1.CheckBoth)...)
}

// tokens are the checks of how fast tokens come, or none.
func tokens(o *v1alpha1.Objectives) []observev1alpha1.Check {
	var cs []observev1alpha1.Check
	add := func(name string, kind observev1alpha1.CheckKind, most *int32) {
		if most != nil {
			cs = append(cs, observev1alpha1.Check{Name: name, Kind: kind, Percentile: o.LatencyPercentile, Max: new(float64(*most))})
		}
	}
	add(CheckFirstToken, observev1alpha1.CheckFirstToken, o.TimeToFirstTokenMs)
	add(CheckEachToken, observev1alpha1.CheckEachToken, o.TimePerOutputTokenMs)
	return cs
}

// drift to measure, or nil where nothing is named or known to measure it by.
func drift(spec *v1alpha1.AlgorithmSpec) *v1alpha1.Drift {
	if lc := spec.Lifecycle; lc != nil && lc.Drift != nil && spec.Metrics.Query(v1alpha1.QueryOutputs) != "" {
		return lc.Drift
	}
	return nil
}

// DriftNotMeasured reports whether the spec asks for drift, and nothing is named or known to measure it by.
func DriftNotMeasured(spec *v1alpha1.AlgorithmSpec) bool {
	return spec.Lifecycle != nil && spec.Lifecycle.Drift != nil && drift(spec) == nil
}

// WithDistribution are metrics whose outputs are a histogram that the pods are known to have, unless they name another.
func WithDistribution(m *v1alpha1.Metrics, histogram string) *v1alpha1.Metrics {
	if m == nil || m.Query(v1alpha1.QueryOutputs) != "" || histogram == "" {
		return m
	}
	m = m.DeepCopy()
	m.Queries = append(m.Queries, v1alpha1.MetricQuery{Name: v1alpha1.QueryOutputs, Query: fmt.Sprintf("increase(%s[$window])", histogram)})
	return m
}

// ComparesData reports whether the live revision is compared with an earlier time.
func ComparesData(spec *v1alpha1.AlgorithmSpec) bool {
	lc := spec.Lifecycle
	return lc != nil && lc.Drift != nil && lc.Drift.Reference != nil
}

// ownChecks of the spec that apply to any of these.
func ownChecks(m *v1alpha1.Metrics, to ...v1alpha1.CheckedRevision) []observev1alpha1.Check {
	var cs []observev1alpha1.Check
	for _, c := range m.Queries {
		if c.Min == nil && c.Max == nil || !slices.Contains(to, c.AppliesTo) {
			continue
		}
		own := observev1alpha1.Check{Name: c.Name, Kind: observev1alpha1.CheckQuery, Query: c.Query, Min: c.Min, Max: c.Max}
		if c.AppliesTo == v1alpha1.CheckRatio {
			own.RelativeTo = observev1alpha1.RelativeToBaseline
		}
		cs = append(cs, own)
	}
	return cs
}

// criteria are what a candidate has to meet.
type criteria struct {
	successThreshold          float64
	maxFailureIncreasePercent *int32

	// latency at a percentile, or none.
	latency v1alpha1.LatencyTarget

	// tokens are how fast they have to come.
	tokens []observev1alpha1.Check

	// drift to measure, the query of the outputs, and whether it only reports.
	drift       *v1alpha1.Drift
	outputs     string
	driftReport bool

	own        []observev1alpha1.Check
	minSamples int32
}

// asked is what a candidate has to meet: the objectives as the lifecycle has them, or for arm B the guardrails, which default to the
// objectives.
func asked(spec *v1alpha1.AlgorithmSpec, e *rollout.Experiment, l rollout.Ledger) criteria {
	o := spec.Objectives
	latency := v1alpha1.LatencyTarget{MaxMs: o.LatencyMs, Percentile: o.LatencyPercentile}
	if l.Experiment != nil && e != nil {
		if e.Guardrails.Latency != nil {
			latency = *e.Guardrails.Latency
		}
		threshold := cmp.Or(e.Guardrails.SuccessThreshold, o.SuccessRatio, new(usualThreshold))
		return criteria{successThreshold: *threshold, latency: latency, minSamples: *e.Stop.MinSamples}
	}
	lc := spec.Lifecycle
	latency.MaxRegressionPercent = lc.MaxLatencyIncreasePercent
	return criteria{
		successThreshold: *lc.SuccessThreshold, maxFailureIncreasePercent: lc.MaxFailureIncreasePercent, latency: latency, tokens: tokens(o),
		drift: drift(spec), outputs: spec.Metrics.Query(v1alpha1.QueryOutputs), driftReport: !*lc.RollbackOnDrift, own: ownChecks(spec.Metrics, v1alpha1.CheckCandidate, v1alpha1.CheckBoth, v1alpha1.CheckRatio), minSamples: *lc.MinSamples,
	}
}

// onlyReports reports whether a check of a name does not decide.
func (c criteria) onlyReports(check string) bool { return check == CheckDrift && c.driftReport }

const (
	// usualThreshold is the default of a guardrail without an objective, and takes the place of a successThreshold of 0, which
	// allows no margin.
	usualThreshold = 0.99
	// usualIncrease is the default of spec.lifecycle.maxFailureIncreasePercent.
	usualIncrease = 25
)

// margin by which the share of requests that succeed may be below the share of the baseline: a part of what the objective lets
// fail.
func (c criteria) margin() float64 {
	threshold, percent := c.successThreshold, int32(usualIncrease)
	if threshold == 0 {
		threshold = usualThreshold
	}
	if p := c.maxFailureIncreasePercent; p != nil {
		percent = *p
	}
	// The digits that people write are enough, and the same on every machine.
	return math.Round((1-threshold)*float64(percent)*1e6) / 1e8
}

// checks of a candidate. Without a baseline beside it only what is not relative can be checked, and failures are only compared
// where they are counted.
func (c criteria) checks(beside bool, uncounted string) []observev1alpha1.Check {
	var cs []observev1alpha1.Check
	add := func(c observev1alpha1.Check) {
		if beside || c.RelativeTo == "" {
			cs = append(cs, c)
		}
	}
	if t := c.successThreshold; t > 0 {
		add(observev1alpha1.Check{Name: CheckSuccess, Kind: observev1alpha1.CheckSuccessRatio, Min: &t})
	}
	if uncounted == "" {
		add(observev1alpha1.Check{
			Name: CheckSuccessAgainst, Kind: observev1alpha1.CheckSuccessRatio, Max: new(c.margin()), RelativeTo: observev1alpha1.RelativeToBaseline,
		})
	}
	if l := c.latency; l.MaxMs != nil {
		add(observev1alpha1.Check{Name: CheckLatency, Kind: observev1alpha1.CheckLatency, Percentile: l.Percentile, Max: new(float64(*l.MaxMs))})
	}
	if l := c.latency; l.MaxRegressionPercent != nil {
		add(observev1alpha1.Check{
			Name: CheckLatencyAgainst, Kind: observev1alpha1.CheckLatency, Percentile: l.Percentile,
			Max: new(1 + float64(*l.MaxRegressionPercent)/100), RelativeTo: observev1alpha1.RelativeToBaseline,
		})
	}
	for _, t := range c.tokens {
		add(t)
	}
	if d := c.drift; d != nil {
		add(observev1alpha1.Check{
			Name: CheckDrift, Kind: observev1alpha1.CheckDrift, Query: c.outputs, Method: observev1alpha1.DriftMethod(d.Method),
			Max: d.Max, RelativeTo: observev1alpha1.RelativeToBaseline,
		})
	}
	for _, own := range c.own {
		add(own)
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
	case inMilliseconds(c.Kind):
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
	case inMilliseconds(c.Kind):
		return text + " ms"
	default:
		return text
	}
}

// inMilliseconds reports whether checks of a kind are about a percentile of times.
func inMilliseconds(k observev1alpha1.CheckKind) bool {
	return k == observev1alpha1.CheckLatency || k == observev1alpha1.CheckFirstToken || k == observev1alpha1.CheckEachToken
}
