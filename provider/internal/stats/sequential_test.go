// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestOddsAgainst(t *testing.T) {
	cases := map[string]struct {
		reason    string
		good, bad float64
		share     float64
		low, high float64
	}{
		"Nothing":     {reason: "Before anything was seen the odds are even.", share: 0.99, low: 1, high: 1},
		"Well":        {reason: "Successes speak for the share.", good: 1000, share: 0.99, low: 0, high: 0.05},
		"AsAsked":     {reason: "Just what was asked for does not speak against it.", good: 9900, bad: 100, share: 0.99, low: 0, high: 1},
		"OneOfOne":    {reason: "That the first request fails is no proof.", bad: 1, share: 0.99, low: 1, high: EnoughOdds},
		"TwoOfTwo":    {reason: "That the first two do is one.", bad: 2, share: 0.99, low: EnoughOdds, high: 1000},
		"Badly":       {reason: "A twentieth fails where a hundredth may.", good: 285, bad: 15, share: 0.99, low: EnoughOdds, high: 1e6},
		"HalfAllowed": {reason: "What may be anything is tested like any other.", good: 10, bad: 90, share: 0.5, low: 1e6, high: math.Inf(1)},
		"Anything":    {reason: "Nothing speaks against nothing being asked.", bad: 1000, share: 0, low: 0, high: 1},
		"Negative":    {reason: "Nor against less than nothing.", bad: 1000, share: -1, low: 0, high: 1},
		"All":         {reason: "One failure proves that not all succeed.", good: 1e6, bad: 1, share: 1, low: math.Inf(1), high: math.Inf(1)},
		"AllDo":       {reason: "Successes never do.", good: 1e6, share: 1, low: 1, high: 1},
		"Many":        {reason: "Numbers of any size have odds.", good: 9e9, bad: 1e9, share: 0.99, low: 1e6, high: math.Inf(1)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := OddsAgainst(tc.good, tc.bad, tc.share); !(got >= tc.low && got <= tc.high) {
				t.Errorf("\n%s\noddsAgainst(%g, %g, %g): want from %g to %g, got %g", tc.reason, tc.good, tc.bad, tc.share, tc.low, tc.high, got)
			}
		})
	}
}

// TestVille looks after each single request, and finds that the odds mislead no more often than they say.
func TestVille(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, share := range []float64{0.5, 0.9, 0.99, 0.999} {
		misled := 0
		const times, requests = 2000, 3000
		for range times {
			good, bad := 0.0, 0.0
			for range requests {
				if r.Float64() < share {
					good++
					continue
				}

				// The odds only rise with what is bad.
				if bad++; OddsAgainst(good, bad, share) >= EnoughOdds {
					misled++
					break
				}
			}
		}

		// At most 1 %, with three standard deviations for the noise of the test.
		if got := float64(misled) / times; got > 0.01+3*math.Sqrt(0.01/times) {
			t.Errorf("At a share of %g the odds mislead in %.2f %% of cases, want at most 1 %%", share, 100*got)
		}
	}
}

func TestMixtureOdds(t *testing.T) {
	// Of n requests in each arm, computed independently from the formula.
	for _, tc := range []struct{ p, q, n, want float64 }{
		{0.005, 0.05, 300, 6.6},
		{0.005, 0.05, 500, 79},
		{0.005, 0.02, 1000, 17.5},
		{0.005, 0.02, 1500, 137},
	} {
		v := (tc.p*(1-tc.p) + tc.q*(1-tc.q)) / tc.n
		if got := mixtureOdds(tc.q-tc.p, v); math.Abs(got-tc.want) > 0.02*tc.want {
			t.Errorf("%g against %g in %g requests: want odds of %g, got %g", tc.p, tc.q, tc.n, tc.want, got)
		}
	}
}

