// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"fmt"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

const (
	// firstInFlight is how many requests in flight a replica is thought to bear before
	// anything is known.
	firstInFlight = 2.0

	// Replicas are learned from when they have been the same for a window, but for a
	// minute at least and no longer than five.
	leastSettled, mostSettled = time.Minute, 5 * time.Minute

	// otherSignal is how many looks in a row must find that the pods tell another
	// signal than before.
	otherSignal = 3
)

// scaling is what is told about the load that a replica bears.
func scaling(
	told *v1alpha1.ScalingObservation, cr *v1alpha1.Analysis, m *remembered, s sample, pods []corev1.Pod, now time.Time,
) *v1alpha1.ScalingObservation {
	p := cr.Spec.ForProvider.Metrics

	ask := p.Scaling
	if ask == nil {
		m.lesson = nil

		return nil
	}

	if told == nil {
		told = &v1alpha1.ScalingObservation{}
	}

	o := &v1alpha1.ScalingObservation{}

	seen := s.slots[ask.Slot]
	if seen == nil {
		seen = &measures{requests: noData(notScraped), inFlight: noData(notScraped), latencyRead: noData(notScraped)}
	}

	o.Signal, o.Message = signal(ask, told.Signal, seen, m)
	load := loadOf(o.Signal, seen, s, p)

	if e, message := expressions(cr, o.Signal); len(e) > 0 || message != "" {
		o.Expressions, o.Message = e, message
	}

	if o.Message == "" && !load.known() && o.Signal != v1alpha1.SignalCPU {
		o.Message = load.message
	}

	if o.Signal == v1alpha1.SignalCPU {
		m.lesson = nil

		return o
	}

	ready := readyOf(pods, ask.Slot)
	l := m.lessonAbout(ask, o.Signal, told, load, len(ready))
	target := float64(ptr.Deref(ask.TargetLatencyMs, 0))

	switch {
	case target == 0:
		l.independent = false
	case !seen.latencyRead.known():
		if o.Message == "" && seen.latencyRead.message != noRequests {
			o.Message = "the load that a replica bears is not learned: " + seen.latencyRead.message
		}
	case load.known() && len(ready) > 0:
		l.learn(termOf(ask, p, seen, load, ready, m, now), target, ask.PerReplica != nil, now)
	}

	if l.perReplica > 0 {
		o.PerReplica = new(l.perReplica)
	}

	o.LoadIndependent = l.independent

	return o
}

// signal of the load that the pods tell, and what keeps it from being known. With
// Auto it is the best that was ever seen: that nothing is seen now is no reason to
// scale by something else, and an outage none to scale at all.
func signal(ask *v1alpha1.ScalingParameters, told v1alpha1.Signal, seen *measures, m *remembered) (v1alpha1.Signal, string) {
	if ask.Signal != v1alpha1.SignalAuto && ask.Signal != "" {
		return ask.Signal, ""
	}

	best := v1alpha1.SignalCPU

	switch {
	case seen.inFlightTold:
		best = v1alpha1.SignalInFlight
	case seen.requestsTold:
		best = v1alpha1.SignalRequestRate
	}

	rank := []v1alpha1.Signal{"", v1alpha1.SignalCPU, v1alpha1.SignalRequestRate, v1alpha1.SignalInFlight}

	switch better := slices.Index(rank, best) - slices.Index(rank, told); {
	case better > 0:
		m.missed = 0

		// Without an answer CPU is only a guess, which the first answer corrects.
		if best == v1alpha1.SignalCPU && !seen.requests.known() {
			return best, seen.requests.message
		}

		return best, ""
	case better == 0:
		m.missed = 0

		if best == v1alpha1.SignalCPU {
			return best, seen.requests.message
		}

		return best, ""
	case seen.requestsTold || seen.inFlightTold:
		// Pods that tell requests but nothing in flight are those of another server.
		m.missed++
		if m.missed >= otherSignal {
			m.missed = 0

			return best, ""
		}
	}

	return told, seen.requests.message
}

// loadOf the pods of a slot together.
func loadOf(by v1alpha1.Signal, seen *measures, s sample, p *v1alpha1.MetricsParameters) reading {
	switch by {
	case v1alpha1.SignalInFlight:
		return seen.inFlight
	case v1alpha1.SignalRequestRate:
		r := seen.requests
		r.value /= windowOf(p).Seconds()

		return r
	case v1alpha1.SignalQuery:
		return s.load
	case v1alpha1.SignalAuto, v1alpha1.SignalCPU:
	}

	return noData("")
}

// lessonAbout the replicas of a slot by a signal, which goes on from what was told
// before. What was seen of other pods is forgotten, but for what they bore.
func (r *remembered) lessonAbout(
	ask *v1alpha1.ScalingParameters, by v1alpha1.Signal, told *v1alpha1.ScalingObservation, load reading, ready int,
) *lesson {
	about := fmt.Sprint(by, ask.Slot, ptr.Deref(ask.TargetLatencyMs, 0), ask.Percentile)

	if r.lesson == nil || r.about != about {
		was := r.lesson
		r.lesson, r.about = &lesson{proportional: by == v1alpha1.SignalInFlight}, about

		switch {
		case told.Signal != by:
		case was != nil:
			r.lesson.perReplica = was.perReplica
		default:
			r.lesson.perReplica, r.lesson.independent = ptr.Deref(told.PerReplica, 0), told.LoadIndependent
		}
	}

	l := r.lesson

	switch {
	case ask.PerReplica != nil:
		l.perReplica = *ask.PerReplica
	case ask.TargetLatencyMs == nil:
		l.perReplica = 0
	case l.perReplica == 0:
		l.perReplica = firstGuess(by, float64(*ask.TargetLatencyMs), load, ready)
	}

	return l
}

// firstGuess of the load that a replica bears.
func firstGuess(by v1alpha1.Signal, target float64, load reading, ready int) float64 {
	switch by {
	case v1alpha1.SignalInFlight:
		return firstInFlight
	case v1alpha1.SignalRequestRate:
		return min(max(rounded(firstInFlight/(target/1000), 2), leastLoad), mostLoad)
	case v1alpha1.SignalQuery:
		// In a unit that nobody knows there is only what replicas bear now.
		if load.known() && load.value > 0 && ready > 0 {
			return min(max(rounded(load.value/float64(ready), 2), leastLoad), mostLoad)
		}
	case v1alpha1.SignalAuto, v1alpha1.SignalCPU:
	}

	return 0
}

// termOf what was seen in a window.
func termOf(
	ask *v1alpha1.ScalingParameters, p *v1alpha1.MetricsParameters, seen *measures, load reading,
	ready []*corev1.Pod, m *remembered, now time.Time,
) term {
	changedAt := m.changedAt
	n := float64(len(ready))
	settle := min(max(windowOf(p), leastSettled), mostSettled)

	for _, pod := range ready {
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady && c.LastTransitionTime.After(changedAt) {
				changedAt = c.LastTransitionTime.Time
			}
		}
	}

	w := term{
		load:     load.value / n,
		latency:  seen.latency.quantile(share(ask.Percentile), certain),
		requests: seen.latency.samples(),
		settled:  now.Sub(changedAt) >= settle,
		growing:  m.growing,
	}

	// By Little's law as many are in flight as arrive while one takes its time. The
	// median stands for the mean, which the largest bucket would spoil.
	w.inFlight = w.requests / windowOf(p).Seconds() / n * seen.latency.quantile(0.5, 0).value / 1000
	if seen.inFlight.known() {
		w.inFlight = math.Max(w.inFlight, seen.inFlight.value/n)
	}

	return w
}
