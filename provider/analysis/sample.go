// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
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
	return reading{verdict: v1alpha1.VerdictError, message: bounded(f.Error())}
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

func unscraped() *measures {
	m := &measures{}
	m.none(notScraped)

	return m
}

// none makes every measure one without data.
func (m *measures) none(message string) {
	r := noData(message)
	m.requests, m.failures, m.inFlight, m.latencyRead = r, r, r, r
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

// connected is the condition that tells how Prometheus answered.
func (s *sample) connected() xpv2.Condition {
	if s.failure != nil {
		return outside.Failed(s.failure)
	}

	return outside.Answered()
}
