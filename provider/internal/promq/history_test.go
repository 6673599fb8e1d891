// SPDX-License-Identifier: Apache-2.0

package promq

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"

	"github.com/capstan-dev/capstan/provider/internal/prometheus"
)

// A countingQuerier answers each time with itself, in seconds.
type countingQuerier struct {
	asked []string
	err   error
}

func (c *countingQuerier) QueryRange(_ context.Context, _ prometheus.Pods, query string, r prometheus.Range) (model.Matrix, error) {
	c.asked = append(c.asked, fmt.Sprintf("%s %d-%d", query, r.Start.Unix(), r.End.Unix()))
	s := &model.SampleStream{Metric: model.Metric{"query": model.LabelValue(query)}}
	for t := r.Start; !t.After(r.End); t = t.Add(r.Step) {
		s.Values = append(s.Values, model.SamplePair{Timestamp: model.TimeFromUnix(t.Unix()), Value: model.SampleValue(t.Unix())})
	}
	return model.Matrix{s}, c.err
}

// TestHistory sends each query once, and answers it at each moment of a range, also about times before it.
func TestHistory(t *testing.T) {
	q := &countingQuerier{}
	h := NewHistory(q, prometheus.Range{Start: time.Unix(1000, 0), End: time.Unix(1120, 0), Step: time.Minute})
	pods := prometheus.Pods{Namespace: "shop", Algorithm: "reco", Slots: []string{"a"}}
	var got []int64
	for _, at := range h.Moments() {
		for _, past := range []time.Time{{}, at.Add(-time.Hour)} {
			v, err := h.At(at).QueryAt(t.Context(), pods, "up", past)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, int64(Total(v.(model.Vector)).Value))
		}
	}
	if diff := cmp.Diff([]int64{1000, 1000 - 3600, 1060, 1060 - 3600, 1120, 1120 - 3600}, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"up 1000-1120", "up -2600--2480"}, q.asked); diff != "" {
		t.Errorf("Each query should be sent once: -want, +got:\n%s", diff)
	}
	q.err = errors.New("boom")
	for range 2 {
		if _, err := h.At(time.Unix(1000, 0)).QueryAt(t.Context(), pods, "down", time.Time{}); !errors.Is(err, q.err) {
			t.Errorf("A failure is the answer as well, got %v", err)
		}
	}
	if len(q.asked) != 3 {
		t.Errorf("A query that failed should not be sent again: %q", q.asked)
	}
}
