// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"
)

// maxLatencyMs keeps a slip of the finger from making requests that never end.
const maxLatencyMs = 60_000

// maxWorkers is more than a machine could have.
const maxWorkers = 10_000

// maxFailAfterSeconds is a week.
const maxFailAfterSeconds = 604_800

// Behaviour is how slow and how wrong predictions are.
type Behaviour struct {
	// LatencyMs is the mean time of a prediction in milliseconds, at most a minute.
	LatencyMs float64 `json:"latencyMs"`
	// JitterMs is how far the time may be from the mean, in milliseconds. All times in between are equally likely.
	JitterMs float64 `json:"jitterMs"`
	// ErrorRate is the share of predictions that fail, from 0 to 1.
	ErrorRate float64 `json:"errorRate"`
	// FailAfterSeconds is how long after the start of the server predictions begin to fail, at most a week: 0 at once. It makes a
	// server that is good while it is tested.
	FailAfterSeconds float64 `json:"failAfterSeconds"`
	// ScoreShift is added to every score, from -1 to 1. Scores stay from 0 to 1, so that those beyond gather at the end.
	ScoreShift float64 `json:"scoreShift"`
	// Workers is how many predictions are computed at a time, at most 10,000. Others wait for their turn, as they do for a GPU or
	// a thread of a model server. 0 computes all at once.
	Workers int `json:"workers"`
}

// with returns b with the values that a query names, by the names of the fields in JSON. It is an error to name another one or a
// value out of bounds.
func (b Behaviour) with(query url.Values) (Behaviour, error) {
	fields := map[string]*float64{
		"latencyMs": &b.LatencyMs, "jitterMs": &b.JitterMs, "errorRate": &b.ErrorRate,
		"failAfterSeconds": &b.FailAfterSeconds, "scoreShift": &b.ScoreShift,
	}
	for name, values := range query {
		if name == "workers" {
			n, err := strconv.Atoi(values[0])
			if err != nil {
				return Behaviour{}, fmt.Errorf("cannot read %s: %q is not a whole number", name, values[0])
			}
			b.Workers = n
			continue
		}
		field, ok := fields[name]
		if !ok {
			return Behaviour{}, fmt.Errorf("cannot set %q: there are latencyMs, jitterMs, errorRate, failAfterSeconds, scoreShift and workers", name)
		}
		v, err := strconv.ParseFloat(values[0], 64)
		if err != nil {
			return Behaviour{}, fmt.Errorf("cannot read %s: %q is not a number", name, values[0])
		}
		*field = v
	}
	return b, b.validate()
}

// validate also refuses NaN, which is in no range.
func (b Behaviour) validate() error {
	switch {
	case !(b.LatencyMs >= 0 && b.LatencyMs <= maxLatencyMs):
		return fmt.Errorf("latencyMs must be from 0 to %d", maxLatencyMs)
	case !(b.JitterMs >= 0 && b.JitterMs <= b.LatencyMs):
		return errors.New("jitterMs must be from 0 to latencyMs")
	case !(b.ErrorRate >= 0 && b.ErrorRate <= 1):
		return errors.New("errorRate must be from 0 to 1")
	case !(b.FailAfterSeconds >= 0 && b.FailAfterSeconds <= maxFailAfterSeconds):
		return fmt.Errorf("failAfterSeconds must be from 0 to %d", maxFailAfterSeconds)
	case !(b.ScoreShift >= -1 && b.ScoreShift <= 1):
		return errors.New("scoreShift must be from -1 to 1")
	case b.Workers < 0 || b.Workers > maxWorkers:
		return fmt.Errorf("workers must be from 0 to %d", maxWorkers)
	}
	return nil
}

// latency of one prediction for a random number from 0 to 1.
func (b Behaviour) latency(random float64) time.Duration {
	ms := b.LatencyMs + b.JitterMs*(2*random-1)
	return time.Duration(ms * float64(time.Millisecond))
}

// fails reports whether one prediction does, for a random number from 0 to 1 without 1, when the server has run for a time.
func (b Behaviour) fails(random float64, ran time.Duration) bool {
	return random < b.ErrorRate && ran.Seconds() >= b.FailAfterSeconds
}

// shifted score.
func (b Behaviour) shifted(score float64) float64 {
	return min(max(score+b.ScoreShift, 0), 1)
}
