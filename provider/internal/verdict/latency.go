// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"fmt"
	"math"

	"k8s.io/utils/ptr"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/promq"
	"github.com/capstan-dev/capstan/provider/internal/stats"
)

// times that the check is about, in milliseconds.
func (j judge) times(m *promq.Measures) promq.Distribution {
	switch j.check.Kind {
	case v1alpha1.CheckFirstToken:
		return m.Tokens.First
	case v1alpha1.CheckEachToken:
		return m.Tokens.Each
	default:
		return m.Latency
	}
}

func (j judge) latency() Verdict {
	last, all, baseline := j.times(j.Recent.Of(j.Slot)), j.times(j.Whole.Of(j.Slot)), j.times(j.Whole.Of(j.Baseline))
	p := promq.Percentile(j.check.Percentile)
	need := max(j.least(), stats.Fewest(p, stats.Confident))
	// Without requests there is no histogram of any, which is no lack of data.
	n := 0.0
	if all.Message != promq.NoRequests {
		if r, unknown := firstUnknown(all.Reading, last.Reading); unknown && r.Message != promq.NoRequests {
			return Verdict{}.unknown("", r)
		}
		n = math.Round(all.Samples())
	}
	v := Verdict{}.samples(n)
	switch {
	case n < 1 && j.Canary:
		return j.tooFew(v, "", 0, need)
	case n < 1:
		return v.insufficient(j.tooFewForPercentile(p))
	}
	l := all.Quantile(p, stats.Confident)
	if j.relative() {
		switch {
		case baseline.Message == promq.NoRequests:
			return j.tooFew(v, ofTheBaseline, 0, need)
		case !baseline.Known():
			return v.unknown(ofTheBaseline, baseline.Reading)
		}
		return j.ratio(v, p, need, last.Histogram, all.Histogram, baseline.Histogram)
	}
	if baseline.Known() && baseline.Histogram != nil && baseline.Samples() >= 1 {
		v.Baseline = new(stats.Rounded(baseline.Quantile(p, stats.Confident).Value, digits))
	}
	v = v.estimate(l.Value, l.Bounds())
	v.Sigma = (l.Value - l.Lower) / stats.Confident
	if j.Canary {
		return j.slow(v, p, need, last.Histogram, all.Histogram, baseline.Histogram)
	}
	bounds := func(z float64) stats.Span { return all.Quantile(p, z).Bounds() }
	switch is := j.hold(bounds); {
	case is != v1alpha1.VerdictInsufficient:
		return v.is(is, "")
	case l.Beyond && ptr.Deref(j.check.Max, 0) >= all.Largest():
		return v.insufficient(fmt.Sprintf("the histogram has no bucket above %g ms: add some, or lower the maximum", all.Largest()))
	default:
		return v.insufficient(j.tooFewForPercentile(p))
	}
}

func (j judge) tooFewForPercentile(p float64) string {
	return fmt.Sprintf("%s: at least %.0f are needed, and more near a bound", j.tooFewToDecide(), stats.Fewest(p, stats.Confident))
}

