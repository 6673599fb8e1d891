// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"testing"
	"time"

	"github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/provider/internal/outside"
	"github.com/capstan-dev/capstan/provider/internal/promq"
)

func TestIdleSince(t *testing.T) {
	start := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	none := promq.NoData(promq.NotFound)
	sample := func(requests, inFlight promq.Reading) promq.Sample {
		s := promq.NewSample()
		s.Slots["a"] = &promq.Measures{Requests: requests, InFlight: inFlight}
		return s
	}
	n := func(v float64) promq.Reading { return promq.Reading{Value: v} }
	asked := &v1alpha1.MetricsParameters{Slots: []string{"a"}, IdleAfterSeconds: new(int32(600))}
	cases := map[string]struct {
		reason string
		before time.Time
		params *v1alpha1.MetricsParameters
		sample promq.Sample
		want   time.Time
	}{
		"NotAsked":    {"nobody wants to know", start, &v1alpha1.MetricsParameters{Slots: []string{"a"}}, sample(n(0), n(0)), time.Time{}},
		"First":       {"it counts from the look that saw it", time.Time{}, asked, sample(n(0), n(0)), start.Add(time.Hour)},
		"Still":       {"it counts from the first look", start, asked, sample(n(0), n(0)), start},
		"NoGauge":     {"not every server exposes requests in progress", start, asked, sample(n(0), none), start},
		"Requests":    {"requests came", start, asked, sample(n(0.3), n(0)), time.Time{}},
		"InProgress":  {"one that came long ago is not answered yet", start, asked, sample(n(0), n(1)), time.Time{}},
		"NoSeries":    {"what is not counted is unknown", start, asked, sample(none, n(0)), time.Time{}},
		"NotScraped":  {"the slot is not scraped", start, asked, promq.NewSample(), time.Time{}},
		"NotAnswered": {"an outage of Prometheus ends no replicas", start, asked, promq.Unanswered(&outside.Failure{}), time.Time{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := idleSince(tc.before, tc.params, tc.sample, start.Add(time.Hour)); !got.Equal(tc.want) {
				t.Errorf("%s: want %s, got %s", tc.reason, tc.want, got)
			}
		})
	}
	for after, want := range map[time.Duration]bool{9 * time.Minute: false, 10 * time.Minute: true, time.Hour: true} {
		if got := reportedIdle(start, asked, start.Add(after)); (got != nil) != want {
			t.Errorf("after %s: want reported %t, got %v", after, want, got)
		}
	}
	if reportedIdle(time.Time{}, asked, start) != nil {
		t.Error("what is in use is reported as idle")
	}
}
