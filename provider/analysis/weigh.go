// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"k8s.io/utils/ptr"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

// Why a check of a canary comes to nothing.
const (
	noBaseline     = "there is no baseline to compare with"
	ofTheBaseline  = "of the baseline: "
	baselineIsZero = "the baseline is 0, so that nothing is a multiple of it"
	noCommonBucket = "the histograms have fewer than two buckets in common: let both revisions tell the same ones"
)

// fewestCompared is how many samples of each side a distance of distributions needs at
// least: below, the approximation that its bounds are made of does not hold.
const fewestCompared = 200

// A weighing of a check of a canary, by what was seen in the recent window and by all
// that was since its epoch settled.
type weighing struct {
	check v1alpha1.Check
	of    *v1alpha1.CanaryParameters
	by    *evidence

	// ready replicas of a slot.
	ready func(slot string) int

	verdict v1alpha1.Verdict
	told    v1alpha1.CanaryCheck
}

// weigh a check.
func weigh(c v1alpha1.Check, of *v1alpha1.CanaryParameters, by *evidence, ready func(slot string) int) (v1alpha1.Verdict, v1alpha1.CanaryCheck) {
	w := &weighing{check: c, of: of, by: by, ready: ready, told: v1alpha1.CanaryCheck{Name: c.Name}}

	switch {
	case w.relative() && of.Baseline == "":
		w.is(v1alpha1.VerdictNoData, noBaseline)
	case c.Kind == v1alpha1.CheckSuccessRatio:
		w.successRatio()
	case c.Kind == v1alpha1.CheckLatency:
		w.latency()
	case c.Kind == v1alpha1.CheckDrift:
		w.drift()
	default:
		w.value()
	}

	w.told.Message = bounded(w.told.Message)

	return w.verdict, w.told
}

func (w *weighing) relative() bool { return w.check.RelativeTo == v1alpha1.RelativeToBaseline }

// is what it comes to.
func (w *weighing) is(v v1alpha1.Verdict, message string) { w.verdict, w.told.Message = v, message }

// unknown tells why there is no value, if there is none.
func (w *weighing) unknown(whose string, all ...reading) bool {
	for _, r := range all {
		if !r.known() {
			w.is(r.verdict, whose+r.message)

			return true
		}
	}

	return false
}

// least is how many requests it takes.
func (w *weighing) least() float64 { return float64(max(w.of.MinSamples, 1)) }

// wait is how long it takes until so many more have come, as fast as they did.
func (w *weighing) wait(have, need float64) string {
	if have <= 0 {
		return ""
	}

	more := (need - have) / have * w.by.period.Seconds()

	return fmt.Sprintf(", about %s at this rate", lasting(time.Duration(min(more, 1e9)*float64(time.Second))))
}

// made of so many requests or samples.
func (w *weighing) made(n float64) string {
	what := "request"
	if w.check.Kind == v1alpha1.CheckDrift {
		what = "sample"
	}

	switch n {
	case 0:
		return "no " + what
	case 1:
		return "1 " + what
	default:
		return grouped(n) + " " + what + "s"
	}
}

// tooFew of what it takes.
func (w *weighing) tooFew(whose string, have, need float64) {
	if have <= 0 {
		w.is(v1alpha1.VerdictInsufficient, whose+w.made(0)+" yet, at least "+grouped(need)+" are needed")

		return
	}

	w.is(v1alpha1.VerdictInsufficient, fmt.Sprintf("%s%s, at least %s are needed: %s more%s",
		whose, w.made(have), grouped(need), grouped(need-have), w.wait(have, need)))
}

// counted requests of a slot. Increases are extrapolated to the ends of the window:
// they are not whole.
func counted(m *measures) outcomes {
	n := max(math.Round(m.requests.value), 0)

	return outcomes{n, min(max(math.Round(m.failures.value), 0), n)}
}

