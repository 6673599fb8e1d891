// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/prometheus"
	"github.com/capstan-dev/capstan/provider/modelserver"
)

const (
	// defaultSLOWindow is the one of the schema.
	defaultSLOWindow = 720 * time.Hour

	// The long window is asked for every five minutes: in a week that is a tenth of a
	// percent. The short ones move faster and cost less.
	accountEvery, burnEvery = 5 * time.Minute, time.Minute

	// Windows of burn rates.
	shortBurn, longBurn = time.Hour, 6 * time.Hour

	// ages is into how many steps the window is divided to find out how much of it
	// Prometheus knows.
	ages = 100
)

const (
	notRecorded = "Prometheus has recorded nothing of these pods: load the rules of package/monitoring, and see that it scrapes the pods, " +
		"or set spec.metrics.queries"
	noFailures = "no failures are recorded of these pods: their server counts none, or is not known: set spec.metrics.queries.failures"
)

// spent of an error budget within a window. It is not known as long as its reading
// is not, whose value is the share of bad requests.
type spent struct {
	reading

	requests     float64
	failed, slow float64
}

// accounts of an error budget, and when they were made.
type accounts struct {
	windowAt, burnAt time.Time

	window, hour, sixHours spent

	// brief tells that Prometheus knows less than the window.
	brief bool

	// edge of the buckets around the latency that is asked for.
	edge edge

	expressions []v1alpha1.SLOExpression
}

// account for the objective: what is due is asked, and the rest is as it was. It is
// kept with what was discovered, because it is of no more use once something else
// is asked.
func (a *asker) account(ctx context.Context, kept accounts, s *sample) {
	if a.metrics.SLO == nil {
		return
	}

	at := kept

	if s.failure == nil && a.now.Sub(kept.burnAt) >= burnEvery {
		at = a.accounted(ctx, kept)
	}

	s.slo, a.found.accounts = &at, at
}

func (a *asker) accounted(ctx context.Context, kept accounts) accounts {
	p, at := a.metrics.SLO, kept

	// What all of this is needed for is asked first. The latency of the last hour
	// tells which buckets the long windows are to be asked for.
	var hour []latencyBucket

	at.hour, hour = a.spend(ctx, shortBurn, nil)
	if at.hour.verdict == v1alpha1.VerdictError {
		at.window, at.windowAt, at.burnAt = at.hour, time.Time{}, time.Time{}

		return at
	}

	at.burnAt = a.now

	if e := edgeOf(p, hour); e.upper != "" {
		at.edge = e
	}

	at.sixHours, _ = a.spend(ctx, longBurn, at.edge.only())

	if a.now.Sub(kept.windowAt) >= accountEvery || !kept.window.known() || !slices.Equal(at.edge.only(), kept.edge.only()) {
		at.windowAt = a.now
		at.window, _ = a.spend(ctx, sloWindowOf(p), at.edge.only())
		at.brief = a.brief(ctx)
	}

	if e := a.sloExpressions(ctx, at.edge); e != nil {
		at.expressions = e
	}

	return at
}

// allPods of the Algorithm, of whatever slot.
func (a *asker) allPods() prometheus.Pods {
	return prometheus.Pods{Namespace: a.namespace, Algorithm: a.algorithm, AnySlot: true}
}

// sloWindowOf an objective.
func sloWindowOf(p *v1alpha1.SLOParameters) time.Duration {
	if p.Window == nil || p.Window.Duration <= 0 {
		return defaultSLOWindow
	}

	return p.Window.Duration
}

// spend is what was spent within a window, and the buckets of the latency, if it
// matters and is known.
func (a *asker) spend(ctx context.Context, within time.Duration, only []string) (spent, []latencyBucket) {
	w := model.Duration(within).String()

	requests, failures := a.counts(ctx, w)
	for _, r := range []reading{requests, failures} {
		if !r.known() {
			return spent{reading: r}, nil
		}
	}

	s := spent{requests: max(requests.value, 0)}
	if s.requests > 0 {
		s.failed = min(max(failures.value/s.requests, 0), 1)
	}

	all, r := []latencyBucket(nil), reading{}

	if a.metrics.SLO.LatencyMs != nil {
		all, r = a.latencyBuckets(ctx, w, only)
		if r.known() {
			s.slow, r = slow(all, float64(*a.metrics.SLO.LatencyMs))
		}

		// Nothing was slow where there was nothing.
		if r.verdict == v1alpha1.VerdictNoData && s.requests == 0 {
			r = reading{}
		}
	}

	s.reading = r
	if r.known() {
		s.value = min(s.failed+s.slow, 1)
	}

	return s, all
}

