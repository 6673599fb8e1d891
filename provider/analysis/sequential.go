// SPDX-License-Identifier: Apache-2.0

package analysis

import "math"

const (
	// enoughOdds and enoughOddsRecently are the odds at which a canary counts as failed:
	// by everything since its epoch settled, which is looked at again and again, and by
	// the recent window alone. By Ville's inequality a canary that is just as good as was
	// asked ever reaches the first with a probability of at most their inverse. Windows
	// that follow each other have no such bound together, so that each has a smaller one.
	enoughOdds, enoughOddsRecently = 100, 1000

	// strict is the quantile of the normal distribution of 99.99 %, at which the ratio
	// of two latencies counts as too great: it is looked at again and again.
	strict = 3.719016485455709

	// noticeable is the difference of two shares that matters, one point of a percent:
	// the standard deviation of those that are expected, and what a canary may be
	// worse than the baseline to pass.
	noticeable = 0.01
)

// alternatives are what the odds that a request is bad may be instead, as multiples of
// those that are just allowed.
var alternatives = []float64{1.25, 1.5, 2, 3, 5, 10, 20, 50} //nolint:gochecknoglobals // A constant table.

// oddsAgainst are the odds against at least a share of all requests being good, after
// so many good and bad ones: the mean of the likelihood ratios of alternatives, in
// which the odds of a bad one are r times as great. With p the share, n requests and
// b bad ones each ratio is r^b/(p+r(1-p))^n.
//
// While the truth is p or better such a mixture is a nonnegative supermartingale
// that begins at 1, so that it ever reaches x with a probability of at most 1/x,
// however often and whenever it is looked at (Ville, Étude critique de la notion de
// collectif, 1939; Robbins, Statistical methods related to the law of the iterated
// logarithm, 1970).
func oddsAgainst(good, bad, share float64) float64 {
	if share >= 1 && bad > 0 {
		return math.Inf(1)
	}

	share = min(max(share, 0), 1)
	sum := 0.0

	for _, r := range alternatives {
		sum += math.Exp(bad*math.Log(r) - (good+bad)*math.Log(share+r*(1-share)))
	}

	return sum / float64(len(alternatives))
}

// Outcomes of requests: how many there were, and how many of them failed.
type outcomes struct{ n, failures float64 }

// share that succeeded.
func (c outcomes) share() float64 { return (c.n - c.failures) / c.n }

// bounds of the share, each by itself at 95 %.
func (c outcomes) bounds() span {
	lower, upper := wilson(c.n-c.failures, c.n, confident)

	return span{lower, upper}
}

// variance of the share. Half a failure and half a success are added, so that there
// is one although all have succeeded, or none.
func (c outcomes) variance() float64 {
	p := (c.failures + 0.5) / (c.n + 1)

	return p * (1 - p) / c.n
}

// oddsWorse are the odds against the canary being no worse than the baseline.
func oddsWorse(canary, baseline outcomes) float64 {
	if canary.n == 0 || baseline.n == 0 || canary.share() >= baseline.share() {
		return 0
	}

	return mixtureOdds(baseline.share()-canary.share(), canary.variance()+baseline.variance())
}

// worseAtMost is by how much the share of the canary is below that of the baseline at
// most, at 95 %.
func worseAtMost(canary, baseline outcomes) float64 {
	return baseline.share() - canary.share() + confident*math.Sqrt(canary.variance()+baseline.variance())
}

// mixtureOdds are those of the mixture sequential probability ratio test, against two
// means with such a difference, whose estimate has such a variance, being the same
// (Johari, Koomen, Pekelis and Walsh, Always Valid Inference, 2022). For two
// shares of n requests each the variance is V/n with V = p(1-p)+q(1-q).
func mixtureOdds(difference, variance float64) float64 {
	both := variance + noticeable*noticeable

	return math.Sqrt(variance/both) * math.Exp(difference*difference*noticeable*noticeable/(2*variance*both))
}

// stillNeeded is how many requests there have to be, when they go on as before, until
// the bound of Wilson confirms a share; infinite when it never will.
func stillNeeded(c outcomes, share float64) float64 {
	over := c.share() - share
	if over <= 0 {
		return math.Inf(1)
	}

	return math.Ceil(confident * confident * share * (1 - share) / (over * over))
}
