// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics are those that platforms scale and roll out on, under the names that Capstan expects of an algorithm.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	inFlight prometheus.Gauge
	score    prometheus.Histogram
}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "algorithm_requests_total",
			Help: "Predictions answered, by HTTP status code.",
		}, []string{"code"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "algorithm_request_duration_seconds",
			Help: "Time from the first byte of a prediction's request to the last of its answer, by HTTP status code.",
			// Fine around 50 ms, a usual target, because a quantile is only as exact as its bucket is narrow.
			Buckets: []float64{.001, .0025, .005, .01, .02, .03, .04, .05, .06, .075, .1, .15, .25, .5, 1, 2.5, 5, 10},
		}, []string{"code"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "algorithm_inflight",
			Help: "Predictions being computed now.",
		}),
		score: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "algorithm_prediction_score",
			Help:    "Scores that were predicted; a shift of their distribution is drift.",
			Buckets: []float64{.1, .2, .3, .4, .5, .6, .7, .8, .9, 1},
		}),
	}
	m.registry.MustRegister(m.requests, m.duration, m.inFlight, m.score,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// hide them, because a server whose metrics are exposed instead has none of these names.
func (m *metrics) hide() {
	for _, c := range []prometheus.Collector{m.requests, m.duration, m.inFlight, m.score} {
		m.registry.Unregister(c)
	}
}

// measure counts and times what next answers.
func (m *metrics) measure(next http.Handler) http.Handler {
	return promhttp.InstrumentHandlerInFlight(m.inFlight,
		promhttp.InstrumentHandlerDuration(m.duration,
			promhttp.InstrumentHandlerCounter(m.requests, next)))
}
