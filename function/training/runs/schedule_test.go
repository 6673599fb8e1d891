// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestNext shows the times of a schedule, also when clocks change.
func TestNext(t *testing.T) {
	for name, tc := range map[string]struct {
		reason     string
		cron, zone string
		from       string
		want       []string
	}{
		"Weekly": {"a weekday", "0 3 * * 1", "UTC", "2026-11-26T12:00:00Z", []string{"2026-11-30T03:00:00Z", "2026-12-07T03:00:00Z"}},
		"Exact":  {"the time itself is not after itself", "0 3 * * *", "UTC", "2026-11-26T03:00:00Z", []string{"2026-11-27T03:00:00Z"}},
		"Spring": {"a time that the change to summer time leaves out does not come", "30 2 * * *", "Europe/Berlin", "2026-03-27T12:00:00Z", []string{"2026-03-28T01:30:00Z", "2026-03-30T00:30:00Z"}},
		"Autumn": {
			"a time that the change back repeats comes twice", "30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z",
			[]string{"2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-26T01:30:00Z"},
		},
		"Leap": {"a day that comes every four years", "0 0 29 2 *", "UTC", "2026-11-26T12:00:00Z", []string{"2028-02-29T00:00:00Z"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := NewSchedule(tc.cron, tc.zone)
			if err != nil {
				t.Fatal(err)
			}
			at, err := time.Parse(time.RFC3339, tc.from)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for range tc.want {
				at = s.Next(at)
				got = append(got, at.Format(time.RFC3339))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
