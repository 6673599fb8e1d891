// SPDX-License-Identifier: Apache-2.0

package decision

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/members"
	"github.com/capstan-dev/capstan/apis/members/mysqlmember"
	"github.com/capstan-dev/capstan/images/mysql/member/internal/gtid"
)

const group = "3e11fa47-71ca-11e1-9e33-c80aa9429562"

// member with data of its own that has these transactions.
func member(name string, state State, has string) Member {
	if has != "" {
		has = group + ":" + has
	}
	set, err := gtid.Parse(has)
	if err != nil {
		panic(err)
	}
	return Member{State: state, Server: "data of " + name, Has: set}
}

func seats(names ...string) []Seat {
	var out []Seat
	for _, n := range names {
		out = append(out, Seat{n, "data of " + n})
	}
	return out
}

func TestEnter(t *testing.T) {
	proven := member("b", Grouped, "1-9")
	proven.Proven = true
	listing := proven
	listing.Group = []string{"a", "b", "c"}
	stuck := member("b", Grouped, "1-9")
	stuck.Group = listing.Group
	lost := member("b", Offline, "")
	lost.Server = "other data"
	cases := map[string]struct {
		reason string
		known  Known
		want   What
		why    string
	}{
		"New": {
			"The first member of a Database that never had a volume begins.",
			Known{Own: member("a", Offline, "")},
			Begin, "",
		},
		"NewSecond": {
			"Of two that come at the same moment the first by name begins; the claim decides if they do not see each other.",
			Known{Name: "b", Own: member("b", Offline, ""), Others: map[string]Member{"a": member("a", Offline, "")}},
			Wait, members.ReasonWaitingForFormerLeader,
		},
		"OldVolumes": {
			"A member without data does not begin while one that had a volume has not said what it has.",
			Known{Own: member("a", Offline, ""), Expected: []string{"b"}},
			Wait, members.ReasonWaitingForMembers,
		},
		"OldVolume": {
			"A Database that is made again begins with the volume that has data.",
			Known{Own: member("a", Offline, ""), Expected: []string{"b"}, Others: map[string]Member{"b": member("b", Offline, "1-5")}},
			Wait, members.ReasonWaitingForFormerLeader,
		},
		"OldVolumeOwn": {
			"The same as the member with the data sees it.",
			Known{Own: member("a", Offline, "1-5"), Expected: []string{"a", "b"}, Others: map[string]Member{"b": member("b", Offline, "")}},
			Begin, "",
		},
		"Emptied": {
			"Where there was data nobody begins without.",
			Known{Own: member("a", Offline, ""), Initialized: true, Others: map[string]Member{"b": member("b", Offline, "")}},
			Wait, mysqlmember.ReasonRecoveryNeedsDecision,
		},
		"Alone": {
			"A Database with one member begins alone each time.",
			Known{Own: member("a", Offline, "1-5"), Initialized: true, View: seats("a")},
			Begin, "",
		},
		"AloneBeforeTheFirstTransaction": {
			"One that was killed before it wrote anything has nothing, and it is all there is.",
			Known{Own: member("a", Offline, ""), Initialized: true, View: seats("a")},
			Begin, "",
		},
		"AloneWithoutItsVolume": {
			"The only member came back without its data.",
			Known{Own: member("a", Offline, ""), Initialized: true, View: []Seat{{"a", "former data"}}},
			Wait, mysqlmember.ReasonRecoveryNeedsDecision,
		},
		"Join": {
			"A group that proves its majority is joined.",
			Known{Own: member("a", Offline, "1-5"), Initialized: true, View: seats("a", "b", "c"), Others: map[string]Member{"b": proven}},
			Join, "",
		},
		"JoinWithoutData": {
			"A member without data copies the group's.",
			Known{Own: member("a", Offline, ""), Initialized: true, View: seats("b", "c"), Others: map[string]Member{"b": proven}},
			Join, "",
		},
		"Former": {
			"A member whose server was killed waits until the group has let the former one go.",
			Known{Own: member("a", Offline, "1-5"), Initialized: true, View: seats("a", "b", "c"), Others: map[string]Member{"b": listing}},
			Wait, "",
		},
		"FormerUnproven": {
			"The same while the group elects another leader.",
			Known{Own: member("a", Offline, "1-5"), Initialized: true, View: seats("a", "b", "c"), Others: map[string]Member{"b": stuck}},
			Wait, "",
		},
		"Extra": {
			"Transactions that the group does not have keep a member out, also if it has fewer in all.",
			Known{Own: member("a", Offline, "1-3:11"), Initialized: true, View: seats("b"), Others: map[string]Member{"b": proven}},
			Wait, mysqlmember.ReasonExtraTransactions,
		},
		"Unproven": {
			"A member that is in a group without a majority, or about to enter one, is waited for, whatever the others have.",
			Known{Own: member("a", Offline, "1-9"), Initialized: true, View: seats("a", "b"), Others: map[string]Member{"b": member("b", Grouped, "1-5")}},
			Wait, members.ReasonWaitingForMembers,
		},
		"Entering": {
			"The same for one that has claimed to begin.",
			Known{Own: member("a", Offline, "1-9"), Initialized: true, View: seats("a", "b"), Others: map[string]Member{"b": member("b", Entering, "1-9")}},
			Wait, members.ReasonWaitingForMembers,
		},
		"Silent": {
			"Nothing is decided by silence, even when two of three agree.",
			Known{Own: member("a", Offline, "1-9"), Initialized: true, View: seats("a", "b", "c"), Others: map[string]Member{"b": member("b", Offline, "1-5")}},
			Wait, members.ReasonWaitingForMembers,
		},
		"ServerStarts": {
			"A server that does not answer yet has told nothing, though its program answers.",
			Known{Own: member("a", Offline, "1-9"), Initialized: true, View: seats("a", "b"), Others: map[string]Member{"b": member("b", Starting, "")}},
			Wait, members.ReasonWaitingForMembers,
		},
		"NotInTheLastGroup": {
			"A member that had left the group before need not answer.",
			Known{Own: member("a", Offline, "1-9"), Initialized: true, View: seats("a")},
			Begin, "",
		},
		"NotInTheLastGroupItself": {
			"And does not begin, also when it has more of its own.",
			Known{Own: member("a", Offline, "1-12"), Initialized: true, View: seats("b"), Others: map[string]Member{"b": member("b", Offline, "1-9")}},
			Wait, members.ReasonWaitingForFormerLeader,
		},
		"Most": {
			"The one that has all begins.",
			Known{Own: member("a", Offline, "1-9"), Initialized: true, View: seats("a", "b", "c"), Others: map[string]Member{
				"b": member("b", Offline, "1-8"), "c": member("c", Offline, "1-5"),
			}},
			Begin, "",
		},
		"NotMost": {
			"The former leader does not, if another one received more.",
			Known{Own: member("a", Offline, "1-8"), Leader: "a", Initialized: true, View: seats("a", "b", "c"), Others: map[string]Member{
				"b": member("b", Offline, "1-9"), "c": member("c", Offline, "1-5"),
			}},
			Wait, members.ReasonWaitingForFormerLeader,
		},
		"FormerLeader": {
			"Among equals the former leader begins.",
			Known{Name: "b", Own: member("b", Offline, "1-9"), Leader: "b", Initialized: true, View: seats("a", "b"), Others: map[string]Member{"a": member("a", Offline, "1-9")}},
			Begin, "",
		},
		"Divided": {
			"Two that each have what the other lacks need a person.",
			Known{Own: member("a", Offline, "1-8:10"), Initialized: true, View: seats("a", "b"), Others: map[string]Member{"b": member("b", Offline, "1-9")}},
			Wait, mysqlmember.ReasonRecoveryNeedsDecision,
		},
		"LostVolume": {
			"A member that lost its volume cannot say what it had.",
			Known{Own: member("a", Offline, "1-9"), Initialized: true, View: seats("a", "b"), Others: map[string]Member{"b": lost}},
			Wait, mysqlmember.ReasonRecoveryNeedsDecision,
		},
		"RecordLost": {
			"Without the record, a member that is not there may have had more, and nothing says that it is one.",
			Known{Own: member("a", Offline, "1-5"), Initialized: true, Expected: []string{"a"}},
			Wait, mysqlmember.ReasonRecoveryNeedsDecision,
		},
		"RecordsLost": {
			"Both records are lost, and this member has transactions of a group: others may have more.",
			Known{Own: member("a", Offline, "1-5"), Pods: []string{"a", "b"}, GroupName: group},
			Wait, mysqlmember.ReasonRecoveryNeedsDecision,
		},
		"RecordsLostOfOther": {
			"The same as an empty member sees it.",
			Known{Own: member("a", Offline, ""), Others: map[string]Member{"b": member("b", Offline, "1-5")}, GroupName: group},
			Wait, mysqlmember.ReasonRecoveryNeedsDecision,
		},
		"RecordsLostAndVolumes": {
			"Both records are lost, only empty volumes answer, and the Database once had data.",
			Known{Own: member("a", Offline, ""), Initialized: true, Expected: []string{"a", "b"}, Others: map[string]Member{"b": member("b", Offline, "")}},
			Wait, mysqlmember.ReasonRecoveryNeedsDecision,
		},
		"Filled": {
			"Data of a backup has transactions of another group: the first member of a restored Database begins with them.",
			Known{Own: member("a", Offline, "1-5"), GroupName: "another"},
			Begin, "",
		},
		"FewerReplicas": {
			"A Database made again with fewer replicas waits for the volumes that have no pod.",
			Known{Own: member("a", Offline, "1-5"), Expected: []string{"a", "b", "c"}, Pods: []string{"a"}, GroupName: group},
			Wait, members.ReasonWaitingForMembers,
		},
		"FormerLeaderThere": {
			"The volume of a standby is lost. The leader that is recorded is there, and has all that others have. But another one may have led after it, " +
				"when the API server was away or a moment before the end: what that one acknowledged may be what is lost.",
			Known{Own: member("a", Offline, "1-9"), Leader: "a", Initialized: true, View: seats("a", "b"), Others: map[string]Member{"b": lost}},
			Wait, mysqlmember.ReasonRecoveryNeedsDecision,
		},
		"Blind": {
			"Without the API server a member joins what proves a majority.",
			Known{Own: member("a", Offline, "1-5"), Blind: true, Others: map[string]Member{"b": proven}},
			Join, "",
		},
		"BlindExtra": {
			"Unless it has transactions of its own.",
			Known{Own: member("a", Offline, "1-12"), Blind: true, Others: map[string]Member{"b": proven}},
			Wait, mysqlmember.ReasonExtraTransactions,
		},
		"BlindFormer": {
			"Or the group has not removed it yet.",
			Known{Own: member("a", Offline, "1-5"), Blind: true, Others: map[string]Member{"b": listing}},
			Wait, "",
		},
		"BlindNone": {
			"It begins nothing, even when all others answer and it has what they have: another member may have been in the last group.",
			Known{Own: member("a", Offline, "1-9"), Blind: true, Others: map[string]Member{"b": member("b", Offline, "1-8"), "c": member("c", Offline, "1-9")}},
			Wait, members.ReasonWaitingForMembers,
		},
		"Restoring": {
			"Another member restores the backup that the Database begins with.",
			Known{Own: member("a", Offline, ""), View: []Seat{{Name: "b"}}, Epoch: 1, Others: map[string]Member{"b": member("b", Starting, "")}},
			Wait, members.ReasonWaitingForFormerLeader,
		},
		"RestoringItself": {
			"This one does.",
			Known{Own: member("a", Offline, ""), View: []Seat{{Name: "a"}}, Epoch: 1, Others: map[string]Member{"b": member("b", Offline, "")}},
			Begin, "",
		},
		"Restored": {
			"That member has begun.",
			Known{Own: member("a", Offline, ""), View: []Seat{{Name: "b"}}, Epoch: 1, Others: map[string]Member{"b": proven}},
			Join, "",
		},
		"AcceptedForRestore": {
			"The member that restored is lost, and a person decided for this one, which the record does not have.",
			Known{Own: member("a", Offline, ""), View: []Seat{{Name: "b"}}, Epoch: 1, Accepted: "a@1"},
			Begin, "",
		},
		"AcceptedForOther": {
			"Or for another one.",
			Known{Own: member("a", Offline, ""), View: []Seat{{Name: "b"}}, Epoch: 1, Accepted: "c@1", Others: map[string]Member{"c": member("c", Offline, "")}},
			Wait, members.ReasonWaitingForFormerLeader,
		},
		"Accepted": {
			"A person decided for this one.",
			Known{Own: member("a", Offline, "1-9"), Initialized: true, View: seats("a", "b", "c"), Epoch: 3, Accepted: "a@3"},
			Begin, "",
		},
		"AcceptedWithoutRecord": {
			"A person decided after the record was lost.",
			Known{Own: member("a", Offline, "1-5"), Initialized: true, Expected: []string{"a"}, Accepted: "a@0"},
			Begin, "",
		},
		"AcceptedAnother": {
			"A person decided for another one.",
			Known{Own: member("a", Offline, "1-9"), Initialized: true, View: seats("a", "b"), Epoch: 3, Accepted: "b@3"},
			Wait, members.ReasonWaitingForFormerLeader,
		},
		"AcceptedAndProven": {
			"A decision that came too late divides no group.",
			Known{Own: member("a", Offline, "1-9"), Initialized: true, View: seats("a", "b", "c"), Epoch: 3, Accepted: "a@3", Others: map[string]Member{"b": proven}},
			Join, "",
		},
		"AcceptedBefore": {
			"A decision of an earlier outage says nothing about this one.",
			Known{Own: member("a", Offline, "1-5"), Initialized: true, View: seats("a", "b", "c"), Epoch: 4, Accepted: "a@3", Others: map[string]Member{"b": member("b", Offline, "1-9")}},
			Wait, members.ReasonWaitingForMembers,
		},
		"AcceptedStranger": {
			"A member that does not exist blocks no other one.",
			Known{Own: member("a", Offline, "1-9"), Initialized: true, View: seats("a"), Epoch: 3, Accepted: "x@3"},
			Begin, "",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.known.Name == "" {
				tc.known.Name = "a"
			}
			got := Enter(tc.known)
			if diff := cmp.Diff([]any{tc.want, tc.why}, []any{got.What, got.Reason}); diff != "" {
				t.Errorf("%s: -want +got:\n%s%s", tc.reason, diff, got.Message)
			}
			if got.Another != (got.What == Begin && tc.known.Accepted != "" && name != "AcceptedStranger") {
				t.Errorf("%s: a group that begins with less than all has another name, got %v", tc.reason, got.Another)
			}
			if (got.What == Wait) != (got.Message != "") {
				t.Errorf("%s: message %q", tc.reason, got.Message)
			}
		})
	}
}

