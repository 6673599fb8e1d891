// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"errors"
	"math"
	"strconv"

	"github.com/prometheus/common/model"

	"github.com/capstan-dev/capstan/provider/internal/outside"
)

// sum of the series that a query gives. None is what none says.
func sum(v model.Value, err error, none reading) reading {
	switch v := v.(type) {
	case model.Vector:
		if len(v) == 0 {
			return none
		}

		return total(v)
	default:
		return single(v, err)
	}
}

// total of the values of an answer.
func total(lines model.Vector) reading {
	sum := 0.0

	for _, l := range lines {
		if l.Histogram != nil {
			return misused("the query gives native histograms where numbers are added up: use histogram_count")
		}

		sum += float64(l.Value)
	}

	if math.IsNaN(sum) || math.IsInf(sum, 0) {
		return noData(notFinit)
	}

	return reading{value: sum}
}

// single value that a query gives.
func single(v model.Value, err error) reading {
	if f := (*outside.Failure)(nil); errors.As(err, &f) {
		return failed(f)
	}

	switch v := v.(type) {
	case *model.Scalar:
		if n := float64(v.Value); !math.IsNaN(n) && !math.IsInf(n, 0) {
			return reading{value: n}
		}

		return noData(notFinit)
	case model.Vector:
		switch len(v) {
		case 0:
			return noData(notFound)
		case 1:
			return total(v)
		default:
			return misused("the query gives several series where one value is compared: aggregate them, for instance with sum(…)")
		}
	case model.Matrix:
		return misused("the query gives a range where one value is compared: use a function over time, for instance avg_over_time(…)")
	default:
		return misused("the query gives no number")
	}
}

// buckets of an answer, as a histogram in milliseconds.
func buckets(lines model.Vector, unit float64) (histogram, reading) {
	counts := map[float64]float64{}

	for _, l := range lines {
		if l.Histogram != nil {
			return nil, misused("the query gives native histograms where buckets with the label le are needed: " +
				"let the server tell classic histograms, too")
		}

		le, err := strconv.ParseFloat(string(l.Metric[model.BucketLabel]), 64)
		if err != nil || math.IsNaN(le) {
			return nil, misused("the query gives series without the label le: it must keep the buckets of a histogram, " +
				"for instance increase(x_seconds_bucket[$window])")
		}

		counts[le*unit] += float64(l.Value)
	}

	if len(counts) == 0 {
		return nil, noData(notFound)
	}

	all := make([]bucket, 0, len(counts))
	for le, n := range counts {
		all = append(all, bucket{milliseconds: le, count: n})
	}

	h := newHistogram(all)
	if h == nil {
		return nil, noData("the buckets are no histogram: there must be one with le=\"+Inf\", and another")
	}

	return h, reading{}
}

// ownBuckets are the buckets in seconds that a query of one's own gives.
func ownBuckets(v model.Value, err error) (histogram, reading) {
	if err != nil || v == nil {
		return nil, single(v, err)
	}

	lines, ok := v.(model.Vector)
	if !ok {
		return nil, misused("the query gives no series with the label le: it must keep the buckets of a histogram, " +
			"for instance increase(x_seconds_bucket[$window])")
	}

	return buckets(lines, 1000)
}

// distributionOf what a query of one's own gives, in its own unit.
func distributionOf(v model.Value, err error) distribution {
	if err != nil || v == nil {
		return distribution{reading: single(v, err)}
	}

	lines, ok := v.(model.Vector)
	if !ok {
		return distribution{reading: misused("the query gives no series with the label le: it must keep the buckets of a histogram, " +
			"for instance increase(x_bucket[$window])")}
	}

	h, r := buckets(lines, 1)

	return distribution{r, h}
}
