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

// outcomes of the requests of a slot. Increases are extrapolated to the ends of the window: they are not whole.
func outcomes(m *promq.Measures) stats.Outcomes {
	n := max(math.Round(m.Requests.Value), 0)
	return stats.Outcomes{N: n, Failures: min(max(math.Round(m.Failures.Value), 0), n)}
}

func (j judge) successRatio() Verdict {
	last, all := j.Recent.Of(j.Slot), j.Whole.Of(j.Slot)
	if r, unknown := firstUnknown(all.Requests, all.Failures, last.Requests, last.Failures); unknown {
		return Verdict{}.unknown("", r)
	}
	c := outcomes(all)
	v := Verdict{}.samples(c.N)
	baseline := j.Whole.Of(j.Baseline)
	switch r, unknown := firstUnknown(baseline.Requests, baseline.Failures); {
	case !unknown && outcomes(baseline).N > 0:
		v.Baseline = new(stats.RoundedShare(outcomes(baseline).Share()))
	case unknown && j.relative():
		return v.unknown(ofTheBaseline, r)
	}
	if c.N > 0 {
		s := c.Bounds(stats.Confident)
		v.Value, v.Lower, v.Upper = new(stats.RoundedShare(c.Share())), new(stats.RoundedShare(s.Lower)), new(stats.RoundedShare(s.Upper))
		v.Sigma = (s.Upper - s.Lower) / 2 / stats.Confident
	}
	switch {
	case !j.Canary:
		return j.steadyShare(v, c)
	case c.N == 0:
		return j.tooFew(v, "", 0, j.least())
	case j.relative():
		return j.worse(v, outcomes(last), c, outcomes(j.Recent.Of(j.Baseline)), outcomes(baseline))
	default:
		return j.share(v, outcomes(last), c, outcomes(j.Recent.Of(j.Baseline)), outcomes(baseline))
	}
}

func (j judge) steadyShare(v Verdict, c stats.Outcomes) Verdict {
	if c.N > 0 {
		if is := j.hold(c.Bounds); is != v1alpha1.VerdictInsufficient {
			return v.is(is, "")
		}
	}
	switch least := ptr.Deref(j.check.Min, 0); {
	case least >= 1:
		return v.insufficient(notAll)
	case least > 0:
		return v.insufficient(fmt.Sprintf("too few requests in %s to decide: at least %.0f are needed when none fails, and more when some do",
			promq.Range(j.Window), stats.Enough(least, stats.Confident)))
	default:
		return v.insufficient(j.tooFewToDecide())
	}
}

// tooFewToDecide in the window of a slot that serves.
func (j judge) tooFewToDecide() string {
	what := "requests"
	if j.check.Kind == v1alpha1.CheckDrift {
		what = "samples"
	}
	return fmt.Sprintf("too few %s in %s to decide", what, promq.Range(j.Window))
}

// share of the requests of a canary that succeed, against the bounds of the check. What the baseline fails as well is no fault of
// the canary.
func (j judge) share(v Verdict, last, all, lastOfBaseline, baseline stats.Outcomes) Verdict {
	odds := func(c stats.Outcomes) float64 {
		most := 0.0
		if j.check.Min != nil {
			most = stats.OddsAgainst(c.N-c.Failures, c.Failures, *j.check.Min)
		}
		if j.check.Max != nil {
			most = max(most, stats.OddsAgainst(c.Failures, c.N-c.Failures, 1-*j.check.Max))
		}
		return most
	}
	succeed := func(c stats.Outcomes, n string) string {
		return fmt.Sprintf("%s of %s succeed, %s", percent(c.Share()), n, demand(j.check, percent))
	}
	least := ptr.Deref(j.check.Min, 0)
	alike := func(c, b stats.Outcomes) bool {
		within := b.N > 0 && b.Share() >= least && b.Share() <= ptr.Deref(j.check.Max, 1)
		return b.N > 0 && !within && !muchWorse(c, b)
	}
	switch o, r := odds(all), odds(last); {
	case o >= stats.EnoughOdds && alike(all, baseline), r >= stats.EnoughOddsRecently && alike(last, lastOfBaseline):
		return v.is(shared, fmt.Sprintf("%s, and of the baseline %s of %s: both fail, so that it is no fault of the canary alone",
			succeed(all, grouped(all.N)), percent(baseline.Share()), grouped(baseline.N)))
	case o >= stats.EnoughOdds:
		return v.fail("%s; sequential odds %s", succeed(all, grouped(all.N)), oddsOf(o))
	case r >= stats.EnoughOddsRecently:
		return v.fail("%s; odds %s", succeed(last, "the last "+grouped(last.N)), oddsOf(r))
	case least >= 1:
		return v.insufficient(notAll)
	case all.N < j.least():
		return j.tooFew(v, "", all.N, max(j.least(), stats.Outcomes{N: 1}.Needed(least)))
	case compare(j.check, all.Bounds(stats.Confident)) == v1alpha1.VerdictPass:
		return v.pass()
	default:
		return v.insufficient(succeed(all, grouped(all.N)) + ": too few to decide" + j.more(all))
	}
}

// more requests that are needed when requests succeed as often as before.
func (j judge) more(c stats.Outcomes) string {
	need := c.Needed(ptr.Deref(j.check.Min, 0))
	switch {
	case j.check.Min == nil:
		return ""
	case math.IsInf(need, 1):
		return " either"
	case need <= c.N:
		return ""
	default:
		return fmt.Sprintf(", %s more are needed if the share stays the same%s", grouped(need-c.N), j.wait(c.N, need))
	}
}

// worse than the baseline: a canary fails when it is worse by more than what the check allows, with statistical significance, and
// passes when it is certain that it is not.
func (j judge) worse(v Verdict, last, canary, lastOfBaseline, baseline stats.Outcomes) Verdict {
	is := func(c, b stats.Outcomes) string {
		return fmt.Sprintf("%s of %s succeed, and %s of %s of the baseline", percent(c.Share()), grouped(c.N), percent(b.Share()), grouped(b.N))
	}
	margin := ptr.Deref(j.check.Max, stats.Noticeable)
	switch o, r := stats.OddsWorse(canary, baseline, margin), stats.OddsWorse(last, lastOfBaseline, margin); {
	case o >= stats.EnoughOdds:
		return v.fail("%s; sequential odds %s", is(canary, baseline), oddsOf(o))
	case r >= stats.EnoughOddsRecently:
		return v.fail("recently %s; odds %s", is(last, lastOfBaseline), oddsOf(r))
	case canary.N < j.least():
		return j.tooFew(v, "", canary.N, j.least())
	case baseline.N < j.least():
		return j.tooFew(v, ofTheBaseline, baseline.N, j.least())
	case stats.WorseAtMost(canary, baseline) <= margin:
		return v.pass()
	default:
		return v.insufficient(is(canary, baseline) + ": too few to know that it is not worse")
	}
}
