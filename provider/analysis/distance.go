// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"math"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
)

// half a sample is added to each bucket, so that one that is empty on one side does
// not make the distance infinite.
const half = 0.5

// meanSquareKolmogorov is the mean of the square of what follows the distribution of
// Kolmogorov, π²/12.
const meanSquareKolmogorov = math.Pi * math.Pi / 12

// A distance of two distributions, with the expectation without any drift taken off,
// and its standard deviation.
type distance struct{ value, sigma float64 }

// bounds of the distance, each by itself at the confidence of z.
func (d distance) bounds(z float64) span {
	return span{max(d.value-z*d.sigma, 0), d.value + z*d.sigma}
}

// A pair of distributions: samples by bucket, of buckets that both have and that are
// not empty in both.
type pair struct {
	p, q []float64
	n, m float64
}

// pairOf two histograms. Where their buckets differ only ends that both have
// can be compared: what is counted between two of them is known of both. It is false
// when there are no two buckets.
func pairOf(a, b histogram) (pair, bool) {
	var (
		both             pair
		i, j, ends       int
		belowP, belowQ   float64
		countedP, countQ float64
	)

	for i < len(a) && j < len(b) {
		switch {
		case a[i].milliseconds < b[j].milliseconds:
			i++

			continue
		case a[i].milliseconds > b[j].milliseconds:
			j++

			continue
		}

		countedP, belowP = a[i].count-belowP, a[i].count
		countQ, belowQ = b[j].count-belowQ, b[j].count
		i, j, ends = i+1, j+1, ends+1

		if countedP > 0 || countQ > 0 {
			both.p, both.q = append(both.p, countedP), append(both.q, countQ)
		}
	}

	both.n, both.m = belowP, belowQ

	return both, ends >= 2
}

// distance by a method.
func (b pair) distance(by v1alpha1.DriftMethod) distance {
	if by == v1alpha1.DriftKS {
		return b.ks()
	}

	return b.psi()
}

// psi is the population stability index, sum((p-q)ln(p/q)). Without drift it is
// (1/n+1/m) times a chi-square of B-1 degrees of freedom (Yurdakul and Naranjo,
// Statistical properties of the population stability index, 2020), whose mean is
// taken off; with drift that chi-square is not central, which gives the variance.
func (b pair) psi() distance {
	buckets := float64(len(b.p))
	scale := 1/b.n + 1/b.m
	sum := 0.0

	for i := range b.p {
		p, q := (b.p[i]+half)/(b.n+half*buckets), (b.q[i]+half)/(b.m+half*buckets)
		sum += (p - q) * math.Log(p/q)
	}

	v := max(sum-scale*(buckets-1), 0)

	return distance{v, scale * math.Sqrt(2*(buckets-1)+4*v/scale)}
}

// ks is the statistic of Kolmogorov and Smirnov, max|F-G|. Without drift its square has
// a mean of at most π²/12 (1/n+1/m), which is taken off. The variance is that of the two
// shares at the place.
func (b pair) ks() distance {
	var f, g, most, variance float64

	for i := range b.p {
		f, g = f+b.p[i]/b.n, g+b.q[i]/b.m

		if off := math.Abs(f - g); off > most {
			most, variance = off, f*(1-f)/b.n+g*(1-g)/b.m
		}
	}

	return distance{
		math.Sqrt(max(most*most-meanSquareKolmogorov*(1/b.n+1/b.m), 0)),
		math.Sqrt(max(variance, 0)),
	}
}
