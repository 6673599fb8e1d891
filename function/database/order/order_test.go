// SPDX-License-Identifier: Apache-2.0

package order

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/database/names"
)

// leader, follower and others as views.
func leader(letter string) View {
	return member(letter, observev1alpha1.RoleLeader, observev1alpha1.MemberRunning)
}

func follower(letter string) View {
	return member(letter, observev1alpha1.RoleSyncStandby, observev1alpha1.MemberStreaming)
}

func member(letter, role, state string) View {
	return View{letter: letter, Name: "db-" + letter, Exists: true, Expected: true, Current: true, Settled: true, TopologyMember: observev1alpha1.TopologyMember{
		Name: "db-" + letter, Role: role, State: state, Ready: true, Lag: observev1alpha1.LagInSync,
	}}
}

func (v View) outdated() View { v.Current = false; return v }

func (v View) surplus() View { v.Expected = false; return v }

func (v View) behind() View { v.Lag = observev1alpha1.LagBehind; return v }

func (v View) starting() View {
	v.Ready, v.State, v.Role = false, observev1alpha1.MemberStarting, ""
	return v
}

func (v View) stuck(reason string) View {
	v = v.starting()
	v.Reason, v.Message = reason, "it says why"
	return v
}

func (v View) parted() View {
	v.Reason, v.Message = string(v1alpha1.ReasonMembersApart), "it says why"
	return v
}

func (v View) unready() View { v.Ready = false; return v }

func (v View) unsettled() View { v.Settled = false; return v }

func (v View) pending() View { v.PendingRestart = []string{"max_connections"}; return v }

func situated(views ...View) Situation {
	return Situation{
		Views: views, Known: true, synchronous: true, Applied: true,
		HasLeader: slices.ContainsFunc(views, func(v View) bool { return v.Leading() }),
	}
}

