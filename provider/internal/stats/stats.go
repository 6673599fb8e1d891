// SPDX-License-Identifier: Apache-2.0

// Package stats holds the statistics of verdicts: bounds of shares and quantiles, odds that may be checked again and again, and
// distances of distributions. It knows plain numbers only.
//
// Nothing here is what gonum's stat package has: its quantiles take samples where Prometheus gives buckets, its
// Kolmogorov-Smirnov distance has no variance, and Wilson's bounds and the sequential tests are not in it.
package stats

import "math"

// Quantiles of the normal distribution, for one-sided bounds.
const (
	// Confident is the quantile of 95 %, at which a verdict is reached.
	Confident = 1.6448536269514722
	// Doubtful is the quantile of 90 %, below which a verdict that was reached is dropped. Between the two it stays: traffic at
	// the border would otherwise change it with each window.
	Doubtful = 1.2815515655446004
	// Certain is the quantile of 99.9 %. With a window each minute, one false change in twenty would be three an hour.
	Certain = 3.090232306167813
	// Strict is the quantile of 99.99 %, for what is checked again and again without a sequential test.
	Strict = 3.719016485455709
)

// A Span in which a value lies.
type Span struct{ Lower, Upper float64 }

// Wilson returns the bounds of a share when k of n samples count (Wilson, 1927), each by itself at the confidence of z.
func Wilson(k, n, z float64) Span {
	p, zz := k/n, z*z
	middle := (p + zz/(2*n)) / (1 + zz/n)
	half := z / (1 + zz/n) * math.Sqrt(p*(1-p)/n+zz/(4*n*n))
	return Span{max(middle-half, 0), min(middle+half, 1)}
}

// Enough is the number of requests without a failure that it takes until the lower bound of the share that succeeds reaches a
// share.
func Enough(share, z float64) float64 {
	if share >= 1 {
		return math.Inf(1)
	}
	return math.Ceil(z * z * share / (1 - share))
}

// ShareVariance is the variance of a share when k of n samples count. Half a sample is added to each side, so that there is a
// variance although all or none count.
func ShareVariance(k, n float64) float64 {
	p := (k + 0.5) / (n + 1)
	return p * (1 - p) / n
}

// Rounded to some significant digits.
func Rounded(v float64, digits int) float64 {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return v
	}
	scale := math.Pow(10, float64(digits-1)-math.Floor(math.Log10(math.Abs(v))))
	switch {
	case math.IsInf(scale, 0) || scale == 0:
		return v
	case scale < 1: // Dividing by a power of ten that is an integer keeps the shortest digits.
		return math.Round(v*scale) * math.Round(1/scale)
	default:
		return math.Round(v*scale) / scale
	}
}

// RoundedShare keeps three digits of what is missing to 1, which is what matters of a share that is nearly all.
func RoundedShare(v float64) float64 {
	if v <= 0.5 {
		return Rounded(v, 3)
	}
	return Rounded(1-Rounded(1-v, 3), 15)
}

const (
	// Apart is the share by which a number has to leave the reported one.
	Apart = 0.25
	// byChance is how many standard deviations chance may explain. What is reported was a matter of chance itself, so that the
	// standard deviation of the difference is √2 times as large. In 120 windows an hour none is further off than four times that.
	byChance = 4 * math.Sqrt2
)

// Moved reports whether a number has left the reported one, by more than a quarter and by more than chance explains.
func Moved(reported, now, sigma float64) bool {
	off := math.Abs(now - reported)
	return off > Apart*math.Abs(reported) && off > byChance*sigma
}
