// SPDX-License-Identifier: Apache-2.0

package database

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
			if inside := !strings.HasPrefix(got, "closed") && got <= at.UTC().Format(time.RFC3339)+"0"; inside == g.closed() {
				t.Errorf("\n%s\nopenAt(...): closed is %t: %s", tc.reason, g.closed(), g.message)
			}
			if g.closed() && tc.want != "closed" && !strings.Contains(g.message, strings.Split(tc.want, "/")[0]) {
				t.Errorf("\n%s\nthe message does not tell when: %s", tc.reason, g.message)
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
			if got := openAt(ws, now); got.closed() == want {
				t.Fatalf("%s: open is %t, want %t", local, !got.closed(), want)
			}
		}
	}
}

const restart = `engine: postgres, version: "17", replicas: 3, storage: 50Gi, config: {max_connections: "200"}`

// The times of these tests are on Friday, 20 November 2026, at noon in UTC.
func TestHeld(t *testing.T) {
	cases := map[string]struct {
		reason, maintenance, want, message string
		ttl                                time.Duration
	}{
		"Window": {
			reason:      "A restart waits for the window.",
			maintenance: `{windows: [{start: "02:00", duration: 2h, timeZone: Europe/Zurich}]}`,
			want:        "AwaitingWindow", message: "2026-11-21T01:00:00Z",
		},
		"WindowSoon": {
			reason:      "The Database is looked at when the window begins.",
			maintenance: `{windows: [{start: "12:01", duration: 2h}]}`,
			want:        "AwaitingWindow", message: "2026-11-20T12:01:00Z", ttl: time.Minute,
		},
		"Approval": {
			reason:      "With an approval by hand it waits for the hash.",
			maintenance: `{approval: Manual}`,
			want:        "AwaitingApproval", message: "spec.maintenance.approve",
		},
		"OtherApproval": {
			reason:      "Of this change.",
			maintenance: `{approval: Manual, approve: abcdef}`,
			want:        "AwaitingApproval", message: `"abcdef" was another change`,
		},
		"Freeze": {
			reason:      "A freeze holds whatever the windows say.",
			maintenance: `{windows: [{start: "11:00", duration: 3h}], freeze: {until: "2026-11-20T12:05:00Z"}}`,
			want:        "Frozen", message: "2026-11-20T12:05:00Z", ttl: 5 * time.Minute,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := running(t, basic)
			before := w.revisions()
			dcs := w.request.Observed[nameDCS].Map()["metadata"]
			w.edit("{" + restart + ", maintenance: " + tc.maintenance + "}")
			for range 4 {
				w.pass()
			}
			p := w.plan()
			if diff := cmp.Diff(before, w.revisions()); diff != "" {
				t.Errorf("\n%s\nmembers are changed: -before, +after:\n%s", tc.reason, diff)
			}

			// A member that starts for another reason must not get half of the change.
			if diff := cmp.Diff(dcs.(map[string]any)["annotations"], w.request.Observed[nameDCS].Map()["metadata"].(map[string]any)["annotations"]); diff != "" {
				t.Errorf("\n%s\nPatroni is told of parameters that wait for a restart: -before, +after:\n%s", tc.reason, diff)
			}
			status, reason, message := condition(p, "Updated")
			if status != "False" || reason != tc.want || !strings.Contains(message, tc.message) {
				t.Errorf("\n%s\nUpdated is %s, %s: %s", tc.reason, status, reason, message)
			}
			st := told(t, p)
			if st.Phase != v1alpha1.DatabaseRunning || !p.Ready {
				t.Errorf("\n%s\nthe phase is %s, ready is %t", tc.reason, st.Phase, p.Ready)
			}
			if st.Change == nil || st.Change.State != v1alpha1.ChangeWaiting || st.Change.Message != message || st.Change.Hash == "" {
				t.Errorf("\n%s\nstatus.change is %+v", tc.reason, st.Change)
			}
			if tc.ttl > 0 && p.TTL != tc.ttl {
				t.Errorf("\n%s\nit is looked at after %s, want %s", tc.reason, p.TTL, tc.ttl)
			}
		})
	}
}

func TestApprove(t *testing.T) {
	w := running(t, basic)
	w.edit("{" + restart + ", maintenance: {approval: Manual}}")
	w.pass()
	hash := told(t, w.pass()).Change.Hash
	w.edit("{" + restart + ", maintenance: {approval: Manual, approve: " + hash + `, windows: [{start: "13:00", duration: 1h}]}}`)
	w.pass()
	if c := told(t, w.pass()).Change; c == nil || c.Hash != hash || c.State != v1alpha1.ChangeApproved {
		t.Errorf("a change that is approved and waits for its window is %+v", c)
	}
	w.request.Now = now.Add(90 * time.Minute)
	for range 8 {
		if c := told(t, w.pass()).Change; c != nil && c.Hash != hash {
			t.Fatalf("the hash changes half-way, from %s to %s", hash, c.Hash)
		}
	}
	if c := told(t, w.plan()).Change; c != nil {
		t.Errorf("after all of it there is still a change: %+v", c)
	}
	if status, reason, message := condition(w.plan(), "Updated"); status != "True" {
		t.Errorf("after all of it: Updated is %s, %s: %s", status, reason, message)
	}

	// What was approved was that one.
	w.edit(`{engine: postgres, version: "17", replicas: 3, storage: 50Gi, config: {max_connections: "300"}, maintenance: {approval: Manual, approve: ` + hash + `}}`)
	if _, reason, _ := condition(w.pass(), "Updated"); reason != "AwaitingApproval" {
		t.Errorf("another change goes on with the approval of one before: %s", reason)
	}
}