func (w *weighing) successRatio() {
	last, all := w.by.recent.of(w.of.Slot), w.by.whole.of(w.of.Slot)
	if w.unknown("", all.requests, all.failures, last.requests, last.failures) {
		return
	}

	c := counted(all)
	w.told.Samples = new(int64(c.n))

	baseline := w.by.whole.of(w.of.Baseline)
	if r := []reading{baseline.requests, baseline.failures}; r[0].known() && r[1].known() && counted(baseline).n > 0 {
		w.told.Baseline = new(roundedShare(counted(baseline).share()))
	} else if w.relative() && w.unknown(ofTheBaseline, r...) {
		return
	}

	if c.n > 0 {
		w.tellShare(c.share(), c.bounds())
	}

	switch {
	case c.n == 0:
		w.tooFew("", 0, w.least())
	case w.relative():
		w.worse(counted(last), c, counted(w.by.recent.of(w.of.Baseline)), counted(baseline))
	default:
		w.share(counted(last), c)
	}
}

// share of the requests that succeed, against what is asked of it.
func (w *weighing) share(last, all outcomes) {
	odds := func(c outcomes) float64 {
		most := 0.0
		if w.check.Min != nil {
			most = oddsAgainst(c.n-c.failures, c.failures, *w.check.Min)
		}

		if w.check.Max != nil {
			most = max(most, oddsAgainst(c.failures, c.n-c.failures, 1-*w.check.Max))
		}

		return most
	}
	least := ptr.Deref(w.check.Min, 0)
	succeed := fmt.Sprintf("%s of %s succeed, %s", percent(all.share()), grouped(all.n), demand(w.check, percent))

	switch o, r := odds(all), odds(last); {
	case o >= enoughOdds:
		w.is(v1alpha1.VerdictFail, succeed+"; sequential odds "+oddsOf(o))
	case r >= enoughOddsRecently:
		w.is(v1alpha1.VerdictFail, fmt.Sprintf("%s of the last %s succeed, %s; odds %s",
			percent(last.share()), grouped(last.n), demand(w.check, percent), oddsOf(r)))
	case least >= 1:
		w.is(v1alpha1.VerdictInsufficient, notAll)
	case all.n < w.least():
		w.tooFew("", all.n, max(w.least(), stillNeeded(outcomes{n: 1}, least)))
	case compare(w.check, all.bounds()) == v1alpha1.VerdictPass:
		w.is(v1alpha1.VerdictPass, "")
	default:
		w.is(v1alpha1.VerdictInsufficient, succeed+": too few to tell"+w.more(all))
	}
}

// more requests that are needed when they go on as before.
func (w *weighing) more(c outcomes) string {
	need := stillNeeded(c, ptr.Deref(w.check.Min, 0))

	switch {
	case w.check.Min == nil:
		return ""
	case math.IsInf(need, 1):
		return " either"
	case need <= c.n:
		return ""
	default:
		return fmt.Sprintf(", %s more are needed if it goes on like this%s", grouped(need-c.n), w.wait(c.n, need))
	}
}

// worse than the baseline: it fails beyond doubt, and passes when it is not worse by
// what matters.
func (w *weighing) worse(last, canary, lastOfBaseline, baseline outcomes) {
	is := func(c, b outcomes) string {
		return fmt.Sprintf("%s of %s succeed, and %s of %s of the baseline", percent(c.share()), grouped(c.n), percent(b.share()), grouped(b.n))
	}

	switch o, r := oddsWorse(canary, baseline), oddsWorse(last, lastOfBaseline); {
	case o >= enoughOdds:
		w.is(v1alpha1.VerdictFail, is(canary, baseline)+"; sequential odds "+oddsOf(o))
	case r >= enoughOddsRecently:
		w.is(v1alpha1.VerdictFail, "recently "+is(last, lastOfBaseline)+"; odds "+oddsOf(r))
	case canary.n < w.least():
		w.tooFew("", canary.n, w.least())
	case baseline.n < w.least():
		w.tooFew(ofTheBaseline, baseline.n, w.least())
	case worseAtMost(canary, baseline) <= noticeable:
		w.is(v1alpha1.VerdictPass, "")
	default:
		w.is(v1alpha1.VerdictInsufficient, is(canary, baseline)+": too few to tell that it is not worse")
	}
}

