// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"cmp"
	"math"
	"slices"
)

// A Bucket counts the samples of at most a value.
type Bucket struct{ End, Count float64 }

// A Histogram is made of buckets in ascending order. The last one has no end.
type Histogram []Bucket

// NewHistogram of buckets in any order. Scrapes of several pods may be moments apart, so that a count is less than the count of a
// narrower bucket: then it is at least as much. It is nil when there is no count of all.
func NewHistogram(buckets []Bucket) Histogram {
	slices.SortFunc(buckets, func(a, b Bucket) int { return cmp.Compare(a.End, b.End) })
	if len(buckets) < 2 || !math.IsInf(buckets[len(buckets)-1].End, 1) {
		return nil
	}
	for i := range buckets {
		if c := buckets[i].Count; math.IsNaN(c) || math.IsInf(c, 0) {
			return nil
		}
		if i > 0 {
			buckets[i].Count = max(buckets[i].Count, buckets[i-1].Count)
		}
	}
	return buckets
}

// Samples is how many there are.
func (h Histogram) Samples() float64 { return h[len(h)-1].Count }

// Counting is the histogram as if it had at most so many samples, in the same shares.
func (h Histogram) Counting(samples float64) Histogram {
	if n := h.Samples(); samples < n {
		counted := make(Histogram, 0, len(h))
		for _, b := range h {
			counted = append(counted, Bucket{End: b.End, Count: b.Count * max(samples, 0) / n})
		}
		return counted
	}
	return h
}

// Largest is the end of the largest finite bucket.
func (h Histogram) Largest() float64 { return h[len(h)-2].End }

// at is the value of a rank, interpolated within its bucket as histogram_quantile does, and whether it lies in a finite bucket.
// Of others only the beginning is known.
func (h Histogram) at(rank float64) (value float64, finite bool) {
	i, _ := slices.BinarySearchFunc(h, rank, func(b Bucket, rank float64) int { return cmp.Compare(b.Count, rank) })
	if i >= len(h)-1 {
		return h.Largest(), false
	}
	below := h.before(i)
	if h[i].Count == below.Count {
		return h[i].End, true
	}
	return below.End + (h[i].End-below.End)*(rank-below.Count)/(h[i].Count-below.Count), true
}

// before is the bucket before another one. Before the first there is nothing.
func (h Histogram) before(i int) Bucket {
	if i == 0 {
		return Bucket{}
	}
	return h[i-1]
}

// Within is how many samples are at most a value, interpolated like at. All samples of the infinite bucket may be.
func (h Histogram) Within(value float64) float64 {
	i, _ := slices.BinarySearchFunc(h, value, func(b Bucket, v float64) int { return cmp.Compare(b.End, v) })
	if i >= len(h)-1 || h[i].End == value {
		return h[min(i, len(h)-1)].Count
	}
	below := h.before(i)
	return below.Count + (h[i].Count-below.Count)*(value-below.End)/(h[i].End-below.End)
}

// A Quantile with bounds, each by itself at some confidence.
type Quantile struct {
	Value, Lower, Upper float64
	// Beyond means that the value lies above the largest finite bucket, so that it is at least Value. Upper is infinite then, and
	// when the samples are too few for a bound.
	Beyond bool
}

// Quantile p with the bounds that its order statistics give: of n samples the number below the true quantile is binomial, so that
// the sample of the rank np+z√(np(1-p)) lies above it and the sample of np-z√(np(1-p)) below, each at the confidence of z (David
// and Nagaraja, Order Statistics, 7.1).
func (h Histogram) Quantile(p, z float64) Quantile {
	n := h.Samples()
	off := z * math.Sqrt(n*p*(1-p))
	value, within := h.at(n * p)
	lower, _ := h.at(max(n*p-off, 0))
	upper, finite := h.at(n*p + off)
	if !finite || n*p+off > n || n < Fewest(p, z) {
		upper = math.Inf(1)
	}
	return Quantile{value, lower, upper, !within}
}

// Bounds of the quantile.
func (q Quantile) Bounds() Span { return Span{q.Lower, q.Upper} }

// Fewest is how many samples an upper bound of a quantile takes: all of fewer lie below it with a probability that is too great.
func Fewest(p, z float64) float64 {
	confidence := math.Erfc(-z/math.Sqrt2) / 2
	return math.Ceil(math.Log(1-confidence) / math.Log(p))
}

// Ratio of one quantile to another, as bounds at the confidence that both have, by what the bounds of the two show of their
// variances (Zou and Donner, Construction of confidence limits about effect measures, 2008), of logarithms.
func Ratio(a, b Quantile) Span {
	s, ratio := Span{0, math.Inf(1)}, a.Value/b.Value
	if a.Lower > 0 && b.Value > 0 && !math.IsInf(b.Upper, 1) {
		s.Lower = ratio * math.Exp(-math.Hypot(math.Log(a.Value/a.Lower), math.Log(b.Upper/b.Value)))
	}
	if b.Lower > 0 && a.Value > 0 && !math.IsInf(a.Upper, 1) {
		s.Upper = ratio * math.Exp(math.Hypot(math.Log(a.Upper/a.Value), math.Log(b.Value/b.Lower)))
	}
	return s
}
