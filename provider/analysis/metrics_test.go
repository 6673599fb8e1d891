// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	xpresource "github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpfake "github.com/crossplane/crossplane-runtime/v2/pkg/resource/fake"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	apis "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/autoload"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/prometheus"
	"github.com/capstan-dev/capstan/provider/internal/promq"
	"github.com/capstan-dev/capstan/provider/internal/verdict"
	"github.com/capstan-dev/capstan/provider/modelserver"
)

// A prom answers like Prometheus, from what a test says the pods tell.
type prom struct {
	mu sync.Mutex

	// server that the pods of each slot run, and what it tells of a window.
	slots map[string]told

	// own answers queries of one's own.
	own map[string]model.Value

	// err is what every query gives.
	err error

	// hang makes queries wait until it is closed.
	hang chan struct{}

	asked []string
}

// told by the pods of a slot.
type told struct {
	server             string
	down               bool
	requests, failures float64
	inFlight           float64
	scrapes            float64             // in a minute
	latency            map[float64]float64 // in the unit of the server
	// first and each are the times of tokens, and gauges what else is told, by measure.
	first, each map[float64]float64
	gauges      map[string]float64
	names       []string
}

func (p *prom) Query(ctx context.Context, pods prometheus.Pods, query string) (model.Value, error) {
	return p.QueryAt(ctx, pods, query, time.Time{})
}

func (p *prom) QueryAt(ctx context.Context, pods prometheus.Pods, query string, at time.Time) (model.Value, error) {
	if _, err := pods.Narrow(query); err != nil {
		return nil, err
	}
	if p.hang != nil {
		select {
		case <-p.hang:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, query)
	if p.err != nil {
		return nil, p.err
	}
	if v, ok := p.own[query]; ok {
		return v, nil
	}
	var out model.Vector
	line := func(slot, measure string, v float64, more ...string) {
		m := model.Metric{"slot": model.LabelValue(slot), modelserver.LabelMeasure: model.LabelValue(measure)}
		for i := 0; i < len(more); i += 2 {
			m[model.LabelName(more[i])] = model.LabelValue(more[i+1])
		}
		out = append(out, &model.Sample{Metric: m, Value: model.SampleValue(v)})
	}
	for _, slot := range pods.Slots {
		t, ok := p.slots[slot]
		if !ok || t.down {
			continue
		}
		line(slot, modelserver.MeasureUp, 1)
		for _, n := range t.names {
			if !strings.Contains(query, n) {
				continue
			}
			measure := modelserver.MeasureSeries
			if slices.Contains(modelserver.Distributions(), n) {
				measure = modelserver.MeasureDistribution
			}
			line(slot, measure, 1, "__name__", n)
		}
		if query == modelserver.Discovery() {
			continue
		}
		if t.scrapes > 0 {
			line(slot, modelserver.MeasureScrapes, t.scrapes)
		}
		if t.requests >= 0 {
			line(slot, modelserver.MeasureRequests, t.requests)
		}
		if t.failures > 0 {
			line(slot, modelserver.MeasureFailures, t.failures)
		}
		if t.inFlight >= 0 {
			line(slot, modelserver.MeasureInFlight, t.inFlight)
		}
		for le, n := range t.latency {
			line(slot, modelserver.MeasureLatency, n, "le", strconv.FormatFloat(le, 'g', -1, 64))
		}
		if !strings.Contains(query, modelserver.MeasureTokens) {
			continue
		}
		for le, n := range t.first {
			line(slot, modelserver.MeasureFirstToken, n, "le", strconv.FormatFloat(le, 'g', -1, 64))
		}
		for le, n := range t.each {
			line(slot, modelserver.MeasureEachToken, n, "le", strconv.FormatFloat(le, 'g', -1, 64))
		}
		for measure, v := range t.gauges {
			line(slot, measure, v)
		}
	}
	return out, nil
}

// count of queries since the last count.
func (p *prom) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.asked)
	p.asked = nil
	return n
}

func vector(values ...float64) model.Vector {
	var v model.Vector
	for i, x := range values {
		v = append(v, &model.Sample{Metric: model.Metric{"i": model.LabelValue(strconv.Itoa(i))}, Value: model.SampleValue(x)})
	}
	return v
}

// algorithm tells what the demo server tells when latencies are spread evenly up to 100 ms.
func algorithm(requests, failures, inFlight float64) told {
	return told{
		server: "Algorithm", requests: requests, failures: failures, inFlight: inFlight,
		latency: map[float64]float64{0.05: requests / 2, 0.1: requests, math.Inf(1): requests},
		names:   []string{"algorithm_requests_total", "algorithm_inflight", "algorithm_request_duration_seconds_bucket"},
	}
}

var everyCheck = []v1alpha1.Check{
	{Name: "success", Kind: v1alpha1.CheckSuccessRatio, Min: new(0.99)},
	{Name: "latency", Kind: v1alpha1.CheckLatency, Percentile: 95, Max: new(200.0)},
	{Name: "rate", Kind: v1alpha1.CheckRequestRate},
	{Name: "inflight", Kind: v1alpha1.CheckInFlight, Max: new(10.0)},
}

func metricsOf(slots ...string) v1alpha1.MetricsParameters {
	return v1alpha1.MetricsParameters{
		Interval: &metav1.Duration{Duration: 30 * time.Second},
		Window:   &metav1.Duration{Duration: 2 * time.Minute},
		Slots:    slots,
		Checks:   everyCheck,
	}
}

func observation(slot, name string, v v1alpha1.Verdict, message string, numbers ...float64) v1alpha1.MetricObservation {
	o := v1alpha1.MetricObservation{Slot: slot, Name: name, Verdict: v, Message: message}
	for i, to := range []**float64{&o.Value, &o.Lower, &o.Upper} {
		if i < len(numbers) && !math.IsNaN(numbers[i]) {
			*to = new(numbers[i])
		}
	}
	if len(numbers) > 3 {
		o.Samples = new(int64(numbers[3]))
	}
	return o
}

