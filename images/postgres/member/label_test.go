// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

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
