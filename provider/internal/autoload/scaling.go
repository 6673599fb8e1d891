// SPDX-License-Identifier: Apache-2.0

package autoload

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/prometheus"
	"github.com/capstan-dev/capstan/provider/internal/promq"
	"github.com/capstan-dev/capstan/provider/internal/stats"
)

const (
	// firstInFlight is how many requests in flight a replica is thought to bear before anything is known.
	firstInFlight = 2.0
	// The provider learns from replicas once they have been the same for a window, with a minimum of one minute and a maximum of
	// five.
	leastSettled, mostSettled = time.Minute, 5 * time.Minute
	// otherSignal is how many looks in a row must find that the pods expose another signal than before.
	otherSignal = 3
)

// A Memory is what is known of the replicas of a slot beside the status.
type Memory struct {
	// replicas that were ready when they last changed, and when that was.
	replicas  string
	ready     int
	growing   bool
	changedAt time.Time
	// lesson about the replicas of a slot, by a signal. About is empty while there is none.
	lesson lesson
	about  string
	// missed is how often in a row the pods exposed a lesser signal than before.
	missed int
}

// Watch when the ready replicas of a slot change.
func (m Memory) Watch(slot string, ready []*corev1.Pod, now time.Time) Memory {
	uids := make([]string, 0, len(ready))
	for _, p := range ready {
		uids = append(uids, string(p.GetUID())+p.GetName())
	}
	slices.Sort(uids)
	if all := slot + " " + strings.Join(uids, " "); all != m.replicas {
		m.replicas, m.changedAt = all, now
		m.growing, m.ready = len(uids) > m.ready, len(uids)
	}
	return m
}

// A Look at the replicas of a slot.
type Look struct {
	Namespace, Algorithm string
	Metrics              *v1alpha1.MetricsParameters
	Sample               promq.Sample
	// Ready pods of the slot.
	Ready []*corev1.Pod
	// Reported before, or nil.
	Reported *v1alpha1.ScalingObservation
	Now      time.Time
}

// Learn from a look, and report the load that a replica bears.
func (m Memory) Learn(in Look) (Memory, *v1alpha1.ScalingObservation) {
	p := in.Metrics.Scaling
	if p == nil {
		m.lesson, m.about = lesson{}, ""
		return m, nil
	}
	before := ptr.Deref(in.Reported, v1alpha1.ScalingObservation{})
	o, seen := &v1alpha1.ScalingObservation{}, in.Sample.Of(p.Slot)
	m, o.Signal, o.Message = m.signal(p, before.Signal, seen)
	load := in.load(o.Signal, seen)
	if e, message := in.expressions(o.Signal); len(e) > 0 || message != "" {
		o.Expressions, o.Message = e, message
	}
	if o.Signal == v1alpha1.SignalCPU {
		m.lesson, m.about = lesson{}, ""
		return m, o
	}
	if o.Message == "" && !load.Known() {
		o.Message = load.Message
	}
	m = m.begin(p, o.Signal, before, load, len(in.Ready))
	target := float64(ptr.Deref(p.TargetLatencyMs, 0))
	switch {
	case target == 0:
		m.lesson.independent = false
	case !seen.Latency.Known():
		if o.Message == "" && seen.Latency.Message != promq.NoRequests {
			o.Message = "the load that a replica bears is not learned: " + seen.Latency.Message
		}
	case load.Known() && len(in.Ready) > 0:
		m.lesson = m.lesson.learn(m.term(in, load), target, p.PerReplica != nil, in.Now)
	}
	if m.lesson.perReplica > 0 {
		o.PerReplica = new(m.lesson.perReplica)
	}
	o.LoadIndependent = m.lesson.independent
	m.lesson.report(o, before)
	return m, o
}

const (
	// otherwise is the part by which a bound differs from the reported one before it is reported: it moves a little with each look.
	otherwise = 0.1
	// brokeEvery is how exact the reported time is at which the latency broke.
	brokeEvery = 10 * time.Minute
)

// report the bounds of what was learned. They are there for another process of the provider, and change seldom.
func (l lesson) report(o *v1alpha1.ScalingObservation, before v1alpha1.ScalingObservation) {
	quiet := func(reported *float64, now float64) *float64 {
		switch {
		case now <= 0:
			return nil
		case reported != nil && math.Abs(now-*reported) <= otherwise**reported:
			return reported
		default:
			return new(stats.Rounded(now, 2))
		}
	}
	o.Held, o.HeldInFlight, o.Broke = quiet(before.Held, l.held), quiet(before.HeldInFlight, l.heldInFlight), quiet(before.Broke, l.broke)
	switch {
	case o.Broke == nil:
	case before.BrokeAt != nil && l.brokeAt.Sub(before.BrokeAt.Time).Abs() < brokeEvery:
		o.BrokeAt = before.BrokeAt
	default:
		o.BrokeAt = new(metav1.NewTime(l.brokeAt.Truncate(time.Second)))
	}
}

