// SPDX-License-Identifier: Apache-2.0

// Package curve draws what the checks of an Analysis measured over a time: of the live revision, and of a candidate beside it.
//
// It asks what the provider asks, by the same code, and the pods of one Algorithm in one namespace only. These two are the
// program's own: of an Analysis, which others may edit, only the questions count, and every selector in them is narrowed.
package curve

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/prometheus"
	"github.com/capstan-dev/capstan/provider/internal/promq"
	"github.com/capstan-dev/capstan/provider/internal/stats"
	"github.com/capstan-dev/capstan/provider/internal/verdict"
)

const (
	// usual is how far back curves go when no rollout is under way.
	usual = time.Hour
	// points of each curve, beside the first. They are no closer than least.
	points = 60
	least  = 10 * time.Second
	// most checks that are drawn.
	most = 12
)

// A Line has a value for each moment, or nil where there is none.
type Line []*float64

// Curves of the checks of an Analysis.
type Curves struct {
	// Moments of all lines.
	Moments []time.Time

	// Window before each moment that its values are about.
	Window time.Duration

	// Live and Candidate are the slots. There may be no candidate.
	Live, Candidate string

	// Checks in their order. More is how many others there are.
	Checks []Curve
	More   int
}

// A Curve is what one check measured.
type Curve struct {
	Check v1alpha1.Check

	// Live and Candidate are the values in the unit of the check, never divided by a value of a baseline.
	Live, Candidate Line

	// Least and Most are what the candidate, or the live revision without one, has to keep to. Where the check is relative they follow
	// the live revision. A line is empty without such a bound.
	Least, Most Line

	// Missing is why there is no value at the last moment, or empty.
	Missing string
}

// Of an Algorithm, the curves until now. They are empty when no check has a bound. The error is about Prometheus as a whole.
func (s *Source) Of(ctx context.Context, namespace, algorithm string, m *v1alpha1.MetricsParameters, now time.Time) (Curves, error) {
	c := Curves{Window: promq.WindowOf(m)}
	var checks []v1alpha1.Check
	c.Live, c.Candidate, checks = subject(m)
	checks = slices.DeleteFunc(slices.Clone(checks), func(check v1alpha1.Check) bool { return !bounded(check) })
	if len(checks) == 0 {
		return c, nil
	}
	if n := len(checks) - most; n > 0 {
		checks, c.More = checks[:most], n
	}
	a := &promq.Asker{Namespace: namespace, Algorithm: algorithm}
	now = now.Truncate(time.Second)
	back := usual
	if slot := tested(m); slot != "" {
		var err error
		if back, err = s.age(ctx, a.Pods(slot), now); err != nil {
			return c, err
		}
	}
	step := max((back / points).Truncate(time.Second), least)
	history := promq.NewHistory(s.prometheus, prometheus.Range{Start: now.Add(-back.Truncate(step)), End: now, Step: step})
	c.Moments = history.Moments()
	q := promq.QuestionOf(&v1alpha1.MetricsParameters{Slots: c.slots(), Window: m.Window, Queries: m.Queries, Checks: checks})
	looks := make([]promq.Sample, 0, len(c.Moments))
	for _, at := range c.Moments {
		a.Prometheus, a.Now = history.At(at), at
		look := a.Ask(ctx, q)
		if look.Failure != nil {
			return c, failed(look.Failure)
		}
		looks = append(looks, look)
	}
	for _, check := range checks {
		c.Checks = append(c.Checks, c.of(check, looks))
	}
	return c, nil
}

// failed Prometheus, by the reason alone: a message may have words of a query.
func failed(err error) error {
	return fmt.Errorf("cannot ask Prometheus: %s", outside.Understand(prometheus.Explain, err).Reason)
}

