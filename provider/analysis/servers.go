// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/common/model"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/prometheus"
	"github.com/capstan-dev/capstan/provider/modelserver"
)

// rediscover is how often it is asked anew which server tells the metrics: its
// names stay, but those of a better one may come later.
const rediscover = 10 * time.Minute

// Servers that were recognised by slot, and when.
type discovery struct {
	servers map[string]string
	at      time.Time

	// accounts of the error budget.
	accounts accounts

	// arms of an experiment, as they were counted last.
	arms *arms
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