func TestOddsWorse(t *testing.T) {
	for reason, tc := range map[string]struct {
		canary, baseline  Outcomes
		margin, low, high float64
	}{
		"Without requests nothing is worse":           {Outcomes{}, Outcomes{100, 1}, 0, 0, 0},
		"nor without a baseline":                      {Outcomes{100, 1}, Outcomes{}, 0, 0, 0},
		"What is better is not worse":                 {Outcomes{1e6, 0}, Outcomes{1e6, 1e5}, 0, 0, 0},
		"What never fails is not worse than its like": {Outcomes{1000, 0}, Outcomes{1000, 0}, 0, 0, 0},
		"nor what always does":                        {Outcomes{1000, 1000}, Outcomes{1000, 1000}, 0, 0, 0},
		"All against none is worse beyond doubt":      {Outcomes{100, 100}, Outcomes{100, 0}, 0.0025, 1e6, math.Inf(1)},
		"One of one is not":                           {Outcomes{1, 1}, Outcomes{4, 0}, 0, 0, 2},
		"A few of many are not":                       {Outcomes{1000, 8}, Outcomes{4000, 20}, 0, 0, 2},
		"What is within the margin is not, ever":      {Outcomes{1e8, 6e5}, Outcomes{4e8, 1.6e6}, 0.0025, 0, 0},
		"and is without one":                          {Outcomes{1e8, 6e5}, Outcomes{4e8, 1.6e6}, 0, 1e6, math.Inf(1)},
	} {
		if got := OddsWorse(tc.canary, tc.baseline, tc.margin); !(got >= tc.low && got <= tc.high) {
			t.Errorf("%s: want from %g to %g, got %g", reason, tc.low, tc.high, got)
		}
	}
}

func TestStillNeeded(t *testing.T) {
	for _, tc := range []struct {
		of          Outcomes
		share, want float64
	}{
		{Outcomes{10, 0}, 0.99, 268},
		{Outcomes{200, 1}, 0.99, 1072},
		{Outcomes{100, 1}, 0.99, math.Inf(1)},
		{Outcomes{100, 2}, 0.99, math.Inf(1)},
		{Outcomes{10, 0}, 1, math.Inf(1)},
		{Outcomes{10, 5}, 0, 0},
	} {
		got := tc.of.Needed(tc.share)
		if got != tc.want {
			t.Errorf("%+v for %g: want %g, got %g", tc.of, tc.share, tc.want, got)
		}
		if math.IsInf(got, 1) || got == 0 {
			continue
		}

		// That many in the same proportion do confirm it.
		if lower := Wilson(tc.of.Share()*got, got, Confident).Lower; lower < tc.share-1e-9 {
			t.Errorf("%g requests should confirm %g, got a lower bound of %g", got, tc.share, lower)
		}
	}
}

func TestWithin(t *testing.T) {
	h := NewHistogram([]Bucket{{10, 100}, {50, 500}, {100, 1000}, {math.Inf(1), 1100}})
	for ms, want := range map[float64]float64{0: 0, 5: 50, 10: 100, 30: 300, 50: 500, 75: 750, 100: 1000, 101: 1100, math.Inf(1): 1100} {
		if got := h.Within(ms); math.Abs(got-want) > 1e-9 {
			t.Errorf("Within(%g): want %g, got %g", ms, want, got)
		}
	}
}

func TestTimes(t *testing.T) {
	inf := math.Inf(1)
	for reason, tc := range map[string]struct {
		canary, baseline Quantile
		want             Span
	}{
		"Two that are known exactly have an exact ratio":  {Quantile{Value: 60, Lower: 60, Upper: 60}, Quantile{Value: 50, Lower: 50, Upper: 50}, Span{1.2, 1.2}},
		"The doubt of one is that of the ratio":           {Quantile{Value: 60, Lower: 50, Upper: 72}, Quantile{Value: 50, Lower: 50, Upper: 50}, Span{1, 1.44}},
		"An upper bound that is missing is missing":       {Quantile{Value: 60, Lower: 50, Upper: inf}, Quantile{Value: 50, Lower: 50, Upper: 50}, Span{1, inf}},
		"and with that of the baseline there is no lower": {Quantile{Value: 60, Lower: 60, Upper: 60}, Quantile{Value: 50, Lower: 50, Upper: inf}, Span{0, 1.2}},
		"Without a lower bound there is no upper one":     {Quantile{Value: 60, Lower: 0, Upper: 60}, Quantile{Value: 50, Lower: 0, Upper: 60}, Span{0, inf}},
	} {
		got := Ratio(tc.canary, tc.baseline)
		if math.Abs(got.Lower-tc.want.Lower) > 1e-9 || got.Upper != tc.want.Upper && math.Abs(got.Upper-tc.want.Upper) > 1e-9 {
			t.Errorf("%s: want %+v, got %+v", reason, tc.want, got)
		}
	}
}