// tokenChecks are what is measured of tokens.
var tokenChecks = []v1alpha1.Check{
	{Name: "first", Kind: v1alpha1.CheckFirstToken, Percentile: 95, Max: new(500.0)},
	{Name: "each", Kind: v1alpha1.CheckEachToken, Percentile: 95, Max: new(50.0)},
	{Name: "rate", Kind: v1alpha1.CheckTokenRate},
	{Name: "waiting", Kind: v1alpha1.CheckWaiting},
	{Name: "cache", Kind: v1alpha1.CheckCacheUse},
}

// llm tells what a server of language models tells when first tokens come evenly within 400 ms, and each has so many samples.
func llm(prefix string, requests, samples float64) told {
	return told{
		requests: requests, inFlight: 8,
		first:  map[float64]float64{0.2: requests / 2, 0.4: requests, math.Inf(1): requests},
		each:   map[float64]float64{0.02: samples / 2, 0.04: samples, math.Inf(1): samples},
		gauges: map[string]float64{modelserver.MeasureTokens: 60_000, modelserver.MeasureWaiting: 4, modelserver.MeasureCache: 1.2},
		names:  []string{prefix + "time_to_first_token_seconds_bucket"},
	}
}

func TestVerdicts(t *testing.T) {
	const (
		tooFew = "too few requests in 2m to decide: at least 268 are needed when none fails, and more when some do"
		tooRed = "too few requests in 2m to decide: at least 59 are needed, and more near a bound"
	)
	nan := math.NaN()
	pass, fail, insufficient, none, wrong := v1alpha1.VerdictPass, v1alpha1.VerdictFail, v1alpha1.VerdictInsufficient, v1alpha1.VerdictNoData, v1alpha1.VerdictError
	query := func(least, most *float64) v1alpha1.Check {
		return v1alpha1.Check{Name: "queue", Kind: v1alpha1.CheckQuery, Query: "queue", Min: least, Max: most}
	}
	within := query(nil, new(5.0))
	cases := map[string]struct {
		reason  string
		tells   map[string]told
		own     map[string]model.Value
		queries *v1alpha1.Queries
		checks  []v1alpha1.Check
		err     error
		unready bool
		want    []v1alpha1.MetricObservation
	}{
		"Well": {
			reason: "Enough of everything, and all of it good.",
			tells:  map[string]told{"a": algorithm(12000, 12, 6)},
			want: []v1alpha1.MetricObservation{
				observation("a", "success", pass, "", 0.999, 0.9984, 0.99937, 12000),
				observation("a", "latency", pass, "", 95, 94.7, 95.3, 12000),
				observation("a", "rate", pass, "", 50, nan, nan, 12000),
				observation("a", "inflight", pass, "", 3),
			},
		},
		"Ill": {
			reason: "Enough of everything, and none of it good.",
			tells:  map[string]told{"a": algorithm(12000, 1200, 60)},
			checks: []v1alpha1.Check{
				everyCheck[0],
				{Name: "latency", Kind: v1alpha1.CheckLatency, Percentile: 95, Max: new(50.0)},
				{Name: "rate", Kind: v1alpha1.CheckRequestRate, Min: new(100.0)},
				everyCheck[3],
			},
			want: []v1alpha1.MetricObservation{
				observation("a", "success", fail, "", 0.9, 0.895, 0.9044, 12000),
				observation("a", "latency", fail, "", 95, 94.7, 95.3, 12000),
				observation("a", "rate", fail, "", 50, nan, nan, 12000),
				observation("a", "inflight", fail, "", 30),
			},
		},
		"Tokens": {
			reason: "What a vLLM tells of its tokens, of two replicas.",
			tells:  map[string]told{"a": llm("vllm:", 1200, 1200)}, checks: tokenChecks,
			want: []v1alpha1.MetricObservation{
				observation("a", "first", pass, "", 380, 376, 384, 1200),
				observation("a", "each", pass, "", 38, 37.6, 38.4, 1200),
				observation("a", "rate", pass, "", 250), observation("a", "waiting", pass, "", 2), observation("a", "cache", pass, "", 0.6),
			},
		},
		"TokensEach": {
			reason: "Of an SGLang, whose tokens are no more evidence than its requests.",
			tells:  map[string]told{"a": llm("sglang:", 1200, 60_000)}, checks: tokenChecks[1:2],
			want: []v1alpha1.MetricObservation{observation("a", "each", pass, "", 38, 37.6, 38.4, 1200)},
		},
		"NoTokens": {
			reason: "A server that generates none says so.", tells: map[string]told{"a": algorithm(12000, 12, 6)}, checks: tokenChecks[:3],
			want: []v1alpha1.MetricObservation{
				observation("a", "first", none, "the pods run Algorithm and expose no histogram of the time to the first token: set a check of your own in its place"),
				observation("a", "each", none, "the pods run Algorithm and expose no histogram of the time for each token: set a check of your own in its place"),
				observation("a", "rate", none, "the pods run Algorithm and expose no number of tokens: set a check of your own in its place"),
			},
		},
		"Few": {
			reason: "Too few requests are neither good nor bad, and it is told how many are needed.",
			tells:  map[string]told{"a": algorithm(40, 0, 1)},
			want: []v1alpha1.MetricObservation{
				observation("a", "success", insufficient, tooFew, 1, 0.9366, 1, 40),
				observation("a", "latency", insufficient, tooRed, 95, 89.3, nan, 40),
				observation("a", "rate", pass, "", 0.167, nan, nan, 40),
				observation("a", "inflight", pass, "", 0.5),
			},
		},
		"Idle": {
			reason: "No traffic is no failure.",
			tells:  map[string]told{"a": algorithm(0, 0, 0)},
			want: []v1alpha1.MetricObservation{
				observation("a", "success", insufficient, tooFew, nan, nan, nan, 0),
				observation("a", "latency", insufficient, tooRed, nan, nan, nan, 0),
				observation("a", "rate", pass, "", 0, nan, nan, 0),
				observation("a", "inflight", pass, "", 0),
			},
		},
		"BeforeTheFirstRequest": {
			reason: "Counters that are not there yet count nothing.",
			tells:  map[string]told{"a": {server: "Algorithm", requests: -1, inFlight: 0, names: []string{"algorithm_inflight"}}},
			want: []v1alpha1.MetricObservation{
				observation("a", "success", insufficient, tooFew, nan, nan, nan, 0),
				observation("a", "latency", insufficient, tooRed, nan, nan, nan, 0),
				observation("a", "rate", pass, "", 0, nan, nan, 0),
				observation("a", "inflight", pass, "", 0),
			},
		},
		"Fresh": {
			reason: "Counters that are there and have no increase were scraped once.",
			tells:  map[string]told{"a": {server: "Algorithm", requests: -1, inFlight: 0, names: []string{"algorithm_requests_total", "algorithm_inflight"}}},
			checks: everyCheck[:1],
			want:   []v1alpha1.MetricObservation{observation("a", "success", none, "the pods were scraped only once in the window: it must hold at least two scrapes, better four")},
		},
		"NotScraped": {
			reason: "Pods that Prometheus does not know.",
			want: []v1alpha1.MetricObservation{
				observation("a", "success", none, promq.NotScraped), observation("a", "latency", none, promq.NotScraped),
				observation("a", "rate", none, promq.NotScraped), observation("a", "inflight", none, promq.NotScraped),
			},
		},
		"NotKnown": {
			reason: "Pods that tell metrics of their own.",
			tells:  map[string]told{"a": {requests: -1, inFlight: -1}},
			checks: everyCheck[:2],
			want:   []v1alpha1.MetricObservation{observation("a", "success", none, promq.NotKnown), observation("a", "latency", none, promq.NotKnown)},
		},
		"NotReady": {
			reason:  "Without a replica there is nothing per replica.",
			tells:   map[string]told{"a": algorithm(1200, 0, 6)},
			checks:  everyCheck[2:],
			unready: true,
			want: []v1alpha1.MetricObservation{
				observation("a", "rate", none, "no replica of this slot is ready", nan, nan, nan, 1200), observation("a", "inflight", none, "no replica of this slot is ready"),
			},
		},
		"NoHistogram": {
			reason: "A server that only sums durations up says what would help.",
			tells:  map[string]told{"a": {requests: 1200, inFlight: -1, names: []string{"nv_inference_request_success"}}},
			checks: append(slices.Clone(everyCheck[1:2]), everyCheck[3]),
			want: []v1alpha1.MetricObservation{
				observation("a", "latency", none, "the pods run Triton and expose no histogram of the latency: start Triton with --metrics-config histogram_latencies=true"),
				observation("a", "inflight", none, "the pods run Triton and expose no number of requests in flight: set the query in-flight in spec.metrics.queries"),
			},
		},
		"NoFailures": {
			reason: "A server that counts no failures does not get a good mark for it.",
			tells:  map[string]told{"a": {requests: 1200, inFlight: -1, names: []string{"request_predict_seconds_count"}}},
			checks: everyCheck[:1],
			want:   []v1alpha1.MetricObservation{observation("a", "success", none, "the pods run KServe, which counts no failures: set the query failures in spec.metrics.queries")},
		},
		"TwoSlots": {
			reason: "Each slot has verdicts of its own, whatever its pods run.",
			tells: map[string]told{
				"a": algorithm(12000, 0, 6),
				"b": {requests: 600, failures: 300, inFlight: 4, names: []string{"vllm:request_success_total", "vllm:num_requests_running"}},
			},
			checks: everyCheck[:1],
			want: []v1alpha1.MetricObservation{
				observation("a", "success", pass, "", 1, 0.999775, 1, 12000),
				observation("b", "success", fail, "", 0.5, 0.467, 0.533, 600),
			},
		},
		"OwnQueries": {
			reason:  "Queries of one's own win, several series are added up, and no failures are zero.",
			queries: &v1alpha1.Queries{Requests: "increase(r[$window])", Failures: "f", Latency: "l", InFlight: "i"},
			own: map[string]model.Value{
				"increase(r[2m])": vector(600, 600), "f": model.Vector{}, "i": vector(3, 5),
				"l": model.Vector{
					{Metric: model.Metric{"le": "0.1", "pod": "x"}, Value: 500},
					{Metric: model.Metric{"le": "+Inf", "pod": "x"}, Value: 500},
					{Metric: model.Metric{"le": "0.1", "pod": "y"}, Value: 500},
					{Metric: model.Metric{"le": "+Inf", "pod": "y"}, Value: 500},
				},
			},
			want: []v1alpha1.MetricObservation{
				observation("a", "success", pass, "", 1, 0.99775, 1, 1200),
				observation("a", "latency", pass, "", 95, 93.9, 96.1, 1000),
				observation("a", "rate", pass, "", 5, nan, nan, 1200),
				observation("a", "inflight", pass, "", 4),
			},
		},
		"OwnQueriesWrong": {
			reason:  "What is wrong with one query is told of its checks, and of no others.",
			tells:   map[string]told{"a": algorithm(12000, 0, 6)},
			queries: &v1alpha1.Queries{Requests: "sum(", Latency: "l", InFlight: "i"},
			own:     map[string]model.Value{"l": vector(1), "i": model.Matrix{}, "queue": vector(4)},
			checks:  append(slices.Clone(everyCheck), within),
			want: []v1alpha1.MetricObservation{
				observation("a", "success", wrong, "the query is not PromQL: 1:5: parse error: unclosed left parenthesis: correct the query"),
				observation("a", "latency", wrong, "the query gives series without the label le: it must keep the buckets of a histogram, for instance increase(x_bucket[$window])"),
				observation("a", "rate", wrong, "the query is not PromQL: 1:5: parse error: unclosed left parenthesis: correct the query"),
				observation("a", "inflight", wrong, "the query gives a range where one value is compared: use a function over time, for instance avg_over_time(…)"),
				observation("a", "queue", pass, "", 4),
			},
		},
		"Value":       {reason: "A value within its bounds.", own: map[string]model.Value{"queue": vector(4)}, checks: []v1alpha1.Check{query(new(1.0), new(5.0))}, want: []v1alpha1.MetricObservation{observation("a", "queue", pass, "", 4)}},
		"ValueAbove":  {reason: "One above.", own: map[string]model.Value{"queue": &model.Scalar{Value: 5.0001}}, checks: []v1alpha1.Check{within}, want: []v1alpha1.MetricObservation{observation("a", "queue", fail, "", 5)}},
		"ValueBelow":  {reason: "One below.", own: map[string]model.Value{"queue": vector(0.5)}, checks: []v1alpha1.Check{query(new(1.0), nil)}, want: []v1alpha1.MetricObservation{observation("a", "queue", fail, "", 0.5)}},
		"ValueNaN":    {reason: "What is not a number is no data.", own: map[string]model.Value{"queue": vector(nan)}, checks: []v1alpha1.Check{within}, want: []v1alpha1.MetricObservation{observation("a", "queue", none, "the value is not a number")}},
		"ValueInf":    {reason: "Neither is infinity.", own: map[string]model.Value{"queue": &model.Scalar{Value: model.SampleValue(math.Inf(1))}}, checks: []v1alpha1.Check{within}, want: []v1alpha1.MetricObservation{observation("a", "queue", none, "the value is not a number")}},
		"ValueAbsent": {reason: "Nor nothing.", own: map[string]model.Value{"queue": model.Vector{}}, checks: []v1alpha1.Check{within}, want: []v1alpha1.MetricObservation{observation("a", "queue", none, promq.NotFound)}},
		"Values": {
			reason: "Several values cannot be compared, and it is told what to do.",
			own:    map[string]model.Value{"queue": vector(1, 2)}, checks: []v1alpha1.Check{within},
			want: []v1alpha1.MetricObservation{observation("a", "queue", wrong, "the query gives several series where one value is compared: aggregate them, for instance with sum(…)")},
		},
		"Unreachable": {
			reason: "When Prometheus does not answer, nothing is known, and why is told.",
			err:    &outside.Failure{Reason: apis.ReasonUnreachable, Message: "nothing answers", Remedy: "check that it runs"},
			checks: append(slices.Clone(everyCheck[:1]), within),
			want:   []v1alpha1.MetricObservation{observation("a", "success", wrong, "nothing answers: check that it runs"), observation("a", "queue", wrong, "nothing answers: check that it runs")},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cr := analysisOf("watch", "reco")
			p := metricsOf("a")
			if _, ok := tc.tells["b"]; ok {
				p.Slots = []string{"a", "b"}
			}
			p.Queries = tc.queries
			if tc.checks != nil {
				p.Checks = tc.checks
			}
			cr.Spec.ForProvider.Metrics = &p
			a := &promq.Asker{Prometheus: &prom{slots: tc.tells, own: tc.own, err: tc.err}, Namespace: "shop", Algorithm: "reco", Now: now}
			pods := []corev1.Pod{pod("reco-a-1", ready), pod("reco-a-2", ready), pod("reco-b-1", slot("b"), ready)}
			if tc.unready {
				pods = nil
			}
			report(cr, autoload.Memory{}, seen{sample: a.Ask(t.Context(), promq.QuestionOf(&p))}, pods, now)

			// To a hundredth: that is what is compared here, not floating point.
			near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) <= 0.0001*math.Abs(a) })
			if diff := cmp.Diff(tc.want, cr.Status.AtProvider.Metrics, near); diff != "" {
				t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, diff)
			}
			wantReason := apis.ReasonAnswered
			if tc.err != nil {
				wantReason = apis.ReasonUnreachable
			}
			if c := cr.GetCondition(apis.TypeConnected); c.Reason != wantReason {
				t.Errorf("\n%s\nConnected: want %s, got %+v", tc.reason, wantReason, c)
			}
		})
	}
}

