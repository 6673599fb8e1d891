// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestLeash(t *testing.T) {
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		reason  string
		leash   Leash
		holder  string
		renewed time.Duration
		want    bool
	}{
		"Own":      {"The lock of this member lives.", Leash{ttl: 20 * time.Second}, "a", 17 * time.Second, false},
		"Expiring": {"The lock is about to run out.", Leash{ttl: 20 * time.Second}, "a", 18 * time.Second, true},
		"Patient":  {"The lock of another profile lives longer.", Leash{ttl: 90 * time.Second}, "a", 60 * time.Second, false},
		"Other":    {"Another member leads.", Leash{ttl: 20 * time.Second}, "b", 0, true},
		"Paused":   {"In a pause no member is promoted.", Leash{ttl: 20 * time.Second, paused: true}, "a", time.Hour, false},
		"Released": {"No member holds the lock.", Leash{ttl: 20 * time.Second, failing: now.Add(-2 * time.Second)}, "", 0, true},
		"Begins":   {"The next Patroni gets a moment.", Leash{ttl: 20 * time.Second, failing: now.Add(-time.Second)}, "", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			tc.leash.pod = "a"
			if got := tc.leash.ends(tc.holder, now.Add(-tc.renewed), now); got != tc.want {
				t.Errorf("%s: ends(...): got %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}

// TestLeashConfigures: what was known last counts while the API server does not answer, and a pause is no ttl.
func TestLeashConfigures(t *testing.T) {
	var ttl time.Duration
	var err error
	l := Leash{lifetime: func(context.Context) (time.Duration, error) { return ttl, err }}
	for i, step := range []struct {
		ttl    time.Duration
		err    error
		want   time.Duration
		paused bool
	}{
		{0, errors.New("no answer"), shortestTTL, false},
		{90 * time.Second, nil, 90 * time.Second, false},
		{0, nil, 90 * time.Second, true},
		{0, errors.New("no answer"), 90 * time.Second, true},
		{30 * time.Second, nil, 30 * time.Second, false},
	} {
		ttl, err, l.read = step.ttl, step.err, time.Time{}
		if l.configure(t.Context()); l.ttl != step.want || l.paused != step.paused {
			t.Errorf("step %d: got %s, %t, want %s, %t", i, l.ttl, l.paused, step.want, step.paused)
		}
	}
}
