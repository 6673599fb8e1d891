// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"fmt"
	"slices"
	"strings"
)

// What a line of the answer to Discovery or Query is about, by its label LabelMeasure.
const (
	LabelMeasure = "capstan_measure"
	// MeasureUp is the number of pods that are scraped.
	MeasureUp = "up"
	// MeasureScrapes is how often the pod that is scraped the longest was scraped in the last minute.
	MeasureScrapes = "scrapes"
	// MeasureSeries is the number of series of a name, which is in __name__.
	MeasureSeries = "series"
	// MeasureDistribution is the number of series of a histogram that drift is measured by, whose name is in __name__.
	MeasureDistribution = "distribution"
	// MeasureRequests is the number of requests in the window.
	MeasureRequests = "requests"
	// MeasureFailures is the number of requests in the window that failed.
	MeasureFailures = "failures"
	// MeasureInFlight is the number of requests in flight, as a mean over the window.
	MeasureInFlight = "inflight"
	// MeasureLatency is the number of requests in the window that took at most le.
	MeasureLatency = "latency"
	// MeasureFirstToken is the number of requests in the window that had their first token after at most le.
	MeasureFirstToken = "first-token"
	// MeasureEachToken is the number of samples in the window whose time for each further token was at most le.
	MeasureEachToken = "each-token"
	// MeasureTokens is the number of tokens that requests in the window were answered with.
	MeasureTokens = "tokens"
	// MeasureWaiting is the number of requests that wait for their turn, as a mean over the window.
	MeasureWaiting = "waiting"
	// MeasureCache is the share of the cache of each pod that is in use, as a mean over the window, added up.
	MeasureCache = "cache"
)

// Discovery is a query that finds which metrics of known names there are, and whether pods are scraped at all, by slot. What drift
// is measured by says nothing about the server.
func Discovery() string {
	servers := Servers()
	names := make([]string, 0, 4*len(servers))
	for _, s := range servers {
		names = append(names, s.Names()...)
	}
	return joined(
		measure(MeasureSeries, fmt.Sprintf("count by (%s, __name__) (%s)", LabelSlot, anyOf(names))),
		measure(MeasureDistribution, fmt.Sprintf("count by (%s, __name__) (%s)", LabelSlot, anyOf(Distributions()))),
		measure(MeasureUp, up()),
	)
}

// Query of everything that the server exposes about a window such as 2m, by slot. It is one, so that all of it is about the same
// moment. Metrics of tokens are queried only where a check needs them.
func (s Server) Query(window string, tokens bool) string {
	parts := []string{
		measure(MeasureSeries, fmt.Sprintf("count by (%s, __name__) (%s)", LabelSlot, anyOf(s.Names()))),
		measure(MeasureUp, up()),
		measure(MeasureScrapes, fmt.Sprintf("max by (%s) (count_over_time(up[1m]))", LabelSlot)),
		measure(MeasureRequests, fmt.Sprintf("sum by (%s) (%s)", LabelSlot, counted(window, s.Requests))),
	}
	if len(s.Failures) > 0 {
		parts = append(parts, measure(MeasureFailures, fmt.Sprintf("sum by (%s) (%s)", LabelSlot, counted(window, s.Failures))))
	}
	gauge := func(name string, selectors []string) {
		if len(selectors) > 0 {
			parts = append(parts, measure(name, fmt.Sprintf("sum by (%s) (%s)", LabelSlot, added("avg_over_time", window, selectors))))
		}
	}
	histogram := func(name string, h Histogram) {
		if h.Buckets != "" {
			parts = append(parts, measure(name, fmt.Sprintf("sum by (%s, le) (%s)", LabelSlot, counted(window, []string{h.Buckets}))))
		}
	}
	gauge(MeasureInFlight, s.InFlight)
	histogram(MeasureLatency, s.Latency)
	if !tokens {
		return joined(parts...)
	}
	histogram(MeasureFirstToken, s.Tokens.First)
	histogram(MeasureEachToken, s.Tokens.Each)
	if len(s.Tokens.Generated) > 0 {
		parts = append(parts, measure(MeasureTokens, fmt.Sprintf("sum by (%s) (%s)", LabelSlot, counted(window, s.Tokens.Generated))))
	}
	gauge(MeasureWaiting, s.Tokens.Waiting)
	gauge(MeasureCache, s.Tokens.Cache)
	return joined(parts...)
}

// Scraped are the pods that Prometheus scrapes.
const Scraped = "up == 1"

func up() string { return fmt.Sprintf("count by (%s) (%s)", LabelSlot, Scraped) }

func measure(name, expression string) string {
	return fmt.Sprintf(`label_replace(%s, "%s", "%s", "", "")`, expression, LabelMeasure, name)
}

func joined(parts ...string) string { return strings.Join(parts, " or ") }

// anyOf the names.
func anyOf(names []string) string {
	names = slices.Clone(names)
	slices.Sort(names)
	return fmt.Sprintf(`{__name__=~"%s"}`, strings.Join(slices.Compact(names), "|"))
}

// counted is a vector of what counters have counted in a window, to be added up.
func counted(window string, selectors []string) string {
	parts := make([]string, 0, len(selectors))
	for i, s := range selectors {
		parts = append(parts, part(i, Counts(s, window)))
	}
	return joined(parts...)
}

// Counts is what each series of a counter has counted in a window. Many counters are born with the first event that they count,
// as counters of failures are, and increase takes their first value for the one they began with. So where a series was not there
// when the window began, and has fewer samples than its pod has scrapes, its value counts from zero. A pod that is itself new to
// Prometheus may have counted long before: its series count from their first value.
func Counts(selector, window string) string {
	born := fmt.Sprintf("max_over_time(%[1]s[%[2]s]) unless %[1]s offset %[2]s", selector, window)
	late := fmt.Sprintf("count_over_time(%s[%s]) < on (%s, %s) group_left () max by (%s, %s, %s) (sum_over_time(up[%s]))",
		selector, window, LabelNamespace, LabelPod, LabelNamespace, LabelPod, LabelSlot, window)
	return fmt.Sprintf("((%s) and (%s) or increase(%s[%s]))", born, late, selector, window)
}

// part of a sum, with a label that sets it apart from the first.
func part(i int, expression string) string {
	if i == 0 {
		return expression
	}
	return fmt.Sprintf(`label_replace(%s, "capstan_part", "%d", "", "")`, expression, i)
}

// added is a vector of a function of the series that selectors name, to be added up. The function takes the names away, so that
// series of different names could not be distinguished without a label that does.
func added(function, window string, selectors []string) string {
	parts := make([]string, 0, len(selectors))
	for i, s := range selectors {
		parts = append(parts, part(i, fmt.Sprintf("%s(%s[%s])", function, s, window)))
	}
	return joined(parts...)
}