// TestSays: a person reads in the message what to do.
func TestSays(t *testing.T) {
	lost := member("b", Offline, "")
	lost.Server = "other data"
	cases := map[string]struct {
		known Known
		want  []string
	}{
		"FewerReplicas": {
			Known{Own: member("a", Offline, "1-5"), Expected: []string{"a", "b", "c"}, Pods: []string{"a"}},
			[]string{"the volume of b, c", "set spec.replicas to 3", "begin-from=<member>@0"},
		},
		"PodStarts": {
			Known{Own: member("a", Offline, "1-5"), Expected: []string{"a", "b"}, Pods: []string{"a", "b"}},
			[]string{"unknown without b. a has"},
		},
		"FormerLeaderThere": {
			Known{Own: member("a", Offline, "1-9"), Leader: "a", View: seats("a", "b"), Others: map[string]Member{"b": lost}, Epoch: 4},
			[]string{"the data of b is gone", "a is the last leader that was recorded", "begin-from=<member>@4"},
		},
		"FormerLeaderBehind": {
			Known{
				Own: member("a", Offline, "1-9"), Leader: "a", View: seats("a", "b", "c"),
				Others: map[string]Member{"b": lost, "c": member("c", Offline, "1-10")}, Epoch: 4,
			},
			[]string{"the data of b is gone", "a is the last leader that was recorded", "so has c", "begin with this one"},
		},
		"Restoring": {
			Known{Own: member("a", Offline, ""), View: []Seat{{Name: "b"}}, Epoch: 7},
			[]string{"member b restores a backup", "begin-from=<member>@7"},
		},
		"FormerLeaderLost": {
			Known{Own: member("a", Offline, "1-9"), Leader: "b", View: seats("a", "b"), Others: map[string]Member{"b": lost}},
			[]string{"bring the volume back. a has"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.known.Name = "a"
			got := Enter(tc.known).Message
			for _, want := range tc.want {
				if !strings.Contains(strings.ToLower(got), want) {
					t.Errorf("%q is not in %q", want, got)
				}
			}
		})
	}
}

