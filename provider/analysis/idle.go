// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/promq"
)

// idleSince is since when no request has come to the first slot, or zero while any do. A number that is unknown is not zero: a
// Prometheus that does not answer must not end replicas. A request in progress counts, however long ago it came.
func idleSince(before time.Time, p *v1alpha1.MetricsParameters, s promq.Sample, looked time.Time) time.Time {
	m := s.Of(p.Slots[0])
	idle := m.Requests.Known() && m.Requests.Value == 0 && (!m.InFlight.Known() || m.InFlight.Value == 0)
	switch {
	case p.IdleAfterSeconds == nil || !idle:
		return time.Time{}
	case before.IsZero():
		return looked
	default:
		return before
	}
}

// reportedIdle is since when no request has come, once that is long enough ago. A shorter time is no news: each change of the
// status has Crossplane apply every object of the Algorithm.
func reportedIdle(since time.Time, p *v1alpha1.MetricsParameters, now time.Time) *metav1.Time {
	if since.IsZero() || p.IdleAfterSeconds == nil || now.Before(since.Add(time.Duration(*p.IdleAfterSeconds)*time.Second)) {
		return nil
	}
	return new(metav1.NewTime(since.Truncate(time.Second)))
}
