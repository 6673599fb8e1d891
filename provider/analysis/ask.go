// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"context"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/prometheus"
)

// A querier evaluates PromQL on series of pods.
type querier interface {
	Query(ctx context.Context, pods prometheus.Pods, query string) (model.Value, error)

	// QueryAt is Query at a time, or now when it is zero.
	QueryAt(ctx context.Context, pods prometheus.Pods, query string, at time.Time) (model.Value, error)
}

// An asker asks all that one Analysis wants to know.
type asker struct {
	prometheus querier
	namespace  string
	algorithm  string
	metrics    v1alpha1.MetricsParameters

	// trial is the canary that is asked about, if one is.
	trial *v1alpha1.CanaryParameters

	// beside are slots that something else is asked about in the same look.
	beside []string

	// found is what was discovered before, and is replaced.
	found discovery
	now   time.Time
}

// wants are the measures that somebody looks at.
type wants struct{ requests, failures, latency, inFlight bool }

func (a *asker) wants() wants {
	// A verdict on a canary takes requests, whatever it is about.
	w := wants{requests: a.trial != nil}

	for _, c := range a.metrics.Checks {
		switch c.Kind {
		case v1alpha1.CheckSuccessRatio:
			w.requests, w.failures = true, true
		case v1alpha1.CheckLatency:
			w.latency = true
		case v1alpha1.CheckRequestRate:
			w.requests = true
		case v1alpha1.CheckInFlight:
			w.inFlight = true
		case v1alpha1.CheckQuery, v1alpha1.CheckDrift:
		}
	}

	s := a.metrics.Scaling
	if s == nil {
		return w
	}

	switch s.Signal {
	case v1alpha1.SignalAuto, "":
		w.requests, w.inFlight = true, true
	case v1alpha1.SignalInFlight:
		w.inFlight = true
	case v1alpha1.SignalRequestRate:
		w.requests = true
	case v1alpha1.SignalCPU, v1alpha1.SignalQuery:
	}

	if s.TargetLatencyMs != nil && s.Signal != v1alpha1.SignalCPU {
		w.latency = true
	}

	return w
}

// others are the measures for which there is no query of one's own.
func (w wants) others(own v1alpha1.Queries) wants {
	return wants{
		requests: w.requests && own.Requests == "",
		failures: w.failures && own.Failures == "",
		latency:  w.latency && own.Latency == "",
		inFlight: w.inFlight && own.InFlight == "",
	}
}

func (w wants) any() bool { return w.requests || w.failures || w.latency || w.inFlight }

// own are the queries of one's own in place of the built-in ones.
func (a *asker) own() v1alpha1.Queries {
	if a.metrics.Queries == nil {
		return v1alpha1.Queries{}
	}

	return *a.metrics.Queries
}

// window of the metrics as PromQL has it.
func window(m *v1alpha1.MetricsParameters) string { return model.Duration(windowOf(m)).String() }

// filled is a query of one's own with the window in it.
func filled(query string, m *v1alpha1.MetricsParameters) string {
	return strings.ReplaceAll(query, "$window", window(m))
}

// ask everything. When Prometheus as a whole does not answer, the rest is not
// asked any more.
func (a *asker) ask(ctx context.Context) sample {
	s := newSample()
	for _, slot := range a.metrics.Slots {
		s.slots[slot] = unscraped()
	}

	if a.wants().others(a.own()).any() {
		s.failure = a.builtIn(ctx, s.slots)
	}

	if s.failure == nil {
		a.ownQueries(ctx, &s)
	}

	if s.failure != nil {
		a.fail(&s)
	}

	return s
}

// fail makes everything that was to be asked an error.
func (a *asker) fail(s *sample) {
	r := failed(s.failure)
	s.load = r

	for _, slot := range a.metrics.Slots {
		s.slots[slot] = &measures{requests: r, failures: r, inFlight: r, latencyRead: r}

		for _, c := range a.metrics.Checks {
			switch c.Kind {
			case v1alpha1.CheckQuery:
				s.checks[place{slot, c.Name}] = r
			case v1alpha1.CheckDrift:
				s.distributions[place{slot, c.Name}], s.references[c.Name] = distribution{reading: r}, distribution{reading: r}
			case v1alpha1.CheckSuccessRatio, v1alpha1.CheckLatency, v1alpha1.CheckRequestRate, v1alpha1.CheckInFlight:
			}
		}
	}
}

// pods of slots.
func (a *asker) pods(slots ...string) prometheus.Pods {
	return prometheus.Pods{Namespace: a.namespace, Algorithm: a.algorithm, Slots: slots}
}
