// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

// Names of the built-in checks of a candidate.
const (
	checkOfSuccessAgainst = "success-against-baseline"
	checkOfLatencyAgainst = "latency-against-baseline"
	checkOfDrift          = "drift"
	checkOfDataDrift      = "data-drift"
)

// How many looks make evidence. A single one may be chance, and traffic at a border
// would turn it with each look.
const (
	passesNeeded  = 3
	failuresInRow = 2
	failuresOf    = 3
	failuresAmong = 5
)

// silentIntervals is after how many intervals without a look nobody can tell how
// the candidate does; as many looks in a row without an answer mean the same.
const (
	silentIntervals = 4
	errorsInRow     = 3
)

// mostSettle is the longest time that does not count after the weights have changed.
const mostSettle = 30 * time.Second

// canaryParameters ask for evidence, while there is something to learn.
func (s *state) canaryParameters() *observev1alpha1.CanaryParameters {
	l := s.decision.ledger
	if s.spec.Lifecycle == nil || l.Evidence == 0 {
		return nil
	}

	lc := s.asking(l)
	p := &observev1alpha1.CanaryParameters{
		Epoch:      l.Evidence,
		Settle:     &metav1.Duration{Duration: min(s.spec.Metrics.Interval.Duration, mostSettle)},
		MinSamples: *lc.MinSamples,
		Experiment: s.experimentParameters(),
	}

	switch l.standing() {
	case v1alpha1.RolloutMirroring, v1alpha1.RolloutStepping:
		p.Slot, p.Baseline = otherSlot(l.Slot), l.Slot
	case v1alpha1.RolloutBaking:
		p.Slot = l.Slot
	default:
		return nil
	}

	if p.Checks = candidateChecks(lc, p.Baseline != ""); len(p.Checks) == 0 {
		return nil
	}

	return p
}

// candidateChecks are what is asked of a candidate. Without a baseline beside it
// only what is not relative can be.
func candidateChecks(lc *v1alpha1.Lifecycle, beside bool) []observev1alpha1.Check {
	var cs []observev1alpha1.Check

	add := func(c observev1alpha1.Check) {
		if beside || c.RelativeTo == "" {
			cs = append(cs, c)
		}
	}

	if t := *lc.SuccessThreshold; t > 0 {
		add(observev1alpha1.Check{Name: checkOfSuccess, Kind: observev1alpha1.CheckSuccessRatio, Min: &t})
	}

	add(observev1alpha1.Check{
		Name: checkOfSuccessAgainst, Kind: observev1alpha1.CheckSuccessRatio, RelativeTo: observev1alpha1.RelativeToBaseline,
	})

	if l := lc.Latency; l != nil && l.MaxMs != nil {
		add(observev1alpha1.Check{
			Name: checkOfLatency, Kind: observev1alpha1.CheckLatency, Percentile: l.Percentile, Max: new(float64(*l.MaxMs)),
		})
	}

	if l := lc.Latency; l != nil && l.MaxRegressionPercent != nil {
		add(observev1alpha1.Check{
			Name: checkOfLatencyAgainst, Kind: observev1alpha1.CheckLatency, Percentile: l.Percentile,
			Max: new(1 + float64(*l.MaxRegressionPercent)/100), RelativeTo: observev1alpha1.RelativeToBaseline,
		})
	}

	if d := lc.Drift; d != nil && lc.RollbackOnDrift {
		add(observev1alpha1.Check{
			Name: checkOfDrift, Kind: observev1alpha1.CheckDrift, Query: d.Query, Method: observev1alpha1.DriftMethod(d.Method),
			Max: d.Max, RelativeTo: observev1alpha1.RelativeToBaseline,
		})
	}

	for _, m := range lc.Metrics {
		add(observev1alpha1.Check{
			Name: m.Name, Kind: observev1alpha1.CheckQuery, Query: m.Query, Min: m.Min, Max: m.Max,
			RelativeTo: observev1alpha1.Baseline(m.RelativeTo),
		})
	}

	return cs
}

// dataDriftCheck of the live revision, against an earlier time.
func (s *state) dataDriftCheck() []observev1alpha1.Check {
	lc := s.spec.Lifecycle
	if lc == nil || lc.Drift == nil || lc.Drift.Reference == nil {
		return nil
	}

	d := lc.Drift

	return []observev1alpha1.Check{{
		Name: checkOfDataDrift, Kind: observev1alpha1.CheckDrift, Query: d.Query,
		Method: observev1alpha1.DriftMethod(d.Method), Max: d.Max, Reference: d.Reference,
	}}
}

// An evidence about a candidate is what was gathered since its weight is in force.
type evidence struct {
	// asked tells whether anything is asked of the candidate.
	asked bool

	// lookedAt is when anybody looked last, and errors how many looks in a row had no
	// answer.
	lookedAt time.Time
	errors   int64

	checks []v1alpha1.EvidenceStatus

	// experiment is how the arms of one compare.
	experiment map[string]any
}

