// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	apis "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/prometheus"
	"github.com/capstan-dev/capstan/provider/internal/promq"
	"github.com/capstan-dev/capstan/provider/modelserver"
)

// A past is what Prometheus knows, by window: 1h, 6h, 30d.
type past struct {
	counts map[string]pastCount

	// age of the oldest scrape.
	age time.Duration

	// server that the pods run, if its metrics are known.
	server string

	// own answers queries of one's own, with their windows.
	own map[string]model.Value

	err   error
	asked []string
}

// A pastCount is of requests within a window. What is below 0 is not known.
type pastCount struct {
	requests, failures float64

	// slower than 100, 200 and 400 ms.
	slower [3]float64
}

func (p *past) QueryAt(ctx context.Context, pods prometheus.Pods, query string, _ time.Time) (model.Value, error) {
	return p.Query(ctx, pods, query)
}

func (p *past) Query(_ context.Context, pods prometheus.Pods, query string) (model.Value, error) {
	if _, err := pods.Narrow(query); err != nil {
		return nil, err
	}
	p.asked = append(p.asked, query)
	if p.err != nil {
		return nil, p.err
	}
	if v, ok := p.own[query]; ok {
		return v, nil
	}
	if strings.HasPrefix(query, "time() - min(") {
		return vector(p.age.Seconds()), nil
	}
	line := func(v float64, labels model.Metric) *model.Sample {
		return &model.Sample{Metric: labels, Value: model.SampleValue(v)}
	}
	if query == modelserver.Discovery() {
		up := model.Metric{modelserver.LabelMeasure: modelserver.MeasureUp, modelserver.LabelSlot: "a"}
		server, _ := modelserver.Find(p.server)
		name := "nothing_known"
		if n := server.Names(); len(n) > 0 {
			name = n[0]
		}
		return model.Vector{line(1, up), line(1, model.Metric{
			modelserver.LabelMeasure: modelserver.MeasureSeries, modelserver.LabelSlot: "a", model.MetricNameLabel: model.LabelValue(name),
		})}, nil
	}
	for w, c := range p.counts {
		if !strings.Contains(query, "["+w+"]") {
			continue
		}
		var out model.Vector
		switch {
		case query == modelserver.Counted(w):
			for measure, n := range map[model.LabelValue]float64{modelserver.MeasureRequests: c.requests, modelserver.MeasureFailures: c.failures} {
				if n >= 0 {
					out = append(out, line(n, model.Metric{modelserver.LabelMeasure: measure}))
				}
			}
		case strings.Contains(query, "_bucket"):
			for i, le := range []string{"0.1", "0.2", "0.4", "+Inf"} {
				if strings.Contains(query, "le=~") && !strings.Contains(query, strings.ReplaceAll(strings.ReplaceAll(le, ".", `\\.`), "+", `\\+`)) {
					continue
				}
				n := c.requests
				if i < len(c.slower) {
					n -= c.slower[i]
				}
				out = append(out, line(n, model.Metric{model.BucketLabel: model.LabelValue(le)}))
			}
		}
		return out, nil
	}
	return model.Vector{}, nil
}

func vector(values ...float64) model.Vector {
	var v model.Vector
	for i, x := range values {
		v = append(v, &model.Sample{Metric: model.Metric{"i": model.LabelValue(strconv.Itoa(i))}, Value: model.SampleValue(x)})
	}
	return v
}

// objective of 99.9 % in 30 days, and what is told of it.
type objective struct {
	t    *testing.T
	past *past
	m    v1alpha1.MetricsParameters
	at   Accounts
	now  time.Time
	told *v1alpha1.SLOObservation
}

