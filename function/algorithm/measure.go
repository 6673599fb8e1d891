// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"fmt"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

// Names of the built-in checks.
const (
	checkOfSuccess = "success"
	checkOfLatency = "latency"
)

// Labels of the series that Prometheus has of pods.
const (
	seriesAlgorithm = "algorithm"
	seriesSlot      = "slot"
)

// measures tells whether anything of what the spec asks needs metrics of the
// pods.
func (s *state) measures() bool { return s.spec.Metrics != nil }

// measured spec: one whose scaling needs metrics has them.
func measured(s *v1alpha1.AlgorithmSpec) {
	if (s.Lifecycle != nil || s.SLO != nil) && s.Metrics == nil {
		s.Metrics = &v1alpha1.Metrics{}
	}

	sc := s.Scaling
	if sc == nil {
		return
	}

	if sc.Signal == "" {
		sc.Signal = string(observev1alpha1.SignalCPU)
		if sc.TargetLatencyMs != nil {
			sc.Signal = string(observev1alpha1.SignalAuto)
		}
	}

	if s.Metrics == nil && (sc.TargetLatencyMs != nil || sc.Signal != string(observev1alpha1.SignalCPU)) {
		s.Metrics = &v1alpha1.Metrics{}
	}
}

func (s *state) metricsPort() int32 {
	if p := s.spec.Metrics.Port; p != nil {
		return *p
	}

	return *s.spec.Port
}

// metricsParameters are what Prometheus is asked about the pods.
func (s *state) metricsParameters() *observev1alpha1.MetricsParameters {
	m := s.spec.Metrics
	if !s.measures() {
		return nil
	}

	p := &observev1alpha1.MetricsParameters{
		Interval: m.Interval,
		Window:   m.Window,
		Slots:    []string{s.decision.live.slot},
		Checks:   s.metricChecks(),
	}

	if s.decision.coming {
		p.Slots = append(p.Slots, s.decision.beside.slot)
	}

	p.Canary = s.canaryParameters()
	p.SLO = s.sloParameters()

	if q := m.Queries; q != nil {
		p.Queries = &observev1alpha1.Queries{Requests: q.Requests, Failures: q.Failures, Latency: q.Latency, InFlight: q.InFlight}
	}

	if sc := s.spec.Scaling; sc != nil {
		p.Scaling = &observev1alpha1.ScalingParameters{
			Slot:            s.decision.live.slot,
			Signal:          observev1alpha1.Signal(sc.Signal),
			Query:           sc.Query,
			PerReplica:      sc.PerReplica,
			TargetLatencyMs: sc.TargetLatencyMs,
			Percentile:      sc.Percentile,
		}
	}

	return p
}

// metricChecks: what is asked of the metrics, and beside it the load, which
// people want to see.
func (s *state) metricChecks() []observev1alpha1.Check {
	m := s.spec.Metrics

	cs := []observev1alpha1.Check{
		{Name: "request-rate", Kind: observev1alpha1.CheckRequestRate},
		{Name: "in-flight", Kind: observev1alpha1.CheckInFlight},
	}

	if m.SuccessRatio != nil {
		cs = append(cs, observev1alpha1.Check{Name: checkOfSuccess, Kind: observev1alpha1.CheckSuccessRatio, Min: m.SuccessRatio})
	}

	if sc := s.spec.Scaling; sc != nil && sc.TargetLatencyMs != nil {
		cs = append(cs, observev1alpha1.Check{
			Name: checkOfLatency, Kind: observev1alpha1.CheckLatency,
			Percentile: sc.Percentile, Max: new(float64(*sc.TargetLatencyMs)),
		})
	}

	cs = append(cs, s.dataDriftCheck()...)

	for _, c := range m.Checks {
		cs = append(cs, observev1alpha1.Check{Name: c.Name, Kind: observev1alpha1.CheckQuery, Query: c.Query, Min: c.Min, Max: c.Max})
	}

	return cs
}

// learned is what the Analysis tells of the load that a replica bears.
type learned struct {
	signal          string
	perReplica      *float64
	loadIndependent bool
	expressions     []expression
	message         string
}

// An expression is what a query of one's own becomes for a slot, and the series
// to record it as.
type expression struct{ slot, series, text string }