// resumed from what another process reported.
func (l lesson) resumed(o v1alpha1.ScalingObservation) lesson {
	l.perReplica, l.independent = ptr.Deref(o.PerReplica, 0), o.LoadIndependent
	l.held, l.heldInFlight = ptr.Deref(o.Held, 0), ptr.Deref(o.HeldInFlight, 0)
	if o.Broke != nil && o.BrokeAt != nil {
		l.broke, l.brokeAt = *o.Broke, o.BrokeAt.Time
	}
	return l
}

// signal of the load that the pods expose, and why it is unknown. With Auto it is the best that was ever seen: that nothing is
// seen now is no reason to scale by something else, and an outage none to scale at all.
func (m Memory) signal(p *v1alpha1.ScalingParameters, before v1alpha1.Signal, seen *promq.Measures) (Memory, v1alpha1.Signal, string) {
	if p.Signal != v1alpha1.SignalAuto && p.Signal != "" {
		return m, p.Signal, ""
	}
	best := v1alpha1.SignalCPU
	switch {
	case seen.HasInFlight:
		best = v1alpha1.SignalInFlight
	case seen.HasRequests:
		best = v1alpha1.SignalRequestRate
	}
	rank := []v1alpha1.Signal{"", v1alpha1.SignalCPU, v1alpha1.SignalRequestRate, v1alpha1.SignalInFlight}
	better := slices.Index(rank, best) - slices.Index(rank, before)
	if better < 0 && (seen.HasRequests || seen.HasInFlight) {
		// Pods that expose requests but nothing in flight run another server.
		m.missed++
	}
	switch {
	case better < 0 && m.missed < otherSignal:
		return m, before, seen.Requests.Message
	case better >= 0 && best == v1alpha1.SignalCPU:
		// Without an answer CPU is only a guess, which the first answer corrects.
		m.missed = 0
		return m, best, seen.Requests.Message
	default:
		m.missed = 0
		return m, best, ""
	}
}

// load of the pods of a slot together.
func (in Look) load(by v1alpha1.Signal, seen *promq.Measures) promq.Reading {
	switch by {
	case v1alpha1.SignalInFlight:
		return seen.InFlight
	case v1alpha1.SignalRequestRate:
		r := seen.Requests
		r.Value /= promq.WindowOf(in.Metrics).Seconds()
		return r
	case v1alpha1.SignalQuery:
		return in.Sample.Load
	default:
		return promq.NoData("")
	}
}

// begin a lesson about the replicas of a slot by a signal, or continue it. A new lesson forgets what was observed of other pods,
// except the load that they bore.
func (m Memory) begin(p *v1alpha1.ScalingParameters, by v1alpha1.Signal, before v1alpha1.ScalingObservation, load promq.Reading, ready int) Memory {
	if about := fmt.Sprint(by, p.Slot, ptr.Deref(p.TargetLatencyMs, 0), p.Percentile); m.about != about {
		l := lesson{proportional: by == v1alpha1.SignalInFlight}
		switch {
		case before.Signal != by:
		case m.about != "":
			l.perReplica = m.lesson.perReplica
		default:
			l = l.resumed(before)
		}
		m.lesson, m.about = l, about
	}
	switch {
	case p.PerReplica != nil:
		m.lesson.perReplica = *p.PerReplica
	case p.TargetLatencyMs == nil:
		m.lesson.perReplica = 0
	case m.lesson.perReplica == 0:
		m.lesson.perReplica = firstGuess(by, float64(*p.TargetLatencyMs), load, ready)
	}
	return m
}

// firstGuess of the load that a replica bears.
func firstGuess(by v1alpha1.Signal, target float64, load promq.Reading, ready int) float64 {
	var guess float64
	switch {
	case by == v1alpha1.SignalInFlight:
		return firstInFlight
	case by == v1alpha1.SignalRequestRate:
		guess = firstInFlight / (target / 1000)
	case by == v1alpha1.SignalQuery && load.Known() && load.Value > 0 && ready > 0:
		// In an unknown unit there is only what replicas bear now.
		guess = load.Value / float64(ready)
	default:
		return 0
	}
	return min(max(stats.Rounded(guess, 2), leastLoad), mostLoad)
}

