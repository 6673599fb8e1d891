// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/common/model"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	apis "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/prometheus"
	"github.com/capstan-dev/capstan/provider/modelserver"
)

const (
	// together is how many queries of one Analysis are asked at a time.
	together = 4

	// rediscover is how often it is asked anew which server tells the metrics: its
	// names stay, but those of a better one may come later.
	rediscover = 10 * time.Minute
)

// What keeps a measure from being known, and what to do.
const (
	notScraped = "Prometheus scrapes no pod of this slot: see that it is set up to scrape the pods of Algorithms, " +
		"and that they serve metrics on spec.metrics.port and path"
	notKnown = "the pods tell no metric of a known model server: set spec.metrics.queries"
	tooFresh = "the pods were scraped only once in the window: it must hold at least two scrapes, better four"
	notFound = "there is no such series: correct the query, or wait until the pods tell it"
	notFinit = "the value is not a number"
)

// A querier evaluates PromQL on series of pods.
type querier interface {
	Query(ctx context.Context, pods prometheus.Pods, query string) (model.Value, error)

	// QueryAt is Query at a time, or now when it is zero.
	QueryAt(ctx context.Context, pods prometheus.Pods, query string, at time.Time) (model.Value, error)
}

// A reading is a value, or why there is none.
type reading struct {
	value float64

	// verdict is NoData or Error when there is no value.
	verdict v1alpha1.Verdict
	message string
}

func (r reading) known() bool { return r.verdict == "" }

func noData(message string) reading {
	return reading{verdict: v1alpha1.VerdictNoData, message: message}
}

// failed is the reading of a query that was not answered.
func failed(f *outside.Failure) reading {
	return reading{verdict: v1alpha1.VerdictError, message: bounded(f.Error(), maxMessage)}
}

// misused is the reading of a query whose answer is of the wrong form.
func misused(message string) reading {
	return reading{verdict: v1alpha1.VerdictError, message: message}
}

// Measures of the pods of a slot.
type measures struct {
	// server that was recognised, or "".
	server string

	requests, failures, inFlight reading

	// latency is nil when the reading is not known.
	latency     histogram
	latencyRead reading

	// inFlightTold and requestsTold tell whether there are such series, even if they
	// hold no number yet.
	inFlightTold, requestsTold bool
}

// A sample is everything that was asked in one look.
type sample struct {
	// slots that were asked about.
	slots map[string]*measures

	// checks are readings of queries of one's own, by slot and name of the check.
	checks map[place]reading

	// distributions are what checks of kind Drift compare, and references what they are
	// compared with, by name of the check.
	distributions map[place]distribution
	references    map[string]distribution

	// load is what the query of signal Query gives, if there is one.
	load reading

	// slo is what was spent of an error budget, if there is one.
	slo *accounts

	// failure that kept Prometheus as a whole from answering, or nil.
	failure *outside.Failure
}

func newSample() sample {
	return sample{
		slots: map[string]*measures{}, checks: map[place]reading{},
		distributions: map[place]distribution{}, references: map[string]distribution{},
	}
}

// of a slot that may not have been asked about.
func (s *sample) of(slot string) *measures {
	if m := s.slots[slot]; m != nil {
		return m
	}

	return unscraped()
}

// distribution of what a check of kind Drift compares, and the reference of one that may
// not have been asked for.
func (s *sample) distribution(at place) distribution { return askedFor(s.distributions, at) }

func (s *sample) reference(name string) distribution { return askedFor(s.references, name) }

func unscraped() *measures {
	m := &measures{}
	m.none(notScraped)

	return m
}

// A distribution of what pods tell, which is nil when the reading is not known.
type distribution struct {
	reading
	histogram
}

func askedFor[K comparable](all map[K]distribution, at K) distribution {
	if d, ok := all[at]; ok {
		return d
	}

	return distribution{reading: noData(notFound)}
}

// A place of a check.
type place struct{ slot, name string }

// Servers that were recognised by slot, and when.
type discovery struct {
	servers map[string]string
	at      time.Time

	// accounts of the error budget.
	accounts accounts

	// arms of an experiment, as they were counted last.
	arms *arms
}

