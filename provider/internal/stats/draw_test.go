// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"math"
	"math/rand/v2"
)

// poisson draws how many arrive when so many are expected.
func poisson(r *rand.Rand, mean float64) float64 {
	if mean > 200 {
		return max(math.Round(mean+math.Sqrt(mean)*r.NormFloat64()), 0)
	}
	n := -1.0
	for left := mean; left >= 0; n++ {
		left -= r.ExpFloat64()
	}
	return n
}

func scoreEnds(n int) []float64 {
	ends := make([]float64, 0, n)
	for i := range n - 1 {
		ends = append(ends, float64(i+1)/float64(n))
	}
	return append(ends, math.Inf(1))
}

// scored is a distribution of scores around a center, as shares of so many buckets.
func scored(n int, center float64) []float64 {
	return shares(scoreEnds(n), func(x float64) float64 { return 0.5 * math.Erfc(-(x-center)/0.15/math.Sqrt2) })
}

func shares(ends []float64, cumulative func(float64) float64) []float64 {
	var (
		out   []float64
		below float64
	)
	for _, e := range ends {
		c := cumulative(e)
		out = append(out, c-below)
		below = c
	}
	return out
}

func summed(of []float64, ends []float64) Histogram {
	all, n := make([]Bucket, 0, len(of)), 0.0
	for i, c := range of {
		n += c
		all = append(all, Bucket{ends[i], n})
	}
	return NewHistogram(all)
}
