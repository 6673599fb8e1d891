// SPDX-License-Identifier: Apache-2.0

package compose_test

import (
	"testing"
	"time"

	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/compose/composetest"
)

func TestUnheard(t *testing.T) {
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	written := func(times ...string) composetest.Object {
		var entries []any
		for _, s := range times {
			entries = append(entries, map[string]any{"manager": "x", "time": s})
		}
		return composetest.Object{"metadata": map[string]any{"managedFields": entries}}
	}
	responsive := func(status, since string) composetest.Object {
		o := written("2025-12-01T00:00:00Z")
		o["status"] = map[string]any{"conditions": []any{map[string]any{
			"type": "Responsive", "status": status, "reason": "WatchCircuitOpen", "lastTransitionTime": since,
		}}}
		return o
	}
	cases := map[string]struct {
		reason string
		xr     composetest.Object
		want   bool
	}{
		"JustNow":      {"One more look has to follow.", written("2026-01-01T11:00:00Z", "2026-01-01T11:59:58Z"), true},
		"FollowedUp":   {"The look that followed changed nothing, even if it came early.", written("2026-01-01T11:59:34Z"), false},
		"LongAgo":      {"Nothing happens.", written("2025-12-01T00:00:00Z"), false},
		"NotListening": {"An edit is let through only now and then, and the last one may be dropped.", responsive("False", "2026-01-01T11:54:31Z"), true},
		"ListensAgain": {"Crossplane says so only once something changes, and that change it hears.", responsive("False", "2026-01-01T11:54:29Z"), false},
		"Listening":    {"Every change wakes Crossplane up.", responsive("True", "2026-01-01T11:59:58Z"), false},
		"Preview":      {"There is no account of writes.", composetest.Object{}, false},
		"ClockWrong":   {"A time far ahead says nothing, and must not keep us looking.", written("2027-01-01T00:00:00Z"), false},
		"NotATime":     {"What cannot be read says nothing.", written("yesterday"), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := compose.Unheard(compose.Request{Now: at, Composite: tc.xr}); got != tc.want {
				t.Errorf("%s\nUnheard: got %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}
