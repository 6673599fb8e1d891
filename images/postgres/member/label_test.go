// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/capstan-dev/capstan/images/postgres/member/internal/patroni"
)

func TestRoleOf(t *testing.T) {
	cases := map[string]struct {
		reason  string
		state   patroni.State
		before  string
		hasLock bool
		want    string
	}{
		"Leads":     {reason: "Who takes writes is the leader.", state: patroni.State{Leads: true, Role: "primary", State: "running"}, before: "replica", want: "leader"},
		"Follows":   {reason: "Who follows is a replica.", state: patroni.State{Role: "replica", State: "running"}, want: "replica"},
		"Starts":    {reason: "Who starts is nothing yet.", state: patroni.State{Role: "replica", State: "starting"}},
		"Down":      {reason: "A leader that is down for a moment stays the leader.", state: patroni.State{Role: "primary", State: "crashed"}, before: "leader", hasLock: true, want: "leader"},
		"Lost":      {reason: "A leader without the lock is none.", state: patroni.State{Role: "primary", State: "running"}, before: "leader"},
		"Promoted":  {reason: "Who has the lock and takes no writes yet is not the leader.", state: patroni.State{Role: "replica", State: "running"}, before: "replica", hasLock: true, want: "replica"},
		"Isolated":  {reason: "Who writes without the lock must not be sent clients.", state: patroni.State{Role: "primary", State: "running"}},
		"Shutdown":  {reason: "Who stops is nothing.", state: patroni.State{Role: "replica", State: "stopping"}, before: "replica"},
		"Demotes":   {reason: "Who gave up the lock and follows is a replica.", state: patroni.State{Role: "replica", State: "running"}, before: "leader", want: "replica"},
		"KeepsLock": {reason: "While it has the lock nobody else leads.", state: patroni.State{Role: "replica", State: "stopping"}, before: "leader", hasLock: true, want: "leader"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := roleOf(tc.state, tc.before, tc.hasLock); got != tc.want {
				t.Errorf("\n%s\nroleOf(...): got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestHearsNothing(t *testing.T) {
	streams := patroni.State{Role: "replica", State: "running", Replication: "streaming"}
	alone := patroni.State{Role: "replica", State: "running"}
	t0 := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	l := &labelled{}
	for i, step := range []struct {
		reason string
		state  patroni.State
		after  time.Duration
		want   bool
	}{
		{"What streams hears its leader.", streams, 0, false},
		{"What does not stream may be the next to lead.", alone, 10 * time.Second, true},
		{"For as long as a lock may live.", alone, 2 * time.Minute, true},
		{"After that, waking it helps nobody.", alone, 3 * time.Minute, false},
		{"It has found a leader.", streams, 4 * time.Minute, false},
		{"And lost it.", alone, 5 * time.Minute, true},
		{"It leads.", patroni.State{Leads: true, Role: "primary", State: "running"}, 6 * time.Minute, false},
		{"What still starts is not woken.", patroni.State{Role: "replica", State: "starting"}, 7 * time.Minute, false},
	} {
		if got := l.hearsNothing(step.state, t0.Add(step.after)); got != step.want {
			t.Errorf("step %d: %s: got %t, want %t", i, step.reason, got, step.want)
		}
	}
}
