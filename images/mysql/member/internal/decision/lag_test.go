// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
)

func TestLag(t *testing.T) {
	cases := []struct {
		before string
		queue  int64
		late   time.Duration
		want   string
	}{
		{"", 0, 0, members.LagInSync},
		{members.LagInSync, 900, 0, members.LagInSync},
		{members.LagInSync, 1001, 0, members.LagBehind},
		{members.LagBehind, 900, 0, members.LagBehind},
		{members.LagBehind, 50, 0, members.LagInSync},
		{members.LagBehind, 50_001, 0, members.LagFarBehind},
		{members.LagFarBehind, 6_000, 0, members.LagFarBehind},
		{members.LagFarBehind, 4_000, 0, members.LagBehind},
		{members.LagFarBehind, 0, 0, members.LagInSync},
		{members.LagInSync, 0, 50 * time.Second, members.LagInSync},
		{members.LagInSync, 0, 61 * time.Second, members.LagFarBehind},
		{members.LagFarBehind, 0, 20 * time.Second, members.LagFarBehind},
		{members.LagFarBehind, 0, 10 * time.Second, members.LagInSync},
	}
	for _, tc := range cases {
		if got := Lag(tc.before, tc.queue, tc.late); got != tc.want {
			t.Errorf("Lag(%q, %d, %s) = %s, want %s", tc.before, tc.queue, tc.late, got, tc.want)
		}
	}
}

// TestReceipt compares a replica with its leader every ten seconds.
func TestReceipt(t *testing.T) {
	set := func(last string) gtid.Set {
		if last == "" {
			return gtid.Set{}
		}
		s, err := gtid.Parse("3f2a9c1b-0000-0000-0000-000000000001:1-" + last)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	type at struct{ has, leader string }
	const s = time.Second
	cases := map[string]struct {
		reason string
		looks  []at
		want   []time.Duration
	}{
		"Idle":     {"One that lacks nothing is seen to at the next comparison.", []at{{"9", "9"}, {"9", "9"}}, []time.Duration{0, 10 * s}},
		"Received": {"What was committed meanwhile has time until the next one.", []at{{"5", "7"}, {"7", "9"}, {"9", "11"}}, []time.Duration{0, 10 * s, 10 * s}},
		"Less": {
			"One that receives less than its leader commits is late, though it makes progress.",
			[]at{{"5", "50"}, {"15", "90"}, {"25", "130"}, {"35", "170"}},
			[]time.Duration{0, 10 * s, 20 * s, 30 * s},
		},
		"Slow": {
			"One that has reached a goal late is no sooner in time because the next one is new.",
			[]at{{"5", "50"}, {"15", "90"}, {"50", "130"}, {"60", "170"}, {"70", "210"}, {"80", "250"}},
			[]time.Duration{0, 10 * s, 20 * s, 20 * s, 20 * s, 30 * s},
		},
		"Recovers": {
			"It is as late as it was, until it receives in time again.",
			[]at{{"5", "50"}, {"15", "90"}, {"25", "130"}, {"170", "170"}, {"180", "180"}},
			[]time.Duration{0, 10 * s, 20 * s, 30 * s, 10 * s},
		},
		"Silent": {"Without an answer of the leader nothing is known.", []at{{"5", "7"}, {"7", ""}, {"7", ""}}, []time.Duration{0, 0, 0}},
		"SilentLater": {
			"What it lacked before, it still lacks.", []at{{"5", "7"}, {"5", ""}, {"5", ""}}, []time.Duration{0, 10 * s, 20 * s},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var r Receipt
			var got []time.Duration
			now := time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)
			for _, one := range tc.looks {
				r = r.Next(now, set(one.has), set(one.leader))
				got = append(got, r.Late())
				now = now.Add(10 * s)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
