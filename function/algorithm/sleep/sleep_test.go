// SPDX-License-Identifier: Apache-2.0

package sleep_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/function/algorithm/sleep"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// idle facts: an Algorithm that may sleep and has had no request for long.
func idle(modify ...func(*sleep.Facts)) sleep.Facts {
	f := sleep.Facts{
		Now: now, Asked: true, Ready: true, Serves: true, Routed: true, IdleSince: now.Add(-time.Hour), Requested: "r1",
		After: 10 * time.Minute, Watch: time.Minute,
	}
	for _, m := range modify {
		m(&f)
	}
	return f
}

func TestNext(t *testing.T) {
	since := func(s sleep.State, d time.Duration) sleep.Mark {
		return sleep.Mark{State: s, Since: now.Add(-d), Seen: "r1"}
	}
	awake := sleep.Mark{State: sleep.Awake, Since: now.Add(-time.Hour)}
	fresh := sleep.Mark{State: sleep.Awake, Since: now}
	cases := map[string]struct {
		reason string
		mark   sleep.Mark
		facts  sleep.Facts
		want   sleep.Mark
	}{
		"NotAsked": {"one that may not sleep has no mark", sleep.Mark{}, idle(func(f *sleep.Facts) { f.Asked = false }), sleep.Mark{}},
		"New":      {"time counts from when it may sleep", sleep.Mark{}, idle(), fresh},
		"Idle":     {"requests go through the activator first", awake, idle(), sleep.Mark{State: sleep.Drowsy, Since: now, Seen: "r1"}},
		"JustWoken": {
			"evidence of before it woke says nothing",
			sleep.Mark{State: sleep.Awake, Since: now.Add(-time.Minute)},
			idle(),
			sleep.Mark{State: sleep.Awake, Since: now.Add(-time.Minute)},
		},
		"InUse":       {"requests come", awake, idle(func(f *sleep.Facts) { f.IdleSince = time.Time{} }), awake},
		"NoActivator": {"nothing could hold a request", awake, idle(func(f *sleep.Facts) { f.Ready = false }), awake},
		"Rollout":     {"a rollout needs replicas", awake, idle(func(f *sleep.Facts) { f.Busy = true }), awake},
		"Withdrawn":   {"minReplicas was raised", awake, idle(func(f *sleep.Facts) { f.Asked = false }), sleep.Mark{}},

		"DrowsyWaits":   {"a request may still come", since(sleep.Drowsy, 30*time.Second), idle(), since(sleep.Drowsy, 30*time.Second)},
		"DrowsyRequest": {"one came through the activator", since(sleep.Drowsy, time.Hour), idle(func(f *sleep.Facts) { f.Requested = "r2" }), fresh},
		"DrowsyInUse":   {"one came by a connection of before", since(sleep.Drowsy, time.Hour), idle(func(f *sleep.Facts) { f.IdleSince = time.Time{} }), fresh},
		"DrowsyRoute":   {"the Gateway still sends to replicas", since(sleep.Drowsy, time.Hour), idle(func(f *sleep.Facts) { f.Routed = false }), since(sleep.Drowsy, time.Hour)},
		"Sleeps":        {"no request came", since(sleep.Drowsy, time.Minute), idle(), since(sleep.Asleep, 0)},

		"StaysAsleep": {
			"without replicas there is no evidence", since(sleep.Asleep, time.Hour),
			idle(func(f *sleep.Facts) { f.IdleSince, f.Serves = time.Time{}, false }), since(sleep.Asleep, time.Hour),
		},
		"Wakes":         {"a request waits, whatever the clocks say", since(sleep.Asleep, -time.Minute), idle(func(f *sleep.Facts) { f.Requested = "r0" }), since(sleep.Waking, 0)},
		"ActivatorLost": {"nothing could hold a request any more", since(sleep.Asleep, time.Hour), idle(func(f *sleep.Facts) { f.Ready = false }), since(sleep.Waking, 0)},
		"Edited":        {"a rollout begins", since(sleep.Asleep, time.Hour), idle(func(f *sleep.Facts) { f.Busy = true }), since(sleep.Waking, 0)},
		"Raised":        {"minReplicas was raised", since(sleep.Asleep, time.Hour), idle(func(f *sleep.Facts) { f.Asked = false }), since(sleep.Waking, 0)},

		"Stopped": {
			"no request may wait for what never starts", since(sleep.Asleep, time.Hour),
			idle(func(f *sleep.Facts) { f.Asked, f.Stopped = false, true }),
			sleep.Mark{},
		},

		"Starts":      {"no replica serves yet", since(sleep.Waking, time.Hour), idle(func(f *sleep.Facts) { f.Serves = false }), since(sleep.Waking, time.Hour)},
		"Serves":      {"requests reach it directly", since(sleep.Waking, time.Hour), idle(), fresh},
		"ServesAsked": {"and it never sleeps again", since(sleep.Waking, time.Hour), idle(func(f *sleep.Facts) { f.Asked = false }), sleep.Mark{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.mark.Next(tc.facts)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestText(t *testing.T) {
	for _, m := range []sleep.Mark{{}, {State: sleep.Awake, Since: now}, {State: sleep.Asleep, Since: now, Seen: "a-b"}} {
		if diff := cmp.Diff(m, sleep.Parse(m.Text())); diff != "" {
			t.Errorf("%q: -want, +got:\n%s", m.Text(), diff)
		}
	}
	for _, text := range []string{"asleep", "asleep yesterday x", "dead 2026-11-20T12:00:00Z", "  "} {
		if m := sleep.Parse(text); m != (sleep.Mark{}) {
			t.Errorf("%q: want no mark, got %+v", text, m)
		}
	}
}
