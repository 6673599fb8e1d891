// SPDX-License-Identifier: Apache-2.0

package promq

import (
	"context"
	"math"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
)

const (
	// LeastPeriod is how much time must have passed since an epoch settled before its evidence is queried, unless pods are scraped
	// often: an increase takes two scrapes.
	LeastPeriod = 20 * time.Second
	// ShortestPeriod is the same where pods are scraped often.
	ShortestPeriod = 10 * time.Second
	// shortestSettle is the least time that an epoch takes to settle: Gateways take the weights, and send requests by them.
	shortestSettle = 5 * time.Second
	// mostPeriod is how far back the evidence of an epoch is queried: the longest window there is.
	mostPeriod = 6 * time.Hour
	// rareLooks is how often the arms of an experiment are counted while it lasts: a look at the whole of a week costs more than
	// a look at a minute, and shows nothing new a minute later.
	rareLooks = 200
	// mostExperiment is how far back an experiment is counted: the longest that one lasts.
	mostExperiment = 336 * time.Hour
)

// Evidence about a canary is what one look shows of it.
type Evidence struct {
	// Settling reports whether Prometheus got no query, because nothing would count yet.
	Settling bool
	// Recent is what the recent window shows, and Whole the whole period since the epoch settled.
	Recent, Whole  Sample
	Window, Period time.Duration
	// Arms of an experiment, or nil when there is none or they were not counted yet.
	Arms *Arms
	// Failure that kept Prometheus as a whole from answering, or nil.
	Failure *outside.Failure
}

// LeastPeriod that has evidence: two scrapes of every pod, and a half because they are not exactly as far from each other.
func (d Discovery) LeastPeriod() time.Duration {
	if d.Scrapes <= 0 {
		return LeastPeriod
	}
	return min(max(5*d.Scrapes/2, ShortestPeriod), LeastPeriod)
}

// Settle is how long an epoch takes to settle, at most as long as asked: what was scraped before may have been counted before the
// weights changed.
func (d Discovery) Settle(asked time.Duration) time.Duration {
	if d.Scrapes <= 0 {
		return asked
	}
	return min(asked, max(d.Scrapes, shortestSettle))
}

// SlotsOf a canary and of its baseline, if there is one.
func SlotsOf(c *v1alpha1.CanaryParameters) []string {
	if c == nil {
		return nil
	}
	all := slices.DeleteFunc([]string{c.Slot, c.Baseline}, func(s string) bool { return s == "" })
	slices.Sort(all)
	return slices.Compact(all)
}

// Evidence about the canary of an epoch that settled so long ago: by the same queries as everything else, over the recent window
// and over the whole period. More time would add no confidence to custom queries of single values, so that they cover the recent
// window only. When Prometheus did not answer before, it gets no more queries.
//
// Checks count for the time counted, which is shorter than settled when counting began again. An experiment counts all of it.
func (a *Asker) Evidence(
	ctx context.Context, m *v1alpha1.MetricsParameters, settled, counted time.Duration, failure *outside.Failure,
) *Evidence {
	if least := a.Found.LeastPeriod(); failure != nil || counted < least {
		return &Evidence{Failure: failure, Settling: counted < least}
	}
	e := &Evidence{Period: min(counted.Truncate(time.Second), mostPeriod)}
	e.Window = min(WindowOf(m), e.Period)
	e.Recent = a.canary(ctx, m, e.Window, m.Canary.Checks)
	e.Whole, e.Failure = e.Recent, e.Recent.Failure
	if e.Failure == nil && e.Window < e.Period {
		counted := slices.DeleteFunc(slices.Clone(m.Canary.Checks), func(c v1alpha1.Check) bool { return c.Kind == v1alpha1.CheckQuery })
		e.Whole = a.canary(ctx, m, e.Period, counted)
		e.Failure = e.Whole.Failure
	}
	if e.Failure == nil && m.Canary.Experiment != nil {
		e.Arms = a.count(ctx, m, settled)
	}
	return e
}

