// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/members"
)

// seen by member 1 of a group: its own state and role, and the states of others.
func seen(state, role string, others ...string) Look {
	l := Look{Server: "1", Group: []Peer{{Server: "1", State: state, Role: role}}, ReadOnly: role != Primary}
	for _, o := range others {
		l.Group = append(l.Group, Peer{Server: "2", State: o, Role: Secondary})
	}
	return l
}

func TestStand(t *testing.T) {
	elected := seen(Online, Primary, Online, Online)
	elected.ReadOnly = true
	leader, replica, none := Standing{members.RoleLeader, true, true}, Standing{members.RoleReplica, true, true}, Standing{}
	shut := seen(Online, Primary)
	shut.Shut = true
	cases := map[string]struct {
		reason           string
		look             Look
		proven, stopping bool
		lag              string
		want             Standing
	}{
		"Leader":       {"A primary that proves it leads.", seen(Online, Primary, Online, Online), true, false, "", leader},
		"Alone":        {"So does the only member.", seen(Online, Primary), true, false, "", leader},
		"OneOfTwo":     {"One of two is no majority.", seen(Online, Primary, Unreachable), true, false, "", none},
		"TwoOf3":       {"Two of three are.", seen(Online, Primary, Online, Unreachable), true, false, "", leader},
		"Joining":      {"One that receives what it lacks counts for the majority.", seen(Online, Primary, Recovering), true, false, "", leader},
		"Thawed":       {"Without proof it lets nobody in.", seen(Online, Primary, Online, Online), false, false, "", none},
		"Elected":      {"One that was just elected takes no label before it takes writes.", elected, true, false, "", Standing{"", true, false}},
		"Stopping":     {"A leader that has to stop leads until another one does.", seen(Online, Primary, Online, Online), true, true, "", leader},
		"StoppingShut": {"Without another one it leads until it has sent its clients away.", shut, true, true, "", none},
		"Replica":      {"A replica needs no proof, but a majority.", seen(Online, Secondary, Online, Online), false, false, members.LagInSync, replica},
		"CutOff":       {"Without one, what it has may be old.", seen(Online, Secondary, Unreachable, Unreachable), false, false, members.LagInSync, none},
		"FarBehind":    {"One that is far behind serves who has found it, and gets nobody else.", seen(Online, Secondary, Online), false, false, members.LagFarBehind, Standing{members.RoleReplica, true, false}},
		"Handed":       {"One that stops and leads no more gets nobody.", seen(Online, Secondary, Online, Online), true, true, members.LagInSync, none},
		"Receiving":    {"One that receives what it lacks is none yet.", seen(Recovering, Secondary, Online, Online), true, false, "", none},
		"Error":        {"One that left the group is none.", seen(Failed, Secondary), true, false, "", none},
		"Outside":      {"A server that was in no group since its start has no id in it.", Look{Server: "1", Group: []Peer{{State: Outside}}}, true, false, "", none},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Stand(tc.look, tc.proven, tc.stopping, tc.lag)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestLag(t *testing.T) {
	cases := []struct {
		before string
		queue  int64
		want   string
	}{
		{"", 0, members.LagInSync},
		{members.LagInSync, 900, members.LagInSync},
		{members.LagInSync, 1001, members.LagBehind},
		{members.LagBehind, 900, members.LagBehind},
		{members.LagBehind, 50, members.LagInSync},
		{members.LagBehind, 50_001, members.LagFarBehind},
		{members.LagFarBehind, 6_000, members.LagFarBehind},
		{members.LagFarBehind, 4_000, members.LagBehind},
		{members.LagFarBehind, 0, members.LagInSync},
	}
	for _, tc := range cases {
		if got := Lag(tc.before, tc.queue); got != tc.want {
			t.Errorf("Lag(%q, %d) = %s, want %s", tc.before, tc.queue, got, tc.want)
		}
	}
}
