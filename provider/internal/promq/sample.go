// SPDX-License-Identifier: Apache-2.0

package promq

import (
	"github.com/capstan-dev/capstan/provider/internal/outside"
)

// Measures of the pods of a slot.
type Measures struct {
	// Server that was recognised, or "".
	Server                       string
	Requests, Failures, InFlight Reading
	// Latency in milliseconds.
	Latency Distribution
	// Tokens is what is known of the tokens that are generated.
	Tokens Tokens
	// HasInFlight and HasRequests mean that there are such series, even if they hold no number yet.
	HasInFlight, HasRequests bool
}

// Tokens that the pods of a slot generate.
type Tokens struct {
	// First is the time to the first token and Each the time for each further one, in milliseconds.
	First, Each Distribution
	// Generated is the number of tokens, Waiting of the requests that wait for their turn, and Cache is the share of the cache of
	// each pod that is in use, added up.
	Generated, Waiting, Cache Reading
}

// unknown are measures that are all without a value for the same reason.
func unknown(r Reading) *Measures {
	d := Distribution{Reading: r}
	return &Measures{Requests: r, Failures: r, InFlight: r, Latency: d, Tokens: Tokens{First: d, Each: d, Generated: r, Waiting: r, Cache: r}}
}

// A Place of a check.
type Place struct{ Slot, Check string }

// A Sample is everything that one look read from Prometheus.
type Sample struct {
	// Slots of the question, with their measures.
	Slots map[string]*Measures
	// Checks are readings of custom queries.
	Checks map[Place]Reading
	// Distributions are what checks of kind Drift compare, and References what they are compared with, by name of the check.
	Distributions map[Place]Distribution
	References    map[string]Distribution
	// Load is the reading of the query of signal Query, if there is one.
	Load Reading
	// Failure that kept Prometheus as a whole from answering, or nil.
	Failure *outside.Failure
}

// NewSample in which nothing is known yet.
func NewSample() Sample {
	return Sample{
		Slots: map[string]*Measures{}, Checks: map[Place]Reading{}, Distributions: map[Place]Distribution{}, References: map[string]Distribution{},
	}
}

// Unanswered is the sample of a look at a Prometheus that does not answer: nothing of it is known.
func Unanswered(f *outside.Failure) Sample { return Sample{Failure: f, Load: Failed(f)} }

// missing is the reading of what is not in the sample.
func (s *Sample) missing(why string) Reading {
	if s.Failure != nil {
		return Failed(s.Failure)
	}
	return NoData(why)
}

// Of a slot that may not have been asked about.
func (s *Sample) Of(slot string) *Measures {
	if m := s.Slots[slot]; m != nil {
		return m
	}
	return unknown(s.missing(NotScraped))
}

// Check is the reading of a check of kind Query.
func (s *Sample) Check(at Place) Reading {
	if r, ok := s.Checks[at]; ok || s.Failure == nil {
		return r
	}
	return Failed(s.Failure)
}

// Distribution of what a check of kind Drift compares.
func (s *Sample) Distribution(at Place) Distribution {
	if d, ok := s.Distributions[at]; ok {
		return d
	}
	return Distribution{Reading: s.missing(NotFound)}
}

// Reference that a check of kind Drift compares with.
func (s *Sample) Reference(check string) Distribution {
	if d, ok := s.References[check]; ok {
		return d
	}
	return Distribution{Reading: s.missing(NotFound)}
}