func (w *weighing) latency() {
	last, all := w.by.recent.of(w.of.Slot), w.by.whole.of(w.of.Slot)
	if w.noLatency("", all) || last.latencyRead.message != noRequests && w.unknown("", last.latencyRead) {
		return
	}

	p, h := share(w.check.Percentile), all.latency
	l, n := h.quantile(p, confident), math.Round(h.samples())
	w.told.Samples = new(int64(n))

	if n < 1 {
		w.tooFew("", 0, max(w.least(), few(p, confident)))

		return
	}

	baseline := w.by.whole.of(w.of.Baseline)
	if w.relative() {
		if !w.noLatency(ofTheBaseline, baseline) {
			w.ratio(p, n, last, all, baseline)
		}

		return
	}

	if baseline.latencyRead.known() && baseline.latency != nil && baseline.latency.samples() >= 1 {
		w.told.Baseline = new(rounded(baseline.latency.quantile(p, confident).value, digits))
	}

	w.tell(l.value, span{l.lower, l.upper})
	w.slow(p, n, l, last.latency, h)
}

// noLatency tells why there is none. Without requests there is no histogram of any,
// which is no lack of data.
func (w *weighing) noLatency(whose string, m *measures) bool {
	if m.latencyRead.message == noRequests {
		if whose == "" {
			w.told.Samples = new(int64(0))
		}

		w.tooFew(whose, 0, max(w.least(), few(share(w.check.Percentile), confident)))

		return true
	}

	return w.unknown(whose, m.latencyRead)
}

// tellShare tells the numbers of a share.
func (w *weighing) tellShare(value float64, s span) {
	w.told.Value, w.told.Lower, w.told.Upper = new(roundedShare(value)), new(roundedShare(s.lower)), new(roundedShare(s.upper))
}

// tell the numbers.
func (w *weighing) tell(value float64, s span) {
	w.told.Value, w.told.Lower = new(rounded(value, digits)), new(rounded(s.lower, digits))
	if !math.IsInf(s.upper, 1) {
		w.told.Upper = new(rounded(s.upper, digits))
	}
}

// slow tells whether too many requests take longer than is asked. A percentile is at
// most so much when the share of the requests that take no longer is at least that of
// the percentile, which is tested like any share.
func (w *weighing) slow(p, n float64, l latency, last, all histogram) {
	odds := func(h histogram) float64 {
		most := 0.0
		if h == nil {
			return 0
		}

		if w.check.Max != nil {
			within := h.within(*w.check.Max)
			most = oddsAgainst(within, h.samples()-within, p)
		}

		if w.check.Min != nil {
			within := h.within(*w.check.Min)
			most = max(most, oddsAgainst(h.samples()-within, within, 1-p))
		}

		return most
	}
	is := fmt.Sprintf("p%.0f of %s is %s, %s", 100*p, grouped(n), inMilliseconds(l.value), demand(w.check, inMilliseconds))

	switch o, r := odds(all), odds(last); {
	case o >= enoughOdds:
		w.is(v1alpha1.VerdictFail, is+"; sequential odds "+oddsOf(o))
	case r >= enoughOddsRecently:
		w.is(v1alpha1.VerdictFail, fmt.Sprintf("p%.0f of the last %s is %s, %s; odds %s",
			100*p, grouped(last.samples()), inMilliseconds(last.quantile(p, 0).value), demand(w.check, inMilliseconds), oddsOf(r)))
	case n < max(w.least(), few(p, confident)):
		w.tooFew("", n, max(w.least(), few(p, confident)))
	case compare(w.check, span{l.lower, l.upper}) == v1alpha1.VerdictPass:
		w.is(v1alpha1.VerdictPass, "")
	case l.beyond && ptr.Deref(w.check.Max, 0) >= all.largest():
		w.is(v1alpha1.VerdictInsufficient, fmt.Sprintf("the histogram has no bucket above %s: add some, or lower the maximum", inMilliseconds(all.largest())))
	default:
		w.is(v1alpha1.VerdictInsufficient, is+": too few to tell")
	}
}