// TestWindowEnds follows a change that a window is too short for.
func TestWindowEnds(t *testing.T) {
	w := running(t, basic)
	before := w.revisions()
	w.edit("{" + restart + `, maintenance: {windows: [{start: "11:00", duration: 80m}]}}`)
	w.pass()

	// One member takes ten minutes here.
	w.request.Now = now.Add(11 * time.Minute)
	for range 4 {
		w.pass()
	}
	p := w.pass()
	changed := 0
	for letter, revision := range w.revisions() {
		if revision != before[letter] {
			changed++
		}
	}
	status, reason, message := condition(p, "Updated")
	c := told(t, p).Change
	if changed != 1 || status != "False" || reason != "AwaitingWindow" || c == nil || !strings.Contains(c.Message, "1 of 3 members are as asked") {
		t.Errorf("at the end of a window %d members are changed; Updated is %s, %s: %s; change is %+v", changed, status, reason, message, c)
	}
	if !p.Ready || told(t, p).Phase != v1alpha1.DatabaseRunning {
		t.Errorf("in between the phase is %s, ready is %t", told(t, p).Phase, p.Ready)
	}
	w.request.Now = now.Add(24 * time.Hour)
	for range 8 {
		w.pass()
	}
	if status, reason, message := condition(w.plan(), "Updated"); status != "True" {
		t.Errorf("in the next window: Updated is %s, %s: %s", status, reason, message)
	}
}

// TestNotHeld: what disturbs nobody, and the repair of what does not serve, goes on in a freeze.
func TestNotHeld(t *testing.T) {
	const frozen = `, maintenance: {freeze: {until: "2027-01-01T00:00:00Z"}}}`
	t.Run("Created", func(t *testing.T) {
		w := newWorld(t, `{engine: postgres, version: "17", replicas: 3, storage: 50Gi`+frozen)
		for range 6 {
			w.pass()
		}
		if st := told(t, w.plan()); st.Phase != v1alpha1.DatabaseRunning {
			t.Errorf("a new Database is %s", st.Phase)
		}
	})
	t.Run("Reloaded", func(t *testing.T) {
		w := running(t, basic)
		w.edit(`{engine: postgres, version: "17", replicas: 3, storage: 50Gi, config: {work_mem: 64MB, max_connections: "200"}` + frozen)
		w.pass()
		dcs := w.request.Observed[nameDCS].Map()["metadata"].(map[string]any)["annotations"].(map[string]any)[annotationConfig].(string)
		if !strings.Contains(dcs, `"work_mem":"64MB"`) || strings.Contains(dcs, `"max_connections":"200"`) {
			t.Errorf("Patroni is told %s", dcs)
		}
	})
	t.Run("Grown", func(t *testing.T) {
		w := running(t, basic)
		w.edit(`{engine: postgres, version: "17", replicas: 5, storage: 50Gi` + frozen)
		w.pass()
		if n := len(w.revisions()); n != 5 {
			t.Errorf("there are %d members", n)
		}
	})
	t.Run("Repaired", func(t *testing.T) {
		w := running(t, basic)
		w.edit(`{engine: postgres, version: "17", replicas: 3, storage: 50Gi, resources: {cpu: "64"}}`)
		w.broken["orders-db-b"] = "Unschedulable"
		w.pass()
		w.pass()
		before := w.revisions()
		w.edit(`{engine: postgres, version: "17", replicas: 3, storage: 50Gi, resources: {cpu: "1"}` + frozen)
		w.pass()
		delete(w.broken, "orders-db-b")
		w.pass()
		w.pass()
		if after := w.revisions(); after["b"] == before["b"] || after["a"] != before["a"] || after["c"] != before["c"] {
			t.Errorf("in a freeze the member that does not serve is changed and no other: before %v, after %v", before, after)
		}
	})
	t.Run("Shrunk", func(t *testing.T) {
		w := running(t, basic)
		w.edit(`{engine: postgres, version: "17", replicas: 1, storage: 50Gi` + frozen)
		for range 4 {
			w.pass()
		}
		dcs := w.request.Observed[nameDCS].Map()["metadata"].(map[string]any)["annotations"].(map[string]any)[annotationConfig].(string)
		if len(w.revisions()) != 3 || !strings.Contains(dcs, `"synchronous_mode":"quorum"`) || w.request.Observed[nameBudget] == nil {
			t.Errorf("members that wait to be let go serve as before: %v, %s", w.revisions(), dcs)
		}
	})
}

func TestMaintenanceRefused(t *testing.T) {
	for name, tc := range map[string]struct{ maintenance, message string }{
		"Zone":     {`{windows: [{start: "02:00", duration: 2h, timeZone: Europe/Atlantis}]}`, "windows[0].timeZone"},
		"Local":    {`{windows: [{start: "02:00", duration: 2h, timeZone: Local}]}`, "windows[0].timeZone"},
		"Start":    {`{windows: [{start: "25:00", duration: 2h}]}`, "windows[0].start"},
		"Short":    {`{windows: [{start: "02:00", duration: 10m}]}`, "must be from 15m"},
		"Day":      {`{windows: [{start: "02:00", duration: 2h, days: [Someday]}]}`, "windows[0].days"},
		"Approval": {`{approval: Never}`, "spec.maintenance.approval"},
	} {
		t.Run(name, func(t *testing.T) {
			w := running(t, basic)
			before := w.revisions()
			w.edit("{" + restart + ", maintenance: " + tc.maintenance + "}")
			p := w.pass()
			if status, _, message := condition(p, "Accepted"); status != "False" || !strings.Contains(message, tc.message) {
				t.Errorf("Accepted is %s: %s", status, message)
			}
			if diff := cmp.Diff(before, w.revisions()); diff != "" {
				t.Errorf("members are changed: -before, +after:\n%s", diff)
			}
		})
	}
}
