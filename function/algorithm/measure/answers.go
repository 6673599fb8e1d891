// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"fmt"
	"strings"
	"time"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/rollout"
	"github.com/capstan-dev/capstan/function/observed"
)

// Evidence of the ledger's epoch about what the spec asks of the candidate. What was seen in another epoch does not count, and
// neither does a comparison of latencies under loads that are uneven for some reason.
func Evidence(spec *v1alpha1.AlgorithmSpec, x *rollout.Experiment, a observed.Analysis, l rollout.Ledger, now time.Time, uneven string) rollout.Evidence {
	standing := l.Standing()
	criteria, uncounted := asked(spec, x, l), a.UncountedFailures()
	checks := criteria.checks(standing == v1alpha1.RolloutStepping || standing == v1alpha1.RolloutMirroring, uncounted)
	e := rollout.Evidence{Asked: len(checks) > 0, Omitted: uncounted}
	if !a.Exists {
		return e
	}
	seen := a.Canary(l.Evidence)
	e.Errors, e.Experiment, e.LookedAt, e.LooksUntil = seen.Errors, seen.Experiment, seen.LookedAt, seen.LooksUntil
	// By a clock gone wrong. Silence would else be noticed when that time has come.
	for _, t := range []*time.Time{&e.LookedAt, &e.LooksUntil} {
		if t.After(now.Add(rollout.MostAhead)) {
			*t = time.Time{}
		}
	}
	if !seen.Exists {
		return e
	}
	byName := map[string]observev1alpha1.CanaryCheck{}
	for _, c := range seen.Checks {
		byName[c.Name] = c
	}
	for _, c := range checks {
		found := byName[c.Name]
		st := status(found)
		st.Name, st.Asked = c.Name, askedInWords(c)
		if c.Name == CheckLatencyAgainst && uneven != "" {
			st.Message = uneven
			e.Waived = append(e.Waived, c.Name)
		}
		if criteria.onlyReports(c.Name) {
			e.Waived = append(e.Waived, c.Name)
		}
		e.Checks = append(e.Checks, st)
		// What compares with the baseline by default is waived where it cannot; what the spec asks for is not.
		if found.Incomparable && c.Name == CheckSuccessAgainst && criteria.maxFailureIncreasePercent == nil {
			e.Waived = append(e.Waived, c.Name)
		}
	}
	return e
}

// Rehearsal of the checks of a candidate on the live revision.
func Rehearsal(spec *v1alpha1.AlgorithmSpec, x *rollout.Experiment, a observed.Analysis, l rollout.Ledger) rollout.Rehearsal {
	if spec.Metrics == nil || !l.Testing() {
		return rollout.Rehearsal{}
	}
	uncounted := a.UncountedFailures()
	criteria := asked(spec, x, l)
	checks := criteria.checks(true, uncounted)
	if len(checks) == 0 {
		return rollout.Rehearsal{Done: true, Missing: "no check of spec.lifecycle can be measured: " + uncounted + ", or set spec.objectives.latencyMs, or add a check to spec.metrics.queries"}
	}
	byName := map[string]observev1alpha1.TrialObservation{}
	for _, o := range a.Trial() {
		byName[o.Name] = o
	}
	for _, c := range checks {
		o, tried := byName[c.Name]
		switch {
		case !tried:
			return rollout.Rehearsal{}
		case o.Verdict == observev1alpha1.VerdictPass, criteria.onlyReports(c.Name):
			continue
		}
		message := fmt.Sprintf("check %s cannot be measured on the live revision: %s", c.Name, o.Message)
		if c.Name == CheckSuccess && uncounted != "" {
			message += ", or spec.lifecycle.successThreshold to 0 beside another check"
		}
		return rollout.Rehearsal{Done: true, Missing: message}
	}
	return rollout.Rehearsal{Done: true}
}

