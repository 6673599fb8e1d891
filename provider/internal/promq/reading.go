// SPDX-License-Identifier: Apache-2.0

// Package promq asks Prometheus what an Analysis needs to know of the pods of an Algorithm, and turns the answers into readings:
// a value, or why there is none.
package promq

import (
	"errors"
	"math"
	"strconv"

	"github.com/prometheus/common/model"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/stats"
	"github.com/capstan-dev/capstan/provider/internal/words"
)

// Why a value is unknown, and what to do.
const (
	NotScraped = "Prometheus scrapes no pod of this slot: see that it is set up to scrape the pods of Algorithms, " +
		"and that they serve metrics on spec.metrics.port and path"
	NotKnown   = "the pods expose no metric of a known model server: set spec.metrics.queries"
	NotFound   = "there is no such series: correct the query, or wait until the pods expose it"
	NoRequests = "there was no request in the window"
	tooFresh   = "the pods were scraped only once in the window: it must hold at least two scrapes, better four"
	notFinite  = "the value is not a number"
	noBuckets  = "the query gives no series with the label le: it must keep the buckets of a histogram, " +
		"for instance increase(x_bucket[$window])"
)

// maxMessage bounds a message in bytes.
const maxMessage = 1024

// Bounded message.
func Bounded(message string) string { return words.Bounded(message, maxMessage) }

// A Reading is a value, or why there is none.
type Reading struct {
	Value float64
	// Verdict is NoData or Error when there is no value.
	Verdict v1alpha1.Verdict
	Message string
}

// Known reports whether there is a value.
func (r Reading) Known() bool { return r.Verdict == "" }

// NoData is a reading without a value.
func NoData(message string) Reading {
	return Reading{Verdict: v1alpha1.VerdictNoData, Message: message}
}

// Failed is the reading of a query that was not answered.
func Failed(f *outside.Failure) Reading {
	return Reading{Verdict: v1alpha1.VerdictError, Message: Bounded(f.Error())}
}

// Misused is the reading of a query whose answer has the wrong form.
func Misused(message string) Reading {
	return Reading{Verdict: v1alpha1.VerdictError, Message: message}
}

// A Distribution of values. It has no histogram when the reading is unknown.
type Distribution struct {
	Reading
	stats.Histogram
}

// Sum of the series that a query gives. None is what no series means.
func Sum(v model.Value, err error, none Reading) Reading {
	lines, ok := v.(model.Vector)
	switch {
	case !ok:
		return Single(v, err)
	case len(lines) == 0:
		return none
	default:
		return Total(lines)
	}
}

// Total of the values of an answer.
func Total(lines model.Vector) Reading {
	sum := 0.0
	for _, l := range lines {
		if l.Histogram != nil {
			return Misused("the query gives native histograms where numbers are added up: use histogram_count")
		}
		sum += float64(l.Value)
	}
	return finite(sum)
}

func finite(v float64) Reading {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return NoData(notFinite)
	}
	return Reading{Value: v}
}

// Single value that a query gives.
func Single(v model.Value, err error) Reading {
	if f := (*outside.Failure)(nil); errors.As(err, &f) {
		return Failed(f)
	}
	switch v := v.(type) {
	case *model.Scalar:
		return finite(float64(v.Value))
	case model.Vector:
		switch len(v) {
		case 0:
			return NoData(NotFound)
		case 1:
			return Total(v)
		default:
			return Misused("the query gives several series where one value is compared: aggregate them, for instance with sum(…)")
		}
	case model.Matrix:
		return Misused("the query gives a range where one value is compared: use a function over time, for instance avg_over_time(…)")
	default:
		return Misused("the query gives no number")
	}
}

// Buckets that a query gives, in a unit of so many units of the result.
func Buckets(v model.Value, err error, unit float64) Distribution {
	if err != nil || v == nil {
		return Distribution{Reading: Single(v, err)}
	}
	lines, ok := v.(model.Vector)
	if !ok {
		return Distribution{Reading: Misused(noBuckets)}
	}
	counts := map[float64]float64{}
	for _, l := range lines {
		if l.Histogram != nil {
			return Distribution{Reading: Misused("the query gives native histograms where buckets with the label le are needed: " +
				"let the server also expose classic histograms")}
		}
		le, err := strconv.ParseFloat(string(l.Metric[model.BucketLabel]), 64)
		if err != nil || math.IsNaN(le) {
			return Distribution{Reading: Misused("the query gives series without the label le: it must keep the buckets of a histogram, " +
				"for instance increase(x_bucket[$window])")}
		}
		counts[le*unit] += float64(l.Value)
	}
	if len(counts) == 0 {
		return Distribution{Reading: NoData(NotFound)}
	}
	all := make([]stats.Bucket, 0, len(counts))
	for le, n := range counts {
		all = append(all, stats.Bucket{End: le, Count: n})
	}
	h := stats.NewHistogram(all)
	if h == nil {
		return Distribution{Reading: NoData("the buckets are no histogram: there must be one with le=\"+Inf\", and another")}
	}
	return Distribution{Histogram: h}
}
