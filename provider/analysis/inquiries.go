// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/common/model"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	apis "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/prometheus"
)

// together is how many queries of one Analysis are asked at a time.
const together = 4

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