// AllEvidence of the ledger's epoch, also of checks that the spec does not have. What only reports is not judged.
func AllEvidence(a observed.Analysis, l rollout.Ledger, uneven string, driftReports bool) rollout.Evidence {
	seen := a.Canary(l.Evidence)
	e := rollout.Evidence{Experiment: seen.Experiment}
	for _, c := range seen.Checks {
		e.Checks = append(e.Checks, status(c))
		if c.Name == CheckLatencyAgainst && uneven != "" || c.Name == CheckDrift && driftReports {
			e.Waived = append(e.Waived, c.Name)
		}
	}
	return e
}

func status(c observev1alpha1.CanaryCheck) rollout.Check {
	st := rollout.Check{
		Name: c.Name, Verdicts: c.Verdicts, Value: c.Value, Lower: c.Lower, Upper: c.Upper, Baseline: c.Baseline, Samples: c.Samples,
	}
	if c.Incomparable || strings.HasSuffix(c.Verdicts, "N") {
		st.Message = c.Message
	}
	return st
}

// A Metric is the last answer about one check of the live slot.
type Metric struct {
	Name, Verdict, Message string
	Value                  *float64

	// Bounded reports whether the check is about what the revision should do. Drift of the data is not.
	Bounded bool

	// Words of the value beside its bounds.
	Words string
}

// Metrics of a slot, in the order of the checks.
func Metrics(spec *v1alpha1.AlgorithmSpec, a observed.Analysis, slot string) []Metric {
	if !a.Exists || spec.Metrics == nil {
		return nil
	}
	byName := map[string]observev1alpha1.MetricObservation{}
	for _, m := range a.Metrics() {
		if m.Slot == slot {
			byName[m.Name] = m
		}
	}
	var ms []Metric
	for _, c := range Checks(spec) {
		o, ok := byName[c.Name]
		if !ok {
			continue
		}
		m := Metric{Name: c.Name, Verdict: string(o.Verdict), Message: o.Message, Value: o.Value, Bounded: Bounded(c)}
		if o.Value != nil {
			m.Words = against(c, *o.Value)
		}
		ms = append(ms, m)
	}
	return ms
}

// Bounded reports whether a check is about what the revision should do. Drift of the data is not.
func Bounded(c observev1alpha1.Check) bool {
	return (c.Min != nil || c.Max != nil) && c.Kind != observev1alpha1.CheckDrift
}

// against its bounds, a value in words and in the unit of the check.
func against(c observev1alpha1.Check, v float64) string {
	what := c.Name
	switch c.Kind {
	case observev1alpha1.CheckLatency:
		what = fmt.Sprintf("latency p%d in ms", c.Percentile)
	case observev1alpha1.CheckFirstToken:
		what = fmt.Sprintf("time to the first token p%d in ms", c.Percentile)
	case observev1alpha1.CheckEachToken:
		what = fmt.Sprintf("time per output token p%d in ms", c.Percentile)
	case observev1alpha1.CheckSuccessRatio:
		what = "share of requests that succeed"
	default:
	}
	switch {
	case c.Min != nil && c.Max != nil:
		return fmt.Sprintf("%s: %.3g, must be %g to %g", what, v, *c.Min, *c.Max)
	case c.Min != nil:
		return fmt.Sprintf("%s: %.3g, must be at least %g", what, v, *c.Min)
	case c.Max != nil:
		return fmt.Sprintf("%s: %.3g, must be at most %g", what, v, *c.Max)
	default:
		return fmt.Sprintf("%s: %.3g", what, v)
	}
}

// BudgetExhausted is why the error budget blocks rollouts, or empty. An unknown budget is not used up: rollouts wait for metrics
// anyway.
func BudgetExhausted(o *v1alpha1.SLO, left *int32) string {
	if o == nil || *o.FreezeRolloutsAtPercent < 0 || left == nil || *left > *o.FreezeRolloutsAtPercent {
		return ""
	}
	return fmt.Sprintf("%d %% of the error budget of spec.slo is left: rollouts continue when it is more than freezeRolloutsAtPercent, %d %%",
		*left, *o.FreezeRolloutsAtPercent)
}
