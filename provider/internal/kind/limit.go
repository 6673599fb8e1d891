// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/crossplane/crossplane-runtime/v2/pkg/ratelimiter"
)

// waiting is how long the last reconcile of each kind had to wait for its rate.
var waiting = prometheus.NewGaugeVec(prometheus.GaugeOpts{
	Namespace: "capstan",
	Name:      "reconcile_wait_seconds",
	Help:      "How long the newest reconcile of a kind waits because the kind's reconciles per second are used up",
}, []string{"group", "version", "kind"})

func init() { //nolint:gochecknoinits // As the libraries do that share this registry.
	metrics.Registry.MustRegister(waiting)
}

// A limit of the reconciles of one kind, which reports how long they wait.
type limit struct {
	ratelimiter.RateLimiter

	wait prometheus.Gauge
}

// NewLimit allows a kind perSecond reconciles, and ten times as many at once after a pause.
func NewLimit(gvk schema.GroupVersionKind, perSecond int) ratelimiter.RateLimiter {
	return &limit{RateLimiter: ratelimiter.NewGlobal(perSecond), wait: waiting.With(labels(gvk))}
}

// When a reconcile may run: after the time returned.
func (l *limit) When(item string) time.Duration {
	d := l.RateLimiter.When(item)
	l.wait.Set(d.Seconds())
	return d
}