// subject of the curves: the slots of the live revision and of a candidate, and the checks. A candidate that has all requests is the
// live revision.
func subject(m *v1alpha1.MetricsParameters) (live, candidate string, checks []v1alpha1.Check) {
	switch c := m.Canary; {
	case c != nil && c.Baseline != "":
		return c.Baseline, c.Slot, c.Checks
	case c != nil:
		return c.Slot, "", c.Checks
	case len(m.Slots) > 1:
		return m.Slots[0], m.Slots[1], m.Checks
	case len(m.Slots) > 0:
		return m.Slots[0], "", m.Checks
	default:
		return "", "", nil
	}
}

// tested slot: the one whose revision a rollout is about, or empty when none is under way.
func tested(m *v1alpha1.MetricsParameters) string {
	if m.Canary != nil {
		return m.Canary.Slot
	}
	_, candidate, _ := subject(m)
	return candidate
}

func (c *Curves) slots() []string {
	if c.Candidate == "" {
		return []string{c.Live}
	}
	return []string{c.Live, c.Candidate}
}

// bounded reports whether a check has a bound to draw. How many replicas shared a load is not known of the past.
func bounded(c v1alpha1.Check) bool {
	switch c.Kind {
	case v1alpha1.CheckRequestRate, v1alpha1.CheckInFlight, v1alpha1.CheckTokenRate, v1alpha1.CheckWaiting, v1alpha1.CheckCacheUse:
		return false
	default:
		return c.Min != nil || c.Max != nil || c.Kind == v1alpha1.CheckSuccessRatio && c.RelativeTo != ""
	}
}

// of a check, its curve by what was seen at each moment.
func (c *Curves) of(check v1alpha1.Check, looks []promq.Sample) Curve {
	out := Curve{Check: check}
	low, high := bounds(check)
	for _, look := range looks {
		live, candidate := c.values(check, look)
		last := live
		out.Live = append(out.Live, live.Value)
		if c.Candidate != "" {
			out.Candidate, last = append(out.Candidate, candidate.Value), candidate
		}
		if low != nil {
			out.Least = append(out.Least, low(live.Value))
		}
		if high != nil {
			out.Most = append(out.Most, high(live.Value))
		}
		out.Missing = missing(last)
	}
	return out
}

// values of a check at a moment, as the provider reads them of a slot that serves. A distance to the baseline is the candidate's.
func (c *Curves) values(check v1alpha1.Check, look promq.Sample) (live, candidate verdict.Verdict) {
	e := verdict.Evidence{Slot: c.Live, Recent: look, Window: c.Window, Ready: func(string) int { return 1 }}
	if check.Kind == v1alpha1.CheckDrift && check.RelativeTo != "" {
		e.Canary, e.Slot, e.Baseline, e.Whole, e.Period = true, c.Candidate, c.Live, look, c.Window
		return verdict.Verdict{}, verdict.Judge(check, e)
	}
	live = verdict.Judge(check, e)
	e.Slot = c.Candidate
	return live, verdict.Judge(check, e)
}

// A bound by the value of the live revision.
type bound func(live *float64) *float64

// bounds of a check, or nil.
func bounds(c v1alpha1.Check) (low, high bound) {
	switch {
	case c.RelativeTo == "" || c.Kind == v1alpha1.CheckDrift:
		return fixed(c.Min), fixed(c.Max)
	case c.Kind == v1alpha1.CheckSuccessRatio:
		margin := ptr.Deref(c.Max, stats.Noticeable)
		return func(live *float64) *float64 {
			if live == nil {
				return nil
			}
			least := *live - margin
			return &least
		}, nil
	default:
		return times(c.Min), times(c.Max)
	}
}

func fixed(at *float64) bound {
	if at == nil {
		return nil
	}
	return func(*float64) *float64 { return at }
}

func times(factor *float64) bound {
	if factor == nil {
		return nil
	}
	return func(live *float64) *float64 {
		if live == nil {
			return nil
		}
		return new(*live * *factor)
	}
}

// missing value, and why. What Prometheus says of a query may have words that others wrote.
func missing(v verdict.Verdict) string {
	switch {
	case v.Value != nil:
		return ""
	case v.Is == v1alpha1.VerdictError:
		return "Prometheus cannot evaluate the query of this check: the conditions of the Algorithm say why"
	default:
		return v.Message
	}
}
