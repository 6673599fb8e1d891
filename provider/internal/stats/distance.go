// SPDX-License-Identifier: Apache-2.0

package stats

import "math"

// half a sample is added to each bucket, so that one that is empty on one side does not make the distance infinite.
const half = 0.5

// meanSquareKolmogorov is the mean of the square of what follows the distribution of Kolmogorov, π²/12.
const meanSquareKolmogorov = math.Pi * math.Pi / 12

// A Distance of two distributions, with the expectation without any drift taken off, and its standard deviation.
type Distance struct{ Value, Sigma float64 }

// Bounds of the distance, each by itself at the confidence of z.
func (d Distance) Bounds(z float64) Span { return Span{max(d.Value-z*d.Sigma, 0), d.Value + z*d.Sigma} }

// A Pair of distributions: samples by bucket, of buckets that both have and that are not empty in both.
type Pair struct {
	p, q []float64
	n, m float64
}

// NewPair of two histograms. Where their buckets differ only ends that both have can be compared: what is counted between two of
// them is known of both. It is false when there are no two buckets.
func NewPair(a, b Histogram) (Pair, bool) {
	var both Pair
	i, j, ends := 0, 0, 0
	for i < len(a) && j < len(b) {
		switch {
		case a[i].End < b[j].End:
			i++
			continue
		case a[i].End > b[j].End:
			j++
			continue
		}
		p, q := a[i].Count-both.n, b[j].Count-both.m
		both.n, both.m = a[i].Count, b[j].Count
		i, j, ends = i+1, j+1, ends+1
		if p > 0 || q > 0 {
			both.p, both.q = append(both.p, p), append(both.q, q)
		}
	}
	return both, ends >= 2
}

// PSI is the population stability index, sum((p-q)ln(p/q)). Without drift it is (1/n+1/m) times a chi-square of B-1 degrees of
// freedom (Yurdakul and Naranjo, Statistical properties of the population stability index, 2020), whose mean is taken off; with
// drift that chi-square is not central, which gives the variance.
func (b Pair) PSI() Distance {
	buckets := float64(len(b.p))
	scale := 1/b.n + 1/b.m
	sum := 0.0
	for i := range b.p {
		p, q := (b.p[i]+half)/(b.n+half*buckets), (b.q[i]+half)/(b.m+half*buckets)
		sum += (p - q) * math.Log(p/q)
	}
	v := max(sum-scale*(buckets-1), 0)
	return Distance{v, scale * math.Sqrt(2*(buckets-1)+4*v/scale)}
}

// KS is the statistic of Kolmogorov and Smirnov, max|F-G|. Without drift its square has a mean of at most π²/12 (1/n+1/m), which
// is taken off. The variance is the sum of the variances of the two shares at the place of the maximum.
func (b Pair) KS() Distance {
	var f, g, most, variance float64
	for i := range b.p {
		f, g = f+b.p[i]/b.n, g+b.q[i]/b.m
		if off := math.Abs(f - g); off > most {
			most, variance = off, f*(1-f)/b.n+g*(1-g)/b.m
		}
	}
	return Distance{math.Sqrt(max(most*most-meanSquareKolmogorov*(1/b.n+1/b.m), 0)), math.Sqrt(max(variance, 0))}
}
