// SPDX-License-Identifier: Apache-2.0

package slo

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/common/model"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/promq"
	"github.com/capstan-dev/capstan/provider/internal/stats"
)

// A bucket of the latency, in milliseconds, with the label that it has in Prometheus.
type bucket struct {
	stats.Bucket

	le string
}

// buckets of the latency within a window, the narrowest first.
func (k *clerk) buckets(ctx context.Context, within time.Duration, only []string) ([]bucket, promq.Reading) {
	query, unit, r := k.latencyQuery(ctx, within, only)
	if !r.Known() {
		return nil, r
	}
	v, f := k.Query(ctx, k.AllPods(), query)
	if f != nil {
		return nil, promq.Failed(f)
	}
	d := promq.Buckets(v, nil, unit)
	if !d.Known() {
		return nil, d.Reading
	}
	labels := map[float64]string{}
	lines, _ := v.(model.Vector)
	for _, l := range lines {
		le := string(l.Metric[model.BucketLabel])
		if end, err := strconv.ParseFloat(le, 64); err == nil {
			labels[end*unit] = le
		}
	}
	all := make([]bucket, 0, len(d.Histogram))
	for _, b := range d.Histogram {
		all = append(all, bucket{b, labels[b.End]})
	}
	return all, promq.Reading{}
}

// slow share of the requests, interpolated within its bucket.
func slow(all []bucket, latencyMs float64) (float64, promq.Reading) {
	last := len(all) - 1
	largest, n := all[last-1].End, all[last].Count
	if largest < latencyMs {
		return 0, promq.NoData(fmt.Sprintf("the histogram has no bucket above %g ms: add some, or lower spec.slo.latencyMs", largest))
	}
	if n <= 0 {
		return 0, promq.Reading{}
	}
	e := edgeAround(all, latencyMs)
	share := 1 - (e.share*count(all, e.upper)+(1-e.share)*count(all, e.lower))/n
	// What is less than this is how computers add.
	if share < 1e-9 {
		share = 0
	}
	return share, promq.Reading{}
}

func count(all []bucket, le string) float64 {
	if i := slices.IndexFunc(all, func(b bucket) bool { return b.le == le }); le != "" && i >= 0 {
		return all[i].Count
	}
	return 0
}

// An edge is where a latency lies between two buckets: at a share of the way from the end of the lower to the end of the upper
// one. Lower is empty below the first, and both are where nothing is known.
type edge struct {
	lower, upper string
	share        float64
}

// edgeOf the latency of the objective, or none.
func edgeOf(p *v1alpha1.SLOParameters, all []bucket) edge {
	if p.LatencyMs == nil || len(all) < 2 || all[len(all)-2].End < float64(*p.LatencyMs) {
		return edge{}
	}
	return edgeAround(all, float64(*p.LatencyMs))
}

func edgeAround(all []bucket, latencyMs float64) edge {
	i := slices.IndexFunc(all, func(b bucket) bool { return b.End >= latencyMs })
	switch {
	case all[i].End == latencyMs:
		return edge{upper: all[i].le, share: 1}
	case i == 0:
		return edge{upper: all[0].le, share: latencyMs / all[0].End}
	default:
		from := all[i-1].End
		return edge{lower: all[i-1].le, upper: all[i].le, share: (latencyMs - from) / (all[i].End - from)}
	}
}

// only these buckets are needed. None is all.
func (e edge) only() []string {
	if e.upper == "" {
		return nil
	}
	return slices.DeleteFunc([]string{e.lower, e.upper, "+Inf"}, func(le string) bool { return le == "" })
}