// counts of requests and failures within a window: as recorded, or as one's own
// queries tell.
func (a *asker) counts(ctx context.Context, window string) (requests, failures reading) {
	requests, failures = noData(notRecorded), noData(noFailures)
	own := a.own()

	if own.Requests == "" || own.Failures == "" {
		v, err := a.prometheus.Query(ctx, a.allPods(), modelserver.Counted(window))
		if err != nil {
			f := failed(outside.Understand(prometheus.Explain, err))

			return f, f
		}

		lines, _ := v.(model.Vector)
		for _, l := range lines {
			switch l.Metric[modelserver.LabelMeasure] {
			case modelserver.MeasureRequests:
				requests = total(model.Vector{l})
			case modelserver.MeasureFailures:
				failures = total(model.Vector{l})
			}
		}
	}

	if own.Requests != "" {
		requests = a.ownOver(ctx, own.Requests, window, noData(notFound))
	}

	if own.Failures != "" {
		failures = a.ownOver(ctx, own.Failures, window, reading{})
	}

	return requests, failures
}

// ownOver a window is what a query of one's own gives. None is what none says.
func (a *asker) ownOver(ctx context.Context, query, window string, none reading) reading {
	v, err := a.prometheus.Query(ctx, a.allPods(), strings.ReplaceAll(query, "$window", window))
	if err != nil {
		return failed(outside.Understand(prometheus.Explain, err))
	}

	return sum(v, nil, none)
}

// A latencyBucket is one with the label that it has in Prometheus.
type latencyBucket struct {
	bucket

	le string
}

// latencyBuckets within a window, of the narrowest first. Only some of them are asked for
// where that is possible: a month of all of them is a lot to read.
func (a *asker) latencyBuckets(ctx context.Context, window string, only []string) ([]latencyBucket, reading) {
	query, unit, r := a.latencyQuery(ctx, window, only)
	if !r.known() {
		return nil, r
	}

	v, err := a.prometheus.Query(ctx, a.allPods(), query)
	if err != nil {
		return nil, failed(outside.Understand(prometheus.Explain, err))
	}

	lines, ok := v.(model.Vector)
	if !ok {
		return nil, misused("the query gives no series with the label le: it must keep the buckets of a histogram, " +
			"for instance increase(x_seconds_bucket[$window])")
	}

	h, r := buckets(lines, unit)
	if !r.known() {
		return nil, r
	}

	labels := map[float64]string{}

	for _, l := range lines {
		le := string(l.Metric[model.BucketLabel])
		labels[ends(le)*unit] = le
	}

	all := make([]latencyBucket, 0, len(h))
	for _, b := range h {
		all = append(all, latencyBucket{b, labels[b.milliseconds]})
	}

	return all, reading{}
}

// latencyQuery gives the buckets of a window, in a unit of so many milliseconds.
func (a *asker) latencyQuery(ctx context.Context, window string, only []string) (string, float64, reading) {
	if own := a.own().Latency; own != "" {
		return strings.ReplaceAll(own, "$window", window), 1000, reading{}
	}

	server, r := a.sloServer(ctx)
	if !r.known() {
		return "", 0, r
	}

	return server.Buckets(window, only...), server.Latency.Milliseconds, reading{}
}

// sloServer is the server that the pods run.
func (a *asker) sloServer(ctx context.Context) (modelserver.Server, reading) {
	if f := a.discover(ctx); f != nil {
		return modelserver.Server{}, failed(f)
	}

	for _, slot := range a.metrics.Slots {
		server, known := modelserver.Find(a.found.servers[slot])

		switch {
		case !known:
		case server.Latency.Buckets == "":
			return server, noData(fmt.Sprintf("the pods run %s and tell no histogram of the latency: set spec.metrics.queries.latency", server.Name))
		default:
			return server, reading{}
		}
	}

	return modelserver.Server{}, noData(notKnown)
}

// slow share of the requests, interpolated within its bucket.
func slow(all []latencyBucket, latencyMs float64) (float64, reading) {
	last := len(all) - 1

	largest, n := all[last-1].milliseconds, all[last].count
	if largest < latencyMs {
		return 0, noData(fmt.Sprintf("the histogram has no bucket above %g ms: add some, or lower spec.slo.latencyMs", largest))
	}

	if n <= 0 {
		return 0, reading{}
	}

	e := edgeAround(all, latencyMs)
	fast := e.share*countOf(all, e.upper) + (1-e.share)*countOf(all, e.lower)

	// What is less than this is how computers add.
	share := 1 - fast/n
	if share < 1e-9 {
		share = 0
	}

	return share, reading{}
}

