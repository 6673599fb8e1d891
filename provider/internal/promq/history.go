// SPDX-License-Identifier: Apache-2.0

package promq

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/common/model"

	"github.com/capstan-dev/capstan/provider/internal/prometheus"
)

// A RangeQuerier evaluates PromQL on series of pods at each step of a range.
type RangeQuerier interface {
	QueryRange(ctx context.Context, pods prometheus.Pods, query string, r prometheus.Range) (model.Matrix, error)
}

// A History of a range sends each query once, and answers it at any moment of the range as Prometheus would have then. So the past is
// read by the same code as the present.
type History struct {
	querier RangeQuerier
	span    prometheus.Range

	mu      sync.Mutex
	answers map[string]func() (map[model.Time]model.Vector, error)
}

// NewHistory of a range.
func NewHistory(q RangeQuerier, r prometheus.Range) *History {
	return &History{querier: q, span: r, answers: map[string]func() (map[model.Time]model.Vector, error){}}
}

// Moments of the range, the earliest first.
func (h *History) Moments() []time.Time {
	var all []time.Time
	for t := h.span.Start; !t.After(h.span.End); t = t.Add(h.span.Step) {
		all = append(all, t)
	}
	return all
}

// At is a Querier to which a moment of the range is now.
func (h *History) At(now time.Time) Querier { return moment{h, now} }

type moment struct {
	history *History
	now     time.Time
}

// QueryAt the moment. A time before it has the same distance from every moment of the range.
func (m moment) QueryAt(ctx context.Context, pods prometheus.Pods, query string, at time.Time) (model.Value, error) {
	var shift time.Duration
	if !at.IsZero() {
		shift = at.Sub(m.now)
	}
	lines, err := m.history.answer(ctx, pods, query, shift)
	if err != nil {
		return nil, err
	}
	return lines[model.TimeFromUnixNano(m.now.Add(shift).UnixNano())], nil
}

// answer of a query, by time.
func (h *History) answer(ctx context.Context, pods prometheus.Pods, query string, shift time.Duration) (map[model.Time]model.Vector, error) {
	key := keyOf(pods, query, int64(shift))
	h.mu.Lock()
	answer := h.answers[key]
	if answer == nil {
		answer = sync.OnceValues(func() (map[model.Time]model.Vector, error) {
			r := h.span
			r.Start, r.End = r.Start.Add(shift), r.End.Add(shift)
			lines, err := h.querier.QueryRange(ctx, pods, query, r)
			return byTime(lines), err
		})
		h.answers[key] = answer
	}
	h.mu.Unlock()
	return answer()
}

// byTime are the lines of an answer at each of its times.
func byTime(lines model.Matrix) map[model.Time]model.Vector {
	out := map[model.Time]model.Vector{}
	for _, l := range lines {
		for _, v := range l.Values {
			out[v.Timestamp] = append(out[v.Timestamp], &model.Sample{Metric: l.Metric, Timestamp: v.Timestamp, Value: v.Value})
		}
		for _, v := range l.Histograms {
			out[v.Timestamp] = append(out[v.Timestamp], &model.Sample{Metric: l.Metric, Timestamp: v.Timestamp, Histogram: v.Histogram})
		}
	}
	return out
}