// An asker asks all that one Analysis wants to know.
type asker struct {
	prometheus querier
	namespace  string
	algorithm  string
	metrics    v1alpha1.MetricsParameters

	// trial is the canary that is asked about, if one is.
	trial *v1alpha1.CanaryParameters

	// beside are slots that something else is asked about in the same look.
	beside []string

	// found is what was discovered before, and is replaced.
	found discovery
	now   time.Time
}

// wants are the measures that somebody looks at.
type wants struct{ requests, failures, latency, inFlight bool }

func (a *asker) wants() wants {
	// A verdict on a canary takes requests, whatever it is about.
	w := wants{requests: a.trial != nil}

	for _, c := range a.metrics.Checks {
		switch c.Kind {
		case v1alpha1.CheckSuccessRatio:
			w.requests, w.failures = true, true
		case v1alpha1.CheckLatency:
			w.latency = true
		case v1alpha1.CheckRequestRate:
			w.requests = true
		case v1alpha1.CheckInFlight:
			w.inFlight = true
		case v1alpha1.CheckQuery, v1alpha1.CheckDrift:
		}
	}

	s := a.metrics.Scaling
	if s == nil {
		return w
	}

	switch s.Signal {
	case v1alpha1.SignalAuto, "":
		w.requests, w.inFlight = true, true
	case v1alpha1.SignalInFlight:
		w.inFlight = true
	case v1alpha1.SignalRequestRate:
		w.requests = true
	case v1alpha1.SignalCPU, v1alpha1.SignalQuery:
	}

	if s.TargetLatencyMs != nil && s.Signal != v1alpha1.SignalCPU {
		w.latency = true
	}

	return w
}

// others are the measures for which there is no query of one's own.
func (w wants) others(own v1alpha1.Queries) wants {
	return wants{
		requests: w.requests && own.Requests == "",
		failures: w.failures && own.Failures == "",
		latency:  w.latency && own.Latency == "",
		inFlight: w.inFlight && own.InFlight == "",
	}
}

func (w wants) any() bool { return w.requests || w.failures || w.latency || w.inFlight }

// own are the queries of one's own in place of the built-in ones.
func (a *asker) own() v1alpha1.Queries {
	if a.metrics.Queries == nil {
		return v1alpha1.Queries{}
	}

	return *a.metrics.Queries
}

// window of the metrics as PromQL has it.
func window(m *v1alpha1.MetricsParameters) string { return model.Duration(windowOf(m)).String() }

// filled is a query of one's own with the window in it.
func filled(query string, m *v1alpha1.MetricsParameters) string {
	return strings.ReplaceAll(query, "$window", window(m))
}

// ask everything. When Prometheus as a whole does not answer, the rest is not
// asked any more.
func (a *asker) ask(ctx context.Context) sample {
	s := newSample()
	for _, slot := range a.metrics.Slots {
		s.slots[slot] = unscraped()
	}

	if a.wants().others(a.own()).any() {
		s.failure = a.builtIn(ctx, s.slots)
	}

	if s.failure == nil {
		a.ownQueries(ctx, &s)
	}

	if s.failure != nil {
		a.fail(&s)
	}

	return s
}

// fail makes everything that was to be asked an error.
func (a *asker) fail(s *sample) {
	r := failed(s.failure)
	s.load = r

	for _, slot := range a.metrics.Slots {
		s.slots[slot] = &measures{requests: r, failures: r, inFlight: r, latencyRead: r}

		for _, c := range a.metrics.Checks {
			switch c.Kind {
			case v1alpha1.CheckQuery:
				s.checks[place{slot, c.Name}] = r
			case v1alpha1.CheckDrift:
				s.distributions[place{slot, c.Name}], s.references[c.Name] = distribution{reading: r}, distribution{reading: r}
			case v1alpha1.CheckSuccessRatio, v1alpha1.CheckLatency, v1alpha1.CheckRequestRate, v1alpha1.CheckInFlight:
			}
		}
	}
}

// pods of slots.
func (a *asker) pods(slots ...string) prometheus.Pods {
	return prometheus.Pods{Namespace: a.namespace, Algorithm: a.algorithm, Slots: slots}
}