// An edge is where a latency lies between two buckets: at a share of the way from the
// end of the lower to that of the upper one. Lower is empty below the first, and both
// are where nothing is known.
type edge struct {
	lower, upper string
	share        float64
}

// edgeOf the latency that is asked for, or none.
func edgeOf(p *v1alpha1.SLOParameters, all []latencyBucket) edge {
	if p.LatencyMs == nil || len(all) < 2 || all[len(all)-2].milliseconds < float64(*p.LatencyMs) {
		return edge{}
	}

	return edgeAround(all, float64(*p.LatencyMs))
}

func edgeAround(all []latencyBucket, latencyMs float64) edge {
	i := slices.IndexFunc(all, func(b latencyBucket) bool { return b.milliseconds >= latencyMs })

	if all[i].milliseconds == latencyMs {
		return edge{upper: all[i].le, share: 1}
	}

	if i == 0 {
		return edge{upper: all[0].le, share: latencyMs / all[0].milliseconds}
	}

	from := all[i-1].milliseconds

	return edge{lower: all[i-1].le, upper: all[i].le, share: (latencyMs - from) / (all[i].milliseconds - from)}
}

// only these buckets are needed. None is all.
func (e edge) only() []string {
	if e.upper == "" {
		return nil
	}

	return slices.DeleteFunc([]string{e.lower, e.upper, "+Inf"}, func(le string) bool { return le == "" })
}

func countOf(all []latencyBucket, le string) float64 {
	if i := slices.IndexFunc(all, func(b latencyBucket) bool { return b.le == le }); le != "" && i >= 0 {
		return all[i].count
	}

	return 0
}

// brief tells whether Prometheus knows less than the window. Where it finds no step it
// knows less than one.
func (a *asker) brief(ctx context.Context) bool {
	w := sloWindowOf(a.metrics.SLO)
	step := max(w/ages, time.Minute).Truncate(time.Second)

	v, err := a.prometheus.Query(ctx, a.allPods(), modelserver.Age(model.Duration(w).String(), model.Duration(step).String()))
	if err != nil {
		return false
	}

	age := single(v, nil)

	return !age.known() || age.value < (w-2*step).Seconds()
}

// sloExpressions are what alerts follow: zero without traffic, and not there while no pod
// is scraped. There are none while it is not known what they are made of.
func (a *asker) sloExpressions(ctx context.Context, e edge) []v1alpha1.SLOExpression {
	own, seconds := a.own(), windowOf(&a.metrics).Seconds()

	requests := fmt.Sprintf("sum(%s)", modelserver.RecordRequests)
	if own.Requests != "" {
		requests = fmt.Sprintf("sum(%s) / %g", filled(own.Requests, &a.metrics), seconds)
	}

	bad := fmt.Sprintf("sum(%s)", modelserver.RecordFailures)
	if own.Failures != "" {
		bad = fmt.Sprintf("(sum(%s) / %g or 0 * %s)", filled(own.Failures, &a.metrics), seconds, requests)
	}

	if a.metrics.SLO.LatencyMs != nil {
		of, _, r := a.latencyQuery(ctx, window(&a.metrics), e.only())
		if !r.known() || e.upper == "" {
			return nil
		}

		bad = fmt.Sprintf("%s + (clamp_min(%s - %s, 0) / %g or 0 * %s)", bad, e.all(of), e.within(of), seconds, requests)
	}

	var all []v1alpha1.SLOExpression

	for _, s := range []series{
		{modelserver.RecordSLORequests, "(" + requests + ") < +Inf"}, // not NaN either
		{modelserver.RecordSLOBad, "(" + bad + ") < +Inf"},
	} {
		text, err := a.allPods().Narrow(s.query)
		if err != nil {
			return nil
		}

		all = append(all, v1alpha1.SLOExpression{Series: s.name, Expression: text})
	}

	return all
}

// all requests of buckets.
func (e edge) all(buckets string) string { return countAt(buckets, "+Inf") }

// within the latency, as slow has it.
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

// countAt the end of a bucket. A query of one's own has no place for a matcher, so
// that its buckets are matched with a number that has the label.
func countAt(buckets, le string) string {
	return fmt.Sprintf(`sum((%s) * on (le) group_left () label_replace(vector(1), "le", %q, "", ""))`, buckets, le)
}

// ends is where a bucket ends.
func ends(le string) float64 {
	v, err := strconv.ParseFloat(le, 64)
	if err != nil {
		return math.NaN()
	}

	return v
}
