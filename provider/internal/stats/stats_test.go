// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestWilson(t *testing.T) {
	// How many requests it takes to confirm 99 %, with so many failures, and how many at most still reject it. Computed
	// independently by solving Wilson's equation.
	for failures, n := range map[float64]float64{0: 268, 1: 446, 2: 602, 3: 748, 5: 1024} {
		if lower := Wilson(n-failures, n, Confident).Lower; lower < 0.99 {
			t.Errorf("%g failures in %g requests should confirm 99 %%, got a lower bound of %g", failures, n, lower)
		}
		if lower := Wilson(n-1-failures, n-1, Confident).Lower; lower >= 0.99 {
			t.Errorf("%g failures in %g requests should not confirm 99 %%, got a lower bound of %g", failures, n-1, lower)
		}
	}
	for failures, n := range map[float64]float64{2: 66, 3: 120, 5: 244, 10: 599} {
		if upper := Wilson(n-failures, n, Confident).Upper; upper >= 0.99 {
			t.Errorf("%g failures in %g requests should reject 99 %%, got an upper bound of %g", failures, n, upper)
		}
		if upper := Wilson(n+1-failures, n+1, Confident).Upper; upper < 0.99 {
			t.Errorf("%g failures in %g requests should not reject 99 %%, got an upper bound of %g", failures, n+1, upper)
		}
	}
	if got := Enough(0.99, Confident); got != 268 {
		t.Errorf("Confirming 99 %% without failure takes 268 requests, got %g", got)
	}
	if got := Enough(1, Confident); !math.IsInf(got, 1) {
		t.Errorf("100 %% cannot be confirmed, got %g", got)
	}
}

// exactly is a Histogram whose buckets are so narrow that it is the samples.
func exactly(samples []float64) Histogram {
	slices.Sort(samples)
	buckets := make([]Bucket, 0, len(samples)+1)
	for i, s := range samples {
		buckets = append(buckets, Bucket{End: s, Count: float64(i + 1)})
	}
	return NewHistogram(append(buckets, Bucket{End: math.Inf(1), Count: float64(len(samples))}))
}

// TestCoverage shows that bounds hold about as often as they say.
func TestCoverage(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, tc := range []struct {
		p float64
		n int
	}{{0.5, 20}, {0.5, 1000}, {0.9, 100}, {0.95, 100}, {0.95, 400}, {0.99, 500}} {
		truth := -math.Log(1 - tc.p)
		below, above := 0, 0
		const times = 1000
		for range times {
			samples := make([]float64, tc.n)
			for i := range samples {
				samples[i] = r.ExpFloat64()
			}
			l := exactly(samples).Quantile(tc.p, Confident)
			if l.Lower > truth {
				below++
			}
			if l.Upper < truth {
				above++
			}
		}

		// 5 % each, with room for the discreteness of ranks and the noise of the test.
		for side, wrong := range map[string]int{"lower": below, "upper": above} {
			if share := float64(wrong) / times; share > 0.075 {
				t.Errorf("The %s bound of quantile %g of %d samples is wrong in %.1f %% of cases, want about 5 %%", side, tc.p, tc.n, 100*share)
			}
		}
	}
}

func TestQuantile(t *testing.T) {
	inf := math.Inf(1)
	flat := func(n float64) []Bucket { return []Bucket{{100, n}, {10, n / 10}, {50, n / 2}, {inf, n}} }
	cases := map[string]struct {
		reason  string
		buckets []Bucket
		p       float64
		want    Quantile
	}{
		"Interpolated": {reason: "Within a bucket it is as histogram_quantile has it.", buckets: flat(1000), p: 0.95, want: Quantile{Value: 95, Lower: 93.9, Upper: 96.1}},
		"Few":          {reason: "Too few samples have no upper bound.", buckets: flat(40), p: 0.95, want: Quantile{Value: 95, Lower: 89.3, Upper: inf}},
		"Beyond":       {reason: "Of what lies above the buckets only that is known.", buckets: []Bucket{{10, 10}, {inf, 1000}}, p: 0.5, want: Quantile{Value: 10, Lower: 10, Upper: inf, Beyond: true}},
		"Torn":         {reason: "Counts of scrapes that are moments apart still ascend.", buckets: []Bucket{{10, 500}, {50, 499}, {inf, 500}}, p: 0.5, want: Quantile{Value: 5, Lower: 4.63, Upper: 5.37}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := NewHistogram(tc.buckets).Quantile(tc.p, Confident)
			got = Quantile{Rounded(got.Value, 3), Rounded(got.Lower, 3), Rounded(got.Upper, 3), got.Beyond}
			if got != tc.want {
				t.Errorf("\n%s\nquantile(%g): want %+v, got %+v", tc.reason, tc.p, tc.want, got)
			}
		})
	}
	for reason, buckets := range map[string][]Bucket{
		"no bucket holds all":       {{10, 1}, {20, 2}},
		"there is only one":         {{inf, 2}},
		"there is none":             nil,
		"a count is not a number":   {{10, math.NaN()}, {inf, 2}},
		"there are infinitely many": {{10, 1}, {inf, inf}},
	} {
		if h := NewHistogram(buckets); h != nil {
			t.Errorf("It is no Histogram when %s, got %v", reason, h)
		}
	}
}

func TestRounded(t *testing.T) {
	for v, want := range map[float64]float64{
		0: 0, 1234.5: 1230, 0.0123456: 0.0123, 99.96: 100, 5: 5, -1234: -1230, 1e300: 1e300, 1.2345e-300: 1.23e-300, 87654321: 87700000,
	} {
		if got := Rounded(v, 3); math.Abs(got-want) > math.Abs(want)*1e-12 {
			t.Errorf("Rounded(%g, 3): want %g, got %g", v, want, got)
		}
	}
	for v, want := range map[float64]float64{0.99951: 0.99951, 0.99995123: 0.9999512, 0.5: 0.5, 0.123456: 0.123, 1: 1, 0: 0, 0.98764: 0.9876} {
		if got := RoundedShare(v); math.Abs(got-want) > 1e-4*(1-want)+1e-12 {
			t.Errorf("RoundedShare(%g): want %g, got %g", v, want, got)
		}
	}
}
