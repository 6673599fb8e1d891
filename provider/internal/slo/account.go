// SPDX-License-Identifier: Apache-2.0

// Package slo accounts for what is left of the error budget of an Algorithm.
package slo

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/promq"
	"github.com/capstan-dev/capstan/provider/modelserver"
)

const (
	// defaultWindow is the default of the schema.
	defaultWindow = 720 * time.Hour
	// The provider queries the long window every five minutes: in a week that is a tenth of a percent. The short ones move faster
	// and cost less.
	windowEvery, burnEvery = 5 * time.Minute, time.Minute
	// Windows of burn rates.
	shortBurn, longBurn = time.Hour, 6 * time.Hour
	// ages is into how many steps the window is divided to find out how much of it Prometheus knows.
	ages = 100
)

const (
	notRecorded = "Prometheus has recorded nothing about these pods: load the rules of package/monitoring, and see that it scrapes the pods, " +
		"or set spec.metrics.queries"
	noFailures = "no failures are recorded of these pods: their server counts none, or is not known: set the query failures in spec.metrics.queries"
)

// spent of an error budget within a window. Its reading is the share of bad requests.
type spent struct {
	promq.Reading

	requests     float64
	failed, slow float64
}

// Accounts of an error budget, and when they were made.
type Accounts struct {
	windowAt, burnAt       time.Time
	window, hour, sixHours spent
	// brief means that Prometheus knows less than the window.
	brief bool
	// edge of the buckets around the latency that the objective allows.
	edge        edge
	expressions []v1alpha1.SLOExpression
}

// Account for an objective, if there is one: Account queries what is due, and the rest stays as it was.
func Account(ctx context.Context, a *promq.Asker, m *v1alpha1.MetricsParameters, kept Accounts) Accounts {
	if m.SLO == nil || a.Now.Sub(kept.burnAt) < burnEvery {
		return kept
	}
	k := &clerk{Asker: a, asks: promq.QuestionOf(m), objective: m.SLO}
	// What all of this needs is queried first. The latency of the last hour shows which buckets the queries over the long windows
	// should select.
	at := kept
	var hour []bucket
	at.hour, hour = k.spend(ctx, shortBurn, nil)
	if at.hour.Verdict == v1alpha1.VerdictError {
		at.window, at.windowAt, at.burnAt = at.hour, time.Time{}, time.Time{}
		return at
	}
	at.burnAt = a.Now
	if e := edgeOf(m.SLO, hour); e.upper != "" {
		at.edge = e
	}
	at.sixHours, _ = k.spend(ctx, longBurn, at.edge.only())
	if a.Now.Sub(kept.windowAt) >= windowEvery || !kept.window.Known() || !slices.Equal(at.edge.only(), kept.edge.only()) {
		at.windowAt = a.Now
		at.window, _ = k.spend(ctx, windowOf(m.SLO), at.edge.only())
		at.brief = k.brief(ctx)
	}
	if e := k.expressions(ctx, at.edge); e != nil {
		at.expressions = e
	}
	return at
}

func windowOf(p *v1alpha1.SLOParameters) time.Duration {
	return promq.Positive(p.Window, defaultWindow)
}

// A clerk asks for what an account takes.
type clerk struct {
	*promq.Asker

	asks      promq.Question
	objective *v1alpha1.SLOParameters
}

// spend is what was spent within a window, and the buckets of the latency, if it matters and is known.
func (k *clerk) spend(ctx context.Context, within time.Duration, only []string) (spent, []bucket) {
	requests, failures := k.counts(ctx, within)
	for _, r := range []promq.Reading{requests, failures} {
		if !r.Known() {
			return spent{Reading: r}, nil
		}
	}
	s := spent{requests: max(requests.Value, 0)}
	if s.requests > 0 {
		s.failed = min(max(failures.Value/s.requests, 0), 1)
	}
	var all []bucket
	if k.objective.LatencyMs != nil {
		all, s.Reading = k.buckets(ctx, within, only)
		if s.Known() {
			s.slow, s.Reading = slow(all, float64(*k.objective.LatencyMs))
		}
		// Nothing was slow where there was nothing.
		if s.Verdict == v1alpha1.VerdictNoData && s.requests == 0 {
			s.Reading = promq.Reading{}
		}
	}
	if s.Known() {
		s.Value = min(s.failed+s.slow, 1)
	}
	return s, all
}

