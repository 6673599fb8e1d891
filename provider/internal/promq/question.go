// SPDX-License-Identifier: Apache-2.0

package promq

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	apis "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/prometheus"
)

const (
	// defaultWindow is the default of the schema, for Analyses that were created before it had one.
	defaultWindow = 2 * time.Minute
	// together is how many custom queries of one Analysis run at a time.
	together = 4
)

// A Question is what the provider asks Prometheus about some slots over one window.
type Question struct {
	Slots   []string
	Window  time.Duration
	Queries v1alpha1.Queries
	Checks  []v1alpha1.Check
	Scaling *v1alpha1.ScalingParameters
	// Idle asks whether any request came.
	Idle bool
	// Canary is the slot of the canary that the question is about, if it is about one. The other slot is its baseline.
	Canary string
}

// QuestionOf the slots that serve, and of the slot that is scaled.
func QuestionOf(m *v1alpha1.MetricsParameters) Question {
	q := Question{
		Slots: m.Slots, Window: WindowOf(m), Queries: ptr.Deref(m.Queries, v1alpha1.Queries{}), Checks: m.Checks, Scaling: m.Scaling,
		Idle: m.IdleAfterSeconds != nil,
	}
	if m.Scaling != nil && !slices.Contains(m.Slots, m.Scaling.Slot) {
		q.Slots = append(slices.Clone(m.Slots), m.Scaling.Slot)
	}
	return q
}

// WindowOf the metrics.
func WindowOf(m *v1alpha1.MetricsParameters) time.Duration {
	return Positive(m.Window, defaultWindow)
}

// Positive duration, or else another one.
func Positive(d *metav1.Duration, otherwise time.Duration) time.Duration {
	if d == nil || d.Duration <= 0 {
		return otherwise
	}
	return d.Duration
}

// Percentile is the share of the requests that a percentile is about. The default is 95.
func Percentile(p int32) float64 {
	if p == 0 {
		p = 95
	}
	return float64(p) / 100
}

// Range is a window as PromQL writes it.
func Range(window time.Duration) string { return model.Duration(window).String() }

// Fill a window into a custom query.
func Fill(query string, window time.Duration) string {
	return strings.ReplaceAll(query, "$window", Range(window))
}

// needs are the measures that a question needs.
type needs struct{ requests, failures, latency, inFlight, tokens bool }

func (q Question) needs() needs {
	// Every verdict on a canary takes requests, also when its check is about another measure.
	n := needs{requests: q.Canary != "" || q.Idle, inFlight: q.Idle && (q.Queries.Requests == "" || q.Queries.InFlight != "")}
	for _, c := range q.Checks {
		switch c.Kind {
		case v1alpha1.CheckSuccessRatio:
			n.requests, n.failures = true, true
		case v1alpha1.CheckLatency:
			n.latency = true
		case v1alpha1.CheckRequestRate:
			n.requests = true
		case v1alpha1.CheckInFlight:
			n.inFlight = true
		case v1alpha1.CheckFirstToken, v1alpha1.CheckEachToken, v1alpha1.CheckTokenRate, v1alpha1.CheckWaiting, v1alpha1.CheckCacheUse:
			// Tokens have no custom queries, and each request is one of their samples.
			n.requests, n.tokens = true, true
		default:
		}
	}
	if q.Scaling == nil {
		return n
	}
	switch q.Scaling.Signal {
	case v1alpha1.SignalAuto, "":
		n.requests, n.inFlight = true, true
	case v1alpha1.SignalInFlight:
		n.inFlight = true
	case v1alpha1.SignalRequestRate:
		n.requests = true
	default:
	}
	n.latency = n.latency || q.Scaling.TargetLatencyMs != nil && q.Scaling.Signal != v1alpha1.SignalCPU
	return n
}

// BuiltIn reports whether some measure has no custom query, so that the server must be known.
func (q Question) BuiltIn() bool {
	n := q.needs()
	return n.requests && q.Queries.Requests == "" || n.failures && q.Queries.Failures == "" ||
		n.latency && q.Queries.Latency == "" || n.inFlight && q.Queries.InFlight == "" || n.tokens
}

