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

// TestWitnessed: a leader whose proof waits behind a large transaction leads while a majority hears from it as its leader.
func TestWitnessed(t *testing.T) {
	says := func(follows ...string) map[string]Member {
		out := map[string]Member{}
		for i, f := range follows {
			out[string(rune('b'+i))] = Member{State: Grouped, Follows: f}
		}
		return out
	}
	cases := map[string]struct {
		reason string
		look   Look
		others map[string]Member
		want   bool
	}{
		"OneOfTwo":    {"One of the others hears from it, so two of three do.", seen(Online, Primary, Online, Online), says("1"), true},
		"None":        {"It alone is no majority.", seen(Online, Primary, Online, Online), says(), false},
		"Other":       {"Others follow another one: it was frozen.", seen(Online, Primary, Online, Online), says("2", "2"), false},
		"Divided":     {"One of five that still follows it is not enough.", seen(Online, Primary, Online, Online, Online, Online), says("1", "2", "2"), false},
		"Alone":       {"The only member of its group needs nobody.", seen(Online, Primary), says(), true},
		"CutOff":      {"Without a majority of its own it does not count itself.", seen(Online, Primary, Unreachable, Unreachable), says("1"), false},
		"NotItself":   {"One that follows is no leader, even if another one takes it for that.", seen(Online, Secondary, Online, Online), says("1"), false},
		"FormerImage": {"Members of an earlier version do not say whom they follow.", seen(Online, Primary, Online, Online), says("", ""), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.look.Witnessed(tc.others); got != tc.want {
				t.Errorf("%s Want %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}

// TestRoomier: a leader with a full volume hands over, unless that helps nobody.
func TestRoomier(t *testing.T) {
	leads := seen(Online, Primary, Online)
	away := seen(Online, Primary, Unreachable)
	cases := map[string]struct {
		reason string
		look   Look
		other  Member
		want   string
	}{
		"Room":     {"The other one can write.", leads, Member{Server: "2", Follows: "1"}, "2"},
		"Full":     {"Volumes of the same size fill together.", leads, Member{Server: "2", Follows: "1", Full: true}, ""},
		"Follows":  {"It follows another one, and this one is no leader any more.", leads, Member{Server: "2", Follows: "3"}, ""},
		"Away":     {"The group does not hear from it.", away, Member{Server: "2", Follows: "1"}, ""},
		"Stranger": {"It is in no group with this one.", leads, Member{Server: "3", Follows: "1"}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.look.Roomier(map[string]Member{"b": tc.other}); got != tc.want {
				t.Errorf("%s Want %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

// TestRoomiest: a member that does not hear from another one may have room, and lack what clients would wait for.
func TestRoomiest(t *testing.T) {
	look := seen(Online, Primary, Online, Online)
	look.Executed, look.Group[2].Server = group+":1-100", "3"
	has := func(server, set string) Member {
		m := member("", Grouped, set)
		m.Server, m.Follows = server, "1"
		return m
	}
	if got := look.Roomier(map[string]Member{"b": has("2", "1-40"), "c": has("3", "1-99")}); got != "3" {
		t.Errorf("want the one that has more, got %q", got)
	}
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

func TestHasLeader(t *testing.T) {
	gone := seen(Online, Secondary, Online)
	gone.Group = append(gone.Group, Peer{Server: "3", Host: "orders-c-0.x", State: Unreachable, Role: Primary})
	if gone.HasLeader() || !gone.Majority() || len(gone.Silent()) != 1 || gone.Silent()[0].Host != "orders-c-0.x" {
		t.Errorf("a leader that does not answer leads nobody, though there is a majority: %v", gone)
	}
	if l := seen(Online, Primary, Unreachable); !l.HasLeader() || len(l.Silent()) != 1 {
		t.Errorf("a leader hears from itself: %v", l)
	}
}