// evidence of the ledger's epoch. What was seen in another one does not count.
func (s *state) evidence(l ledger) evidence {
	var e evidence

	asked := candidateChecks(s.asking(l), l.standing() == v1alpha1.RolloutStepping || l.standing() == v1alpha1.RolloutMirroring)
	e.asked = len(asked) > 0

	if s.Observed[nameAnalysis] == nil {
		return e
	}

	seen := compose.Map(s.Observed[nameAnalysis].Map(), "status", "atProvider", "canary")
	if l.Evidence == 0 || compose.Number(seen, 0, "epoch") != l.Evidence {
		return e
	}

	e.lookedAt, _ = time.Parse(time.RFC3339, compose.Text(seen, "lookedAt"))

	// By a clock gone wrong. Silence would else be noticed when that time has come.
	if e.lookedAt.After(s.Now.Add(mostAhead)) {
		e.lookedAt = time.Time{}
	}

	e.errors = compose.Number(seen, 0, "errors")
	e.experiment = compose.Map(seen, "experiment")

	told := map[string]map[string]any{}
	for _, v := range compose.List(seen, "checks") {
		m, _ := v.(map[string]any)
		told[compose.Text(m, "name")] = m
	}

	for _, c := range asked {
		st := evidenceStatus(told[c.Name])
		st.Name, st.Asked = c.Name, askedOf(c)
		e.checks = append(e.checks, st)
	}

	return e
}

// evidenceStatus of what was seen of a check.
func evidenceStatus(m map[string]any) v1alpha1.EvidenceStatus {
	st := v1alpha1.EvidenceStatus{
		Name: compose.Text(m, "name"), Verdicts: compose.Text(m, "verdicts"),
		Value: float(m, "value"), Lower: float(m, "lower"), Upper: float(m, "upper"), Baseline: float(m, "baseline"),
	}

	if _, counted := m["samples"]; counted {
		st.Samples = new(compose.Number(m, 0, "samples"))
	}

	return st
}

func float(m map[string]any, field string) *float64 {
	if v, ok := m[field].(float64); ok {
		return &v
	}

	return nil
}

// askedOf a check, in words.
func askedOf(c observev1alpha1.Check) string {
	var words []string

	of := ""
	if c.RelativeTo != "" {
		of = " of the baseline"
	}

	switch {
	case c.Kind == observev1alpha1.CheckDrift:
		return fmt.Sprintf("%s to the baseline at most %g", c.Method, *c.Max)
	case c.Min == nil && c.Max == nil:
		return "at most a point of a percent less than the baseline"
	case c.Kind == observev1alpha1.CheckLatency:
		words = append(words, fmt.Sprintf("p%d", c.Percentile))
	}

	if c.Min != nil {
		words = append(words, fmt.Sprintf("at least %g", *c.Min))
	}

	if c.Max != nil {
		words = append(words, fmt.Sprintf("at most %g", *c.Max))
	}

	if c.Kind == observev1alpha1.CheckLatency && of == "" {
		of = " ms"
	}

	if of == " of the baseline" {
		of = " times the baseline"
	}

	return strings.Join(words, ", ") + of
}

// failing is the first check that fails, or nil.
func (e evidence) failing() *v1alpha1.EvidenceStatus {
	for i := range e.checks {
		v := e.checks[i].Verdicts
		latest := v[max(len(v)-failuresAmong, 0):]

		if strings.HasSuffix(v, strings.Repeat("F", failuresInRow)) || strings.Count(latest, "F") >= failuresOf {
			return &e.checks[i]
		}
	}

	return nil
}

// passing tells whether every check passes.
func (e evidence) passing() bool {
	return len(e.checks) > 0 && !slices.ContainsFunc(e.checks, func(c v1alpha1.EvidenceStatus) bool {
		return !strings.HasSuffix(c.Verdicts, strings.Repeat("P", passesNeeded))
	})
}

// silent tells since when nobody can tell how the candidate does: at the latest
// some intervals after what is asked for is in force.
func (e evidence) silent(l ledger, interval time.Duration) (since time.Time) {
	last := l.Entered
	if e.lookedAt.After(last) {
		last = e.lookedAt
	}

	return last.Add(silentIntervals * interval)
}

// tells a check with its numbers.
func (e evidence) tells(c *v1alpha1.EvidenceStatus) string {
	words := c.Name

	if c.Value != nil {
		words += fmt.Sprintf(" %.4g", *c.Value)
	}

	if c.Lower != nil && c.Upper != nil {
		words += fmt.Sprintf(" (%.4g to %.4g)", *c.Lower, *c.Upper)
	}

	if c.Baseline != nil {
		words += fmt.Sprintf(" beside %.4g of the baseline", *c.Baseline)
	}

	if c.Samples != nil {
		words += fmt.Sprintf(" of %d requests", *c.Samples)
	}

	if c.Asked != "" {
		words += ", asked " + c.Asked
	}

	return words
}

// summary of all checks.
func (e evidence) summary() string {
	words := make([]string, 0, len(e.checks))
	for i := range e.checks {
		words = append(words, e.tells(&e.checks[i]))
	}

	return strings.Join(words, "; ")
}