// builtIn asks for the measures by the names of the known servers: one query to
// find out which server it is, now and then, and one for each server, which is one
// unless the slots have different ones.
func (a *asker) builtIn(ctx context.Context, slots map[string]*measures) *outside.Failure {
	if f := a.discover(ctx); f != nil {
		return f
	}

	of := map[string][]string{}

	for _, slot := range a.metrics.Slots {
		if name := a.found.servers[slot]; name != "" {
			of[name] = append(of[name], slot)
		}
	}

	for _, name := range slices.Sorted(maps.Keys(of)) {
		server, ok := modelserver.Find(name)
		if !ok {
			continue
		}

		v, err := a.prometheus.Query(ctx, a.pods(of[name]...), server.Query(window(&a.metrics)))
		if err != nil {
			return outside.Understand(prometheus.Explain, err)
		}

		lines, ok := v.(model.Vector)
		if !ok {
			return outside.Understand(prometheus.Explain, fmt.Errorf("cannot read an answer of type %s", v.Type()))
		}

		for _, slot := range of[name] {
			read(slots[slot], server, ofSlot(lines, slot))

			// The pods may be those of another server by now.
			if slots[slot].server == "" {
				a.found = discovery{arms: a.found.arms}
			}
		}
	}

	for _, slot := range a.metrics.Slots {
		if up, asked := a.found.servers[slot]; asked && up == "" {
			slots[slot].none(notKnown)
		}
	}

	return nil
}

// none makes every measure one without data.
func (m *measures) none(message string) {
	r := noData(message)
	m.requests, m.failures, m.inFlight, m.latencyRead = r, r, r, r
}

