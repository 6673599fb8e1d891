// SPDX-License-Identifier: Apache-2.0

package order

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/database/maintenance"
)

// having a situation changed.
func having(s Situation, change func(*Situation)) Situation {
	change(&s)
	return s
}

// TestGuards has a case for each rule that only keeps something from happening. hack/mutate removes them one by one.
func TestGuards(t *testing.T) {
	closed := maintenance.Gate{Reason: v1alpha1.ReasonFreezeWindow, Message: "closed"}
	outdated := func() Situation { return situated(leader("a").outdated(), follower("b").outdated()) }
	for name, tc := range map[string]struct {
		reason string
		sit    Situation
		want   Order
	}{
		"GateClosed": {
			reason: "No member that serves is touched while the gate is closed.",
			sit:    having(outdated(), func(s *Situation) { s.Gate = closed }),
			want:   Order{Reason: closed.Reason, Held: true},
		},
		"HooksNotDone": {
			reason: "Nor before the hooks of the change are done.",
			sit:    having(outdated(), func(s *Situation) { s.Hooks = closed }),
			want:   Order{Reason: closed.Reason, Held: true},
		},
		"RepairWhileClosed": {
			reason: "A member that does not serve is repaired all the same.",
			sit:    having(situated(leader("a"), follower("b").stuck("ImagePullFailed").outdated()), func(s *Situation) { s.Gate = closed }),
			want:   Order{Change: "b", Reason: v1alpha1.ReasonRestarting},
		},
		"LeaderMoves": {
			reason: "While the leader changes no member is touched.",
			sit:    having(outdated(), func(s *Situation) { s.Moving = true }),
			want:   Order{Reason: v1alpha1.ReasonSwitchingOver},
		},
		"Upgrade": {
			reason: "Nor while an upgrade has fenced the generation.",
			sit:    having(outdated(), func(s *Situation) { s.Handing = true }),
			want:   Order{Reason: v1alpha1.ReasonUpgradeSwitching, Held: true},
		},
		"LeaderWhileArchiveFails": {
			reason: "The leader does not hand over by Capstan's doing while changes wait on its volume for the archive.",
			sit:    having(situated(leader("a").outdated(), follower("b")), func(s *Situation) { s.Unarchived = "no connection" }),
			want:   Order{Reason: v1alpha1.ReasonAwaitingArchive, Held: true},
		},
		"StandbyWhileArchiveFails": {
			reason: "A standby has nothing to archive.",
			sit:    having(outdated(), func(s *Situation) { s.Unarchived = "no connection" }),
			want:   Order{Change: "b", Reason: v1alpha1.ReasonRestarting},
		},
		"SingleWhileArchiveFails": {
			reason: "A leader that is the only member leads again after its restart, with the same volume.",
			sit:    having(situated(leader("a").outdated()), func(s *Situation) { s.Unarchived = "no connection" }),
			want:   Order{Change: "a", Reason: v1alpha1.ReasonRestarting},
		},
		"BlockedWhileArchiveFails": {
			reason: "What does not serve is repaired all the same.",
			sit: having(situated(leader("a").stuck("ImagePullFailed").outdated(), follower("b")), func(s *Situation) {
				s.Unarchived = "no connection"
			}),
			want: Order{Change: "a", Reason: v1alpha1.ReasonRestarting},
		},
		"RemovedLeaderWhileArchiveFails": {
			reason: "A leader that is removed hands over, too.",
			sit:    having(situated(follower("a"), leader("b").surplus()), func(s *Situation) { s.Unarchived = "no connection" }),
			want:   Order{Reason: v1alpha1.ReasonAwaitingArchive, Held: true},
		},
		"RemovedStandbyWhileArchiveFails": {
			reason: "A standby that is removed takes nothing with it.",
			sit:    having(situated(leader("a"), follower("b"), follower("c").surplus()), func(s *Situation) { s.Unarchived = "no connection" }),
			want:   Order{Remove: "c", Reason: v1alpha1.ReasonRemoving},
		},
		"HibernateStandbysFirst": {
			reason: "The leader stops last, with every commit.",
			sit:    having(situated(leader("a"), follower("b"), follower("c")), func(s *Situation) { s.Hibernated = true }),
			want:   Order{Reason: v1alpha1.ReasonHibernating, Stop: []string{"b", "c"}},
		},
		"HibernateWaitsForPods": {
			reason: "It waits until the pods of the others have ended.",
			sit: having(situated(leader("a"), ending(follower("b"))), func(s *Situation) {
				s.Hibernated = true
			}),
			want: Order{Reason: v1alpha1.ReasonHibernating},
		},
		"HibernateWithoutLeader": {
			reason: "Where the report of the leader is not sure, none stops.",
			sit: having(situated(leader("a"), follower("b")), func(s *Situation) {
				s.Hibernated, s.HasLeader = true, false
			}),
			want: Order{Reason: v1alpha1.ReasonNoLeader},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.sit.Decide()
			got.Message = ""
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(Order{})); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// ending pod of a member that is stopped.
func ending(v View) View {
	v.Stopped, v.Node = true, "node"
	return v
}

// TestCandidates are the members that a switchover may choose.
func TestCandidates(t *testing.T) {
	replica := member("b", observev1alpha1.RoleReplica, observev1alpha1.MemberStreaming)
	cordoned := follower("b")
	cordoned.Cordoned = true
	for name, tc := range map[string]struct {
		reason string
		sit    Situation
		want   string
	}{
		"SynchronousStandby": {"It has every commit.", situated(leader("a"), follower("b"), follower("c")), "db-b"},
		"Replica":            {"Where commits wait for others, a member that they do not wait for may lack some.", situated(leader("a"), replica, follower("c")), "db-c"},
		"Asynchronous":       {"Where they do not, every member is as good.", having(situated(leader("a"), replica), func(s *Situation) { s.synchronous = false }), "db-b"},
		"Cordoned":           {"A node that is being emptied takes no leader.", situated(leader("a"), cordoned, follower("c")), "db-c"},
		"Behind":             {"A member without every commit is none.", situated(leader("a"), follower("b").behind(), follower("c")), "db-c"},
		"Surplus":            {"Nor is one that will be removed.", situated(leader("a"), follower("b").surplus(), follower("c")), "db-c"},
	} {
		t.Run(name, func(t *testing.T) {
			i := slices.IndexFunc(tc.sit.Views, tc.sit.CanLead)
			if got, why := tc.sit.Candidate("db-a", ""); got != tc.want || i < 0 {
				t.Errorf("%s: want %s, got %q: %s", tc.reason, tc.want, got, why)
			}
		})
	}
}
