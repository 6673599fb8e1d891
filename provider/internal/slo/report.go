// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"fmt"
	"math"
	"slices"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/promq"
	"github.com/capstan-dev/capstan/provider/internal/stats"
)

const (
	// digits that are reported of a number.
	digits = 3
	// leastBudget is the least budget that is reported, in percent. What is below it is a matter of digits.
	leastBudget = -1000
	// burnByChance is how many standard deviations of a burn rate chance may explain. They include that the reported rate was a
	// matter of chance itself. The provider queries the rate every minute, but a day has only 24 hours that are independent of
	// each other: in a week none is further off.
	burnByChance = 2 * math.Sqrt2
)

// Report what is left of the error budget, or what was reported before when nothing of it has changed. What is unknown is not
// reported: a budget that was used up once must not freeze rollouts because Prometheus is down.
func Report(reported *v1alpha1.SLOObservation, p *v1alpha1.SLOParameters, failure *outside.Failure, at Accounts) *v1alpha1.SLOObservation {
	if p == nil {
		return nil
	}
	if reported == nil {
		reported = &v1alpha1.SLOObservation{}
	}
	// What alerts follow stays while nothing better is known.
	o := v1alpha1.SLOObservation{Expressions: reported.Expressions}
	if failure != nil {
		r := promq.Failed(failure)
		o.Verdict, o.Message = r.Verdict, r.Message
		return &o
	}
	if at.expressions != nil {
		o.Expressions = at.expressions
	}
	if !at.window.Known() {
		o.Verdict, o.Message = at.window.Verdict, at.window.Message
		return &o
	}
	o = budget(o, reported.BudgetRemainingPercent, p, at)
	if unchanged(reported, &o, p, at) {
		return reported
	}
	return &o
}

// budget that is known, in numbers.
func budget(o v1alpha1.SLOObservation, before *int32, p *v1alpha1.SLOParameters, at Accounts) v1alpha1.SLOObservation {
	may, within := allowed(p), promq.Range(windowOf(p))
	o.Samples = new(int64(stats.Rounded(at.window.requests, 2)))
	o.BurnRate1h, o.BurnRate6h = burnRate(at.hour, may), burnRate(at.sixHours, may)
	if at.brief {
		o.Message = fmt.Sprintf("Prometheus knows less than %s of these pods: this is about what it knows", within)
	}
	if at.window.requests > 0 {
		// The digits of what is missing to 100 % matter.
		o.Availability = new(stats.Rounded(100*stats.RoundedShare(1-at.window.Value), 12))
		o.Failed, o.Slow = new(stats.Rounded(100*at.window.failed, digits)), new(stats.Rounded(100*at.window.slow, digits))
	}
	// One bad request of very few says nothing about what clients may rely on.
	if at.window.requests*may < 1 {
		o.Verdict = v1alpha1.VerdictInsufficient
		o.Message = fmt.Sprintf("too few requests in %s for an error budget: the objective allows 1 failure in %.0f", within, math.Ceil(1/may-1e-6))
		return o
	}
	left := step(before, 100*(1-at.window.Value/may))
	o.BudgetRemainingPercent, o.Verdict = &left, v1alpha1.VerdictPass
	if left <= 0 {
		o.Verdict = v1alpha1.VerdictFail
	}
	return o
}

// unchanged reports whether what is reported still holds.
func unchanged(before, o *v1alpha1.SLOObservation, p *v1alpha1.SLOParameters, at Accounts) bool {
	if before.Verdict != o.Verdict || before.Message != o.Message || !slices.Equal(before.Expressions, o.Expressions) || before.Samples == nil {
		return false
	}
	if was, is := before.BudgetRemainingPercent, o.BudgetRemainingPercent; (was == nil) != (is == nil) || is != nil && *was != *is {
		return false
	}
	was, is, may := float64(*before.Samples), at.window.requests, allowed(p)
	return !stats.Moved(was, is, math.Sqrt(max(was, is))) && !burns(before.BurnRate1h, at.hour, may) && !burns(before.BurnRate6h, at.sixHours, may)
}

// allowed share of bad requests.
func allowed(p *v1alpha1.SLOParameters) float64 { return 1 - p.Availability/100 }

// burnRate to two digits, or none where nothing is known.
func burnRate(s spent, may float64) *float64 {
	if !s.Known() {
		return nil
	}
	return new(stats.Rounded(s.Value/may, 2))
}

// burns reports whether a burn rate has left the reported one: by a quarter and by more than chance explains, or because nothing
// burns any more.
func burns(reported *float64, now spent, may float64) bool {
	if reported == nil || !now.Known() {
		return (reported == nil) == now.Known()
	}
	rate := now.Value / may
	if rate == 0 || now.requests <= 0 {
		return *reported != 0
	}
	// The number of bad requests has its mean as its variance.
	one := 1 / (now.requests * may)
	off := math.Abs(rate - *reported)
	return off > stats.Apart**reported && off > burnByChance*math.Sqrt(max(*reported, rate)*one)
}

// step from the reported budget to the one that is left, in whole percents, and in tens while more is used than there was. It
// stays within a step, and does not go further than what is left: so it does not move to and fro, and is not at a bound before
// the budget is.
func step(reported *int32, left float64) int32 {
	left = max(left, leastBudget)
	if reported == nil {
		return int32(math.Ceil(left))
	}
	was, size := float64(*reported), 1.0
	if was < 0 && left < 0 {
		size = 10
	}
	switch {
	case math.Abs(left-was) < size:
		return *reported
	case left < was:
		return int32(math.Ceil(left/size) * size)
	default:
		return int32(math.Floor(left/size) * size)
	}
}
