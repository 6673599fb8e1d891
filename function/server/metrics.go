// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// kindOther counts calls for kinds that are not served.
const kindOther = "other"

// metrics of the calls, in a registry of their own, so that no linked package adds to them.
type metrics struct {
	registry *prometheus.Registry
	kinds    []string

	seconds  *prometheus.HistogramVec
	composed *prometheus.HistogramVec
	panics   prometheus.Counter
	waiting  prometheus.Gauge
}

func newMetrics(kinds []string) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		kinds:    kinds,
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "capstan_function_run_seconds",
			Help: "Time from a decoded request to its answer, by kind and outcome (ok, fatal, panic).",
			Buckets: []float64{
				50e-6, 100e-6, 200e-6, 500e-6, 1e-3, 2e-3, 5e-3, 10e-3, 20e-3, 50e-3, 100e-3, 200e-3, 500e-3, 1,
			},
		}, []string{"kind", "outcome"}),
		composed: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "capstan_function_composed_resources",
			Help:    "Composed resources in an answer, by kind.",
			Buckets: []float64{5, 10, 15, 20, 25, 30, 40, 60, 80},
		}, []string{"kind"}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "capstan_function_panics_total",
			Help: "Calls that ended in a panic.",
		}),
		waiting: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "capstan_function_waiting_calls",
			Help: "Calls that wait until there is memory to decode their requests.",
		}),
	}
	m.registry.MustRegister(
		m.seconds, m.composed, m.panics, m.waiting,
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

func (m *metrics) observe(kind, outcome string, composed int, took time.Duration) {
	if !slices.Contains(m.kinds, kind) {
		kind = kindOther
	}
	m.seconds.WithLabelValues(kind, outcome).Observe(took.Seconds())
	if outcome == outcomeOK {
		m.composed.WithLabelValues(kind).Observe(float64(composed))
	}
	if outcome == outcomePanic {
		m.panics.Inc()
	}
}

func (m *metrics) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
	return mux
}