// discover which servers tell metrics, unless that is known. A slot whose pods are
// scraped and tell nothing that is known gets an empty name, and one whose pods
// are not scraped gets none. All slots of a look are found out about at once.
func (a *asker) discover(ctx context.Context) *outside.Failure {
	known := a.now.Sub(a.found.at) < rediscover

	for _, slot := range a.metrics.Slots {
		known = known && a.found.servers[slot] != ""
	}

	if known {
		return nil
	}

	slots := slices.Concat(a.metrics.Slots, a.beside)
	slices.Sort(slots)
	slots = slices.Compact(slots)

	v, err := a.prometheus.Query(ctx, a.pods(slots...), modelserver.Discovery())
	if err != nil {
		return outside.Understand(prometheus.Explain, err)
	}

	lines, ok := v.(model.Vector)
	if !ok {
		return outside.Understand(prometheus.Explain, fmt.Errorf("cannot read an answer of type %s", v.Type()))
	}

	a.found = discovery{servers: map[string]string{}, at: a.now, arms: a.found.arms}

	for _, slot := range slots {
		l := ofSlot(lines, slot)
		if len(l[modelserver.MeasureUp]) == 0 {
			continue
		}

		server, _ := modelserver.Recognise(names(l))
		a.found.servers[slot] = server.Name
	}

	return nil
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

// names of metrics that there are.
func names(lines map[string]model.Vector) map[string]bool {
	out := map[string]bool{}
	for _, l := range lines[modelserver.MeasureSeries] {
		out[string(l.Metric[model.MetricNameLabel])] = true
	}

	return out
}

// read the measures of a slot that a server tells. A counter that is not there yet
// counts nothing; one that is there and has no increase was scraped once.
func read(m *measures, server modelserver.Server, lines map[string]model.Vector) {
	if len(lines[modelserver.MeasureUp]) == 0 {
		return
	}

	told := names(lines)
	if len(told) == 0 {
		m.none(notKnown)

		return
	}

	m.server = server.Name
	m.requestsTold, m.inFlightTold = true, modelserver.Tells(server.InFlight, told)

	counted := func(measure string, selectors []string) reading {
		switch lines := lines[measure]; {
		case len(lines) > 0:
			return total(lines)
		case modelserver.Tells(selectors, told):
			return noData(tooFresh)
		default:
			return reading{}
		}
	}

	m.requests = counted(modelserver.MeasureRequests, server.Requests)

	switch {
	case len(server.Failures) == 0:
		m.failures = noData(fmt.Sprintf("the pods run %s, which counts no failures: set spec.metrics.queries.failures", server.Name))
	case len(lines[modelserver.MeasureFailures]) > 0:
		m.failures = total(lines[modelserver.MeasureFailures])
	default:
		// A counter of failures is there with the first one.
		m.failures = reading{}
	}

	switch {
	case len(lines[modelserver.MeasureInFlight]) > 0:
		m.inFlight = total(lines[modelserver.MeasureInFlight])
	default:
		m.inFlight = noData(fmt.Sprintf(
			"the pods run %s and tell no number of requests in flight: set spec.metrics.queries.inFlight", server.Name))
	}

	m.latency, m.latencyRead = buckets(lines[modelserver.MeasureLatency], server.Latency.Milliseconds)

	switch remedy := server.WithoutLatency; {
	case m.latencyRead.verdict != v1alpha1.VerdictNoData:
	case m.requests.known() && m.requests.value == 0, modelserver.Tells([]string{server.Latency.Buckets}, told):
		m.latencyRead.message = noRequests
	case remedy == "":
		remedy = "set spec.metrics.queries.latency"

		fallthrough
	default:
		m.latencyRead.message = fmt.Sprintf("the pods run %s and tell no histogram of the latency: %s", server.Name, remedy)
	}
}

// total of the values of an answer.
func total(lines model.Vector) reading {
	sum := 0.0

	for _, l := range lines {
		if l.Histogram != nil {
			return misused("the query gives native histograms where numbers are added up: use histogram_count")
		}

		sum += float64(l.Value)
	}

	if math.IsNaN(sum) || math.IsInf(sum, 0) {
		return noData(notFinit)
	}

	return reading{value: sum}
}

// buckets of an answer, as a histogram in milliseconds.
func buckets(lines model.Vector, unit float64) (histogram, reading) {
	counts := map[float64]float64{}

	for _, l := range lines {
		if l.Histogram != nil {
			return nil, misused("the query gives native histograms where buckets with the label le are needed: " +
				"let the server tell classic histograms, too")
		}

		le, err := strconv.ParseFloat(string(l.Metric[model.BucketLabel]), 64)
		if err != nil || math.IsNaN(le) {
			return nil, misused("the query gives series without the label le: it must keep the buckets of a histogram, " +
				"for instance increase(x_seconds_bucket[$window])")
		}

		counts[le*unit] += float64(l.Value)
	}

	if len(counts) == 0 {
		return nil, noData(notFound)
	}

	all := make([]bucket, 0, len(counts))
	for le, n := range counts {
		all = append(all, bucket{milliseconds: le, count: n})
	}

	h := newHistogram(all)
	if h == nil {
		return nil, noData("the buckets are no histogram: there must be one with le=\"+Inf\", and another")
	}

	return h, reading{}
}

// An inquiry is a query of one's own.
type inquiry struct {
	pods  prometheus.Pods
	query string
	at    time.Time
	take  func(model.Value, error)
}

// ownQueries asks all queries of one's own, each slot apart. What is wrong with one
// does not touch the others.
func (a *asker) ownQueries(ctx context.Context, s *sample) {
	asked := a.inquiries(s)
	if len(asked) == 0 {
		return
	}

	var (
		mu       sync.Mutex
		wg       sync.WaitGroup
		failures []*outside.Failure
	)

	limit := make(chan struct{}, together)

	for _, q := range asked {
		limit <- struct{}{}

		wg.Go(func() {
			defer func() { <-limit }()

			v, err := a.prometheus.QueryAt(ctx, q.pods, filled(q.query, &a.metrics), q.at)

			mu.Lock()
			defer mu.Unlock()

			if err != nil {
				f := outside.Understand(prometheus.Explain, err)
				failures, err = append(failures, f), f
			}

			q.take(v, err)
		})
	}

	wg.Wait()

	// That Prometheus as a whole does not answer shows in all of them.
	if len(failures) == len(asked) && !slices.ContainsFunc(failures, rejected) && !a.wants().others(a.own()).any() {
		s.failure = failures[0]
	}
}

func rejected(f *outside.Failure) bool { return f.Reason == apis.ReasonRejected }

func (a *asker) inquiries(s *sample) []inquiry {
	var all []inquiry

	own, wanted := a.own(), a.wants()

	for _, slot := range a.metrics.Slots {
		m := s.slots[slot]

		for _, q := range []struct {
			wanted bool
			query  string
			take   func(model.Value, error)
		}{
			{wanted.requests, own.Requests, func(v model.Value, err error) {
				m.requests = sum(v, err, noData(notFound))
				m.requestsTold = m.requests.known()
			}},
			{wanted.failures, own.Failures, func(v model.Value, err error) { m.failures = sum(v, err, reading{}) }},
			{wanted.inFlight, own.InFlight, func(v model.Value, err error) {
				m.inFlight = sum(v, err, noData(notFound))
				m.inFlightTold = m.inFlight.known()
			}},
			{wanted.latency, own.Latency, func(v model.Value, err error) { m.latency, m.latencyRead = ownBuckets(v, err) }},
		} {
			if q.wanted && q.query != "" {
				all = append(all, inquiry{pods: a.pods(slot), query: q.query, take: q.take})
			}
		}

		for _, c := range a.metrics.Checks {
			// A baseline is asked only about what is compared with it.
			if a.trial != nil && slot != a.trial.Slot && c.RelativeTo == "" {
				continue
			}

			here := place{slot, c.Name}

			switch c.Kind {
			case v1alpha1.CheckQuery:
				all = append(all, inquiry{pods: a.pods(slot), query: c.Query, take: func(v model.Value, err error) {
					s.checks[here] = single(v, err)
				}})
			case v1alpha1.CheckDrift:
				all = append(all, inquiry{pods: a.pods(slot), query: c.Query, take: func(v model.Value, err error) {
					s.distributions[here] = distributionOf(v, err)
				}})
			case v1alpha1.CheckSuccessRatio, v1alpha1.CheckLatency, v1alpha1.CheckRequestRate, v1alpha1.CheckInFlight:
			}
		}
	}

	for _, c := range a.metrics.Checks {
		if c.Kind != v1alpha1.CheckDrift || c.Reference == nil {
			continue
		}

		// Revisions change slots: what all of them told together is the past.
		every := prometheus.Pods{Namespace: a.namespace, Algorithm: a.algorithm, AnySlot: true}

		all = append(all, inquiry{pods: every, query: c.Query, at: a.now.Add(-c.Reference.Duration), take: func(v model.Value, err error) {
			s.references[c.Name] = distributionOf(v, err)
		}})
	}

	if sc := a.metrics.Scaling; sc != nil && sc.Signal == v1alpha1.SignalQuery {
		all = append(all, inquiry{pods: a.pods(sc.Slot), query: sc.Query, take: func(v model.Value, err error) {
			s.load = sum(v, err, noData(notFound))
		}})
	}

	return all
}

// sum of the series that a query gives. None is what none says.
func sum(v model.Value, err error, none reading) reading {
	switch v := v.(type) {
	case model.Vector:
		if len(v) == 0 {
			return none
		}

		return total(v)
	default:
		return single(v, err)
	}
}

// single value that a query gives.
func single(v model.Value, err error) reading {
	if f := (*outside.Failure)(nil); errors.As(err, &f) {
		return failed(f)
	}

	switch v := v.(type) {
	case *model.Scalar:
		if n := float64(v.Value); !math.IsNaN(n) && !math.IsInf(n, 0) {
			return reading{value: n}
		}

		return noData(notFinit)
	case model.Vector:
		switch len(v) {
		case 0:
			return noData(notFound)
		case 1:
			return total(v)
		default:
			return misused("the query gives several series where one value is compared: aggregate them, for instance with sum(…)")
		}
	case model.Matrix:
		return misused("the query gives a range where one value is compared: use a function over time, for instance avg_over_time(…)")
	default:
		return misused("the query gives no number")
	}
}

// ownBuckets are the buckets in seconds that a query of one's own gives.
func ownBuckets(v model.Value, err error) (histogram, reading) {
	if err != nil || v == nil {
		return nil, single(v, err)
	}

	lines, ok := v.(model.Vector)
	if !ok {
		return nil, misused("the query gives no series with the label le: it must keep the buckets of a histogram, " +
			"for instance increase(x_seconds_bucket[$window])")
	}

	return buckets(lines, 1000)
}

// distributionOf what a query of one's own gives, in its own unit.
func distributionOf(v model.Value, err error) distribution {
	if err != nil || v == nil {
		return distribution{reading: single(v, err)}
	}

	lines, ok := v.(model.Vector)
	if !ok {
		return distribution{reading: misused("the query gives no series with the label le: it must keep the buckets of a histogram, " +
			"for instance increase(x_bucket[$window])")}
	}

	h, r := buckets(lines, 1)

	return distribution{r, h}
}

// connected is the condition that tells how Prometheus answered.
func (s *sample) connected() xpv2.Condition {
	if s.failure != nil {
		return outside.Failed(s.failure)
	}

	return outside.Answered()
}