func TestDecide(t *testing.T) {
	const awaits = v1alpha1.ReasonAwaitingStandby
	for name, tc := range map[string]struct {
		reason string
		sit    Situation
		want   Order
	}{
		"Done": {
			reason: "With every member as asked nothing happens.",
			sit:    situated(leader("a"), follower("b"), follower("c")),
			want:   Order{Done: true},
		},
		"FollowersFirst": {
			reason: "A follower comes before the leader.",
			sit:    situated(leader("a").outdated(), follower("b").outdated(), follower("c").outdated()),
			want:   Order{Change: "b", Reason: v1alpha1.ReasonRestarting},
		},
		"OneAtATime": {
			reason: "While the one that was changed starts, nobody else is touched.",
			sit:    situated(leader("a").outdated(), follower("b").starting(), follower("c").outdated()),
			want:   Order{Reason: awaits},
		},
		"NotSettled": {
			reason: "Nor while its former pod still runs.",
			sit:    situated(leader("a").outdated(), follower("b").unsettled(), follower("c").outdated()),
			want:   Order{Reason: awaits},
		},
		"Lagging": {
			reason: "Nor before it has every commit.",
			sit:    situated(leader("a").outdated(), follower("b").behind(), follower("c").outdated()),
			want:   Order{Reason: awaits},
		},
		"Apart": {
			reason: "Nor while standbys do not hear from each other: without the leader they would be no majority.",
			sit:    situated(leader("a").outdated(), follower("b").parted(), follower("c").parted()),
			want:   Order{Reason: awaits},
		},
		"ApartOutdated": {
			reason: "Nor is a standby changed then.",
			sit:    situated(leader("a"), follower("b"), follower("c").parted().outdated()),
			want:   Order{Reason: awaits},
		},
		"ApartNotReady": {
			reason: "Nor one of them that receives too little, and has no clients: it counts for the majority.",
			sit:    situated(leader("a").outdated(), follower("b").parted().outdated(), follower("c").parted().unready().outdated()),
			want:   Order{Reason: awaits},
		},
		"ApartCurrent": {
			reason: "That is no failed step.",
			sit:    situated(leader("a").outdated(), follower("b").outdated(), follower("c").parted().unready()),
			want:   Order{Reason: awaits},
		},
		"LeaderLast": {
			reason: "With all followers changed the leader is, and hands over.",
			sit:    situated(leader("a").outdated(), follower("b"), follower("c")),
			want:   Order{Change: "a", Reason: v1alpha1.ReasonRestarting},
		},
		"LeaderWithoutSuccessor": {
			reason: "The leader waits while whoever could follow it is on a node that is being emptied.",
			sit: situated(leader("a").outdated(), func() View {
				v := follower("b")
				v.Cordoned = true
				return v
			}()),
			want: Order{Reason: awaits},
		},
		"LeaderWithoutSynchronousStandby": {
			reason: "And while no member is sure to have every commit.",
			sit:    situated(leader("a").outdated(), member("b", observev1alpha1.RoleReplica, observev1alpha1.MemberStreaming)),
			want:   Order{Reason: awaits},
		},
		"Single": {
			reason: "A single member is changed, because there is nobody to wait for.",
			sit:    situated(leader("a").outdated()),
			want:   Order{Change: "a", Reason: v1alpha1.ReasonRestarting},
		},
		"Failed": {
			reason: "A change that blocks a member is not tried on the next.",
			sit:    situated(leader("a").outdated(), follower("b").stuck("ImagePullFailed"), follower("c").outdated()),
			want:   Order{Reason: "ImagePullFailed", Failed: true},
		},
		"FailedIsCorrected": {
			reason: "Another edit reaches the blocked one first.",
			sit:    situated(leader("a").outdated(), follower("b").stuck("ImagePullFailed").outdated(), follower("c").outdated()),
			want:   Order{Change: "b", Reason: v1alpha1.ReasonRestarting},
		},
		"LostNode": {
			reason: "A member that is lost for another reason holds the change up.",
			sit:    situated(leader("a").outdated(), follower("b").outdated(), follower("c").stuck("Unschedulable")),
			want:   Order{Reason: "Unschedulable", Failed: true},
		},
		"Unknown": {
			reason: "Without a word of the Topology nothing happens.",
			sit:    Situation{Views: []View{leader("a").outdated()}},
			want:   Order{Reason: v1alpha1.ReasonAwaitingTopology},
		},
		"Paused": {
			reason: "A paused cluster would not fail over.",
			sit: func() Situation {
				s := situated(leader("a").outdated(), follower("b").outdated())
				s.Paused = true
				return s
			}(),
			want: Order{Reason: v1alpha1.ReasonPaused},
		},
		"AllDownByTheSpec": {
			reason: "When nobody leads, who is blocked is changed, because nobody is lost by it.",
			sit:    situated(follower("a").stuck("CrashLooping").outdated(), follower("b").stuck("CrashLooping").outdated()),
			want:   Order{Change: "a", Reason: v1alpha1.ReasonRestarting},
		},
		"AllDownNext": {
			reason: "And then the next, even if the first waits for it.",
			sit:    situated(follower("a").starting(), follower("b").stuck("CrashLooping").outdated()),
			want:   Order{Change: "b", Reason: v1alpha1.ReasonRestarting},
		},
		"FailoverUnderWay": {
			reason: "A member that is about to lead is left alone.",
			sit:    situated(follower("a").starting().outdated(), follower("b").outdated()),
			want:   Order{Reason: awaits},
		},
		"Shrink": {
			reason: "The last letter goes first.",
			sit:    situated(leader("a"), follower("b").surplus(), follower("c").surplus()),
			want:   Order{Remove: "c", Reason: v1alpha1.ReasonRemoving},
		},
		"ShrinkWithoutStandby": {
			reason: "Nobody goes while one that stays is not well.",
			sit:    situated(leader("a"), follower("b").starting(), follower("c").surplus()),
			want:   Order{Reason: awaits},
		},
		"ShrinkBeforeConfiguration": {
			reason: "Nor before Patroni knows that commits wait for nobody.",
			sit:    func() Situation { s := situated(leader("a"), follower("b").surplus()); s.Applied = false; return s }(),
			want:   Order{Reason: awaits},
		},
		"ShrinkOneByOne": {
			reason: "Nor while the one before is on its way out.",
			sit: func() Situation {
				s := situated(leader("a"), follower("b").surplus())
				s.Leaving = []string{"db-c"}
				return s
			}(),
			want: Order{Reason: awaits},
		},
		"StartedOnceMore": {
			reason: "A parameter that a follower has only after its leader takes another start.",
			sit:    situated(leader("a"), follower("b").pending(), follower("c").pending()),
			want:   Order{Change: "b", Again: true, Reason: v1alpha1.ReasonRestarting},
		},
		"StartedOnceMoreOnly": {
			reason: "And that once.",
			sit: situated(leader("a"), func() View {
				v := follower("b").pending()
				v.restarted = true
				return v
			}()),
			want: Order{Done: true},
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

// TestDecideProperties holds orders in random situations to what must never happen, whatever was observed.
func TestDecideProperties(t *testing.T) {
	for seed := range uint64(20000) {
		sit := random(rand.New(rand.NewPCG(seed, 1)))
		o := sit.Decide()
		if o.Change != "" && o.Remove != "" {
			t.Fatalf("seed %d: %s is changed and %s removed at once", seed, o.Change, o.Remove)
		}
		touched := o.Change + o.Remove
		if touched == "" {
			continue
		}
		i := slices.IndexFunc(sit.Views, func(v View) bool { return v.letter == touched })
		if i < 0 || !sit.Views[i].Exists {
			t.Fatalf("seed %d: %q is touched and does not exist", seed, touched)
		}
		for _, broken := range broken(sit, o, sit.Views[i]) {
			t.Fatalf("seed %d: %s\n%+v\n%+v", seed, broken, o, sit)
		}
	}
}

// broken rules of an order.
func broken(sit Situation, o Order, touched View) []string {
	var words []string
	say := func(is bool, format string, args ...any) {
		if is {
			words = append(words, fmt.Sprintf(format, args...))
		}
	}
	well := 0
	for _, v := range sit.Views {
		if v.letter == touched.letter {
			continue
		}
		if v.Healthy() {
			well++
		}

		// The one that was changed before is well again, unless nobody leads.
		say(v.Exists && v.Current && sit.HasLeader && !v.Healthy() && o.Change != "", "%s was changed and is not well", v.letter)
		say(touched.Ready && v.Expected && !v.Healthy(), "%s serves and is touched while %s is not well", touched.letter, v.letter)
		say(touched.Leading() && o.Change != "" && v.Exists && !v.Current && !v.Healthy(), "the leader is changed before %s", v.letter)
	}
	say(!sit.Known, "it is not known how members are")
	say(sit.Paused, "failover is paused")
	say(touched.Leading() && len(sit.Views) > 1 && well == 0, "the leader is touched with nobody to follow it")
	say(o.Remove != "" && (!sit.HasLeader || !sit.Applied || len(sit.Leaving) > 0), "a member is removed too early")
	say(o.Remove != "" && touched.Expected, "a member is removed that should be there")
	say(o.Change != "" && touched.Current && !o.Again, "a member is changed that is as asked")
	return words
}

func random(r *rand.Rand) Situation {
	sit := Situation{Known: r.IntN(10) > 0, Paused: r.IntN(20) == 0, synchronous: r.IntN(2) == 0, Applied: r.IntN(4) > 0}
	if r.IntN(6) == 0 {
		sit.Leaving = []string{"db-z"}
	}
	n, expected := 1+r.IntN(5), 1+r.IntN(5)
	led := r.IntN(5) == 0
	for i := range max(n, expected) {
		v := follower(names.Letters[i])
		v.Exists, v.Expected = i < n && r.IntN(12) > 0, i < expected
		v.Current, v.Settled = v.Exists && r.IntN(2) == 0, v.Exists && r.IntN(6) > 0
		v.restarted = r.IntN(2) == 0
		if !v.Exists && !v.Expected {
			continue
		}
		switch x := r.IntN(12); {
		case x < 3 && !led && v.Exists:
			role := leader(v.letter)
			v.TopologyMember, led = role.TopologyMember, true
			sit.HasLeader = true
		case x == 3:
			v = v.starting()
		case x == 4:
			v = v.stuck("CrashLooping")
		case x == 5:
			v = v.behind()
		case x == 6:
			v.Role = observev1alpha1.RoleReplica
		}
		if r.IntN(6) == 0 {
			v = v.pending()
		}
		v.Cordoned = r.IntN(8) == 0
		sit.Views = append(sit.Views, v)
	}
	return sit
}
