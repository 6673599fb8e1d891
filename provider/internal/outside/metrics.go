// SPDX-License-Identifier: Apache-2.0

package outside

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	upjet "github.com/crossplane/upjet/v2/pkg/metrics"
)

// duration is finer than upjet's histogram, whose first bucket is a second.
var duration = prometheus.NewHistogramVec(prometheus.HistogramOpts{
	Namespace: "capstan",
	Subsystem: "outside",
	Name:      "request_duration_seconds",
	Help:      "How long outside services take to answer, by service, operation and HTTP status; status 0 is no answer.",
	Buckets:   []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20},
}, []string{"service", "operation", "status"})

func init() { //nolint:gochecknoinits // As the libraries do that share this registry.
	metrics.Registry.MustRegister(duration)
}

// measure a request, under the names that dashboards for upjet providers know
// and under our own.
func measure(service, operation string) func(*http.Response, error) {
	began := time.Now()

	return func(res *http.Response, err error) {
		took := time.Since(began).Seconds()
		status := 0

		if err == nil {
			status = res.StatusCode
		}

		upjet.ExternalAPICalls.WithLabelValues(service, operation).Inc()
		upjet.ExternalAPITime.WithLabelValues(operation).Observe(took)
		duration.WithLabelValues(service, operation, strconv.Itoa(status)).Observe(took)
	}
}

type operationKey struct{}

// WithOperation names the operation that requests with this context carry out,
// for metrics: one of a small fixed set, such as CreateBucket.
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
