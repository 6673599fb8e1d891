// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"fmt"
	"math"
	"slices"

	"github.com/prometheus/common/model"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

const (
	// least that a budget is told to be, in percent. What is below it is a matter of
	// digits.
	leastBudget = -1000

	// burnByChance is how many standard deviations of a burn rate chance may explain,
	// that what was told was a matter of chance among them. It is asked for every minute,
	// but only a day has 24 hours that have nothing to do with each other: in a week
	// none of those is further off.
	burnByChance = 2 * math.Sqrt2
)

// tellSLO what is left of the error budget, or what was told before when nothing of
// it has changed. What nobody knows is not told: a budget that was used up once must
// not freeze rollouts because Prometheus is down.
func tellSLO(told *v1alpha1.SLOObservation, m *v1alpha1.MetricsParameters, s sample) *v1alpha1.SLOObservation {
	p := m.SLO

	if p == nil {
		return nil
	}

	if told == nil {
		told = &v1alpha1.SLOObservation{}
	}

	// What alerts follow stays while nobody knows better.
	o := &v1alpha1.SLOObservation{Expressions: told.Expressions}

	if s.failure != nil {
		r := failed(s.failure)
		o.Verdict, o.Message = r.verdict, r.message

		return o
	}

	if s.slo == nil {
		return told
	}

	at := *s.slo
	if at.expressions != nil {
		o.Expressions = at.expressions
	}

	if !at.window.known() {
		o.Verdict, o.Message = at.window.verdict, at.window.message

		return o
	}

	spending(o, told, p, at)

	if unchanged(told, o, p, at) {
		return told
	}

	return o
}

// spending of a budget that is known, in numbers.
func spending(o, told *v1alpha1.SLOObservation, p *v1alpha1.SLOParameters, at accounts) {
	may := allowed(p)
	within := model.Duration(sloWindowOf(p)).String()

	o.Samples = new(int64(rounded(at.window.requests, 2)))
	o.BurnRate1h, o.BurnRate6h = burnRate(at.hour, may), burnRate(at.sixHours, may)

	if at.brief {
		o.Message = fmt.Sprintf("Prometheus knows less than %s of these pods: this is about what it knows", within)
	}

	if at.window.requests > 0 {
		o.Availability = new(inPercent(1 - at.window.value))
		o.Failed, o.Slow = new(rounded(100*at.window.failed, digits)), new(rounded(100*at.window.slow, digits))
	}

	// One bad request of very few says nothing about what callers may rely on.
	if at.window.requests*may < 1 {
		o.Verdict = v1alpha1.VerdictInsufficient
		o.Message = fmt.Sprintf("too few requests in %s to have an error budget: of %.0f one may go wrong", within, math.Ceil(1/may-1e-6))

		return
	}

	left := step(told.BudgetRemainingPercent, 100*(1-at.window.value/may))
	o.BudgetRemainingPercent = &left

	o.Verdict = v1alpha1.VerdictPass
	if left <= 0 {
		o.Verdict = v1alpha1.VerdictFail
	}
}

// unchanged tells whether what is told still holds.
func unchanged(told, o *v1alpha1.SLOObservation, p *v1alpha1.SLOParameters, at accounts) bool {
	may := allowed(p)

	if told.Verdict != o.Verdict || told.Message != o.Message || !slices.Equal(told.Expressions, o.Expressions) {
		return false
	}

	if told.Samples == nil || (told.BudgetRemainingPercent == nil) != (o.BudgetRemainingPercent == nil) {
		return false
	}

	if o.BudgetRemainingPercent != nil && *told.BudgetRemainingPercent != *o.BudgetRemainingPercent {
		return false
	}

	was, is := float64(*told.Samples), at.window.requests

	return !moved(was, is, math.Sqrt(max(was, is))) && !burns(told.BurnRate1h, at.hour, may) && !burns(told.BurnRate6h, at.sixHours, may)
}

// allowed share of bad requests.
func allowed(p *v1alpha1.SLOParameters) float64 { return 1 - p.Availability/100 }

// inPercent is a share that is nearly all, with the digits of what is missing.
func inPercent(share float64) float64 { return rounded(100*roundedShare(share), 12) }

// burnRate to two digits, or none where nothing is known.
func burnRate(s spent, may float64) *float64 {
	if !s.known() {
		return nil
	}

	return new(rounded(s.value/may, 2))
}

// burns tells whether a burn rate has left the one that is told: by a quarter and by
// more than chance explains, or because nothing burns any more.
func burns(told *float64, now spent, may float64) bool {
	if told == nil || !now.known() {
		return (told == nil) == now.known()
	}

	rate := now.value / may
	if rate == 0 || now.requests <= 0 {
		return *told != 0
	}

	// The number of bad requests has its mean as its variance.
	one := 1 / (now.requests * may)
	off := math.Abs(rate - *told)

	return off > apart**told && off > burnByChance*math.Sqrt(max(*told, rate)*one)
}

// step from the budget that is told to the one that is left, in whole percents, and in
// tens while more is used than there was. It stays within a step, and does not go
// further than what is left: so it does not move to and fro, and is not at a bound
// before the budget is.
func step(told *int32, left float64) int32 {
	left = max(left, leastBudget)
	if told == nil {
		return int32(math.Ceil(left))
	}

	was, size := float64(*told), 1.0
	if was < 0 && left < 0 {
		size = 10
	}

	switch {
	case math.Abs(left-was) < size:
		return *told
	case left < was:
		return int32(math.Ceil(left/size) * size)
	default:
		return int32(math.Floor(left/size) * size)
	}
}
