// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"fmt"
	"math"

	"k8s.io/utils/ptr"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

const (
	noRequests = "there was no request in the window"
	noReplica  = "no replica of this slot is ready"
	notAll     = "that none ever fails cannot be told from any number of requests: set a minimum below 1"

	// digits that are told of a number.
	digits = 3
)

// An opinion is what a check comes to, with how much its value moves by chance.
type opinion struct {
	v1alpha1.MetricObservation

	// sigma is the standard deviation of the value.
	sigma float64
}

// judge a check of a slot: told is the verdict that stands.
func judge(c v1alpha1.Check, at place, s sample, ready int, m *v1alpha1.MetricsParameters, told v1alpha1.Verdict) opinion {
	o := opinion{MetricObservation: v1alpha1.MetricObservation{Slot: at.slot, Name: at.name}}

	seen := s.slots[at.slot]
	if seen == nil {
		seen = &measures{}
	}

	switch c.Kind {
	case v1alpha1.CheckSuccessRatio:
		o.successRatio(c, seen, m, told)
	case v1alpha1.CheckLatency:
		o.latency(c, seen, m, told)
	case v1alpha1.CheckRequestRate:
		seconds := windowOf(m).Seconds()
		o.perReplica(c, seen.requests, 1/seconds, ready)

		if seen.requests.known() {
			o.Samples = new(int64(math.Round(seen.requests.value)))
			o.sigma = math.Sqrt(max(seen.requests.value, 1)) / seconds / float64(max(ready, 1))
		}
	case v1alpha1.CheckInFlight:
		o.perReplica(c, seen.inFlight, 1, ready)

		// What arrives at random is in flight in a number whose variance is its mean, and
		// a window has four scrapes of each replica at least.
		if o.Value != nil {
			o.sigma = math.Sqrt(max(*o.Value, 1)/float64(max(ready, 1))) / 2
		}
	case v1alpha1.CheckQuery:
		o.plain(c, s.checks[at])
	case v1alpha1.CheckDrift:
		o.drift(c, at, &s, m, told)
	}

	return o
}

// unknown tells why there is no value, if there is none.
func (o *opinion) unknown(all ...reading) bool {
	for _, r := range all {
		if !r.known() {
			o.Verdict, o.Message = r.verdict, r.message

			return true
		}
	}

	return false
}

func (o *opinion) successRatio(c v1alpha1.Check, seen *measures, m *v1alpha1.MetricsParameters, told v1alpha1.Verdict) {
	if o.unknown(seen.requests, seen.failures) {
		return
	}

	// Increases are extrapolated to the ends of the window: they are not whole.
	n := max(math.Round(seen.requests.value), 0)
	failures := min(max(math.Round(seen.failures.value), 0), n)
	o.Samples = new(int64(n))

	tooFew := fmt.Sprintf("too few requests in %s to tell", window(m))
	if least := ptr.Deref(c.Min, 0); least > 0 && least < 1 {
		tooFew += fmt.Sprintf(": at least %.0f are needed when none fails, and more when some do", enough(least, confident))
	} else if least >= 1 {
		tooFew = notAll
	}

	if n == 0 {
		o.Verdict, o.Message = v1alpha1.VerdictInsufficient, tooFew

		return
	}

	bounds := func(z float64) span {
		lower, upper := wilson(n-failures, n, z)

		return span{lower, upper}
	}
	at := bounds(confident)

	o.Verdict = hold(c, told, bounds)
	if o.Verdict == v1alpha1.VerdictInsufficient {
		o.Message = tooFew
	}

	o.Value, o.Lower, o.Upper = new(roundedShare((n-failures)/n)), new(roundedShare(at.lower)), new(roundedShare(at.upper))
	o.sigma = (at.upper - at.lower) / 2 / confident
}

func (o *opinion) latency(c v1alpha1.Check, seen *measures, m *v1alpha1.MetricsParameters, told v1alpha1.Verdict) {
	if o.unknown(seen.latencyRead) {
		// Without requests there is no histogram of any, which is no lack of data.
		if o.Message == noRequests {
			o.Verdict, o.Message, o.Samples = v1alpha1.VerdictInsufficient, tooFewFor(c, m), new(int64(0))
		}

		return
	}

	h, p := seen.latency, share(c.Percentile)
	n := math.Round(h.samples())
	o.Samples = new(int64(n))

	if n < 1 {
		o.Verdict, o.Message = v1alpha1.VerdictInsufficient, tooFewFor(c, m)

		return
	}

	bounds := func(z float64) span {
		l := h.quantile(p, z)

		return span{l.lower, l.upper}
	}
	l := h.quantile(p, confident)

	o.Verdict = hold(c, told, bounds)

	switch most := ptr.Deref(c.Max, 0); {
	case o.Verdict != v1alpha1.VerdictInsufficient:
	case l.beyond && most >= h.largest():
		o.Message = fmt.Sprintf("the histogram has no bucket above %g ms: add some, or lower the maximum", h.largest())
	default:
		o.Message = tooFewFor(c, m)
	}

	o.Value, o.Lower = new(rounded(l.value, digits)), new(rounded(l.lower, digits))
	if !math.IsInf(l.upper, 1) {
		o.Upper = new(rounded(l.upper, digits))
	}

	o.sigma = (l.value - l.lower) / confident
}

// tooFewFor a bound of a percentile.
func tooFewFor(c v1alpha1.Check, m *v1alpha1.MetricsParameters) string {
	return fmt.Sprintf("too few requests in %s to tell: at least %.0f are needed, and more near a bound",
		window(m), few(share(c.Percentile), confident))
}

// perReplica compares what the replicas that are ready share.
func (o *opinion) perReplica(c v1alpha1.Check, r reading, unit float64, ready int) {
	if o.unknown(r) {
		return
	}

	if ready == 0 {
		o.Verdict, o.Message = v1alpha1.VerdictNoData, noReplica

		return
	}

	o.plain(c, reading{value: max(r.value, 0) * unit / float64(ready)})
}

// plain compares a value that has no confidence.
func (o *opinion) plain(c v1alpha1.Check, r reading) {
	if o.unknown(r) {
		return
	}

	o.Value = new(rounded(r.value, digits))
	o.Verdict = compare(c, span{r.value, r.value})
}

// hold the verdict that is told as long as it is not clearly wrong: it is reached
// at one confidence and given up at a lower one.
func hold(c v1alpha1.Check, told v1alpha1.Verdict, bounds func(z float64) span) v1alpha1.Verdict {
	v := compare(c, bounds(confident))
	if v != v1alpha1.VerdictInsufficient {
		return v
	}

	if told == v1alpha1.VerdictPass || told == v1alpha1.VerdictFail {
		if compare(c, bounds(doubtful)) == told {
			return told
		}
	}

	return v
}

// A span in which a value lies.
type span struct{ lower, upper float64 }

// compare a span with the bounds of a check.
func compare(c v1alpha1.Check, s span) v1alpha1.Verdict {
	least, most := ptr.Deref(c.Min, math.Inf(-1)), ptr.Deref(c.Max, math.Inf(1))

	switch {
	case s.upper < least, s.lower > most:
		return v1alpha1.VerdictFail
	case s.lower >= least && s.upper <= most:
		return v1alpha1.VerdictPass
	default:
		return v1alpha1.VerdictInsufficient
	}
}

// share of the requests that a percentile is about.
func share(percentile int32) float64 {
	if percentile == 0 {
		percentile = 95
	}

	return float64(percentile) / 100
}