// An inquiry is one custom query.
type inquiry struct {
	pods  prometheus.Pods
	query string
	at    time.Time
	take  func(model.Value, error)
}

// custom asks all custom queries, each slot apart. What is wrong with one does not touch the others, unless all of them show that
// Prometheus as a whole does not answer.
func (a *Asker) custom(ctx context.Context, q Question, s Sample) (Reading, *outside.Failure) {
	var (
		mu       sync.Mutex
		g        errgroup.Group
		failures []*outside.Failure
		load     Reading
	)
	all := slices.Concat(a.measures(q, s), a.checks(q, s))
	if sc := q.Scaling; sc != nil && sc.Signal == v1alpha1.SignalQuery {
		all = append(all, inquiry{pods: a.Pods(sc.Slot), query: sc.Query, take: func(v model.Value, err error) {
			load = Sum(v, err, NoData(NotFound))
		}})
	}
	g.SetLimit(together)
	for _, i := range all {
		g.Go(func() error {
			v, err := a.Prometheus.QueryAt(ctx, i.pods, Fill(i.query, q.Window), i.at)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				f := outside.Understand(prometheus.Explain, err)
				failures, err = append(failures, f), f
			}
			i.take(v, err)
			return nil
		})
	}
	_ = g.Wait() // each error is a reading
	rejected := func(f *outside.Failure) bool { return f.Reason == apis.ReasonRejected }
	if len(all) > 0 && len(failures) == len(all) && !slices.ContainsFunc(failures, rejected) && !q.BuiltIn() {
		return load, failures[0]
	}
	return load, nil
}

// measures by custom queries.
func (a *Asker) measures(q Question, s Sample) []inquiry {
	var all []inquiry
	need := q.needs()
	for _, slot := range q.Slots {
		m := s.Slots[slot]
		add := func(needed bool, query string, take func(model.Value, error)) {
			if needed && query != "" {
				all = append(all, inquiry{pods: a.Pods(slot), query: query, take: take})
			}
		}
		add(need.requests, q.Queries.Requests, func(v model.Value, err error) {
			m.Requests = Sum(v, err, NoData(NotFound))
			m.HasRequests = m.Requests.Known()
		})
		add(need.failures, q.Queries.Failures, func(v model.Value, err error) { m.Failures = Sum(v, err, Reading{}) })
		add(need.inFlight, q.Queries.InFlight, func(v model.Value, err error) {
			m.InFlight = Sum(v, err, NoData(NotFound))
			m.HasInFlight = m.InFlight.Known()
		})
		add(need.latency, q.Queries.Latency, func(v model.Value, err error) { m.Latency = Buckets(v, err, 1000) })
	}
	return all
}

// checks of kinds Query and Drift.
func (a *Asker) checks(q Question, s Sample) []inquiry {
	var all []inquiry
	for _, c := range q.Checks {
		for _, slot := range q.Slots {
			// A baseline needs the queries of checks that compare with it, and of values that it may miss as well.
			if q.Canary != "" && slot != q.Canary && c.RelativeTo == "" && c.Kind != v1alpha1.CheckQuery {
				continue
			}
			at := Place{slot, c.Name}
			switch c.Kind {
			case v1alpha1.CheckQuery:
				all = append(all, inquiry{pods: a.Pods(slot), query: c.Query, take: func(v model.Value, err error) { s.Checks[at] = Single(v, err) }})
			case v1alpha1.CheckDrift:
				all = append(all, inquiry{pods: a.Pods(slot), query: c.Query, take: func(v model.Value, err error) {
					s.Distributions[at] = Buckets(v, err, 1)
				}})
			default:
			}
		}
		if c.Kind == v1alpha1.CheckDrift && c.Reference != nil {
			// Revisions change slots: the past is what all of them exposed together.
			all = append(all, inquiry{pods: a.AllPods(), query: c.Query, at: a.Now.Add(-c.Reference.Duration), take: func(v model.Value, err error) {
				s.References[c.Name] = Buckets(v, err, 1)
			}})
		}
	}
	return all
}
