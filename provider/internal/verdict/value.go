// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"fmt"
	"math"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/promq"
	"github.com/capstan-dev/capstan/provider/internal/stats"
)

// value of a query, or of what replicas share, in the recent window. It has no confidence, and so is compared as it is.
func (j judge) value() Verdict {
	// Whether the canary is tried enough is a matter of the whole epoch.
	requests := j.Whole.Of(j.Slot).Requests
	n := max(math.Round(requests.Value), 0)
	v := Verdict{}
	if requests.Known() && (j.Canary || j.check.Kind == v1alpha1.CheckRequestRate) {
		v = v.samples(n)
	}
	r, in := j.reading(j.Slot), figure
	if !r.Known() {
		return v.unknown("", r)
	}
	is := figure(r.Value)
	if j.relative() {
		b := j.reading(j.Baseline)
		if !b.Known() {
			return v.unknown(ofTheBaseline, b)
		}
		v.Baseline = new(stats.Rounded(b.Value, digits))
		if b.Value == 0 {
			return v.is(v1alpha1.VerdictNoData, baselineIsZero)
		}
		r.Value /= b.Value
		is, in = timesBaseline(r.Value)+" the "+figure(b.Value)+" of the baseline", timesBaseline
	}
	v.Value = new(stats.Rounded(r.Value, digits))
	v.Sigma = j.sigma(*v.Value, requests)
	failed := compare(j.check, stats.Span{Lower: r.Value, Upper: r.Value}) == v1alpha1.VerdictFail
	switch {
	case j.Canary && requests.Known() && n < j.least():
		return j.tooFew(v, "", n, j.least())
	case failed && j.Canary && j.baselineFails():
		return v.is(shared, fmt.Sprintf("%s, %s, and the baseline fails as well: it is no fault of the canary alone", is, demand(j.check, in)))
	case failed && j.Canary:
		return v.fail("%s, %s", is, demand(j.check, in))
	case failed:
		return v.fail("")
	default:
		return v.pass()
	}
}

// baselineFails reports whether the value of the baseline is out of the bounds of a check that is not relative to it.
func (j judge) baselineFails() bool {
	if j.relative() || j.Baseline == "" {
		return false
	}
	b := j.reading(j.Baseline)
	return b.Known() && compare(j.check, stats.Span{Lower: b.Value, Upper: b.Value}) == v1alpha1.VerdictFail
}

// fewInCache is how many requests a cache has room for at least.
const fewInCache = 16

// sigma of what arrives at random.
func (j judge) sigma(value float64, requests promq.Reading) float64 {
	ready := float64(max(j.Ready(j.Slot), 1))
	switch {
	case j.check.Kind == v1alpha1.CheckRequestRate && requests.Known():
		return math.Sqrt(max(requests.Value, 1)) / j.Window.Seconds() / ready
	case j.check.Kind == v1alpha1.CheckTokenRate && requests.Known():
		// Most of the chance is how many requests there are, and how long their answers.
		return value * math.Sqrt(2/max(requests.Value, 1))
	case j.check.Kind == v1alpha1.CheckCacheUse:
		// The cache varies with the number of requests in it, for which it has room for a few at least.
		return math.Sqrt(max(value, 0)/fewInCache/ready) / 2
	case j.check.Kind == v1alpha1.CheckInFlight, j.check.Kind == v1alpha1.CheckWaiting:
		// What is in flight has its mean as its variance, and a window has four scrapes of each replica at least.
		return math.Sqrt(max(value, 1)/ready) / 2
	default:
		return 0
	}
}

// reading of a slot in the recent window.
func (j judge) reading(slot string) promq.Reading {
	m := j.Recent.Of(slot)
	switch j.check.Kind {
	case v1alpha1.CheckRequestRate:
		return j.shared(m.Requests, 1/j.Window.Seconds(), slot)
	case v1alpha1.CheckInFlight:
		return j.shared(m.InFlight, 1, slot)
	case v1alpha1.CheckTokenRate:
		return j.shared(m.Tokens.Generated, 1/j.Window.Seconds(), slot)
	case v1alpha1.CheckWaiting:
		return j.shared(m.Tokens.Waiting, 1, slot)
	case v1alpha1.CheckCacheUse:
		return j.shared(m.Tokens.Cache, 1, slot)
	default:
		return j.Recent.Check(promq.Place{Slot: slot, Check: j.check.Name})
	}
}

// shared by the ready replicas of a slot.
func (j judge) shared(r promq.Reading, unit float64, slot string) promq.Reading {
	n := j.Ready(slot)
	switch {
	case !r.Known():
		return r
	case n == 0:
		return promq.NoData(noReplica)
	default:
		return promq.Reading{Value: max(r.Value, 0) * unit / float64(n)}
	}
}