// slow decides whether too many requests take longer than the check allows. A percentile is at most so much when the share of the
// requests that take no longer is at least that percentile, which is tested like any share. What the baseline fails as well is no
// fault of the canary.
func (j judge) slow(v Verdict, p, need float64, last, all, baseline stats.Histogram) Verdict {
	odds := func(h stats.Histogram) float64 {
		most := 0.0
		if h == nil {
			return 0
		}
		if j.check.Max != nil {
			within := h.Within(*j.check.Max)
			most = stats.OddsAgainst(within, h.Samples()-within, p)
		}
		if j.check.Min != nil {
			within := h.Within(*j.check.Min)
			most = max(most, stats.OddsAgainst(h.Samples()-within, within, 1-p))
		}
		return most
	}
	n, l := math.Round(all.Samples()), all.Quantile(p, stats.Confident)
	is := fmt.Sprintf("p%.0f of %s is %s, %s", 100*p, grouped(n), inMilliseconds(l.Value), demand(j.check, inMilliseconds))
	alike := func(canary, baseline stats.Histogram) bool {
		if j.check.Max == nil {
			return false
		}
		c, b := within(canary, *j.check.Max), within(baseline, *j.check.Max)
		return b.N > 0 && b.Share() < p && !muchWorse(c, b)
	}
	switch o, r := odds(all), odds(last); {
	case o >= stats.EnoughOdds && alike(all, baseline),
		r >= stats.EnoughOddsRecently && alike(last, j.times(j.Recent.Of(j.Baseline)).Histogram):
		return v.is(shared, is+", and the baseline is as slow: both fail, so that it is no fault of the canary alone")
	case o >= stats.EnoughOdds:
		return v.fail("%s; sequential odds %s", is, oddsOf(o))
	case r >= stats.EnoughOddsRecently:
		return v.fail("p%.0f of the last %s is %s, %s; odds %s",
			100*p, grouped(last.Samples()), inMilliseconds(last.Quantile(p, 0).Value), demand(j.check, inMilliseconds), oddsOf(r))
	case n < need:
		return j.tooFew(v, "", n, need)
	case compare(j.check, l.Bounds()) == v1alpha1.VerdictPass:
		return v.pass()
	case l.Beyond && ptr.Deref(j.check.Max, 0) >= all.Largest():
		return v.insufficient(fmt.Sprintf("the histogram has no bucket above %s: add some, or lower the maximum", inMilliseconds(all.Largest())))
	default:
		return v.insufficient(is + ": too few to decide")
	}
}

// ratio of a percentile to the same percentile of the baseline.
func (j judge) ratio(v Verdict, p, need float64, last, all, baseline stats.Histogram) Verdict {
	n, m := math.Round(all.Samples()), baseline.Samples()
	l, b := all.Quantile(p, stats.Confident), baseline.Quantile(p, stats.Confident)
	if m >= 1 {
		v.Baseline = new(stats.Rounded(b.Value, digits))
	}
	switch {
	case n < need:
		return j.tooFew(v, "", n, need)
	case m < need:
		return j.tooFew(v, ofTheBaseline, math.Round(m), need)
	case b.Beyond || b.Value <= 0:
		return v.insufficient(fmt.Sprintf("p%.0f of the baseline is above the largest bucket, which ends at %s: add some",
			100*p, inMilliseconds(baseline.Largest())))
	}
	off := func(canary, baseline stats.Histogram) bool {
		return canary != nil && baseline != nil && canary.Samples() >= 1 && baseline.Samples() >= 1 &&
			compare(j.check, stats.Ratio(canary.Quantile(p, stats.Strict), baseline.Quantile(p, stats.Strict))) == v1alpha1.VerdictFail
	}
	bounds := stats.Ratio(l, b)
	v = v.estimate(l.Value/b.Value, bounds)
	is := fmt.Sprintf("p%.0f of %s is %s, %s the %s of the baseline, %s",
		100*p, grouped(n), inMilliseconds(l.Value), timesBaseline(l.Value/b.Value), inMilliseconds(b.Value), demand(j.check, timesBaseline))
	recently := j.times(j.Recent.Of(j.Baseline)).Histogram
	switch {
	case off(all, baseline):
		return v.fail("%s", is)
	case off(last, recently):
		return v.fail("p%.0f of the last %s is %s, and %s of the baseline, %s", 100*p, grouped(last.Samples()),
			inMilliseconds(last.Quantile(p, 0).Value), inMilliseconds(recently.Quantile(p, 0).Value), demand(j.check, timesBaseline))
	case compare(j.check, bounds) == v1alpha1.VerdictPass:
		return v.pass()
	default:
		return v.insufficient(is + ": too few to decide")
	}
}
