// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

const (
	// rareLooks are how often the arms of an experiment are counted while it lasts: a
	// look at the whole of a week costs more than one at a minute, and teaches nothing
	// that the one of a minute ago did not.
	rareLooks = 200

	// mostExperiment is how far back an experiment is counted: the longest that one lasts.
	mostExperiment = 336 * time.Hour
)

// Names of the queries of an experiment of kind Share.
const (
	queryOfEvents = "experiment-events"
	queryOfAll    = "experiment-of"
)

// Why arms cannot be compared.
const (
	moreThanAll = "there are more events than there could have been: spec.experiment.metric.of must count everything that can have one event"
	ofArmA      = "arm A: "
	ofArmB      = "arm B: "
)

// Arms of an experiment: what was counted of each since its epoch settled, and when.
type arms struct {
	canary, baseline armCount
	at               time.Time
}

// An armCount is how many there were of an arm, and how many of them count, or why that is
// not known.
type armCount struct {
	n, events float64
	unknown   reading
}

// share of those that count.
func (c armCount) share() float64 { return c.events / c.n }

// variance of the share. Half a sample is added to each side, so that there is one although
// all or none count.
func (c armCount) variance() float64 {
	p := (c.events + 0.5) / (c.n + 1)

	return p * (1 - p) / c.n
}

// compare the arms, unless they were counted a moment ago.
func (a *asker) compare(ctx context.Context, settled time.Duration) *arms {
	p := a.metrics.Canary.Experiment
	if p == nil {
		return nil
	}

	kept := a.found.arms
	if kept != nil && a.now.Sub(kept.at) < settled/rareLooks {
		return kept
	}

	s := a.over(ctx, min(settled.Truncate(time.Second), mostExperiment), checksOf(p))
	if s.failure != nil {
		return kept
	}

	now := &arms{
		canary:   counting(p, &s, a.metrics.Canary.Slot),
		baseline: counting(p, &s, a.metrics.Canary.Baseline),
		at:       a.now,
	}
	a.found.arms = now

	return now
}

// checksOf an experiment, so that what it counts is asked for.
func checksOf(p *v1alpha1.ExperimentParameters) []v1alpha1.Check {
	switch p.Kind {
	case v1alpha1.ExperimentSuccessRatio:
		return []v1alpha1.Check{{Name: queryOfAll, Kind: v1alpha1.CheckSuccessRatio}}
	case v1alpha1.ExperimentLatency:
		return []v1alpha1.Check{{Name: queryOfAll, Kind: v1alpha1.CheckLatency}}
	case v1alpha1.ExperimentShare:
	}

	cs := []v1alpha1.Check{{Name: queryOfEvents, Kind: v1alpha1.CheckQuery, Query: p.Events}}
	if p.Of == "" {
		return append(cs, v1alpha1.Check{Name: queryOfAll, Kind: v1alpha1.CheckRequestRate})
	}

	return append(cs, v1alpha1.Check{Name: queryOfAll, Kind: v1alpha1.CheckQuery, Query: p.Of})
}

// counting of an arm. Increases are extrapolated to the ends of the window: they are not
// whole.
func counting(p *v1alpha1.ExperimentParameters, s *sample, slot string) armCount {
	of := func(all, events reading) armCount {
		for _, r := range []reading{all, events} {
			if !r.known() {
				return armCount{unknown: r}
			}
		}

		return armCount{n: max(math.Round(all.value), 0), events: max(math.Round(events.value), 0)}
	}

	m := s.of(slot)

	switch p.Kind {
	case v1alpha1.ExperimentSuccessRatio:
		c := of(m.requests, m.failures)
		c.events = max(c.n-c.events, 0)

		return c
	case v1alpha1.ExperimentLatency:
		switch {
		case m.latencyRead.message == noRequests:
			return armCount{}
		case !m.latencyRead.known():
			return armCount{unknown: m.latencyRead}
		case m.latency == nil || p.WithinMs == nil:
			return armCount{unknown: noData(notFound)}
		}

		return of(reading{value: m.latency.samples()}, reading{value: m.latency.within(float64(*p.WithinMs))})
	case v1alpha1.ExperimentShare:
	}

	all := m.requests
	if p.Of != "" {
		all = s.checks[place{slot, queryOfAll}]
	}

	return of(all, s.checks[place{slot, queryOfEvents}])
}

// compared tells what came of an experiment until now. The bounds hold at all looks
// together, so that whatever was found first stays found.
func compared(p *v1alpha1.ExperimentParameters, by *arms, told *v1alpha1.ExperimentObservation) *v1alpha1.ExperimentObservation {
	if told != nil && told.Result != v1alpha1.ExperimentUndecided {
		return told
	}

	o := &v1alpha1.ExperimentObservation{Result: v1alpha1.ExperimentUndecided}

	switch b, a := by.canary, by.baseline; {
	case !b.unknown.known():
		o.Message = bounded(ofArmB + b.unknown.message)
	case !a.unknown.known():
		o.Message = bounded(ofArmA + a.unknown.message)
	case b.events > b.n || a.events > a.n:
		o.Message = moreThanAll
	case b.n < 1 || a.n < 1:
		o.Message = "no sample of one of the arms yet"
	default:
		decideBetween(o, p, b, a)
	}

	return o
}

// decideBetween the arms.
func decideBetween(o *v1alpha1.ExperimentObservation, p *v1alpha1.ExperimentParameters, b, a armCount) {
	effect := b.share() - a.share()
	off := alwaysWithin(a.variance()+b.variance(), p.MinEffect, 1-p.Confidence/100)
	lower, upper := max(effect-off, -1), min(effect+off, 1)

	o.Canary = &v1alpha1.ExperimentShareOf{Value: roundedShare(b.share()), Samples: int64(b.n)}
	o.Baseline = &v1alpha1.ExperimentShareOf{Value: roundedShare(a.share()), Samples: int64(a.n)}
	o.Effect, o.Lower, o.Upper = new(rounded(effect, digits)), new(rounded(lower, digits)), new(rounded(upper, digits))

	better, worse := v1alpha1.ExperimentCanaryBetter, v1alpha1.ExperimentBaselineBetter
	if p.LowerIsBetter {
		better, worse = worse, better
	}

	switch least := float64(p.MinSamples); {
	case b.n < least || a.n < least:
		o.Message = fmt.Sprintf("at least %s samples of each arm are needed", grouped(least))
	case lower > -p.MinEffect && upper < p.MinEffect:
		o.Result = v1alpha1.ExperimentNoDifference
	case lower > 0:
		o.Result = better
	case upper < 0:
		o.Result = worse
	default:
		o.Message = "too few samples to tell the arms apart"
	}
}

// alwaysWithin is how far the estimate of a difference, of such a variance, is from the true
// one at most, at all looks together, but for a probability of alpha: what the mixture
// sequential probability ratio test does not reject, with effects of such a size expected
// (Johari, Koomen, Pekelis and Walsh, Always Valid Inference, 2022).
func alwaysWithin(variance, size, alpha float64) float64 {
	both := variance + size*size

	return math.Sqrt(2 * variance * both / (size * size) * (math.Log(1/alpha) + math.Log(both/variance)/2))
}