func ready(p *corev1.Pod) {
	p.UID = types.UID(p.Name)
	p.Status.Conditions[1] = corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: ago(time.Hour)}
}

// TestRoundTrips counts queries: one to find out about servers, and then one a look for each server, and one for each query of
// one's own and slot.
func TestRoundTrips(t *testing.T) {
	p := &prom{slots: map[string]told{"a": algorithm(1200, 0, 1), "b": algorithm(1200, 0, 1)}, own: map[string]model.Value{"queue": vector(1)}}
	m := metricsOf("a", "b")
	a := &promq.Asker{Prometheus: p, Namespace: "shop", Algorithm: "reco", Now: now}
	look := func(reason string, want int) {
		t.Helper()
		a.Ask(t.Context(), promq.QuestionOf(&m))
		if got := p.count(); got != want {
			t.Errorf("%s: want %d queries, got %d", reason, want, got)
		}
	}
	look("At first the server has to be found out, and then both slots are asked about at once", 2)
	look("Later it is known", 1)
	m.Checks = append(slices.Clone(everyCheck), v1alpha1.Check{Name: "queue", Kind: v1alpha1.CheckQuery, Query: "queue", Max: new(1.0)})
	look("A query of one's own is asked for each slot", 3)
	a.Now = now.Add(promq.Rediscover)
	look("Now and then it is found out again", 4)
	p.slots["b"] = told{requests: 1, inFlight: 1, names: []string{"vllm:num_requests_running"}}
	look("Another server is noticed", 3)
	look("and asked about apart", 5)
	look("each time", 4)
	m.Checks = m.Checks[4:]
	look("What nobody wants to know is not asked", 2)
	p.err = &outside.Failure{Reason: apis.ReasonUnreachable}
	m.Checks, a.Found = append(slices.Clone(everyCheck), m.Checks...), promq.Discovery{}
	look("A Prometheus that does not answer is asked once", 1)
}