// counts of requests and failures within a window: as recorded, or as custom queries give them.
func (k *clerk) counts(ctx context.Context, within time.Duration) (requests, failures promq.Reading) {
	requests, failures = promq.NoData(notRecorded), promq.NoData(noFailures)
	if k.asks.Queries.Requests == "" || k.asks.Queries.Failures == "" {
		v, f := k.Query(ctx, k.AllPods(), modelserver.Counted(promq.Range(within)))
		if f != nil {
			return promq.Failed(f), promq.Failed(f)
		}
		lines, _ := v.(model.Vector)
		for _, l := range lines {
			switch l.Metric[modelserver.LabelMeasure] {
			case modelserver.MeasureRequests:
				requests = promq.Total(model.Vector{l})
			case modelserver.MeasureFailures:
				failures = promq.Total(model.Vector{l})
			}
		}
	}
	custom := func(query string, none promq.Reading) promq.Reading {
		v, f := k.Query(ctx, k.AllPods(), promq.Fill(query, within))
		if f != nil {
			return promq.Failed(f)
		}
		return promq.Sum(v, nil, none)
	}
	if k.asks.Queries.Requests != "" {
		requests = custom(k.asks.Queries.Requests, promq.NoData(promq.NotFound))
	}
	if k.asks.Queries.Failures != "" {
		failures = custom(k.asks.Queries.Failures, promq.Reading{})
	}
	return requests, failures
}

// latencyQuery gives the buckets of a window, in a unit of so many milliseconds. It selects only some of them where that is
// possible: a month of all of them is a lot to read.
func (k *clerk) latencyQuery(ctx context.Context, within time.Duration, only []string) (string, float64, promq.Reading) {
	if k.asks.Queries.Latency != "" {
		return promq.Fill(k.asks.Queries.Latency, within), 1000, promq.Reading{}
	}
	if f := k.Discover(ctx, k.asks.Slots); f != nil {
		return "", 0, promq.Failed(f)
	}
	for _, slot := range k.asks.Slots {
		server, known := modelserver.Find(k.Found.Servers[slot])
		switch {
		case !known:
		case server.Latency.Buckets == "":
			return "", 0, promq.NoData(promq.NoHistogram(server, ""))
		default:
			return server.Buckets(promq.Range(within), only...), server.Latency.Milliseconds, promq.Reading{}
		}
	}
	return "", 0, promq.NoData(promq.NotKnown)
}

// brief reports whether Prometheus knows less than the window. Where it finds no step it knows less than one.
func (k *clerk) brief(ctx context.Context) bool {
	w := windowOf(k.objective)
	step := max(w/ages, time.Minute).Truncate(time.Second)
	v, f := k.Query(ctx, k.AllPods(), modelserver.Age(promq.Range(w), promq.Range(step)))
	if f != nil {
		return false
	}
	age := promq.Single(v, nil)
	return !age.Known() || age.Value < (w-2*step).Seconds()
}

// expressions are what alerts follow: zero without traffic, and not there while no pod is scraped. There are none while it is
// unknown what they are made of.
func (k *clerk) expressions(ctx context.Context, e edge) []v1alpha1.SLOExpression {
	seconds := k.asks.Window.Seconds()
	requests := fmt.Sprintf("sum(%s)", modelserver.RecordRequests)
	if k.asks.Queries.Requests != "" {
		requests = fmt.Sprintf("sum(%s) / %g", promq.Fill(k.asks.Queries.Requests, k.asks.Window), seconds)
	}
	bad := fmt.Sprintf("sum(%s)", modelserver.RecordFailures)
	if k.asks.Queries.Failures != "" {
		bad = fmt.Sprintf("(sum(%s) / %g or 0 * %s)", promq.Fill(k.asks.Queries.Failures, k.asks.Window), seconds, requests)
	}
	if k.objective.LatencyMs != nil {
		of, _, r := k.latencyQuery(ctx, k.asks.Window, e.only())
		if !r.Known() || e.upper == "" {
			return nil
		}
		bad = fmt.Sprintf("%s + (clamp_min(%s - %s, 0) / %g or 0 * %s)", bad, countAt(of, "+Inf"), e.within(of), seconds, requests)
	}
	var all []v1alpha1.SLOExpression
	for _, s := range [][2]string{
		{v1alpha1.SeriesSLORequests, "(" + requests + ") < +Inf"}, // not NaN either
		{v1alpha1.SeriesSLOBad, "(" + bad + ") < +Inf"},
	} {
		text, err := k.AllPods().Narrow(s[1])
		if err != nil {
			return nil
		}
		all = append(all, v1alpha1.SLOExpression{Series: s[0], Expression: text})
	}
	return all
}

// countAt the end of a bucket. A custom query has no place for a matcher, so that its buckets are matched with a number that has
// the label.
func countAt(buckets, le string) string {
	return fmt.Sprintf(`sum((%s) * on (le) group_left () label_replace(vector(1), "le", %q, "", ""))`, buckets, le)
}

// within the latency of the objective, as slow has it.
func (e edge) within(buckets string) string {
	var parts []string
	for _, p := range []struct {
		le    string
		share float64
	}{{e.lower, 1 - e.share}, {e.upper, e.share}} {
		switch {
		case p.le == "" || p.share == 0:
		case p.share == 1:
			parts = append(parts, countAt(buckets, p.le))
		default:
			parts = append(parts, fmt.Sprintf("%.3g * %s", p.share, countAt(buckets, p.le)))
		}
	}
	return "(" + strings.Join(parts, " + ") + ")"
}