// ratio of a percentile to that of the baseline.
func (w *weighing) ratio(p, n float64, last, all, baseline *measures) {
	b, m := baseline.latency.quantile(p, confident), baseline.latency.samples()
	if m >= 1 {
		w.told.Baseline = new(rounded(b.value, digits))
	}

	least := max(w.least(), few(p, confident))

	switch {
	case n < least:
		w.tooFew("", n, least)

		return
	case m < least:
		w.tooFew(ofTheBaseline, math.Round(m), least)

		return
	case b.beyond || b.value <= 0:
		w.is(v1alpha1.VerdictInsufficient, fmt.Sprintf("p%.0f of the baseline is above the largest bucket, which ends at %s: add some",
			100*p, inMilliseconds(baseline.latency.largest())))

		return
	}

	l := all.latency.quantile(p, confident)
	value := l.value / b.value
	w.tell(value, times(l, b))

	is := fmt.Sprintf("p%.0f of %s is %s, %s the %s of the baseline, %s",
		100*p, grouped(n), inMilliseconds(l.value), timesBaseline(value), inMilliseconds(b.value), demand(w.check, timesBaseline))

	recently := w.by.recent.of(w.of.Baseline)

	switch {
	case w.off(p, all.latency, baseline.latency):
		w.is(v1alpha1.VerdictFail, is)
	case w.off(p, last.latency, recently.latency):
		w.is(v1alpha1.VerdictFail, fmt.Sprintf("p%.0f of the last %s is %s, and %s of the baseline, %s", 100*p, grouped(last.latency.samples()),
			inMilliseconds(last.latency.quantile(p, 0).value), inMilliseconds(recently.latency.quantile(p, 0).value), demand(w.check, timesBaseline)))
	case compare(w.check, times(l, b)) == v1alpha1.VerdictPass:
		w.is(v1alpha1.VerdictPass, "")
	default:
		w.is(v1alpha1.VerdictInsufficient, is+": too few to tell")
	}
}

// off what is asked of the ratio of two percentiles, beyond doubt.
func (w *weighing) off(p float64, canary, baseline histogram) bool {
	return canary != nil && baseline != nil && canary.samples() >= 1 && baseline.samples() >= 1 &&
		compare(w.check, times(canary.quantile(p, strict), baseline.quantile(p, strict))) == v1alpha1.VerdictFail
}

// times one latency is another, as bounds at the confidence that both have, by what
// the bounds of the two tell of their variances (Zou and Donner, Construction of confidence
// limits about effect measures, 2008), of logarithms.
func times(l, b latency) span {
	if l.lower <= 0 || b.value <= 0 || math.IsInf(b.upper, 1) {
		// The lower bound of a ratio needs both of these.
		return span{0, upperTimes(l, b)}
	}

	down := math.Hypot(math.Log(l.value/l.lower), math.Log(b.upper/b.value))

	return span{l.value / b.value * math.Exp(-down), upperTimes(l, b)}
}

func upperTimes(l, b latency) float64 {
	if b.lower <= 0 || l.value <= 0 || math.IsInf(l.upper, 1) {
		return math.Inf(1)
	}

	return l.value / b.value * math.Exp(math.Hypot(math.Log(l.upper/l.value), math.Log(b.value/b.lower)))
}