func (s *state) learned() learned {
	o := s.Observed[nameAnalysis]
	if o == nil {
		return learned{}
	}

	sc := compose.Map(o.Map(), "status", "atProvider", "scaling")
	l := learned{
		signal:  compose.Text(sc, "signal"),
		message: compose.Text(sc, "message"),
	}

	if v, ok := sc["perReplica"].(float64); ok {
		l.perReplica = &v
	}

	l.loadIndependent, _ = sc["loadIndependent"].(bool)

	for _, v := range compose.List(sc, "expressions") {
		e, _ := v.(map[string]any)
		l.expressions = append(l.expressions, expression{compose.Text(e, "slot"), compose.Text(e, "series"), compose.Text(e, "expression")})
	}

	return l
}

// ownQueries are those in place of the ones that the platform's rules record.
func (s *state) ownQueries() v1alpha1.MetricQueries {
	if m := s.spec.Metrics; m != nil && m.Queries != nil {
		return *m.Queries
	}

	return v1alpha1.MetricQueries{}
}

// recordsOwn tells whether the autoscaler follows a query of one's own, which has
// to be recorded for it.
func (s *state) recordsOwn() bool {
	sc, own := s.spec.Scaling, s.ownQueries()
	if sc == nil || !s.measures() {
		return false
	}

	latency := sc.TargetLatencyMs != nil && own.Latency != ""
	load := sc.Signal != string(observev1alpha1.SignalCPU) && (own.InFlight != "" || own.Requests != "")

	return sc.Signal == string(observev1alpha1.SignalQuery) || latency || load
}

// load that the autoscaler follows. Its signal is empty as long as it is not
// known.
func (s *state) load() v1alpha1.ScalingStatus {
	sc, l := s.spec.Scaling, s.learned()

	switch observes := s.Kinds[observev1alpha1.AnalysisGroupVersionKind] == compose.Available || s.Observed[nameAnalysis] != nil; {
	case sc.Signal == string(observev1alpha1.SignalCPU), !observes && sc.PerReplica == nil:
		return v1alpha1.ScalingStatus{Signal: string(observev1alpha1.SignalCPU), PerReplica: new(float64(targetCPU))}
	case sc.PerReplica != nil:
		return v1alpha1.ScalingStatus{Signal: sc.Signal, PerReplica: sc.PerReplica}
	case l.signal == string(observev1alpha1.SignalCPU):
		return v1alpha1.ScalingStatus{Signal: l.signal, PerReplica: new(float64(targetCPU))}
	default:
		return v1alpha1.ScalingStatus{Signal: l.signal, PerReplica: l.perReplica}
	}
}

// A metric is what the Analysis told last of one check on the live slot.
type metric struct {
	name, verdict, message string
	value                  *float64
	bounded                bool
	words                  string
}

// metrics of the live slot, in the order of the checks.
func (s *state) metrics() []metric {
	o := s.Observed[nameAnalysis]
	if o == nil || !s.measures() {
		return nil
	}

	told := map[string]map[string]any{}

	for _, v := range compose.List(o.Map(), "status", "atProvider", "metrics") {
		if m, _ := v.(map[string]any); compose.Text(m, "slot") == s.ledger.Slot {
			told[compose.Text(m, "name")] = m
		}
	}

	var ms []metric

	for _, c := range s.metricChecks() {
		t, ok := told[c.Name]
		if !ok {
			continue
		}

		m := metric{
			name: c.Name, verdict: compose.Text(t, "verdict"), message: compose.Text(t, "message"),
			bounded: targeted(c),
		}

		if v, ok := t["value"].(float64); ok {
			m.value = &v
			m.words = against(c, v)
		}

		ms = append(ms, m)
	}

	return ms
}

// targeted tells whether a check is about what the revision should do. Drift of the
// data is not.
func targeted(c observev1alpha1.Check) bool {
	return (c.Min != nil || c.Max != nil) && c.Kind != observev1alpha1.CheckDrift
}

// against tells a value beside its bounds, in the unit of the check.
func against(c observev1alpha1.Check, v float64) string {
	what := c.Name

	switch c.Kind {
	case observev1alpha1.CheckLatency:
		what = fmt.Sprintf("latency p%d in ms", c.Percentile)
	case observev1alpha1.CheckSuccessRatio:
		what = "share of requests that succeed"
	default:
	}

	switch {
	case c.Min != nil && c.Max != nil:
		return fmt.Sprintf("%s: %.3g, asked for %g to %g", what, v, *c.Min, *c.Max)
	case c.Min != nil:
		return fmt.Sprintf("%s: %.3g, asked for at least %g", what, v, *c.Min)
	case c.Max != nil:
		return fmt.Sprintf("%s: %.3g, asked for at most %g", what, v, *c.Max)
	default:
		return fmt.Sprintf("%s: %.3g", what, v)
	}
}