// FuzzEnter: of the members of a group that is down, at most one begins, it has what all of them have, and none begins while one is silent.
func FuzzEnter(f *testing.F) {
	f.Add(uint8(9), uint8(8), uint8(5), uint8(0), uint8(0))
	f.Add(uint8(3), uint8(3), uint8(3), uint8(1), uint8(2))
	f.Fuzz(func(t *testing.T, x, y, z, silent, leader uint8) {
		names := []string{"a", "b", "c"}
		all := map[string]Member{}
		for i, bits := range []uint8{x, y, z} {
			var has []string
			for n := range 8 {
				if bits>>n&1 == 1 {
					has = append(has, strconv.Itoa(n+1))
				}
			}
			all[names[i]] = member(names[i], Offline, strings.Join(has, ":"))
		}
		quiet := ""
		if silent%4 > 0 {
			quiet = names[silent%4-1]
		}
		began := 0
		for _, name := range names {
			if name == quiet {
				continue
			}
			k := Known{Name: name, Own: all[name], Initialized: true, View: seats(names...), Leader: names[leader%3], Others: map[string]Member{}}
			for other, m := range all {
				if other != name && other != quiet {
					k.Others[other] = m
				}
			}
			if Enter(k).What != Begin {
				continue
			}
			began++
			for other, m := range all {
				if !all[name].Has.Contains(m.Has) {
					t.Errorf("%s begins with %q, and %s has %q", name, all[name].Has, other, m.Has)
				}
			}
		}
		if began > 1 || began > 0 && quiet != "" {
			t.Errorf("%d begin, while %q is silent", began, quiet)
		}
	})
}

// TestByName: a member of an earlier version checks the name in the certificate of who enters its group, which no address is.
func TestByName(t *testing.T) {
	earlier, present := Member{State: Grouped}, Member{State: Grouped, Addresses: true}
	for name, tc := range map[string]struct {
		reason string
		others map[string]Member
		want   bool
	}{
		"Present":  {"All take addresses.", map[string]Member{"a": present, "b": present}, false},
		"Earlier":  {"One does not.", map[string]Member{"a": present, "b": earlier}, true},
		"Outside":  {"One that is in no group lets nobody in.", map[string]Member{"a": present, "b": {State: Offline}}, false},
		"Starting": {"One that has no server yet says nothing of itself.", map[string]Member{"a": present, "b": {State: Starting}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ByName(tc.others); got != tc.want {
				t.Errorf("%s ByName is %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}
