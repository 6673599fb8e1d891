// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"time"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

// An Analysis is the view of one, which may not exist.
type Analysis struct {
	// Exists reports whether there is one.
	Exists bool

	spec, status map[string]any
}

// NewAnalysis is the view of an observed Analysis, which may be nil.
func NewAnalysis(o compose.Object) Analysis {
	if o == nil {
		return Analysis{}
	}
	return Analysis{
		Exists: true, spec: compose.Map(o.Map(), "spec", "forProvider"), status: compose.Map(o.Map(), "status", "atProvider"),
	}
}

// Findings about pods, the most specific first.
func (a Analysis) Findings() []observev1alpha1.Finding {
	return part[[]observev1alpha1.Finding](a, "findings")
}

// Signals to the Algorithm, as they were when the provider looked.
func (a Analysis) Signals() []observev1alpha1.ActiveSignal {
	return part[[]observev1alpha1.ActiveSignal](a, "signals")
}

// Fingerprints of Secrets by name.
func (a Analysis) Fingerprints() map[string]string {
	m := map[string]string{}
	for _, s := range part[[]observev1alpha1.SecretObservation](a, "secrets") {
		m[s.Name] = s.Fingerprint
	}
	return m
}

// Trial has the results of the checks that are tried on the live slot.
func (a Analysis) Trial() []observev1alpha1.TrialObservation {
	return part[[]observev1alpha1.TrialObservation](a, "trial")
}

// UncountedFailures is why failed requests are not counted, or empty.
func (a Analysis) UncountedFailures() string { return compose.Text(a.status, "uncountedFailures") }

// Metrics of the checks of all slots.
func (a Analysis) Metrics() []observev1alpha1.MetricObservation {
	return part[[]observev1alpha1.MetricObservation](a, "metrics")
}

// Scaling is what the Analysis learned of the load that a replica bears.
func (a Analysis) Scaling() observev1alpha1.ScalingObservation {
	return part[observev1alpha1.ScalingObservation](a, "scaling")
}

// Latency has the expressions to record the latency of the spec's own query by.
func (a Analysis) Latency() []observev1alpha1.SlotExpression {
	return part[[]observev1alpha1.SlotExpression](a, "latency")
}

// Distribution is the histogram by which drift is measured unless the spec names one, or empty.
func (a Analysis) Distribution() string { return compose.Text(a.status, "distribution") }

// IdleSince is since when no request has come, or zero.
func (a Analysis) IdleSince() time.Time { return timeAt(a.status, "idleSince") }

// Requested is what the activator wrote last.
func (a Analysis) Requested() string { return compose.Text(a.status, "requested") }

// SLO is the state of the error budget.
func (a Analysis) SLO() observev1alpha1.SLOObservation {
	return part[observev1alpha1.SLOObservation](a, "slo")
}

// Epoch is the latest one that evidence was requested or gathered for.
func (a Analysis) Epoch() int64 {
	return max(compose.Number(a.spec, 0, "metrics", "canary", "epoch"), compose.Number(a.status, 0, "canary", "epoch"))
}

// Canary is the evidence about a candidate that was gathered for an epoch. It is empty for any other epoch.
type Canary struct {
	// Exists reports whether anything was gathered.
	Exists bool

	// LookedAt is the look that was reported last, LooksUntil until when the provider promises to look, and Errors the
	// number of looks in a row without an answer.
	LookedAt, LooksUntil time.Time
	Errors               int64

	Checks []observev1alpha1.CanaryCheck

	// Experiment is the comparison of its arms.
	Experiment observev1alpha1.ExperimentObservation
}

// Canary evidence of an epoch.
func (a Analysis) Canary(epoch int64) Canary {
	seen := compose.Map(a.status, "canary")
	if epoch == 0 || compose.Number(seen, 0, "epoch") != epoch {
		return Canary{}
	}
	at, _ := time.Parse(time.RFC3339, compose.Text(seen, "lookedAt"))
	until, _ := time.Parse(time.RFC3339, compose.Text(seen, "looksUntil"))
	c := Canary{Exists: true, LookedAt: at, LooksUntil: until, Errors: compose.Number(seen, 0, "errors")}
	for _, v := range compose.List(seen, "checks") {
		m, _ := v.(map[string]any)
		c.Checks = append(c.Checks, observev1alpha1.CanaryCheck{
			Name: compose.Text(m, "name"), Verdicts: compose.Text(m, "verdicts"), Samples: samples(m),
			Value: float(m, "value"), Lower: float(m, "lower"), Upper: float(m, "upper"), Baseline: float(m, "baseline"),
			Incomparable: m["incomparable"] == true, Message: compose.Text(m, "message"),
		})
	}
	if e, compared := seen["experiment"]; compared {
		c.Experiment, _ = decode[observev1alpha1.ExperimentObservation](e)
	}
	return c
}

// part of the status, which is empty if it is absent.
func part[T any](a Analysis, field string) T {
	v, ok := a.status[field]
	if !ok {
		var zero T
		return zero
	}
	t, _ := decode[T](v)
	return t
}

// float at a field, or nil.
func float(m map[string]any, field string) *float64 {
	if v, ok := m[field].(float64); ok {
		return &v
	}
	return nil
}

// samples that a check counted, or nil.
func samples(m map[string]any) *int64 {
	if _, counted := m["samples"]; !counted {
		return nil
	}
	return new(compose.Number(m, 0, "samples"))
}