// drift from the baseline, or from what all revisions told before.
func (w *weighing) drift() {
	here, there, whose := place{w.of.Slot, w.check.Name}, place{w.of.Baseline, w.check.Name}, ofTheBaseline
	now, last := w.by.whole.distribution(here), w.by.recent.distribution(here)
	other, recently := w.by.whole.distribution(there), w.by.recent.distribution(there)

	if w.check.Reference != nil {
		whose = ofTheReference
		other, recently = w.by.whole.reference(w.check.Name), w.by.recent.reference(w.check.Name)
	}

	if w.unknown("", now.reading, last.reading) || w.unknown(whose, other.reading, recently.reading) {
		return
	}

	n, m := math.Round(now.samples()), math.Round(other.samples())
	least := max(w.least(), fewestCompared)
	w.told.Samples = new(int64(n))

	if n < least {
		w.tooFew("", n, least)

		return
	}

	if m < least {
		w.tooFew(whose, m, least)

		return
	}

	both, ok := pairOf(now.histogram, other.histogram)
	if !ok {
		w.is(v1alpha1.VerdictNoData, noCommonBucket)

		return
	}

	d := both.distance(w.check.Method)
	w.tell(d.value, d.bounds(confident))

	is := fmt.Sprintf("%s is %s between %s samples and %s, %s",
		cmp.Or(w.check.Method, v1alpha1.DriftPSI), figure(d.value), grouped(n), grouped(m), demand(w.check, figure))

	switch {
	case compare(w.check, d.bounds(certain)) == v1alpha1.VerdictFail:
		w.is(v1alpha1.VerdictFail, is)
	case w.driftedRecently(last.histogram, recently.histogram, least):
	case compare(w.check, d.bounds(confident)) == v1alpha1.VerdictPass:
		w.is(v1alpha1.VerdictPass, "")
	default:
		w.is(v1alpha1.VerdictInsufficient, is+": too few to tell")
	}
}

// driftedRecently tells of drift in the recent window, when there is enough in it.
func (w *weighing) driftedRecently(last, recently histogram, least float64) bool {
	if last.samples() < least || recently.samples() < least {
		return false
	}

	both, ok := pairOf(last, recently)
	if !ok {
		return false
	}

	d := both.distance(w.check.Method)
	if compare(w.check, d.bounds(certain)) != v1alpha1.VerdictFail {
		return false
	}

	w.is(v1alpha1.VerdictFail, fmt.Sprintf("%s is %s between the last %s samples and %s, %s", cmp.Or(w.check.Method, v1alpha1.DriftPSI),
		figure(d.value), grouped(last.samples()), grouped(recently.samples()), demand(w.check, figure)))

	return true
}

// value of a query, or of what replicas share, in the recent window. It has no
// confidence, and so is compared as it is.
func (w *weighing) value() {
	// Whether the canary is tried enough is a matter of the whole epoch.
	requests := w.by.whole.of(w.of.Slot).requests
	n := max(math.Round(requests.value), 0)

	if requests.known() {
		w.told.Samples = new(int64(n))
	}

	v := w.plain(w.of.Slot)
	if w.unknown("", v) {
		return
	}

	is := figure(v.value)

	if w.relative() {
		b := w.plain(w.of.Baseline)
		if w.unknown(ofTheBaseline, b) {
			return
		}

		w.told.Baseline = new(rounded(b.value, digits))

		if b.value == 0 {
			w.is(v1alpha1.VerdictNoData, baselineIsZero)

			return
		}

		v.value /= b.value
		is = timesBaseline(v.value) + " the " + figure(b.value) + " of the baseline"
	}

	w.told.Value = new(rounded(v.value, digits))

	in := figure
	if w.relative() {
		in = timesBaseline
	}

	switch {
	case requests.known() && n < w.least():
		w.tooFew("", n, w.least())
	case compare(w.check, span{v.value, v.value}) == v1alpha1.VerdictFail:
		w.is(v1alpha1.VerdictFail, is+", "+demand(w.check, in))
	default:
		w.is(v1alpha1.VerdictPass, "")
	}
}

// plain value of a slot in the recent window.
func (w *weighing) plain(slot string) reading {
	m := w.by.recent.of(slot)

	switch w.check.Kind {
	case v1alpha1.CheckRequestRate:
		return w.shared(m.requests, 1/w.by.window.Seconds(), slot)
	case v1alpha1.CheckInFlight:
		return w.shared(m.inFlight, 1, slot)
	case v1alpha1.CheckQuery, v1alpha1.CheckSuccessRatio, v1alpha1.CheckLatency, v1alpha1.CheckDrift:
	}

	return w.by.recent.checks[place{slot, w.check.Name}]
}

// shared by the replicas of a slot that are ready.
func (w *weighing) shared(r reading, unit float64, slot string) reading {
	if !r.known() {
		return r
	}

	n := w.ready(slot)
	if n == 0 {
		return noData(noReplica)
	}

	return reading{value: max(r.value, 0) * unit / float64(n)}
}
