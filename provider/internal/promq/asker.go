// SPDX-License-Identifier: Apache-2.0

package promq

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/common/model"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/prometheus"
	"github.com/capstan-dev/capstan/provider/modelserver"
)

// Rediscover is the time after which the provider discovers again which server exposes the metrics: its names stay, but a better
// one may appear later.
const Rediscover = 10 * time.Minute

// A Querier evaluates PromQL on series of pods, at a time or now when it is zero.
type Querier interface {
	QueryAt(ctx context.Context, pods prometheus.Pods, query string, at time.Time) (model.Value, error)
}

// Discovery is what one look leaves to the next.
type Discovery struct {
	// Servers that were recognised by slot, and when.
	Servers map[string]string
	At      time.Time
	// Distributions that drift is measured by, by slot.
	Distributions map[string]string
	// Scrapes is the time between two scrapes of a pod, in whole seconds, or zero while it is unknown.
	Scrapes time.Duration
	// Arms of an experiment, as they were counted last.
	Arms *Arms
}

// An Asker asks about the pods of one Algorithm.
type Asker struct {
	Prometheus Querier
	Namespace  string
	Algorithm  string
	// Slots of all questions of this look: their servers are discovered at once.
	Slots []string
	Now   time.Time
	// Found is what looks have discovered so far. Questions refresh it.
	Found Discovery
}

// Pods of slots.
func (a *Asker) Pods(slots ...string) prometheus.Pods {
	return prometheus.Pods{Namespace: a.Namespace, Algorithm: a.Algorithm, Slots: slots}
}

// AllPods of the Algorithm, in any slot.
func (a *Asker) AllPods() prometheus.Pods {
	return prometheus.Pods{Namespace: a.Namespace, Algorithm: a.Algorithm, AnySlot: true}
}

// Query now.
func (a *Asker) Query(ctx context.Context, pods prometheus.Pods, query string) (model.Value, *outside.Failure) {
	v, err := a.Prometheus.QueryAt(ctx, pods, query, time.Time{})
	if err != nil {
		return nil, outside.Understand(prometheus.Explain, err)
	}
	return v, nil
}

// vector that a query of our own gives.
func (a *Asker) vector(ctx context.Context, query string, slots []string) (model.Vector, *outside.Failure) {
	v, f := a.Query(ctx, a.Pods(slots...), query)
	if f != nil {
		return nil, f
	}
	lines, ok := v.(model.Vector)
	if !ok {
		return nil, outside.Understand(prometheus.Explain, fmt.Errorf("cannot read an answer of type %s", v.Type()))
	}
	return lines, nil
}

// Ask a question. When Prometheus as a whole does not answer, the rest is not asked any more.
func (a *Asker) Ask(ctx context.Context, q Question) Sample {
	s := NewSample()
	for _, slot := range q.Slots {
		s.Slots[slot] = unknown(NoData(NotScraped))
	}
	var f *outside.Failure
	if q.BuiltIn() {
		f = a.builtIn(ctx, q, s.Slots)
	}
	if f == nil {
		s.Load, f = a.custom(ctx, q, s)
	}
	if f != nil {
		return Unanswered(f)
	}
	return s
}

