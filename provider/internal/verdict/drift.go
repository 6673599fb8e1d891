// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"cmp"
	"fmt"
	"math"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/promq"
	"github.com/capstan-dev/capstan/provider/internal/stats"
)

// drift of a slot from the baseline, or from what all slots exposed some time ago.
func (j judge) drift() Verdict {
	here, there, whose := promq.Place{Slot: j.Slot, Check: j.check.Name}, promq.Place{Slot: j.Baseline, Check: j.check.Name}, ofTheBaseline
	now, last := j.Whole.Distribution(here), j.Recent.Distribution(here)
	other, recently := j.Whole.Distribution(there), j.Recent.Distribution(there)
	switch {
	case j.check.Reference != nil:
		whose, other, recently = ofTheReference, j.Whole.Reference(j.check.Name), j.Recent.Reference(j.check.Name)
	case !j.Canary:
		return Verdict{}.is(v1alpha1.VerdictNoData, noReference)
	}
	if r, unknown := firstUnknown(now.Reading, last.Reading); unknown {
		return Verdict{}.unknown("", r)
	}
	if r, unknown := firstUnknown(other.Reading, recently.Reading); unknown {
		return Verdict{}.unknown(whose, r)
	}
	n, m := math.Round(now.Samples()), math.Round(other.Samples())
	least := max(j.least(), fewestCompared)
	v := Verdict{}.samples(n)
	switch {
	case min(n, m) >= least:
	case !j.Canary:
		return v.insufficient(fmt.Sprintf("too few samples in %s to compare, now or %s ago: at least %d are needed",
			promq.Range(j.Window), j.check.Reference.Duration, fewestCompared))
	case n < least:
		return j.tooFew(v, "", n, least)
	default:
		return j.tooFew(v, whose, m, least)
	}
	d, ok := j.distance(now.Histogram, other.Histogram)
	if !ok {
		return v.is(v1alpha1.VerdictNoData, noCommonBucket)
	}
	v = v.estimate(d.Value, d.Bounds(stats.Confident))
	v.Sigma = d.Sigma
	if !j.Canary {
		return j.steadyDrift(v, d)
	}
	is := func(d stats.Distance, samples string, others float64) string {
		return fmt.Sprintf("%s is %s between %s samples and %s, %s",
			cmp.Or(j.check.Method, v1alpha1.DriftPSI), figure(d.Value), samples, grouped(others), demand(j.check, figure))
	}
	fails := func(d stats.Distance) bool { return compare(j.check, d.Bounds(stats.Certain)) == v1alpha1.VerdictFail }
	if fails(d) {
		return v.fail("%s", is(d, grouped(n), m))
	}
	if last.Samples() >= least && recently.Samples() >= least {
		if d, ok := j.distance(last.Histogram, recently.Histogram); ok && fails(d) {
			return v.fail("%s", is(d, "the last "+grouped(last.Samples()), recently.Samples()))
		}
	}
	if compare(j.check, d.Bounds(stats.Confident)) == v1alpha1.VerdictPass {
		return v.pass()
	}
	return v.insufficient(is(d, grouped(n), m) + ": too few to decide")
}

// distance of two histograms, which need common buckets.
func (j judge) distance(a, b stats.Histogram) (stats.Distance, bool) {
	both, ok := stats.NewPair(a, b)
	if !ok {
		return stats.Distance{}, false
	}
	if j.check.Method == v1alpha1.DriftKS {
		return both.KS(), true
	}
	return both.PSI(), true
}

// steadyDrift of a slot that serves begins when it is statistically significant, and ends at half of what the check allows. The
// previous verdict stays until the distance is clearly another one.
func (j judge) steadyDrift(v Verdict, d stats.Distance) Verdict {
	at, c := stats.Span{Lower: d.Value, Upper: d.Value}, j.check
	switch {
	case j.Previous == v1alpha1.VerdictFail && c.Max != nil:
		c.Max = new(*c.Max / 2)
		v.Is = compare(c, at)
	case j.Previous == v1alpha1.VerdictFail:
		v.Is = compare(c, at)
	case compare(c, d.Bounds(stats.Certain)) == v1alpha1.VerdictFail:
		v.Is = v1alpha1.VerdictFail
	case j.Previous == v1alpha1.VerdictPass, compare(c, at) == v1alpha1.VerdictPass:
		v.Is = v1alpha1.VerdictPass
	default:
		return v.insufficient(j.tooFewToDecide())
	}
	return v
}
