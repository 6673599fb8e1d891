// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"fmt"
	"regexp"
	"slices"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/check"
)

// Signals of the load that replicas may follow.
const (
	signalAuto        = string(observev1alpha1.SignalAuto)
	signalInFlight    = string(observev1alpha1.SignalInFlight)
	signalRequestRate = string(observev1alpha1.SignalRequestRate)
	signalCPU         = string(observev1alpha1.SignalCPU)
	signalQuery       = string(observev1alpha1.SignalQuery)
)

// maxQuery is the length of the longest query.
const maxQuery = 2048

func checkScaling(s *state) []check.Problem {
	sc := s.spec.Scaling
	if sc == nil {
		return nil
	}

	ps := slices.Concat(
		check.Between("spec.scaling.minReplicas", sc.MinReplicas, 1, 1000),
		check.Between("spec.scaling.maxReplicas", sc.MaxReplicas, 1, 1000),
		check.Between("spec.scaling.scaleDownAfterSeconds", *sc.ScaleDownAfterSeconds, 0, 3600),
	)

	if sc.MinReplicas > sc.MaxReplicas {
		ps = append(ps, check.Invalid("spec.scaling.minReplicas", sc.MinReplicas,
			fmt.Sprintf("is above maxReplicas %d: lower minReplicas or raise maxReplicas", sc.MaxReplicas)))
	}

	if sc.TargetLatencyMs != nil {
		ps = append(ps, check.Between("spec.scaling.targetLatencyMs", *sc.TargetLatencyMs, 1, 3600000)...)
	}

	if !slices.Contains([]int32{50, 90, 95, 99}, sc.Percentile) {
		ps = append(ps, check.Invalid("spec.scaling.percentile", sc.Percentile, "must be 50, 90, 95 or 99"))
	}

	return append(ps, checkSignal(sc)...)
}

// checkSignal and what belongs to it.
func checkSignal(sc *v1alpha1.Scaling) []check.Problem {
	var ps []check.Problem

	if sc.Signal != "" {
		ps = check.Among("spec.scaling.signal", sc.Signal, signalAuto, signalInFlight, signalRequestRate, signalCPU, signalQuery)
	}

	counted := sc.Signal == signalInFlight || sc.Signal == signalRequestRate

	switch per := sc.PerReplica; {
	case per != nil && *per < 0.001:
		ps = append(ps, check.Invalid("spec.scaling.perReplica", *per, "must be at least 0.001"))
	case per != nil && !counted && sc.Signal != signalQuery:
		ps = append(ps, check.Invalid("spec.scaling.perReplica", *per, "needs spec.scaling.signal InFlight, RequestRate or Query, which give it its unit"))
	case per == nil && counted && sc.TargetLatencyMs == nil:
		ps = append(ps, check.Invalid("spec.scaling.signal", sc.Signal,
			"needs targetLatencyMs, to learn how much of it a replica bears, or perReplica, which says it"))
	case per == nil && sc.Query != "":
		ps = append(ps, check.Problem{Reason: v1alpha1.ReasonInvalidSpec, Message: "spec.scaling.perReplica: is missing: say how much of the query's value one replica is to bear"})
	}

	if (sc.Signal == signalQuery) != (sc.Query != "") {
		ps = append(ps, check.Invalid("spec.scaling.query", sc.Query, "is the load of signal Query: set both or neither"))
	}

	return append(ps, tooLong("spec.scaling.query", sc.Query)...)
}

// tooLong tells whether a query is longer than what fits into a rule.
func tooLong(field, text string) []check.Problem {
	if n := utf8.RuneCountInString(text); n > maxQuery {
		return []check.Problem{check.Invalid(field, text, fmt.Sprintf("has %d characters: must have at most %d", n, maxQuery))}
	}

	return nil
}

var (
	shapeURLPath   = regexp.MustCompile(`^/[-a-zA-Z0-9._~/%]*$`)
	shapeCheckName = regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)
)

