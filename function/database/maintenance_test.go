// SPDX-License-Identifier: Apache-2.0

package database

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/database/names"
)

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
			want:        "AwaitingApproval", message: `"abcdef" approves another change`,
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
			dcs := w.request.Observed[names.DCS].Map()["metadata"]
			w.edit("{" + restart + ", maintenance: " + tc.maintenance + "}")
			for range 4 {
				w.pass()
			}
			p := w.plan()
			if diff := cmp.Diff(before, w.revisions()); diff != "" {
				t.Errorf("\n%s\nmembers are changed: -before, +after:\n%s", tc.reason, diff)
			}

			// A member that starts for another reason must not get half of the change.
			if diff := cmp.Diff(dcs.(map[string]any)["annotations"], w.request.Observed[names.DCS].Map()["metadata"].(map[string]any)["annotations"]); diff != "" {
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
	if changed != 1 || status != "False" || reason != "AwaitingWindow" || c == nil || !strings.Contains(c.Message, "1 of 3 members match the spec") {
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
		dcs := w.request.Observed[names.DCS].Map()["metadata"].(map[string]any)["annotations"].(map[string]any)[names.AnnotationConfig].(string)
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
		dcs := w.request.Observed[names.DCS].Map()["metadata"].(map[string]any)["annotations"].(map[string]any)[names.AnnotationConfig].(string)
		if len(w.revisions()) != 3 || !strings.Contains(dcs, `"synchronous_mode":"quorum"`) || w.request.Observed[names.Budget] == nil {
			t.Errorf("members that wait to be removed serve as before: %v, %s", w.revisions(), dcs)
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
