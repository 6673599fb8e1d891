// SPDX-License-Identifier: Apache-2.0

package stats

import "math"

const (
	// EnoughOdds are the odds at which a canary counts as failed by all evidence since its epoch settled, which is checked again
	// and again. By Ville's inequality a canary that is just as good as required ever reaches them with a probability of at most
	// their inverse.
	EnoughOdds = 100
	// EnoughOddsRecently are the odds at which it counts as failed by the recent window alone. Windows that follow each other
	// have no such bound together, so that each has a smaller one.
	EnoughOddsRecently = 1000
	// EnoughOddsShared are the odds at which a canary counts as worse than a baseline that fails, too.
	EnoughOddsShared = 20
	// Noticeable is the difference of two shares that is expected, one point of a percent: the standard deviation of the mixture.
	// It is also what a canary may be worse than the baseline where the check does not say so.
	Noticeable = 0.01
)

// alternatives are what the odds that a request is bad may be instead, as multiples of the odds that are just allowed.
var alternatives = []float64{1.25, 1.5, 2, 3, 5, 10, 20, 50}

// OddsAgainst are the odds against at least a share of all requests being good, after so many good and bad ones: the mean of the
// likelihood ratios of alternatives, in which the odds of a bad one are r times as great. With p the share, n requests and b bad
// ones each ratio is r^b/(p+r(1-p))^n.
//
// While the truth is p or better such a mixture is a nonnegative supermartingale that begins at 1, so that it ever reaches x with
// a probability of at most 1/x, however often and whenever it is checked (Ville, Étude critique de la notion de collectif,
// 1939; Robbins, Statistical methods related to the law of the iterated logarithm, 1970).
func OddsAgainst(good, bad, share float64) float64 {
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
type Outcomes struct{ N, Failures float64 }

// Share that succeeded.
func (c Outcomes) Share() float64 { return (c.N - c.Failures) / c.N }

// Bounds of the share, each by itself at the confidence of z.
func (c Outcomes) Bounds(z float64) Span { return Wilson(c.N-c.Failures, c.N, z) }

func (c Outcomes) variance() float64 { return ShareVariance(c.Failures, c.N) }

// OddsWorse are the odds against the canary being worse than the baseline by a margin at most.
func OddsWorse(canary, baseline Outcomes, margin float64) float64 {
	if canary.N == 0 || baseline.N == 0 || baseline.Share()-canary.Share() <= margin {
		return 0
	}
	return mixtureOdds(baseline.Share()-canary.Share()-margin, canary.variance()+baseline.variance())
}

// WorseAtMost is by how much the share of the canary is below the share of the baseline at most, at 95 %.
func WorseAtMost(canary, baseline Outcomes) float64 {
	return baseline.Share() - canary.Share() + Confident*math.Sqrt(canary.variance()+baseline.variance())
}

// mixtureOdds are the odds of the mixture sequential probability ratio test, against two means with such a difference, whose
// estimate has such a variance, being the same (Johari, Koomen, Pekelis and Walsh, Always Valid Inference, 2022). For two shares
// of n requests each the variance is V/n with V = p(1-p)+q(1-q).
func mixtureOdds(difference, variance float64) float64 {
	both := variance + Noticeable*Noticeable
	return math.Sqrt(variance/both) * math.Exp(difference*difference*Noticeable*Noticeable/(2*variance*both))
}

// AlwaysWithin is how far the estimate of a difference, of such a variance, is from the true one at most. The bound holds at all
// looks together, except with a probability of alpha. It is what the mixture sequential probability ratio test does not reject,
// with effects of such a size expected.
func AlwaysWithin(variance, size, alpha float64) float64 {
	both := variance + size*size
	return math.Sqrt(2 * variance * both / (size * size) * (math.Log(1/alpha) + math.Log(both/variance)/2))
}

// Needed is how many requests there have to be until Wilson's bound confirms a share, when requests succeed as often as before.
// It is infinite when that never happens.
func (c Outcomes) Needed(share float64) float64 {
	over := c.Share() - share
	if over <= 0 {
		return math.Inf(1)
	}
	return math.Ceil(Confident * Confident * share * (1 - share) / (over * over))
}
