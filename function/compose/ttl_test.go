// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"testing"
	"time"
)

func TestTTL(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	cases := map[string]struct {
		reason    string
		pace      Pace
		deadlines []time.Time
		want      time.Duration
	}{
		"Settled":        {"nothing is due", Settled, nil, 30 * time.Minute},
		"Waiting":        {"a watch wakes us up, unless an event is lost", Waiting, nil, 5 * time.Minute},
		"Asking":         {"a refusal shows nowhere else", Asking, nil, 20 * time.Second},
		"Expecting":      {"it comes within seconds, mostly", Expecting, nil, 10 * time.Second},
		"Hurrying":       {"clients wait, and an event may be lost", Hurrying, nil, 3 * time.Second},
		"DeadlineNearer": {"a deadline is met", Settled, []time.Time{now.Add(time.Hour), now.Add(7 * time.Second)}, 7 * time.Second},
		"DeadlineLater":  {"a deadline does not make us slower", Asking, []time.Time{now.Add(time.Minute)}, 20 * time.Second},
		"DeadlinePassed": {"zero would mean never", Settled, []time.Time{now.Add(-time.Minute)}, time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.pace.TTL(now, tc.deadlines...); got != tc.want {
				t.Errorf("%s\nTTL: got %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}
