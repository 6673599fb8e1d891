// SPDX-License-Identifier: Apache-2.0

package maintenance

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

func window(start string, lasts time.Duration, zone string, days ...v1alpha1.Weekday) v1alpha1.MaintenanceWindow {
	return v1alpha1.MaintenanceWindow{Start: start, Duration: metav1.Duration{Duration: lasts}, TimeZone: zone, Days: days}
}

func TestWindows(t *testing.T) {
	const zurich = "Europe/Zurich"
	cases := map[string]struct {
		reason  string
		now     string
		windows []v1alpha1.MaintenanceWindow
		want    string // from/until, or closed
	}{
		"Inside": {
			reason: "A window that lasts is the one that counts.",
			now:    "2026-11-22T01:30:00Z", windows: []v1alpha1.MaintenanceWindow{window("02:00", 2*time.Hour, zurich)},
			want: "2026-11-22T01:00:00Z/2026-11-22T03:00:00Z",
		},
		"TooLate": {
			reason: "With nine minutes left no member is begun any more.",
			now:    "2026-11-22T02:51:00Z", windows: []v1alpha1.MaintenanceWindow{window("02:00", 2*time.Hour, zurich)},
			want: "2026-11-23T01:00:00Z/2026-11-23T03:00:00Z",
		},
		"JustInTime": {
			reason: "With ten minutes left one is.",
			now:    "2026-11-22T02:50:00Z", windows: []v1alpha1.MaintenanceWindow{window("02:00", 2*time.Hour, zurich)},
			want: "2026-11-22T01:00:00Z/2026-11-22T03:00:00Z",
		},
		"Weekday": {
			reason: "Days are those of the zone: 23:30 in New York on Saturday is Sunday in UTC.",
			now:    "2026-11-18T12:00:00Z", windows: []v1alpha1.MaintenanceWindow{window("23:30", time.Hour, "America/New_York", "Sat")},
			want: "2026-11-22T04:30:00Z/2026-11-22T05:30:00Z",
		},
		"SameDayNextWeek": {
			reason: "After the window of a weekly day the next is a week later.",
			now:    "2026-11-22T12:00:00Z", windows: []v1alpha1.MaintenanceWindow{window("02:00", time.Hour, "UTC", "Sun")},
			want: "2026-11-29T02:00:00Z/2026-11-29T03:00:00Z",
		},
		"OverMidnight": {
			reason: "A window that began yesterday lasts into today.",
			now:    "2026-11-22T03:00:00Z", windows: []v1alpha1.MaintenanceWindow{window("22:00", 8*time.Hour, "UTC", "Sat")},
			want: "2026-11-21T22:00:00Z/2026-11-22T06:00:00Z",
		},
		"Touching": {
			reason: "Windows that touch are one, so that its end is the end of the second.",
			now:    "2026-11-22T02:55:00Z", windows: []v1alpha1.MaintenanceWindow{window("03:00", time.Hour, "UTC"), window("02:00", time.Hour, "UTC")},
			want: "2026-11-22T02:00:00Z/2026-11-22T04:00:00Z",
		},
		"First": {
			reason: "Of several the first to come counts.",
			now:    "2026-11-22T12:00:00Z", windows: []v1alpha1.MaintenanceWindow{window("02:00", time.Hour, "UTC", "Wed"), window("02:00", time.Hour, "UTC", "Tue")},
			want: "2026-11-24T02:00:00Z/2026-11-24T03:00:00Z",
		},
		"Gap": {
			reason: "On the day that the clock leaves 02:30 out, the window begins when it goes on at 03:00, which is 01:00 in UTC, and lasts as long.",
			now:    "2026-03-28T12:00:00Z", windows: []v1alpha1.MaintenanceWindow{window("02:30", time.Hour, zurich)},
			want: "2026-03-29T01:00:00Z/2026-03-29T02:00:00Z",
		},
		"GapWest": {
			reason: "The same where Go goes by the other of the two offsets.",
			now:    "2026-03-07T20:00:00Z", windows: []v1alpha1.MaintenanceWindow{window("02:30", time.Hour, "America/New_York")},
			want: "2026-03-08T07:00:00Z/2026-03-08T08:00:00Z",
		},
		"Overlap": {
			reason: "On the day that has 02:30 twice, the window begins the first time, which is 00:30 in UTC.",
			now:    "2026-10-24T12:00:00Z", windows: []v1alpha1.MaintenanceWindow{window("02:30", time.Hour, zurich)},
			want: "2026-10-25T00:30:00Z/2026-10-25T01:30:00Z",
		},
		"OverlapWest": {
			reason: "The same in the west.",
			now:    "2026-10-31T20:00:00Z", windows: []v1alpha1.MaintenanceWindow{window("01:30", time.Hour, "America/New_York")},
			want: "2026-11-01T05:30:00Z/2026-11-01T06:30:00Z",
		},
		"OverlapOnce": {
			reason: "The window of that day comes once: after it the next is the next day's.",
			now:    "2026-10-25T01:31:00Z", windows: []v1alpha1.MaintenanceWindow{window("02:30", time.Hour, zurich)},
			want: "2026-10-26T01:30:00Z/2026-10-26T02:30:00Z",
		},
		"HalfAnHour": {
			reason: "Some clocks are set by half an hour.",
			now:    "2026-10-03T12:00:00Z", windows: []v1alpha1.MaintenanceWindow{window("02:15", time.Hour, "Australia/Lord_Howe")},
			want: "2026-10-03T15:30:00Z/2026-10-03T16:30:00Z",
		},
		"MissingDay": {
			reason: "A day that a zone left out has no window.",
			now:    "2011-12-30T09:59:00Z", windows: []v1alpha1.MaintenanceWindow{window("02:00", time.Hour, "Pacific/Apia")},
			want: "2011-12-30T12:00:00Z/2011-12-30T13:00:00Z",
		},
		"TooShort": {
			reason: "No member is ever begun in less than a quarter of an hour.",
			now:    "2026-11-22T02:00:00Z", windows: []v1alpha1.MaintenanceWindow{window("02:00", 14*time.Minute, "UTC")},
			want: "closed",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			at, err := time.Parse(time.RFC3339, tc.now)
			if err != nil {
				t.Fatal(err)
			}
			got := "closed"
			if p, ok := next(tc.windows, at); ok {
				got = p.start.UTC().Format(time.RFC3339) + "/" + p.end.UTC().Format(time.RFC3339)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nnext(...): -want, +got:\n%s", tc.reason, diff)
			}
			g := openAt(tc.windows, at)
			if inside := !strings.HasPrefix(got, "closed") && got <= at.UTC().Format(time.RFC3339)+"0"; inside == g.Closed() {
				t.Errorf("\n%s\nopenAt(...): closed is %t: %s", tc.reason, g.Closed(), g.Message)
			}
			if g.Closed() && tc.want != "closed" && !strings.Contains(g.Message, strings.Split(tc.want, "/")[0]) {
				t.Errorf("\n%s\nthe message does not tell when: %s", tc.reason, g.Message)
			}
		})
	}
}

// TestEveryMinute holds windows to what they mean: the gate is open exactly while a clock on the wall says so, for every quarter
// of an hour of a year.
func TestEveryMinute(t *testing.T) {
	for _, zone := range []string{"UTC", "Europe/Zurich", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"} {
		at, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		ws := []v1alpha1.MaintenanceWindow{window("10:00", 3*time.Hour, zone, "Mon", "Thu")}
		for now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC); now.Year() == 2026; now = now.Add(15 * time.Minute) {
			local := now.In(at)
			minute := local.Hour()*60 + local.Minute()
			// Nobody sets clocks at that time of the day.
			want := (local.Weekday() == time.Monday || local.Weekday() == time.Thursday) && minute >= 600 && minute <= 770
			if got := openAt(ws, now); got.Closed() == want {
				t.Fatalf("%s: open is %t, want %t", local, !got.Closed(), want)
			}
		}
	}
}
