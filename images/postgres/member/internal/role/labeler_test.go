// SPDX-License-Identifier: Apache-2.0

package role

import (
	"testing"
	"time"

	"github.com/capstan-dev/capstan/images/postgres/member/internal/patroni"
)

func TestRoleOf(t *testing.T) {
	cases := map[string]struct {
		reason  string
		state   patroni.State
		led     bool
		hasLock bool
		want    string
		leads   bool
	}{
		"Leads":     {reason: "Who takes writes is the leader.", state: patroni.State{Leads: true, Role: "primary", State: "running"}, want: "leader", leads: true},
		"Follows":   {reason: "Who follows is a replica.", state: patroni.State{Role: "replica", State: "running"}, want: "replica"},
		"Starts":    {reason: "Who starts is nothing yet.", state: patroni.State{Role: "replica", State: "starting"}},
		"Down":      {reason: "A leader that is down for a moment stays the leader.", state: patroni.State{Role: "primary", State: "crashed"}, led: true, hasLock: true, want: "leader", leads: true},
		"Lost":      {reason: "A leader without the lock is none.", state: patroni.State{Role: "primary", State: "running"}, led: true},
		"Promoted":  {reason: "Who has the lock is about to take writes: proxies may learn of it, and nothing is asked of it yet.", state: patroni.State{Role: "replica", State: "running"}, hasLock: true, want: "leader"},
		"Isolated":  {reason: "Who writes without the lock must not be sent clients.", state: patroni.State{Role: "primary", State: "running"}},
		"Shutdown":  {reason: "Who stops is nothing.", state: patroni.State{Role: "replica", State: "stopping"}},
		"Demotes":   {reason: "Who gave up the lock and follows is a replica.", state: patroni.State{Role: "replica", State: "running"}, led: true, want: "replica"},
		"KeepsLock": {reason: "While it has the lock nobody else leads.", state: patroni.State{Role: "replica", State: "stopping"}, led: true, hasLock: true, want: "leader", leads: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got, leads := roleOf(tc.state, tc.led, tc.hasLock); got != tc.want || leads != tc.leads {
				t.Errorf("\n%s\nroleOf(...): got %q, %t, want %q, %t", tc.reason, got, leads, tc.want, tc.leads)
			}
		})
	}
}

func TestHandedOver(t *testing.T) {
	stopped := patroni.State{Role: "demoted", State: "stopped"}
	t0 := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	var demoted since
	for i, step := range []struct {
		reason string
		state  patroni.State
		after  time.Duration
		want   bool
	}{
		{"Who leads is no case of it.", patroni.State{Leads: true, Role: "primary", State: "running"}, 0, false},
		{"Who handed over keeps the label for the next.", stopped, time.Second, true},
		{"Who starts to follow has not been taken it yet.", patroni.State{Role: "demoted", State: "starting"}, 3 * time.Second, true},
		{"Where nobody takes it, it goes.", stopped, 11 * time.Second, false},
		{"Who follows is a replica.", patroni.State{Role: "replica", State: "running"}, 12 * time.Second, false},
		{"Who stops without having handed over has nothing to keep.", patroni.State{Role: "primary", State: "stopping"}, 13 * time.Second, false},
	} {
		role, _ := roleOf(step.state, false, false)
		now := t0.Add(step.after)
		demoted = demoted.next(handedOver(role, "leader", step.state), now)
		if got := demoted.within(keepFor, now); got != step.want {
			t.Errorf("step %d: %s: got %t, want %t", i, step.reason, got, step.want)
		}
	}
	if handedOver("", "replica", stopped) {
		t.Error("a standby keeps a label that it does not have")
	}
}

func TestLostLeader(t *testing.T) {
	streams := patroni.State{Role: "replica", State: "running", Replication: "streaming"}
	alone := patroni.State{Role: "replica", State: "running"}
	t0 := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	var cutOff since
	for i, step := range []struct {
		reason string
		state  patroni.State
		after  time.Duration
		want   bool
	}{
		{"What streams hears its leader.", streams, 0, false},
		{"What does not stream may be the next to lead.", alone, 10 * time.Second, true},
		{"For as long as a lock may live.", alone, 2 * time.Minute, true},
		{"After that, nobody waits for it.", alone, 3 * time.Minute, false},
		{"It has found a leader.", streams, 4 * time.Minute, false},
		{"And lost it.", alone, 5 * time.Minute, true},
		{"It leads.", patroni.State{Leads: true, Role: "primary", State: "running"}, 6 * time.Minute, false},
		{"What still starts has not lost one.", patroni.State{Role: "replica", State: "starting"}, 7 * time.Minute, false},
	} {
		role, _ := roleOf(step.state, false, false)
		now := t0.Add(step.after)
		cutOff = cutOff.next(lostLeader(role, step.state), now)
		if got := cutOff.within(cutOffFor, now); got != step.want {
			t.Errorf("step %d: %s: got %t, want %t", i, step.reason, got, step.want)
		}
	}
}