// TestDistribution shows which histogram is reported that drift is measured by.
func TestDistribution(t *testing.T) {
	const scores, tokens = "algorithm_prediction_score_bucket", "vllm:request_generation_tokens_bucket"
	vllm := func(names ...string) told {
		return told{requests: 1, inFlight: 1, names: append(names, "vllm:num_requests_running")}
	}
	cases := map[string]struct {
		reason   string
		slots    map[string]told
		err      error
		reported string
		want     string
	}{
		"None":     {reason: "Requests say nothing about what is answered.", slots: map[string]told{"a": algorithm(1, 0, 1)}, reported: scores},
		"Server":   {reason: "A server has one of its own.", slots: map[string]told{"a": vllm(tokens)}, want: tokens},
		"Any":      {reason: "The one that any server can expose comes first.", slots: map[string]told{"a": vllm(tokens, scores)}, want: scores},
		"Other":    {reason: "The live pods count.", slots: map[string]told{"a": vllm(), "b": vllm(tokens)}},
		"Unknown":  {reason: "What is reported stays while no pod is scraped.", slots: map[string]told{"a": {down: true}}, reported: scores, want: scores},
		"NoAnswer": {reason: "And while Prometheus does not answer.", err: &outside.Failure{Reason: apis.ReasonUnreachable}, reported: scores, want: scores},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := metricsOf("a", "b")
			a := &promq.Asker{Prometheus: &prom{slots: tc.slots, err: tc.err}, Namespace: "shop", Algorithm: "reco", Now: now}
			a.Ask(t.Context(), promq.QuestionOf(&m))
			if got := distributionOf(tc.reported, &m, a.Found); got != tc.want {
				t.Errorf("%s\nwant %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

// A stand is a managed reconciler with a Prometheus, whose status writes are counted.
type stand struct {
	t      *testing.T
	kube   client.Client
	obs    *observer
	clock  time.Time
	writes int
	r      *managed.Reconciler
	woken  chan types.NamespacedName
}

func newStand(t *testing.T, p promq.Querier, connectErr error, objects ...client.Object) *stand {
	t.Helper()
	s := &stand{t: t, clock: now, woken: make(chan types.NamespacedName, 100)}
	s.kube = newKube(t, interceptor.Funcs{SubResourceUpdate: func(
		ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption,
	) error {
		s.writes++
		return c.SubResource(sub).Update(ctx, o, opts...)
	}}, objects...)
	s.obs = newObserver(s.kube, func() time.Time { return s.clock })
	s.obs.looker = newLooker(func(context.Context, *v1alpha1.Analysis) (promq.Querier, outside.Tenant, error) {
		return p, outside.Tenant{Namespace: "shop"}, connectErr
	}, s.obs.now, func(of types.NamespacedName) { s.woken <- of })
	s.obs.looker.linger = time.Minute // A test waits for the answer, however busy the machine is.
	s.r = managed.NewReconciler(&xpfake.Manager{Client: s.kube, Scheme: s.kube.Scheme()},
		xpresource.ManagedKind(v1alpha1.AnalysisGroupVersionKind), append(options(s.obs),
			managed.WithManagementPolicies(), managed.WithPollInterval(10*time.Minute))...)
	return s
}

func (s *stand) reconcile() reconcile.Result {
	s.t.Helper()
	res, err := s.r.Reconcile(s.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "shop", Name: "watch"}})
	if err != nil {
		s.t.Fatal(err)
	}
	return res
}

func (s *stand) get() *v1alpha1.Analysis {
	s.t.Helper()
	a := &v1alpha1.Analysis{}
	if err := s.kube.Get(s.t.Context(), client.ObjectKey{Namespace: "shop", Name: "watch"}, a); err != nil {
		s.t.Fatal(err)
	}
	return a
}

func measured(mods ...func(*v1alpha1.MetricsParameters)) *v1alpha1.Analysis {
	a := analysisOf("watch", "reco")
	a.UID = "watch"
	p := metricsOf("a")
	for _, mod := range mods {
		mod(&p)
	}
	a.Spec.ForProvider.Metrics = &p
	return a
}

// TestBusyIsQuiet shows that steady traffic, which is never twice the same, does not become steady writing.
func TestBusyIsQuiet(t *testing.T) {
	cases := map[string]struct {
		reason    string
		perWindow float64
		failing   float64
		most      int
	}{
		"Busy":    {reason: "A busy Algorithm that is steady writes nothing for an hour.", perWindow: 60_000, failing: 0.001},
		"Middle":  {reason: "Neither does one of ten requests a second.", perWindow: 1200, failing: 0.001},
		"Border":  {reason: "Nor one whose traffic is just about enough for a verdict.", perWindow: 268, failing: 0.0001, most: 2},
		"Little":  {reason: "Nor one with a request now and then.", perWindow: 3, failing: 0},
		"Failing": {reason: "Nor one that fails often.", perWindow: 1200, failing: 0.2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			p := &prom{slots: map[string]told{}}
			one, two := pod("reco-a-1", ready), pod("reco-a-2", ready)
			s := newStand(t, p, nil, measured(func(m *v1alpha1.MetricsParameters) {
				m.Scaling = &v1alpha1.ScalingParameters{Slot: "a", TargetLatencyMs: new(int32(95)), Percentile: 95}
			}), &one, &two)
			poisson := func(mean float64) float64 { return max(math.Round(mean+math.Sqrt(mean)*r.NormFloat64()), 0) }
			looks := func(n int) {
				for range n {
					requests := poisson(tc.perWindow)
					x := algorithm(requests, 0, max(4+r.NormFloat64(), 0))
					x.failures = min(poisson(tc.failing*requests), requests)

					// Half of them within 50 ms, and nearly all within 90.
					half := min(poisson(requests/2), requests)
					x.latency = map[float64]float64{0.05: half, 0.09: min(poisson(requests*0.96), requests), 0.1: requests, math.Inf(1): requests}
					p.slots["a"] = x
					s.reconcile()
					s.clock = s.clock.Add(30 * time.Second)
				}
			}

			// What is seen at first is news.
			looks(20)
			s.writes = 0
			looks(120)
			if s.writes > tc.most {
				t.Errorf("\n%s\nwant at most %d writes in an hour of 120 looks, got %d: %+v", tc.reason, tc.most, s.writes, s.get().Status.AtProvider)
			}
			t.Logf("%d writes", s.writes)

			// The same pods, and a tenth of them fails from now on.
			if tc.perWindow >= 1000 && tc.failing < 0.01 {
				tc.failing = 0.1
				looks(1)
				if got := s.get().Status.AtProvider.Metrics[0].Verdict; got != v1alpha1.VerdictFail {
					t.Errorf("What changes should be told at once, got %s", got)
				}
			}
		})
	}
}

// TestCadence shows when Prometheus is asked: each interval, whatever pods do.
func TestCadence(t *testing.T) {
	p := &prom{slots: map[string]told{"a": algorithm(1200, 0, 2)}}
	one := pod("reco-a-1", ready)
	s := newStand(t, p, nil, measured(), &one)
	if res := s.reconcile(); p.count() != 2 || res.RequeueAfter != 30*time.Second {
		t.Errorf("It should be asked at once, and again after the interval, got %s", res.RequeueAfter)
	}
	for range 5 {
		s.clock = s.clock.Add(5 * time.Second)
		if res := s.reconcile(); p.count() != 0 || res.RequeueAfter > 30*time.Second {
			t.Errorf("Events of pods should not have it asked before its time, got %s", res.RequeueAfter)
		}
	}
	s.clock = s.clock.Add(5 * time.Second)
	s.reconcile()
	if got := p.count(); got != 1 {
		t.Errorf("After the interval it should be asked, got %d queries", got)
	}

	// Another question is asked at once.
	a := s.get()
	m := a.Spec.ForProvider.Metrics
	m.Slots, m.Queries, m.RecordLatency = []string{"a", "b"}, &v1alpha1.Queries{Latency: "l"}, new(int32(95))
	if err := s.kube.Update(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	s.reconcile()
	if got := s.get().Status.AtProvider; p.count() == 0 || len(got.Metrics) != 8 || len(got.Latency) != 2 {
		t.Errorf("Another slot should be asked about at once, and its latency recorded, got %+v", got)
	}
	if got := len(s.obs.memory.all); got != 1 {
		t.Errorf("There should be one in memory, got %d", got)
	}

	// No metrics any more.
	a = s.get()
	a.Spec.ForProvider.Metrics = nil
	if err := s.kube.Update(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	s.reconcile()
	if got := s.get(); got.Status.AtProvider.Metrics != nil || got.Status.AtProvider.Latency != nil || got.Status.AtProvider.Server != "" || got.GetCondition(apis.TypeConnected).Reason != "" {
		t.Errorf("What is no longer asked should not be told, got %+v", got.Status)
	}
	if got := len(s.obs.memory.all); got != 0 {
		t.Errorf("Memory should be free, got %d", got)
	}
	s.obs.memory.of("watch", now)
	s.obs.forgetful().Delete(t.Context(), event.DeleteEvent{Object: a}, nil)
	if got := len(s.obs.memory.all); got != 0 {
		t.Errorf("Memory of an Analysis that is gone should be free, got %d", got)
	}
}

// TestHangs shows that a Prometheus that does not answer holds nothing up: findings are told, and verdicts when they are there.
func TestHangs(t *testing.T) {
	p := &prom{slots: map[string]told{"a": algorithm(12000, 0, 2)}, hang: make(chan struct{})}
	one := pod("reco-a-1", waiting("InvalidImageName", ""))
	s := newStand(t, p, nil, measured(), &one)
	s.obs.looker.linger = time.Millisecond
	s.reconcile() // It ends before Prometheus answers.
	if a := s.get(); len(a.Status.AtProvider.Findings) != 1 || a.Status.AtProvider.Metrics != nil {
		t.Errorf("Findings should be told, and nothing that is not known, got %+v", a.Status.AtProvider)
	}

	// Meanwhile no second look begins.
	s.clock = s.clock.Add(time.Hour)
	s.reconcile()
	close(p.hang)
	select {
	case of := <-s.woken:
		if of.Name != "watch" {
			t.Errorf("The Analysis itself should be woken, got %s", of)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("An answer should wake the Analysis")
	}
	if got := p.count(); got != 2 {
		t.Errorf("There should be one look at a time, got %d queries", got)
	}
	s.reconcile()
	if a := s.get(); len(a.Status.AtProvider.Metrics) != 4 || a.Status.AtProvider.Server != "Algorithm" {
		t.Errorf("What is known should be told, got %+v", a.Status.AtProvider)
	}
}

// TestOutage shows what is told while Prometheus is away: that it is, and of the rest what was known before.
func TestOutage(t *testing.T) {
	p := &prom{slots: map[string]told{"a": algorithm(12000, 0, 2)}}
	one, sick := pod("reco-a-1", ready), pod("reco-a-2", waiting("InvalidImageName", ""))
	s := newStand(t, p, nil, measured(func(m *v1alpha1.MetricsParameters) {
		m.Scaling = &v1alpha1.ScalingParameters{Slot: "a", TargetLatencyMs: new(int32(100)), Percentile: 95}
	}), &one, &sick)
	s.reconcile()
	before := s.get().Status.AtProvider
	if before.Scaling.Signal != v1alpha1.SignalInFlight || *before.Scaling.PerReplica != 2 {
		t.Fatalf("Scaling: got %+v", before.Scaling)
	}
	p.err = errors.New("connection refused")
	s.clock = s.clock.Add(30 * time.Second)
	if res := s.reconcile(); res.RequeueAfter != 30*time.Second {
		t.Errorf("An outage should not lead to back-off, got %s", res.RequeueAfter)
	}
	a := s.get()
	if c := a.GetCondition(apis.TypeConnected); c.Status != corev1.ConditionFalse {
		t.Errorf("Connected: got %+v", c)
	}
	if c := a.GetCondition(xpv2.TypeSynced); c.Status != corev1.ConditionTrue {
		t.Errorf("Synced: got %+v", c)
	}
	after := a.Status.AtProvider
	if len(after.Findings) != 1 || after.Server != "Algorithm" || after.Metrics[0].Verdict != v1alpha1.VerdictError {
		t.Errorf("Findings and server should stay, and verdicts be errors, got %+v", after)
	}
	if after.Scaling.Signal != v1alpha1.SignalInFlight || *after.Scaling.PerReplica != 2 || after.Scaling.Message == "" {
		t.Errorf("What was learned should stay, got %+v", after.Scaling)
	}
	s.writes = 0
	for range 20 {
		s.clock = s.clock.Add(30 * time.Second)
		s.reconcile()
	}
	if s.writes != 0 {
		t.Errorf("That it is still away is no news, got %d writes", s.writes)
	}
	p.err = nil
	s.clock = s.clock.Add(30 * time.Second)
	s.reconcile()
	if a := s.get(); a.GetCondition(apis.TypeConnected).Reason != apis.ReasonAnswered || a.Status.AtProvider.Metrics[0].Verdict != v1alpha1.VerdictPass {
		t.Errorf("When it is back everything should be as before, got %+v", a.Status)
	}
}

// TestConfig shows that a config that is not there is told like an outage, and that a cluster that fails is not told at all.
func TestConfig(t *testing.T) {
	s := newStand(t, nil, &outside.Failure{Reason: apis.ReasonConfigNotFound, Message: "there is none"}, measured())
	s.reconcile()
	if a := s.get(); a.GetCondition(apis.TypeConnected).Reason != apis.ReasonConfigNotFound || a.Status.AtProvider.Metrics[0].Message != "there is none" {
		t.Errorf("A missing config should be told, got %+v", a.Status)
	}
	s = newStand(t, nil, outside.InCluster("cannot get it: %w", errors.New("boom")), measured())
	s.reconcile()
	if a := s.get(); a.GetCondition(apis.TypeConnected).Reason != "" || a.Status.AtProvider.Metrics != nil {
		t.Errorf("That the cluster fails says nothing about Prometheus, got %+v", a.Status)
	}
}

func TestScaling(t *testing.T) {
	target := func(ms int32) *v1alpha1.ScalingParameters {
		return &v1alpha1.ScalingParameters{Slot: "a", Signal: v1alpha1.SignalAuto, TargetLatencyMs: new(ms), Percentile: 95}
	}
	kserve := told{
		requests: 1200, inFlight: -1, latency: map[float64]float64{0.05: 600, 0.1: 1200, math.Inf(1): 1200},
		names: []string{"request_predict_seconds_count", "request_predict_seconds_bucket"},
	}
	asks := func(signal v1alpha1.Signal, mods ...func(*v1alpha1.ScalingParameters)) *v1alpha1.ScalingParameters {
		s := &v1alpha1.ScalingParameters{Slot: "a", Signal: signal, Percentile: 95}
		for _, mod := range mods {
			mod(s)
		}
		return s
	}
	query := func(q string) func(*v1alpha1.ScalingParameters) {
		return func(s *v1alpha1.ScalingParameters) { s.Query = q }
	}
	per := func(v float64) func(*v1alpha1.ScalingParameters) {
		return func(s *v1alpha1.ScalingParameters) { s.PerReplica = &v }
	}
	ms := func(v int32) func(*v1alpha1.ScalingParameters) {
		return func(s *v1alpha1.ScalingParameters) { s.TargetLatencyMs = &v }
	}
	cases := map[string]struct {
		reason string
		ask    *v1alpha1.ScalingParameters
		tells  map[string]told
		own    map[string]model.Value
		told   *v1alpha1.ScalingObservation
		looks  int
		want   *v1alpha1.ScalingObservation
	}{
		"InFlight": {
			reason: "Pods that tell what is in flight are scaled by it, two a replica at first.",
			ask:    target(150), tells: map[string]told{"a": algorithm(1200, 0, 2)},
			want: &v1alpha1.ScalingObservation{Signal: v1alpha1.SignalInFlight, PerReplica: new(2.0)},
		},
		"RequestRate": {
			reason: "Others by the rate of requests, at first as many as two in flight would be.",
			ask:    target(150), tells: map[string]told{"a": kserve},
			want: &v1alpha1.ScalingObservation{Signal: v1alpha1.SignalRequestRate, PerReplica: new(13.0)},
		},
		"CPU": {
			reason: "Pods that tell nothing are scaled by CPU, and it is told why.",
			ask:    target(150), tells: map[string]told{"a": {requests: -1, inFlight: -1}},
			want: &v1alpha1.ScalingObservation{Signal: v1alpha1.SignalCPU, Message: promq.NotKnown},
		},
		"NothingYet": {
			reason: "So are those that are not scraped yet.",
			ask:    target(150),
			want:   &v1alpha1.ScalingObservation{Signal: v1alpha1.SignalCPU, Message: promq.NotScraped},
		},
		"NothingAnyMore": {
			reason: "That nothing is told any more is no reason to scale by something else.",
			ask:    target(150), told: &v1alpha1.ScalingObservation{Signal: v1alpha1.SignalInFlight, PerReplica: new(6.0)}, looks: 10,
			want: &v1alpha1.ScalingObservation{Signal: v1alpha1.SignalInFlight, PerReplica: new(6.0), Message: promq.NotScraped},
		},
		"GoesOn": {
			reason: "After a restart of the provider it goes on where it was.",
			ask:    target(150), tells: map[string]told{"a": algorithm(1200, 0, 2)}, told: &v1alpha1.ScalingObservation{Signal: v1alpha1.SignalInFlight, PerReplica: new(6.0)},
			want: &v1alpha1.ScalingObservation{Signal: v1alpha1.SignalInFlight, PerReplica: new(6.0)},
		},
		"OtherServer": {
			reason: "Another server that tells less is believed when it has said so a few times.",
			ask:    target(150), tells: map[string]told{"a": kserve}, told: &v1alpha1.ScalingObservation{Signal: v1alpha1.SignalInFlight, PerReplica: new(6.0)}, looks: 3,
			want: &v1alpha1.ScalingObservation{Signal: v1alpha1.SignalRequestRate, PerReplica: new(13.0)},
		},
		"Asked": {
			reason: "What was asked for is told as it is.",
			ask:    asks(v1alpha1.SignalInFlight, per(6.125)), tells: map[string]told{"a": algorithm(1200, 0, 2)},
			want: &v1alpha1.ScalingObservation{Signal: v1alpha1.SignalInFlight, PerReplica: new(6.125)},
		},
		"AskedAndMissing": {
			reason: "A signal that was asked for stays, and it is told that it is missing.",
			ask:    asks(v1alpha1.SignalInFlight, per(6)), tells: map[string]told{"a": kserve},
			want: &v1alpha1.ScalingObservation{Signal: v1alpha1.SignalInFlight, PerReplica: new(6.0), Message: "the pods run KServe and expose no number of requests in flight: set the query in-flight in spec.metrics.queries"},
		},
		"AskedCPU": {
			reason: "CPU needs no Prometheus.",
			ask:    asks(v1alpha1.SignalCPU),
			want:   &v1alpha1.ScalingObservation{Signal: v1alpha1.SignalCPU},
		},
		"NoTarget": {
			reason: "Without a target nothing is learned.",
			ask:    asks(v1alpha1.SignalAuto), tells: map[string]told{"a": algorithm(1200, 0, 2)},
			want: &v1alpha1.ScalingObservation{Signal: v1alpha1.SignalInFlight},
		},
		"NoLatency": {
			reason: "Nor without a latency, and it is told why.",
			ask:    target(150), tells: map[string]told{"a": {requests: 1200, inFlight: -1, names: []string{"ts_inference_requests_total"}}},
			want: &v1alpha1.ScalingObservation{
				Signal: v1alpha1.SignalRequestRate, PerReplica: new(13.0),
				Message: "the load that a replica bears is not learned: the pods run TorchServe and expose no histogram of the latency: " +
					"TorchServe only sums durations up: give the handler a histogram of its own and name it in the query latency of spec.metrics.queries",
			},
		},
		"Query": {
			reason: "A query of one's own is told as each slot would ask it.",
			ask:    asks(v1alpha1.SignalQuery, query("sum(rate(q[$window]))"), per(5)), own: map[string]model.Value{"sum(rate(q[2m]))": vector(12)},
			want: &v1alpha1.ScalingObservation{Signal: v1alpha1.SignalQuery, PerReplica: new(5.0), Expressions: []v1alpha1.SlotExpression{
				{Slot: "a", Series: "capstan:custom", Expression: `sum(rate(q{algorithm="reco",namespace="shop",slot="a"}[2m]))`},
			}},
		},
		"QueryLearned": {
			reason: "In a unit that nobody knows learning begins with what replicas bear.",
			ask:    asks(v1alpha1.SignalQuery, query("q"), ms(150)), own: map[string]model.Value{"q": vector(6, 6)}, tells: map[string]told{"a": algorithm(1200, 0, 2)},
			want: &v1alpha1.ScalingObservation{Signal: v1alpha1.SignalQuery, PerReplica: new(6.0), Expressions: []v1alpha1.SlotExpression{
				{Slot: "a", Series: "capstan:custom", Expression: `q{algorithm="reco",namespace="shop",slot="a"}`},
			}},
		},
		"QueryWrong": {
			reason: "A query that is none is told, with where it is wrong.",
			ask:    asks(v1alpha1.SignalQuery, query("sum(q"), per(5)),
			want:   &v1alpha1.ScalingObservation{Signal: v1alpha1.SignalQuery, PerReplica: new(5.0), Message: "the query is not PromQL: 1:6: parse error: unclosed left parenthesis: correct the query"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cr := measured(func(m *v1alpha1.MetricsParameters) { m.Checks, m.Scaling = nil, tc.ask })
			cr.Status.AtProvider.Scaling = tc.told
			a := &promq.Asker{Prometheus: &prom{slots: tc.tells, own: tc.own}, Namespace: "shop", Algorithm: "reco", Now: now}
			pods := []corev1.Pod{pod("reco-a-1", ready), pod("reco-a-2", ready)}
			m := autoload.Memory{}.Watch("a", readyOf(pods, "a"), now)
			for range max(tc.looks, 1) {
				m = report(cr, m, seen{sample: a.Ask(t.Context(), promq.QuestionOf(cr.Spec.ForProvider.Metrics))}, pods, now)
			}
			if diff := cmp.Diff(tc.want, cr.Status.AtProvider.Scaling); diff != "" {
				t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestLearnsFromPods shows which pods are learned from: those that have been ready for a window.
func TestLearnsFromPods(t *testing.T) {
	slow := algorithm(12000, 0, 4)
	slow.latency = map[float64]float64{0.05: 0, 0.5: 12000, math.Inf(1): 12000}
	p := &prom{slots: map[string]told{"a": slow}}
	one, two := pod("reco-a-1", ready), pod("reco-a-2", ready)
	s := newStand(t, p, nil, measured(func(m *v1alpha1.MetricsParameters) {
		m.Checks = nil
		m.Scaling = &v1alpha1.ScalingParameters{Slot: "a", TargetLatencyMs: new(int32(100)), Percentile: 95}
	}), &one, &two)
	learned := func() float64 { return *s.get().Status.AtProvider.Scaling.PerReplica }
	pass := func(d time.Duration) {
		for range d / (30 * time.Second) {
			s.clock = s.clock.Add(30 * time.Second)
			s.reconcile()
		}
	}
	s.reconcile()
	pass(90 * time.Second)
	if got := learned(); got != 2 {
		t.Errorf("For a window nothing is learned from pods that were not seen before, got %g", got)
	}
	pass(30 * time.Second)
	if got := learned(); got != 1.6 {
		t.Errorf("After it the load should fall by a fifth, got %g", got)
	}
	three := pod("reco-a-3", ready)
	if err := s.kube.Create(t.Context(), &three); err != nil {
		t.Fatal(err)
	}
	pass(90 * time.Second)
	if got := learned(); got != 1.6 {
		t.Errorf("After a change of replicas nothing is learned for a window, got %g", got)
	}
}

func TestTogether(t *testing.T) {
	// Many Analyses that look at once, with the race detector.
	p := &prom{slots: map[string]told{"a": algorithm(1200, 0, 1)}}
	l := newLooker(func(context.Context, *v1alpha1.Analysis) (promq.Querier, outside.Tenant, error) {
		return p, outside.Tenant{Namespace: "shop"}, nil
	}, func() time.Time { return now }, func(types.NamespacedName) {})
	var all []*look
	for i := range 100 {
		a := measured()
		a.Name = fmt.Sprint("watch-", i)
		all = append(all, l.begin(t.Context(), a, found{}, 0))
	}
	for _, k := range all {
		<-k.done
		if k.sample.Failure != nil || !k.sample.Slots["a"].Requests.Known() {
			t.Errorf("Each should have its answer, got %+v", k.sample)
		}
	}
	if got := p.count(); got != 200 {
		t.Errorf("want two queries each, got %d", got)
	}
}

func TestMessagesAreSteady(t *testing.T) {
	// Numbers that change by themselves would change the message, and so be written.
	for _, n := range []float64{0, 1, 12, 50} {
		a := &promq.Asker{Prometheus: &prom{slots: map[string]told{"a": algorithm(n, 0, 0)}}, Namespace: "shop", Algorithm: "reco", Now: now}
		m := metricsOf("a")
		s := a.Ask(t.Context(), promq.QuestionOf(&m))
		for _, c := range everyCheck[:2] {
			if m := verdict.Judge(c, verdict.Evidence{Slot: "a", Recent: s, Window: 2 * time.Minute, Ready: func(string) int { return 1 }}).Message; strings.Contains(m, fmt.Sprintf(" %g ", n)) || m == "" {
				t.Errorf("The message of %d requests should not hold their number, got %q", int(n), m)
			}
		}
	}
}
