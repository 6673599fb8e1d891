// SPDX-License-Identifier: Apache-2.0

package outside

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Metrics of requests: two under the names that dashboards for upjet providers know, and one whose buckets are finer.
var (
	calls = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "upjet",
		Subsystem: "resource",
		Name:      "external_api_calls_total",
		Help:      "The number of external API calls.",
	}, []string{"service", "operation"})
	callTime = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: "upjet",
		Subsystem: "resource",
		Name:      "ext_api_duration",
		Help:      "Measures in seconds how long it takes a Cloud SDK call to complete",
		Buckets:   []float64{1, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600},
	}, []string{"operation"})
	duration = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: "capstan",
		Subsystem: "outside",
		Name:      "request_duration_seconds",
		Help:      "How long outside services take to answer, by service, operation and HTTP status; status 0 is no answer.",
		Buckets:   []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20},
	}, []string{"service", "operation", "status"})
)

func init() { //nolint:gochecknoinits // As the libraries do that share this registry.
	metrics.Registry.MustRegister(calls, callTime, duration)
}

// measure a request.
func measure(service, operation string) func(*http.Response, error) {
	began := time.Now()
	return func(res *http.Response, err error) {
		took := time.Since(began).Seconds()
		status := 0
		if err == nil {
			status = res.StatusCode
		}
		calls.WithLabelValues(service, operation).Inc()
		callTime.WithLabelValues(operation).Observe(took)
		duration.WithLabelValues(service, operation, strconv.Itoa(status)).Observe(took)
	}
}

type operationKey struct{}

// WithOperation names the operation that requests with this context carry out, for metrics: one of a small fixed set, such as
// CreateBucket.
func WithOperation(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, operationKey{}, name)
}

// operation that a context names, or fallback.
func operation(ctx context.Context, fallback string) string {
	if name, ok := ctx.Value(operationKey{}).(string); ok {
		return name
	}
	return fallback
}
