// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"testing"

	"github.com/capstan-dev/capstan/apis/members"
)

func TestStop(t *testing.T) {
	// The member is b, and the others are in these states.
	group := func(role string, others ...string) Look {
		l := Look{Server: "b", Group: []Peer{{Server: "b", State: Online, Role: role}}}
		for i, state := range others {
			p := Peer{Server: string(rune('c' + i)), State: state, Role: Secondary}
			if i == 0 && role == Secondary {
				p.Role = Primary
			}
			l.Group = append(l.Group, p)
		}
		return l
	}
	for name, tc := range map[string]struct {
		reason string
		now    Still
		want   string
	}{
		"Standby":  {"The others continue, and leave it out.", Still{Look: group(Secondary, Online, Online), OtherLeads: true}, members.FenceStopped},
		"Leader":   {"Clients would wait.", Still{Look: group(Primary, Online, Online)}, members.FenceRefused},
		"Of two":   {"A leader is a majority of itself.", Still{Look: group(Secondary, Online), OtherLeads: true}, members.FenceStopped},
		"Needed":   {"The leader would wait for the one that is cut off.", Still{Look: group(Secondary, Online, Unreachable), OtherLeads: true}, members.FenceWaiting},
		"NoLeader": {"The leader is cut off, and this one may be elected.", Still{Look: group(Secondary, Unreachable, Online), OtherLeads: true}, members.FenceWaiting},
		"Other":    {"One at a time.", Still{Look: group(Secondary, Online, Online), OtherLeads: true, Stopped: "orders-db-c"}, members.FenceWaiting},
		"Outside":  {"It is kept out, and the others have a leader.", Still{Look: Look{Server: "b", Group: []Peer{{Server: "b", State: Outside}}}, OtherLeads: true}, members.FenceStopped},
		"Crashed":  {"Its data may be what a person wants to look at.", Still{OtherLeads: true}, members.FenceStopped},
		"Outage":   {"It may have what no other member has.", Still{}, members.FenceWaiting},
	} {
		t.Run(name, func(t *testing.T) {
			if got, message := Stop(tc.now); got != tc.want || (message == "") != (tc.want == members.FenceStopped) {
				t.Errorf("%s\ngot %s: %s, want %s", tc.reason, got, message, tc.want)
			}
		})
	}
}