func newObjective(t *testing.T, p *past) *objective {
	t.Helper()
	m := v1alpha1.MetricsParameters{Window: &metav1.Duration{Duration: 2 * time.Minute}, Slots: []string{"a"}}
	m.SLO = &v1alpha1.SLOParameters{Availability: 99.9, Window: &metav1.Duration{Duration: 720 * time.Hour}}
	return &objective{t: t, past: p, m: m, now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
}

// look as a looker does.
func (o *objective) look() *v1alpha1.SLOObservation {
	o.t.Helper()
	a := &promq.Asker{Prometheus: o.past, Namespace: "shop", Algorithm: "reco", Now: o.now}
	o.at = Account(o.t.Context(), a, &o.m, o.at)
	o.told = Report(o.told, o.m.SLO, nil, o.at)
	o.now = o.now.Add(30 * time.Second)
	return o.told
}

// evenly is a past in which everything went on as in the last hour.
func evenly(perHour pastCount) map[string]pastCount {
	times := func(n float64) pastCount {
		c := perHour
		c.requests *= n
		c.failures *= n
		for i := range c.slower {
			c.slower[i] *= n
		}
		return c
	}
	return map[string]pastCount{"1h": perHour, "6h": times(6), "30d": times(720)}
}

func TestSLO(t *testing.T) {
	const month = 720 * time.Hour
	refused := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	latency := func(m *v1alpha1.MetricsParameters) { m.SLO.LatencyMs = new(int32(200)) }
	cases := map[string]struct {
		reason string
		past   past
		with   func(*v1alpha1.MetricsParameters)
		want   v1alpha1.SLOObservation
	}{
		"Half": {
			reason: "0.05 % of bad requests are half of 0.1 %, and burn at half the rate that the budget allows.",
			past:   past{counts: evenly(pastCount{requests: 10_000, failures: 5}), age: month},
			want: v1alpha1.SLOObservation{
				Verdict: v1alpha1.VerdictPass, Availability: new(99.95), Failed: new(0.05), Slow: new(0.0), BudgetRemainingPercent: new(int32(50)),
				BurnRate1h: new(0.5), BurnRate6h: new(0.5), Samples: new(int64(7_200_000)),
			},
		},
		"Outage": {
			reason: "An hour without any answer is 720th of a month: 1.4 of a budget of a thousandth.",
			past: past{counts: map[string]pastCount{
				"1h": {requests: 1000, failures: 1000}, "6h": {requests: 6000, failures: 1000}, "30d": {requests: 720_000, failures: 1000},
			}, age: month},
			want: v1alpha1.SLOObservation{
				Verdict: v1alpha1.VerdictFail, Availability: new(99.861), Failed: new(0.139), Slow: new(0.0), BudgetRemainingPercent: new(int32(-38)),
				BurnRate1h: new(1000.0), BurnRate6h: new(170.0), Samples: new(int64(720_000)),
			},
		},
		"Nothing": {
			reason: "When every answer is bad the budget is overdrawn a thousand times, which is not told.",
			past:   past{counts: evenly(pastCount{requests: 1000, failures: 1000}), age: month},
			want: v1alpha1.SLOObservation{
				Verdict: v1alpha1.VerdictFail, Availability: new(0.0), Failed: new(100.0), Slow: new(0.0), BudgetRemainingPercent: new(int32(-1000)),
				BurnRate1h: new(1000.0), BurnRate6h: new(1000.0), Samples: new(int64(720_000)),
			},
		},
		"Young": {
			reason: "Of a window that Prometheus does not know all of, what it knows counts, and that is said.",
			past:   past{counts: evenly(pastCount{requests: 10_000}), age: 24 * time.Hour},
			want: v1alpha1.SLOObservation{
				Verdict: v1alpha1.VerdictPass, Availability: new(100.0), Failed: new(0.0), Slow: new(0.0), BudgetRemainingPercent: new(int32(100)),
				BurnRate1h: new(0.0), BurnRate6h: new(0.0), Samples: new(int64(7_200_000)),
				Message: "Prometheus knows less than 30d of these pods: this is about what it knows",
			},
		},
		"Few": {
			reason: "One of 999 requests is more than a thousandth, and says nothing.",
			past:   past{counts: map[string]pastCount{"1h": {}, "6h": {requests: 10, failures: 1}, "30d": {requests: 999, failures: 1}}, age: month},
			want: v1alpha1.SLOObservation{
				Verdict: v1alpha1.VerdictInsufficient, Availability: new(99.9), Failed: new(0.1), Slow: new(0.0),
				BurnRate1h: new(0.0), BurnRate6h: new(100.0), Samples: new(int64(1000)),
				Message: "too few requests in 30d for an error budget: the objective allows 1 failure in 1000",
			},
		},
		"Idle": {
			reason: "Without any request there is nothing to divide.",
			past:   past{counts: evenly(pastCount{}), age: month},
			want: v1alpha1.SLOObservation{
				Verdict: v1alpha1.VerdictInsufficient, BurnRate1h: new(0.0), BurnRate6h: new(0.0), Samples: new(int64(0)),
				Message: "too few requests in 30d for an error budget: the objective allows 1 failure in 1000",
			},
		},
		"NotRecorded": {
			reason: "Nothing is known where the rules are not loaded.",
			past:   past{},
			want:   v1alpha1.SLOObservation{Verdict: v1alpha1.VerdictNoData, Message: notRecorded},
		},
		"NoFailures": {
			reason: "A server that counts no failures has no availability.",
			past:   past{counts: evenly(pastCount{requests: 1000, failures: -1}), age: month},
			want:   v1alpha1.SLOObservation{Verdict: v1alpha1.VerdictNoData, Message: noFailures},
		},
		"Quiet": {
			reason: "Pods that are not scraped in the last hour leave the budget as it is, and nobody knows how it burns.",
			past: past{counts: map[string]pastCount{
				"1h": {requests: -1, failures: -1}, "6h": {requests: 1000}, "30d": {requests: 10_000, failures: 5},
			}, age: month},
			want: v1alpha1.SLOObservation{
				Verdict: v1alpha1.VerdictPass, Availability: new(99.95), Failed: new(0.05), Slow: new(0.0), BudgetRemainingPercent: new(int32(50)),
				BurnRate6h: new(0.0), Samples: new(int64(10_000)),
			},
		},
		"Unreachable": {
			reason: "A budget is not used up because nobody answers.",
			past:   past{err: refused},
			want: v1alpha1.SLOObservation{
				Verdict: v1alpha1.VerdictError, Message: promq.Bounded(outside.Understand(prometheus.Explain, refused).Error()),
			},
		},
		"Slow": {
			reason: "Answers that come too late are bad, and failures are beside them.",
			past:   past{server: "Algorithm", counts: evenly(pastCount{requests: 10_000, failures: 3, slower: [3]float64{90, 2, 1}}), age: month},
			with:   latency,
			want: v1alpha1.SLOObservation{
				Verdict: v1alpha1.VerdictPass, Availability: new(99.95), Failed: new(0.03), Slow: new(0.02), BudgetRemainingPercent: new(int32(50)),
				BurnRate1h: new(0.5), BurnRate6h: new(0.5), Samples: new(int64(7_200_000)),
			},
		},
		"SlowBetween": {
			reason: "Within a bucket requests are taken to be spread evenly: halfway from 200 to 400 ms are half of those 4.",
			past:   past{server: "Algorithm", counts: evenly(pastCount{requests: 10_000, slower: [3]float64{90, 5, 1}}), age: month},
			with:   func(m *v1alpha1.MetricsParameters) { m.SLO.LatencyMs = new(int32(300)) },
			want: v1alpha1.SLOObservation{
				Verdict: v1alpha1.VerdictPass, Availability: new(99.97), Failed: new(0.0), Slow: new(0.03), BudgetRemainingPercent: new(int32(70)),
				BurnRate1h: new(0.3), BurnRate6h: new(0.3), Samples: new(int64(7_200_000)),
			},
		},
		"TooCoarse": {
			reason: "Beyond the last bucket nobody knows.",
			past:   past{server: "Algorithm", counts: evenly(pastCount{requests: 10_000}), age: month},
			with:   func(m *v1alpha1.MetricsParameters) { m.SLO.LatencyMs = new(int32(500)) },
			want: v1alpha1.SLOObservation{
				Verdict: v1alpha1.VerdictNoData, Message: "the histogram has no bucket above 400 ms: add some, or lower spec.slo.latencyMs",
			},
		},
		"NoHistogram": {
			reason: "TorchServe only sums durations up.",
			past:   past{server: "TorchServe", counts: evenly(pastCount{requests: 10_000}), age: month},
			with:   latency,
			want: v1alpha1.SLOObservation{
				Verdict: v1alpha1.VerdictNoData, Message: "the pods run TorchServe and expose no histogram of the latency: set the query latency in spec.metrics.queries",
			},
		},
		"Own": {
			reason: "Queries of one's own are asked for each window, and one that finds no failures means none.",
			past: past{own: map[string]model.Value{
				"increase(n[1h])": vector(1000), "increase(n[6h])": vector(6000), "increase(n[30d])": vector(700_000, 20_000),
				"increase(bad[1h])": model.Vector{}, "increase(bad[6h])": vector(6), "increase(bad[30d])": vector(72),
			}, age: month},
			with: func(m *v1alpha1.MetricsParameters) {
				m.Queries = &v1alpha1.Queries{Requests: "increase(n[$window])", Failures: "increase(bad[$window])"}
			},
			want: v1alpha1.SLOObservation{
				Verdict: v1alpha1.VerdictPass, Availability: new(99.99), Failed: new(0.01), Slow: new(0.0), BudgetRemainingPercent: new(int32(90)),
				BurnRate1h: new(0.0), BurnRate6h: new(1.0), Samples: new(int64(720_000)),
			},
		},
		"OwnGone": {
			reason: "A query that finds no requests finds nothing.",
			past:   past{},
			with: func(m *v1alpha1.MetricsParameters) {
				m.Queries = &v1alpha1.Queries{Requests: "increase(n[$window])", Failures: "increase(bad[$window])"}
			},
			want: v1alpha1.SLOObservation{Verdict: v1alpha1.VerdictNoData, Message: promq.NotFound},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := newObjective(t, &tc.past)
			if tc.with != nil {
				tc.with(&o.m)
			}
			got := *o.look()
			got.Expressions = nil
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nReport(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestNoSLO(t *testing.T) {
	o := newObjective(t, &past{})
	o.m.SLO = nil
	o.told = &v1alpha1.SLOObservation{Verdict: v1alpha1.VerdictPass}
	if got := o.look(); got != nil || len(o.past.asked) > 0 {
		t.Errorf("What nobody asks for is not told, and not asked for: got %+v after %v", got, o.past.asked)
	}
}

// TestSLOOutage shows that nothing is told of a budget while Prometheus is away, that alerts keep what they follow, and that all
// is back at once.
func TestSLOOutage(t *testing.T) {
	o := newObjective(t, &past{counts: evenly(pastCount{requests: 1000, failures: 10}), age: 720 * time.Hour})
	before := o.look()
	if *before.BudgetRemainingPercent >= 0 || len(before.Expressions) != 2 {
		t.Fatalf("The budget should be used up, and told what to record, got %+v", before)
	}
	o.past.err = &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	o.now = o.now.Add(time.Minute)
	if got := o.look(); got.BudgetRemainingPercent != nil || got.Verdict != v1alpha1.VerdictError || !slices.Equal(got.Expressions, before.Expressions) {
		t.Errorf("While nobody answers nothing is known, got %+v", got)
	}

	// That all of Prometheus is away shows in the rest of the look, too.
	f := &outside.Failure{Reason: apis.ReasonUnreachable, Message: "away"}
	if got := Report(before, o.m.SLO, f, o.at); got.BudgetRemainingPercent != nil || got.Message != "away" || !slices.Equal(got.Expressions, before.Expressions) {
		t.Errorf("While nobody answers nothing is known, got %+v", got)
	}
	o.past.err = nil
	if diff := cmp.Diff(before, o.look()); diff != "" {
		t.Errorf("After the outage: -want, +got:\n%s", diff)
	}
}

// TestSLOStaysQuiet lets a day pass, and counts what is told and asked.
func TestSLOStaysQuiet(t *testing.T) {
	for name, tc := range map[string]struct {
		reason     string
		rate, fail float64
		most       int
	}{
		"Idle":     {"Without traffic there is nothing to tell.", 0, 0, 1},
		"Busy":     {"A share of failures that stays the same is told once, however it scatters.", 100_000, 0.0004, 1},
		"Moderate": {"So is one that is now 2 and now 8 failures an hour.", 10_000, 0.0005, 2},
		"Seldom":   {"A failure now and then changes the budget of a month by less than a percent.", 1_000, 0.0002, 2},
	} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			failed := func() float64 {
				n := 0.0
				for p := math.Exp(-tc.rate * tc.fail); ; n++ {
					if p *= 1 / r.Float64(); p > 1 {
						return n
					}
				}
			}
			p := &past{age: 720 * time.Hour}
			o := newObjective(t, p)
			hours := make([]float64, 0, 30)
			for range 6 {
				hours = append(hours, failed())
			}
			told, changes, month := o.told, 0, 720*tc.rate*tc.fail
			for i := range 24 * 120 {
				// The last hour slides over two.
				part := float64(i%120) / 120
				if i%120 == 0 {
					hours = append(hours, failed())
				}
				n := len(hours)
				hour := hours[n-1]*part + hours[n-2]*(1-part)
				six := 0.0
				for _, h := range hours[n-6:] {
					six += h
				}
				p.counts = map[string]pastCount{
					"1h": {requests: tc.rate, failures: hour}, "6h": {requests: 6 * tc.rate, failures: six},
					"30d": {requests: 720 * tc.rate, failures: math.Round(month + six - 6*tc.rate*tc.fail)},
				}
				if o.look() != told {
					changes, told = changes+1, o.told
				}
			}
			if changes > tc.most {
				t.Errorf("%s want at most %d changes a day, got %d", tc.reason, tc.most, changes)
			}
			t.Logf("%d changes, %d queries a day", changes, len(p.asked))
			if n := len(p.asked); n > 24*(2*60+2*12)+10 {
				t.Errorf("Two queries a minute and two every five minutes are enough, got %d a day", n)
			}
		})
	}
}

func TestStep(t *testing.T) {
	told := func(v int32) *int32 { return &v }
	for name, tc := range map[string]struct {
		reason string
		told   *int32
		left   float64
		want   int32
	}{
		"First":     {"What was told never is rounded away from the bound.", nil, 10.2, 11},
		"All":       {"All of it is 100 %.", nil, 100, 100},
		"Same":      {"Less than a percent is none.", told(11), 10.01, 11},
		"Down":      {"It is at a bound when the budget is.", told(11), 10, 10},
		"NotYet":    {"And not before.", told(12), 10.01, 11},
		"Up":        {"The way back is a whole percent.", told(10), 10.99, 10},
		"UpThen":    {"Then it goes up.", told(10), 11, 11},
		"Far":       {"A leap is told as far as it goes.", told(90), 33.3, 34},
		"Zero":      {"Nothing left is nothing.", told(1), 0, 0},
		"Below":     {"More was used than there was.", told(0), -3.5, -3},
		"Deep":      {"There a percent more says nothing.", told(-3), -12.9, -3},
		"Deeper":    {"Ten do.", told(-3), -13.1, -10},
		"Back":      {"Something is left again.", told(-3), 1, 1},
		"BackSoon":  {"From far below, too.", told(-1000), 0.5, 0},
		"Bottom":    {"There is an end to it.", told(-980), -1e9, -1000},
		"AtBottom":  {"It stays there.", told(-1000), -1e9, -1000},
		"Unlimited": {"Even where nothing can be divided.", nil, math.Inf(-1), -1000},
	} {
		if got := step(tc.told, tc.left); got != tc.want {
			t.Errorf("%s: %s step(%v, %g): want %d, got %d", name, tc.reason, tc.told, tc.left, tc.want, got)
		}
	}
}

// TestStepDoesNotWander lets a budget move up and down by less than a step for long.
func TestStepDoesNotWander(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	told, changes := step(nil, 50), 0
	for range 10_000 {
		if next := step(&told, 50+0.9*(r.Float64()-0.5)); next != told {
			told, changes = next, changes+1
		}
	}
	if changes > 1 {
		t.Errorf("A budget that moves by less than a percent is told once, got %d changes", changes)
	}
}

// TestSLOExpressions shows that what is to be recorded is PromQL, sees only pods of the Algorithm, of every slot, and is nothing
// where the latency is not known.
func TestSLOExpressions(t *testing.T) {
	const slots = `{algorithm="reco",namespace="shop",slot=~".+"}`
	own := func(m *v1alpha1.MetricsParameters) {
		m.Queries = &v1alpha1.Queries{Requests: "increase(n[$window])", Failures: "increase(bad[$window])", Latency: "increase(s_bucket[$window])"}
	}
	own30d := map[string]model.Value{}
	for _, w := range []string{"1h", "6h", "30d"} {
		own30d["increase(n["+w+"])"], own30d["increase(bad["+w+"])"] = vector(10), vector(0)
	}
	for name, tc := range map[string]struct {
		reason        string
		past          past
		with          func(*v1alpha1.MetricsParameters)
		requests, bad string
	}{
		"Recorded": {
			reason:   "What the rules record is enough for failures.",
			past:     past{counts: evenly(pastCount{requests: 10})},
			requests: "(sum(capstan:requests_per_second@)) < +Inf",
			bad:      "(sum(capstan:failures_per_second@)) < +Inf",
		},
		"Latency": {
			reason:   "A latency at the end of a bucket needs this one.",
			past:     past{counts: evenly(pastCount{requests: 10}), server: "Algorithm"},
			with:     func(m *v1alpha1.MetricsParameters) { m.SLO.LatencyMs = new(int32(200)) },
			requests: "(sum(capstan:requests_per_second@)) < +Inf",
			bad: `(sum(capstan:failures_per_second@) + (clamp_min(sum((sum by (le) (increase(algorithm_request_duration_seconds_bucket{algorithm="reco",le=~"0\\.2|\\+Inf",namespace="shop",slot=~".+"}[2m]))) * on (le) group_left () label_replace(vector(1), "le", "+Inf", "", "")) - ` +
				`(sum((sum by (le) (increase(algorithm_request_duration_seconds_bucket{algorithm="reco",le=~"0\\.2|\\+Inf",namespace="shop",slot=~".+"}[2m]))) * on (le) group_left () label_replace(vector(1), "le", "0.2", "", ""))), 0) / 120 or 0 * sum(capstan:requests_per_second@))) < +Inf`,
		},
		"NoHistogram": {
			reason: "What is not known cannot be recorded.",
			past:   past{counts: evenly(pastCount{requests: 10}), server: "TorchServe"},
			with:   func(m *v1alpha1.MetricsParameters) { m.SLO.LatencyMs = new(int32(200)) },
		},
		"Own": {
			reason:   "Queries of one's own are narrowed like any other.",
			past:     past{own: own30d, counts: evenly(pastCount{requests: 10})},
			with:     own,
			requests: `(sum(increase(n@[2m])) / 120) < +Inf`,
			bad:      `((sum(increase(bad@[2m])) / 120 or 0 * sum(increase(n@[2m])) / 120)) < +Inf`,
		},
		"OwnLatency": {
			reason:   "Buckets are interpolated, as they are for the budget.",
			past:     past{own: own30d, counts: evenly(pastCount{requests: 10})},
			with:     func(m *v1alpha1.MetricsParameters) { own(m); m.SLO.LatencyMs = new(int32(350)) },
			requests: `(sum(increase(n@[2m])) / 120) < +Inf`,
			bad: `((sum(increase(bad@[2m])) / 120 or 0 * sum(increase(n@[2m])) / 120) + (clamp_min(sum((increase(s_bucket@[2m])) * on (le) group_left () label_replace(vector(1), "le", "+Inf", "", "")) - ` +
				`(0.25 * sum((increase(s_bucket@[2m])) * on (le) group_left () label_replace(vector(1), "le", "0.2", "", "")) + 0.75 * sum((increase(s_bucket@[2m])) * on (le) group_left () label_replace(vector(1), "le", "0.4", "", ""))), 0) / 120 or 0 * sum(increase(n@[2m])) / 120)) < +Inf`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := newObjective(t, &tc.past)
			if tc.with != nil {
				tc.with(&o.m)
			}
			var want []v1alpha1.SLOExpression
			if tc.requests != "" {
				want = []v1alpha1.SLOExpression{
					{Series: "capstan:slo_requests_per_second", Expression: strings.ReplaceAll(tc.requests, "@", slots)},
					{Series: "capstan:slo_bad_per_second", Expression: strings.ReplaceAll(tc.bad, "@", slots)},
				}
			}
			if diff := cmp.Diff(want, o.look().Expressions); diff != "" {
				t.Errorf("\n%s\nsloExpressions(...): -want, +got:\n%s", tc.reason, diff)
			}
			for _, e := range o.told.Expressions {
				if _, err := parser.NewParser(parser.Options{}).ParseExpr(e.Expression); err != nil {
					t.Errorf("%s: %v", e.Series, err)
				}
			}
		})
	}
}

// TestSLOReadsFewBuckets shows that of a month only those buckets are read that matter.
func TestSLOReadsFewBuckets(t *testing.T) {
	o := newObjective(t, &past{counts: evenly(pastCount{requests: 10_000}), server: "Algorithm", age: 720 * time.Hour})
	o.m.SLO.LatencyMs = new(int32(150))
	o.look()
	for _, q := range o.past.asked {
		if long := strings.Contains(q, "[30d]") || strings.Contains(q, "[6h]"); long && strings.Contains(q, "_bucket") && !strings.Contains(q, `{le=~"0\\.1|0\\.2|\\+Inf"}`) {
			t.Errorf("All buckets of a long window are read: %s", q)
		}
	}

	// A server that is a second away from its first request has no buckets to choose of.
	if got := fmt.Sprint((edge{}).only()); got != "[]" {
		t.Errorf("What is not known chooses nothing, got %s", got)
	}
}
