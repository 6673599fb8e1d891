// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPairOf(t *testing.T) {
	inf := math.Inf(1)
	cases := map[string]struct {
		reason string
		a, b   Histogram
		want   Pair
		ok     bool
	}{
		"Same": {
			reason: "Counts of buckets, not those up to their ends.",
			a:      Histogram{{1, 10}, {2, 30}, {inf, 60}}, b: Histogram{{1, 5}, {2, 5}, {inf, 9}},
			want: Pair{p: []float64{10, 20, 30}, q: []float64{5, 0, 4}, n: 60, m: 9}, ok: true,
		},
		"Differ": {
			reason: "Of buckets that differ those are compared whose ends both have.",
			a:      Histogram{{0.5, 4}, {1, 10}, {2, 30}, {inf, 60}}, b: Histogram{{1, 5}, {1.5, 7}, {3, 8}, {inf, 9}},
			want: Pair{p: []float64{10, 50}, q: []float64{5, 4}, n: 60, m: 9}, ok: true,
		},
		"EmptyInBoth": {
			reason: "A bucket that is empty in both tells nothing.",
			a:      Histogram{{-1, 0}, {1, 10}, {2, 10}, {inf, 60}}, b: Histogram{{-1, 0}, {1, 5}, {2, 5}, {inf, 9}},
			want: Pair{p: []float64{10, 50}, q: []float64{5, 4}, n: 60, m: 9}, ok: true,
		},
		"OnlyAll": {
			reason: "Of one bucket that holds all there is no distribution.",
			a:      Histogram{{1, 10}, {inf, 60}}, b: Histogram{{2, 5}, {inf, 9}},
			want: Pair{p: []float64{60}, q: []float64{9}, n: 60, m: 9},
		},
		"None": {reason: "Nor of none."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, ok := NewPair(tc.a, tc.b)
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(Pair{})); diff != "" || ok != tc.ok {
				t.Errorf("\n%s\npairOf(...): want %t, got %t, -want, +got:\n%s", tc.reason, tc.ok, ok, diff)
			}
		})
	}
}

func TestDistance(t *testing.T) {
	far := Pair{p: []float64{50_000, 50_000}, q: []float64{80_000, 20_000}, n: 100_000, m: 100_000}

	// (0.5-0.8) ln(0.5/0.8) + (0.5-0.2) ln(0.5/0.2), and 0.8-0.5.
	for by, want := range map[string]float64{"PSI": 0.41589, "KS": 0.3} {
		if got := distance(far, by); math.Abs(got.Value-want) > 1e-3 || got.Sigma <= 0 || got.Sigma > 0.02*want {
			t.Errorf("%q: want %g with little doubt, got %+v", by, want, got)
		}
	}

	// Nothing in common, and a bucket that is empty on one side.
	apart := Pair{p: []float64{1000, 0}, q: []float64{0, 1000}, n: 1000, m: 1000}
	if psi, ks := apart.PSI().Value, apart.KS().Value; math.IsInf(psi, 0) || psi < 10 || ks < 0.99 || ks > 1 {
		t.Errorf("What has nothing in common is far apart, and not infinitely, got PSI %g and KS %g", psi, ks)
	}
	one := Pair{p: []float64{1000}, q: []float64{700}, n: 1000, m: 700}
	if psi, ks := one.PSI(), one.KS(); psi.Value != 0 || ks.Value != 0 || math.IsNaN(psi.Sigma+ks.Sigma) {
		t.Errorf("What is all in one bucket is the same, got %+v and %+v", psi, ks)
	}
}

// TestDistanceBounds shows that bounds hold about as often as they say, without drift and with some.
func TestDistanceBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, by := range []string{"PSI", "KS"} {
		for _, tc := range []struct {
			buckets int
			center  float64
			n, m    float64
		}{{10, 0.5, 200, 800}, {10, 0.5, 1000, 1000}, {40, 0.5, 200, 800}, {10, 0.56, 1000, 4000}, {20, 0.6, 500, 2000}} {
			p, q := scored(tc.buckets, tc.center), scored(tc.buckets, 0.5)

			// The distance of the distributions themselves is that of very many samples.
			const many = 1e12
			truth := distance(drawn(nil, p, many, q, many), by).Value
			above, below, sum := 0, 0, 0.0
			const times = 1000
			for range times {
				d := distance(drawn(r, p, tc.n, q, tc.m), by)
				sum += d.Value
				if d.Bounds(Confident).Lower > truth+1e-9 {
					above++
				}
				if d.Bounds(Confident).Upper < truth {
					below++
				}
			}

			// 5 % each, with room for the approximation. Buckets that one side hardly has, and the half that is added to them,
			// make PSI seem less than it is.
			if float64(above)/times > 0.08 || float64(below)/times > 0.15 {
				t.Errorf("%s of %+v: the lower bound is wrong in %.1f %% and the upper in %.1f %% of cases, want about 5 %%",
					by, tc, 100*float64(above)/times, 100*float64(below)/times)
			}
			if mean := sum / times; math.Abs(mean-truth) > 0.035+0.1*truth {
				t.Errorf("%s of %+v: want %g in the mean, got %g", by, tc, truth, mean)
			}
		}
	}
}

// drawn samples of two distributions, or without chance their expectation.
func drawn(r *rand.Rand, p []float64, n float64, q []float64, m float64) Pair {
	draw := func(of []float64, n float64) Histogram {
		counts := make([]float64, len(of))
		for i := range of {
			counts[i] = n * of[i]
			if r != nil {
				counts[i] = poisson(r, counts[i])
			}
		}
		return summed(counts, scoreEnds(len(of)))
	}
	both, _ := NewPair(draw(p, n), draw(q, m))
	return both
}

// distance by a method.
func distance(p Pair, by string) Distance {
	if by == "KS" {
		return p.KS()
	}
	return p.PSI()
}
