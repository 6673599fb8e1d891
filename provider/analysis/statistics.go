// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"cmp"
	"math"
	"slices"
)

// Quantiles of the normal distribution, for one-sided bounds.
const (
	// confident is that of 95 %, at which a verdict is reached.
	confident = 1.6448536269514722

	// doubtful is that of 90 %, below which a verdict that was reached is given up.
	// Between the two it stays: traffic at the border would else change it with each
	// window.
	doubtful = 1.2815515655446004

	// certain is that of 99.9 %, at which a change of the load per replica is worth
	// it: there is a window each minute, and a false one in twenty would be three an
	// hour.
	certain = 3.090232306167813
)

// wilson are the bounds of a share at which k of n were seen, after Wilson (1927),
// each by itself at the confidence of z.
func wilson(k, n, z float64) (lower, upper float64) {
	p, zz := k/n, z*z
	middle := (p + zz/(2*n)) / (1 + zz/n)
	half := z / (1 + zz/n) * math.Sqrt(p*(1-p)/n+zz/(4*n*n))

	return max(middle-half, 0), min(middle+half, 1)
}

// enough is how many of which none fails it takes until the lower bound of the
// share that succeeds reaches a share.
func enough(share, z float64) float64 {
	if share >= 1 {
		return math.Inf(1)
	}

	return math.Ceil(z * z * share / (1 - share))
}

// A bucket of a histogram: how many took at most this long.
type bucket struct {
	milliseconds float64
	count        float64
}

// A histogram of latencies: buckets in ascending order, the last one infinite.
type histogram []bucket

// newHistogram of buckets in any order. Scrapes of several pods may be moments
// apart, so that a count is less than that of a narrower bucket: then it is at
// least as much. It is nil when there is no count of all.
func newHistogram(buckets []bucket) histogram {
	slices.SortFunc(buckets, func(a, b bucket) int { return cmp.Compare(a.milliseconds, b.milliseconds) })

	if len(buckets) < 2 || !math.IsInf(buckets[len(buckets)-1].milliseconds, 1) {
		return nil
	}

	for i := range buckets {
		if c := buckets[i].count; math.IsNaN(c) || math.IsInf(c, 0) {
			return nil
		}

		if i > 0 {
			buckets[i].count = max(buckets[i].count, buckets[i-1].count)
		}
	}

	return buckets
}

// samples are how many there are.
func (h histogram) samples() float64 { return h[len(h)-1].count }

// largest is where the largest finite bucket ends.
func (h histogram) largest() float64 { return h[len(h)-2].milliseconds }

// at is the latency of a rank, interpolated within its bucket as histogram_quantile
// does, and whether it lies in a finite one. Of others only the beginning is known.
func (h histogram) at(rank float64) (milliseconds float64, finite bool) {
	i, _ := slices.BinarySearchFunc(h, rank, func(b bucket, rank float64) int { return cmp.Compare(b.count, rank) })
	if i >= len(h)-1 {
		return h.largest(), false
	}

	low, below := 0.0, 0.0
	if i > 0 {
		low, below = h[i-1].milliseconds, h[i-1].count
	}

	if h[i].count == below {
		return h[i].milliseconds, true
	}

	return low + (h[i].milliseconds-low)*(rank-below)/(h[i].count-below), true
}

// within is how many took at most this long, interpolated like at. Of those in the
// infinite bucket all may have.
func (h histogram) within(milliseconds float64) float64 {
	i, _ := slices.BinarySearchFunc(h, milliseconds, func(b bucket, ms float64) int { return cmp.Compare(b.milliseconds, ms) })
	if i >= len(h)-1 || h[i].milliseconds == milliseconds {
		return h[min(i, len(h)-1)].count
	}

	low, below := 0.0, 0.0
	if i > 0 {
		low, below = h[i-1].milliseconds, h[i-1].count
	}

	return below + (h[i].count-below)*(milliseconds-low)/(h[i].milliseconds-low)
}

// A latency is a quantile with bounds, each by itself at some confidence.
type latency struct {
	value, lower, upper float64

	// beyond tells that the value lies above the largest finite bucket, so that it is
	// at least what it is said to be. Upper is infinite then, and when the samples are
	// too few for a bound.
	beyond bool
}

// quantile p with the bounds that its order statistics give: of n samples the
// number below the true quantile is binomial, so that the sample of the rank
// np+z√(np(1-p)) lies above it, and that of np-z√(np(1-p)) below, each at the
// confidence of z (David and Nagaraja, Order Statistics, 7.1).
func (h histogram) quantile(p, z float64) latency {
	n := h.samples()
	off := z * math.Sqrt(n*p*(1-p))

	var (
		l      latency
		finite bool
	)

	l.value, finite = h.at(n * p)
	l.beyond = !finite
	l.lower, _ = h.at(max(n*p-off, 0))

	l.upper, finite = h.at(n*p + off)
	if !finite || n*p+off > n || n < few(p, z) {
		l.upper = math.Inf(1)
	}

	return l
}

// few is how many samples are too few for an upper bound of a quantile, whatever
// they are: all of them lie below it with a probability that is too great.
func few(p, z float64) float64 {
	return math.Ceil(math.Log(1-confidence(z)) / math.Log(p))
}

// confidence of a quantile of the normal distribution.
func confidence(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }

// rounded to some significant digits.
func rounded(v float64, digits int) float64 {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return v
	}

	scale := math.Pow(10, float64(digits-1)-math.Floor(math.Log10(math.Abs(v))))
	if math.IsInf(scale, 0) || scale == 0 {
		return v
	}

	// Dividing by a power of ten that is an integer keeps the shortest digits.
	if scale < 1 {
		return math.Round(v*scale) * math.Round(1/scale)
	}

	return math.Round(v*scale) / scale
}

// roundedShare keeps the digits of what is missing to 1, which is what matters of
// a share that is nearly all.
func roundedShare(v float64) float64 {
	if v <= 0.5 {
		return rounded(v, digits)
	}

	return rounded(1-rounded(1-v, digits), 15)
}