// builtIn are the names of checks that are made of other fields.
var builtIn = []string{"success", "latency", "request-rate", "in-flight"}

func checkMetrics(s *state) []check.Problem {
	m := s.spec.Metrics
	if m == nil {
		return nil
	}

	ps := slices.Concat(
		check.Shaped("spec.metrics.path", m.Path, shapeURLPath, "must be an absolute path of a URL, without a query"),
		lasting("spec.metrics.interval", m.Interval, 10*time.Second, time.Hour),
		lasting("spec.metrics.window", m.Window, 20*time.Second, 6*time.Hour),
		providerConfig("spec.metrics.providerConfigRef", m.ProviderConfigReference),
	)

	if m.Port != nil {
		ps = append(ps, check.Between("spec.metrics.port", *m.Port, 1, 65535)...)
	}

	if m.Window.Duration < m.Interval.Duration {
		ps = append(ps, check.Invalid("spec.metrics.window", m.Window.Duration,
			fmt.Sprintf("is shorter than interval %s: requests in between would never count: raise window or lower interval", m.Interval.Duration)))
	}

	if r := m.SuccessRatio; r != nil && (*r < 0 || *r > 1) {
		ps = append(ps, check.Invalid("spec.metrics.successRatio", *r, "must be from 0 to 1"))
	}

	if q := m.Queries; q != nil {
		ps = slices.Concat(ps,
			tooLong("spec.metrics.queries.requests", q.Requests),
			tooLong("spec.metrics.queries.failures", q.Failures),
			tooLong("spec.metrics.queries.latency", q.Latency),
			tooLong("spec.metrics.queries.inFlight", q.InFlight))
	}

	return append(ps, checkChecks(m.Checks)...)
}

func checkChecks(cs []v1alpha1.MetricCheck) []check.Problem {
	var ps []check.Problem

	seen := map[string]bool{}

	for i, c := range cs {
		field := fmt.Sprintf("spec.metrics.checks[%d]", i)

		switch {
		case !shapeCheckName.MatchString(c.Name) || len(c.Name) > 63:
			ps = append(ps, check.Invalid(field+".name", c.Name, "must be at most 63 lower case letters, digits and '-', start with a letter and end with a letter or digit"))
		case slices.Contains(builtIn, c.Name):
			ps = append(ps, check.Invalid(field+".name", c.Name, "is the name of a built-in check: choose another"))
		case seen[c.Name]:
			ps = append(ps, check.Invalid(field+".name", c.Name, "is there twice: remove one"))
		}

		seen[c.Name] = true

		if c.Query == "" {
			ps = append(ps, check.Invalid(field+".query", c.Query, "must be a PromQL expression"))
		}

		ps = append(ps, tooLong(field+".query", c.Query)...)

		switch {
		case c.Min == nil && c.Max == nil:
			ps = append(ps, check.Problem{Reason: v1alpha1.ReasonInvalidSpec, Message: field + ": has neither min nor max: set one, or nothing is checked"})
		case c.Min != nil && c.Max != nil && *c.Min > *c.Max:
			ps = append(ps, check.Invalid(field+".min", *c.Min, fmt.Sprintf("is above max %g: lower min or raise max", *c.Max)))
		}
	}

	return ps
}

// lasting tells whether a time is out of bounds. None is not set.
func lasting(field string, d *metav1.Duration, least, most time.Duration) []check.Problem {
	if d == nil || d.Duration >= least && d.Duration <= most {
		return nil
	}

	return []check.Problem{check.Invalid(field, d.Duration, fmt.Sprintf("must be from %s to %s", words(least), words(most)))}
}

// words of a time as people write it, without what is zero.
func words(d time.Duration) string { return shortened.ReplaceAllString(d.String(), "$1") }

var shortened = regexp.MustCompile(`([hm])(0[ms])+$`)