func (m Memory) term(in Look, load promq.Reading) term {
	changedAt, n, seen := m.changedAt, float64(len(in.Ready)), in.Sample.Of(in.Metrics.Scaling.Slot)
	for _, pod := range in.Ready {
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady && c.LastTransitionTime.After(changedAt) {
				changedAt = c.LastTransitionTime.Time
			}
		}
	}
	window := promq.WindowOf(in.Metrics)
	w := term{
		load:     load.Value / n,
		latency:  seen.Latency.Quantile(promq.Percentile(in.Metrics.Scaling.Percentile), stats.Certain),
		requests: seen.Latency.Samples(),
		settled:  in.Now.Sub(changedAt) >= min(max(window, leastSettled), mostSettled),
		growing:  m.growing,
	}
	// By Little's law as many are in flight as arrive while one takes its time. The median stands for the mean, which the largest
	// bucket would spoil.
	w.inFlight = w.requests / window.Seconds() / n * seen.Latency.Quantile(0.5, 0).Value / 1000
	if seen.InFlight.Known() {
		w.inFlight = max(w.inFlight, seen.InFlight.Value/n)
	}
	return w
}

// expressions that custom queries become, for what the autoscaler follows and the platform's rules do not record.
func (in Look) expressions(by v1alpha1.Signal) ([]v1alpha1.SlotExpression, string) {
	return narrowed(in.Namespace, in.Algorithm, in.Metrics, recorded(in.Metrics, by))
}

// Latency has the expressions to record the latency of an own query by, for what only reads it. None of a query that cannot be
// narrowed to pods.
func Latency(namespace, algorithm string, m *v1alpha1.MetricsParameters) []v1alpha1.SlotExpression {
	if m.RecordLatency == nil || m.Queries == nil || m.Queries.Latency == "" {
		return nil
	}
	all, _ := narrowed(namespace, algorithm, m, [][2]string{ownLatency(*m.RecordLatency, m.Queries.Latency)})
	return all
}

// narrowed expressions of series, for each slot. Each is one number for its pods: zero without traffic, and none when no pod is
// scraped.
func narrowed(namespace, algorithm string, m *v1alpha1.MetricsParameters, series [][2]string) ([]v1alpha1.SlotExpression, string) {
	var all []v1alpha1.SlotExpression
	for _, slot := range slices.Sorted(slices.Values(promq.QuestionOf(m).Slots)) {
		pods := prometheus.Pods{Namespace: namespace, Algorithm: algorithm, Slots: []string{slot}}
		for _, s := range series {
			e, err := pods.Narrow(promq.Fill(s[1], promq.WindowOf(m)))
			if err != nil {
				return nil, promq.Bounded(err.Error())
			}
			all = append(all, v1alpha1.SlotExpression{Slot: slot, Series: s[0], Expression: e})
		}
	}
	return all, ""
}

// recorded series for a signal, and the query that each is made of.
func recorded(m *v1alpha1.MetricsParameters, by v1alpha1.Signal) [][2]string {
	var all [][2]string
	own := ptr.Deref(m.Queries, v1alpha1.Queries{})
	switch {
	case by == v1alpha1.SignalQuery:
		all = append(all, [2]string{v1alpha1.SeriesCustom, m.Scaling.Query})
	case by == v1alpha1.SignalInFlight && own.InFlight != "":
		all = append(all, [2]string{v1alpha1.SeriesOwnInFlight, fmt.Sprintf("sum(%s)", own.InFlight)})
	case by == v1alpha1.SignalRequestRate && own.Requests != "":
		all = append(all, [2]string{
			v1alpha1.SeriesOwnRequestRate, fmt.Sprintf("sum(%s) / %g", own.Requests, promq.WindowOf(m).Seconds()),
		})
	}
	if m.Scaling.TargetLatencyMs != nil && own.Latency != "" {
		all = append(all, ownLatency(m.Scaling.Percentile, own.Latency))
	}
	return all
}

func ownLatency(percentile int32, query string) [2]string {
	return [2]string{v1alpha1.SeriesOwnLatency, fmt.Sprintf(
		"1000 * histogram_quantile(%g, sum by (le) (%s)) > 0 or 0 * (count(up == 1) > 0)", float64(percentile)/100, query)}
}