// builtIn asks for the measures by the names of the known servers: one query to find out which server it is, now and then, and
// one for each server, which is one unless the slots have different ones.
func (a *Asker) builtIn(ctx context.Context, q Question, slots map[string]*Measures) *outside.Failure {
	if f := a.Discover(ctx, q.Slots); f != nil {
		return f
	}
	by := map[string][]string{}
	for _, slot := range q.Slots {
		if name := a.Found.Servers[slot]; name != "" {
			by[name] = append(by[name], slot)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(by)) {
		server, ok := modelserver.Find(name)
		if !ok {
			continue
		}
		lines, f := a.vector(ctx, server.Query(Range(q.Window), q.needs().tokens), by[name])
		if f != nil {
			return f
		}
		if every := scrapes(lines); every > 0 {
			a.Found.Scrapes = every
		}
		for _, slot := range by[name] {
			slots[slot] = read(server, ofSlot(lines, slot))
			// The pods may run another server by now.
			if slots[slot].Server == "" {
				a.Found = Discovery{Arms: a.Found.Arms, Scrapes: a.Found.Scrapes}
			}
		}
	}
	for _, slot := range q.Slots {
		if server, scraped := a.Found.Servers[slot]; scraped && server == "" {
			slots[slot] = unknown(NoData(NotKnown))
		}
	}
	return nil
}

// Discover which servers expose metrics, unless that is known. A slot whose pods are scraped and expose nothing that is known
// gets an empty name, and one whose pods are not scraped gets none.
func (a *Asker) Discover(ctx context.Context, slots []string) *outside.Failure {
	known := a.Now.Sub(a.Found.At) < Rediscover
	for _, slot := range slots {
		known = known && a.Found.Servers[slot] != ""
	}
	if known {
		return nil
	}
	all := slices.Concat(slots, a.Slots)
	slices.Sort(all)
	all = slices.Compact(all)
	lines, f := a.vector(ctx, modelserver.Discovery(), all)
	if f != nil {
		return f
	}
	a.Found = Discovery{
		Servers: map[string]string{}, Distributions: map[string]string{}, At: a.Now, Arms: a.Found.Arms, Scrapes: a.Found.Scrapes,
	}
	for _, slot := range all {
		if l := ofSlot(lines, slot); len(l[modelserver.MeasureUp]) > 0 {
			server, _ := modelserver.Recognise(names(l, modelserver.MeasureSeries))
			a.Found.Servers[slot], a.Found.Distributions[slot] = server.Name, distribution(l)
		}
	}
	return nil
}

// scrapes is the time between two scrapes of the pod that was scraped most often in a minute: others may be younger. It is zero
// without one.
func scrapes(lines model.Vector) time.Duration {
	most := 0.0
	for _, l := range lines {
		if string(l.Metric[modelserver.LabelMeasure]) == modelserver.MeasureScrapes {
			most = max(most, float64(l.Value))
		}
	}
	if most < 1 {
		return 0
	}
	return time.Duration(math.Ceil(60/most)) * time.Second
}

// ofSlot are the lines of an answer that are about a slot, by measure.
func ofSlot(lines model.Vector, slot string) map[string]model.Vector {
	out := map[string]model.Vector{}
	for _, l := range lines {
		if string(l.Metric[modelserver.LabelSlot]) == slot {
			m := string(l.Metric[modelserver.LabelMeasure])
			out[m] = append(out[m], l)
		}
	}
	return out
}

// names of metrics that there are, of a measure.
func names(lines map[string]model.Vector, measure string) map[string]bool {
	out := map[string]bool{}
	for _, l := range lines[measure] {
		out[string(l.Metric[model.MetricNameLabel])] = true
	}
	return out
}

// distribution that drift is measured by, or empty.
func distribution(lines map[string]model.Vector) string {
	there := names(lines, modelserver.MeasureDistribution)
	for _, d := range modelserver.Distributions() {
		if there[d] {
			return d
		}
	}
	return ""
}

// read the measures of a slot that a server exposes. A counter that is not there yet counts nothing; one that is there and has no
// increase was scraped once.
func read(server modelserver.Server, lines map[string]model.Vector) *Measures {
	if len(lines[modelserver.MeasureUp]) == 0 {
		return unknown(NoData(NotScraped))
	}
	there := names(lines, modelserver.MeasureSeries)
	if len(there) == 0 {
		return unknown(NoData(NotKnown))
	}
	m := &Measures{Server: server.Name, HasRequests: true, HasInFlight: modelserver.Exposes(server.InFlight, there)}
	switch l := lines[modelserver.MeasureRequests]; {
	case len(l) > 0:
		m.Requests = Total(l)
	case modelserver.Exposes(server.Requests, there):
		m.Requests = NoData(tooFresh)
	}
	// A counter of failures is there with the first one.
	m.Failures = Total(lines[modelserver.MeasureFailures])
	if len(server.Failures) == 0 {
		m.Failures = NoData(noFailures(server.Name))
	}
	m.InFlight = Total(lines[modelserver.MeasureInFlight])
	if len(lines[modelserver.MeasureInFlight]) == 0 {
		m.InFlight = NoData(fmt.Sprintf(
			"the pods run %s and expose no number of requests in flight: set the query in-flight in spec.metrics.queries", server.Name))
	}
	m.Latency = Buckets(lines[modelserver.MeasureLatency], nil, server.Latency.Milliseconds)
	switch {
	case m.Latency.Verdict != v1alpha1.VerdictNoData:
	case m.Requests.Known() && m.Requests.Value == 0, modelserver.Exposes([]string{server.Latency.Buckets}, there):
		m.Latency.Message = NoRequests
	default:
		m.Latency.Message = NoHistogram(server, server.WithoutLatency)
	}
	m.Tokens = readTokens(server, lines, there, m.Requests)
	return m
}

// readTokens of a slot, where the question was about them.
func readTokens(server modelserver.Server, lines map[string]model.Vector, there map[string]bool, requests Reading) Tokens {
	remedy := func(what string) string {
		return fmt.Sprintf("the pods run %s and expose no %s: set a check of your own in its place", server.Name, what)
	}
	histogram := func(measure string, h modelserver.Histogram, what string) Distribution {
		d := Buckets(lines[measure], nil, h.Milliseconds)
		switch {
		case d.Verdict != v1alpha1.VerdictNoData:
		case h.Buckets != "" && (requests.Known() && requests.Value == 0 || modelserver.Exposes([]string{h.Buckets}, there)):
			d.Message = NoRequests
		default:
			d.Message = remedy(what)
		}
		if h.EachToken && d.Known() && requests.Known() {
			d.Histogram = d.Counting(requests.Value)
		}
		return d
	}
	sum := func(measure, what string) Reading {
		if l := lines[measure]; len(l) > 0 {
			return Total(l)
		}
		return NoData(remedy(what))
	}
	return Tokens{
		First:     histogram(modelserver.MeasureFirstToken, server.Tokens.First, "histogram of the time to the first token"),
		Each:      histogram(modelserver.MeasureEachToken, server.Tokens.Each, "histogram of the time for each token"),
		Generated: sum(modelserver.MeasureTokens, "number of tokens"),
		Waiting:   sum(modelserver.MeasureWaiting, "number of requests that wait"),
		Cache:     sum(modelserver.MeasureCache, "use of a cache"),
	}
}

func noFailures(server string) string {
	return fmt.Sprintf("the pods run %s, which counts no failures: set the query failures in spec.metrics.queries", server)
}

// UncountedFailures is why the failures of a server's requests are not counted, or empty while they are or no server is known.
func UncountedFailures(server string, m *v1alpha1.MetricsParameters) string {
	known, ok := modelserver.Find(server)
	if !ok || len(known.Failures) > 0 || m.Queries != nil && m.Queries.Failures != "" {
		return ""
	}
	return noFailures(server)
}

// NoHistogram is why the latency of a server is unknown, and what to do.
func NoHistogram(server modelserver.Server, remedy string) string {
	if remedy == "" {
		remedy = "set the query latency in spec.metrics.queries"
	}
	return fmt.Sprintf("the pods run %s and expose no histogram of the latency: %s", server.Name, remedy)
}

// Once sends the same query only once per look: questions about a canary cover the same window as all other questions.
func Once(q Querier) Querier {
	return &once{querier: q, answers: map[string]func() (model.Value, error){}}
}

type once struct {
	querier Querier
	mu      sync.Mutex
	answers map[string]func() (model.Value, error)
}

// QueryAt returns the answer of an earlier call with the same arguments, and sends the query when there was none.
func (o *once) QueryAt(ctx context.Context, pods prometheus.Pods, query string, at time.Time) (model.Value, error) {
	key := keyOf(pods, query, at.UnixNano())
	o.mu.Lock()
	answer := o.answers[key]
	if answer == nil {
		answer = sync.OnceValues(func() (model.Value, error) { return o.querier.QueryAt(ctx, pods, query, at) })
		o.answers[key] = answer
	}
	o.mu.Unlock()
	return answer()
}

// keyOf a query about pods at a time. All of them are of one Algorithm.
func keyOf(pods prometheus.Pods, query string, at int64) string {
	slots := slices.Sorted(slices.Values(pods.Slots))
	return fmt.Sprintf("%q %t %q %d", strings.Join(slots, "|"), pods.AnySlot, query, at)
}
