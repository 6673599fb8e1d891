// SPDX-License-Identifier: Apache-2.0

package analysis

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
		"OneOfOne":    {reason: "That the first request fails is no proof.", bad: 1, share: 0.99, low: 1, high: enoughOdds},
		"TwoOfTwo":    {reason: "That the first two do is one.", bad: 2, share: 0.99, low: enoughOdds, high: 1000},
		"Badly":       {reason: "A twentieth fails where a hundredth may.", good: 285, bad: 15, share: 0.99, low: enoughOdds, high: 1e6},
		"HalfAllowed": {reason: "What may be anything is tested like any other.", good: 10, bad: 90, share: 0.5, low: 1e6, high: math.Inf(1)},
		"Anything":    {reason: "Nothing speaks against nothing being asked.", bad: 1000, share: 0, low: 0, high: 1},
		"Negative":    {reason: "Nor against less than nothing.", bad: 1000, share: -1, low: 0, high: 1},
		"All":         {reason: "One failure proves that not all succeed.", good: 1e6, bad: 1, share: 1, low: math.Inf(1), high: math.Inf(1)},
		"AllDo":       {reason: "Successes never do.", good: 1e6, share: 1, low: 1, high: 1},
		"Many":        {reason: "Numbers of any size have odds.", good: 9e9, bad: 1e9, share: 0.99, low: 1e6, high: math.Inf(1)},
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := oddsAgainst(tc.good, tc.bad, tc.share); !(got >= tc.low && got <= tc.high) {
				t.Errorf("\n%s\noddsAgainst(%g, %g, %g): want from %g to %g, got %g", tc.reason, tc.good, tc.bad, tc.share, tc.low, tc.high, got)
			}
		})
	}
}

// TestVille looks after each single request, and finds that the odds mislead no more
// often than they say.
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
				if bad++; oddsAgainst(good, bad, share) >= enoughOdds {
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
		canary, baseline outcomes
		low, high        float64
	}{
		"Without requests nothing is worse":           {outcomes{}, outcomes{100, 1}, 0, 0},
		"nor without a baseline":                      {outcomes{100, 1}, outcomes{}, 0, 0},
		"What is better is not worse":                 {outcomes{1e6, 0}, outcomes{1e6, 1e5}, 0, 0},
		"What never fails is not worse than its like": {outcomes{1000, 0}, outcomes{1000, 0}, 0, 0},
		"nor what always does":                        {outcomes{1000, 1000}, outcomes{1000, 1000}, 0, 0},
		"All against none is worse beyond doubt":      {outcomes{100, 100}, outcomes{100, 0}, 1e6, math.Inf(1)},
		"One of one is not":                           {outcomes{1, 1}, outcomes{4, 0}, 0, 2},
		"A few of many are not":                       {outcomes{1000, 8}, outcomes{4000, 20}, 0, 2},
	} {
		if got := oddsWorse(tc.canary, tc.baseline); !(got >= tc.low && got <= tc.high) {
			t.Errorf("%s: want from %g to %g, got %g", reason, tc.low, tc.high, got)
		}
	}
}

func TestStillNeeded(t *testing.T) {
	for _, tc := range []struct {
		of          outcomes
		share, want float64
	}{
		{outcomes{10, 0}, 0.99, 268},
		{outcomes{200, 1}, 0.99, 1072},
		{outcomes{100, 1}, 0.99, math.Inf(1)},
		{outcomes{100, 2}, 0.99, math.Inf(1)},
		{outcomes{10, 0}, 1, math.Inf(1)},
		{outcomes{10, 5}, 0, 0},
	} {
		got := stillNeeded(tc.of, tc.share)
		if got != tc.want {
			t.Errorf("%+v for %g: want %g, got %g", tc.of, tc.share, tc.want, got)
		}

		if math.IsInf(got, 1) || got == 0 {
			continue
		}

		// That many in the same proportion do confirm it.
		if lower, _ := wilson(tc.of.share()*got, got, confident); lower < tc.share-1e-9 {
			t.Errorf("%g requests should confirm %g, got a lower bound of %g", got, tc.share, lower)
		}
	}
}

func TestWithin(t *testing.T) {
	h := newHistogram([]bucket{{10, 100}, {50, 500}, {100, 1000}, {math.Inf(1), 1100}})

	for ms, want := range map[float64]float64{0: 0, 5: 50, 10: 100, 30: 300, 50: 500, 75: 750, 100: 1000, 101: 1100, math.Inf(1): 1100} {
		if got := h.within(ms); math.Abs(got-want) > 1e-9 {
			t.Errorf("within(%g): want %g, got %g", ms, want, got)
		}
	}
}

func TestTimes(t *testing.T) {
	inf := math.Inf(1)

	for reason, tc := range map[string]struct {
		canary, baseline latency
		want             span
	}{
		"Two that are known exactly have an exact ratio":  {latency{value: 60, lower: 60, upper: 60}, latency{value: 50, lower: 50, upper: 50}, span{1.2, 1.2}},
		"The doubt of one is that of the ratio":           {latency{value: 60, lower: 50, upper: 72}, latency{value: 50, lower: 50, upper: 50}, span{1, 1.44}},
		"An upper bound that is missing is missing":       {latency{value: 60, lower: 50, upper: inf}, latency{value: 50, lower: 50, upper: 50}, span{1, inf}},
		"and with that of the baseline there is no lower": {latency{value: 60, lower: 60, upper: 60}, latency{value: 50, lower: 50, upper: inf}, span{0, 1.2}},
		"Without a lower bound there is no upper one":     {latency{value: 60, lower: 0, upper: 60}, latency{value: 50, lower: 0, upper: 60}, span{0, inf}},
	} {
		got := times(tc.canary, tc.baseline)
		if math.Abs(got.lower-tc.want.lower) > 1e-9 || got.upper != tc.want.upper && math.Abs(got.upper-tc.want.upper) > 1e-9 {
			t.Errorf("%s: want %+v, got %+v", reason, tc.want, got)
		}
	}
}