// Trial queries for the first slot what the checks of a candidate need. When Prometheus did not answer before, it gets no more queries.
func (a *Asker) Trial(ctx context.Context, m *v1alpha1.MetricsParameters, failure *outside.Failure) Sample {
	switch {
	case len(m.Trial) == 0 || len(m.Slots) == 0:
		return Sample{}
	case failure != nil:
		return Unanswered(failure)
	default:
		return a.Ask(ctx, Question{
			Slots: m.Slots[:1], Window: WindowOf(m), Queries: ptr.Deref(m.Queries, v1alpha1.Queries{}), Checks: m.Trial, Canary: m.Slots[0],
		})
	}
}

// canary and its baseline over a window.
func (a *Asker) canary(ctx context.Context, m *v1alpha1.MetricsParameters, window time.Duration, checks []v1alpha1.Check) Sample {
	return a.Ask(ctx, Question{
		Slots: SlotsOf(m.Canary), Window: window, Queries: ptr.Deref(m.Queries, v1alpha1.Queries{}), Checks: checks, Canary: m.Canary.Slot,
	})
}

// Names of the queries of an experiment of kind Share.
const (
	queryOfEvents = "experiment-events"
	queryOfAll    = "experiment-of"
)

// Arms of an experiment: what was counted of each since its epoch settled, and when.
type Arms struct {
	Canary, Baseline ArmCount
	At               time.Time
}

// An ArmCount is how many samples an arm has, and how many of them count, or why that is unknown.
type ArmCount struct {
	N, Events float64
	Unknown   Reading
}

// Share of the samples that count.
func (c ArmCount) Share() float64 { return c.Events / c.N }

// count the arms, unless they were counted a moment ago.
func (a *Asker) count(ctx context.Context, m *v1alpha1.MetricsParameters, settled time.Duration) *Arms {
	p, kept := m.Canary.Experiment, a.Found.Arms
	if kept != nil && a.Now.Sub(kept.At) < settled/rareLooks {
		return kept
	}
	s := a.canary(ctx, m, min(settled.Truncate(time.Second), mostExperiment), checksOf(p))
	if s.Failure != nil {
		return kept
	}
	a.Found.Arms = &Arms{Canary: counting(p, s, m.Canary.Slot), Baseline: counting(p, s, m.Canary.Baseline), At: a.Now}
	return a.Found.Arms
}

// checksOf an experiment are the checks that query what it counts.
func checksOf(p *v1alpha1.ExperimentParameters) []v1alpha1.Check {
	all := v1alpha1.Check{Name: queryOfAll, Kind: v1alpha1.CheckRequestRate}
	switch p.Kind {
	case v1alpha1.ExperimentSuccessRatio:
		all.Kind = v1alpha1.CheckSuccessRatio
	case v1alpha1.ExperimentLatency:
		all.Kind = v1alpha1.CheckLatency
	default:
		if p.Of != "" {
			all.Kind, all.Query = v1alpha1.CheckQuery, p.Of
		}
		return []v1alpha1.Check{{Name: queryOfEvents, Kind: v1alpha1.CheckQuery, Query: p.Events}, all}
	}
	return []v1alpha1.Check{all}
}

// counting of an arm. Increases are extrapolated to the ends of the window: they are not whole.
func counting(p *v1alpha1.ExperimentParameters, s Sample, slot string) ArmCount {
	m := s.Of(slot)
	all, events := m.Requests, s.Checks[Place{slot, queryOfEvents}]
	switch p.Kind {
	case v1alpha1.ExperimentSuccessRatio:
		events = m.Failures
	case v1alpha1.ExperimentLatency:
		switch {
		case m.Latency.Message == NoRequests:
			return ArmCount{}
		case !m.Latency.Known():
			return ArmCount{Unknown: m.Latency.Reading}
		case m.Latency.Histogram == nil || p.WithinMs == nil:
			return ArmCount{Unknown: NoData(NotFound)}
		}
		all, events = Reading{Value: m.Latency.Samples()}, Reading{Value: m.Latency.Within(float64(*p.WithinMs))}
	default:
		if p.Of != "" {
			all = s.Checks[Place{slot, queryOfAll}]
		}
	}
	for _, r := range []Reading{all, events} {
		if !r.Known() {
			return ArmCount{Unknown: r}
		}
	}
	c := ArmCount{N: max(math.Round(all.Value), 0), Events: max(math.Round(events.Value), 0)}
	if p.Kind == v1alpha1.ExperimentSuccessRatio {
		c.Events = max(c.N-c.Events, 0)
	}
	return c
}
