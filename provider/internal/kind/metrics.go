// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Metrics under the names that dashboards for upjet providers know.
var (
	timeToReady = histogram("ttr", "Measures in seconds the time-to-readiness (TTR) for managed resources")
	deletion    = histogram("deletion_seconds", "Measures in seconds how long it takes for a resource to be deleted")
	pollDelay   = histogram("reconcile_delay_seconds",
		"Measures in seconds how long the reconciles for a resource have been delayed from the configured poll periods")
)

func histogram(name, help string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: "upjet",
		Subsystem: "resource",
		Name:      name,
		Help:      help,
		Buckets:   []float64{1, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600},
	}, []string{"group", "version", "kind"})
}

func init() { //nolint:gochecknoinits // As the libraries do that share this registry.
	metrics.Registry.MustRegister(timeToReady, deletion, pollDelay)
}

// ServeMetrics of anything, in place of the same metrics of an earlier manager of this process.
func ServeMetrics(what string, collectors ...prometheus.Collector) error {
	for _, c := range collectors {
		metrics.Registry.Unregister(c)
		if err := metrics.Registry.Register(c); err != nil {
			return fmt.Errorf("cannot register metrics of %s: %w", what, err)
		}
	}
	return nil
}

func labels(gvk schema.GroupVersionKind) prometheus.Labels {
	return prometheus.Labels{"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind}
}

// A schedule is when polls are due, by request.
type schedule struct {
	mu  sync.Mutex
	due map[reconcile.Request]time.Time
}

func newSchedule() *schedule { return &schedule{due: map[reconcile.Request]time.Time{}} }

// poll a request at a time.
func (s *schedule) poll(req reconcile.Request, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.due[req] = at
}

// start a request, and return how late the poll is that was due for it. It is on time when an event came first. ok is false when
// no poll was due.
func (s *schedule) start(req reconcile.Request, now time.Time) (late time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	due, ok := s.due[req]
	delete(s.due, req)
	return max(0, now.Sub(due)), ok
}
