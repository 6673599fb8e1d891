// SPDX-License-Identifier: Apache-2.0

package database

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

// leader, follower and others as views.
func leader(letter string) view {
	return member(letter, observev1alpha1.RoleLeader, observev1alpha1.MemberRunning)
}

func follower(letter string) view {
	return member(letter, observev1alpha1.RoleSyncStandby, observev1alpha1.MemberStreaming)
}

func member(letter, role, state string) view {
	return view{letter: letter, name: "db-" + letter, exists: true, expected: true, current: true, settled: true, TopologyMember: observev1alpha1.TopologyMember{
		Name: "db-" + letter, Role: role, State: state, Ready: true, Lag: observev1alpha1.LagInSync,
	}}
}

func (v view) outdated() view { v.current = false; return v }
func (v view) surplus() view  { v.expected = false; return v }

func (v view) behind() view { v.Lag = observev1alpha1.LagBehind; return v }

func (v view) starting() view {
	v.Ready, v.State, v.Role = false, observev1alpha1.MemberStarting, ""
	return v
}

func (v view) stuck(reason string) view {
	v = v.starting()
	v.Reason, v.Message = reason, "it says why"
	return v
}

func (v view) unsettled() view { v.settled = false; return v }

func (v view) pending() view { v.PendingRestart = []string{"max_connections"}; return v }

func situated(views ...view) situation {
	return situation{
		views: views, known: true, synchronous: true, applied: true,
		leads: slices.ContainsFunc(views, func(v view) bool { return v.leading() }),
	}
}

func TestDecide(t *testing.T) {
	const awaits = v1alpha1.ReasonAwaitingStandby
	for name, tc := range map[string]struct {
		reason string
		sit    situation
		want   order
	}{
		"Done": {
			reason: "With every member as asked nothing happens.",
			sit:    situated(leader("a"), follower("b"), follower("c")),
			want:   order{done: true},
		},
		"FollowersFirst": {
			reason: "A follower comes before the leader.",
			sit:    situated(leader("a").outdated(), follower("b").outdated(), follower("c").outdated()),
			want:   order{change: "b", reason: v1alpha1.ReasonRestarting},
		},
		"OneAtATime": {
			reason: "While the one that was changed starts, nobody else is touched.",
			sit:    situated(leader("a").outdated(), follower("b").starting(), follower("c").outdated()),
			want:   order{reason: awaits},
		},
		"NotSettled": {
			reason: "Nor while its former pod still runs.",
			sit:    situated(leader("a").outdated(), follower("b").unsettled(), follower("c").outdated()),
			want:   order{reason: awaits},
		},
		"Lagging": {
			reason: "Nor before it has every commit.",
			sit:    situated(leader("a").outdated(), follower("b").behind(), follower("c").outdated()),
			want:   order{reason: awaits},
		},
		"LeaderLast": {
			reason: "With all followers changed the leader is, and hands over.",
			sit:    situated(leader("a").outdated(), follower("b"), follower("c")),
			want:   order{change: "a", reason: v1alpha1.ReasonRestarting},
		},
		"LeaderWithoutSuccessor": {
			reason: "The leader waits while whoever could follow it is on a node that is being emptied.",
			sit: situated(leader("a").outdated(), func() view {
				v := follower("b")
				v.Cordoned = true
				return v
			}()),
			want: order{reason: awaits},
		},
		"LeaderWithoutSynchronousStandby": {
			reason: "And while no member is sure to have every commit.",
			sit:    situated(leader("a").outdated(), member("b", observev1alpha1.RoleReplica, observev1alpha1.MemberStreaming)),
			want:   order{reason: awaits},
		},
		"Single": {
			reason: "A single member is changed, because there is nobody to wait for.",
			sit:    situated(leader("a").outdated()),
			want:   order{change: "a", reason: v1alpha1.ReasonRestarting},
		},
		"Failed": {
			reason: "A change that hinders a member is not tried on the next.",
			sit:    situated(leader("a").outdated(), follower("b").stuck("ImagePullFailed"), follower("c").outdated()),
			want:   order{reason: "ImagePullFailed", failed: true},
		},
		"FailedIsCorrected": {
			reason: "Another edit reaches the hindered one first.",
			sit:    situated(leader("a").outdated(), follower("b").stuck("ImagePullFailed").outdated(), follower("c").outdated()),
			want:   order{change: "b", reason: v1alpha1.ReasonRestarting},
		},
		"LostNode": {
			reason: "A member that is lost for another reason holds the change up.",
			sit:    situated(leader("a").outdated(), follower("b").outdated(), follower("c").stuck("Unschedulable")),
			want:   order{reason: "Unschedulable", failed: true},
		},
		"Unknown": {
			reason: "Without a word of the Topology nothing happens.",
			sit:    situation{views: []view{leader("a").outdated()}},
			want:   order{reason: v1alpha1.ReasonAwaitingTopology},
		},
		"Paused": {
			reason: "A paused cluster would not fail over.",
			sit: func() situation {
				s := situated(leader("a").outdated(), follower("b").outdated())
				s.paused = true
				return s
			}(),
			want: order{reason: v1alpha1.ReasonPaused},
		},
		"AllDownByTheSpec": {
			reason: "When nobody leads, who is hindered is changed, because nobody is lost by it.",
			sit:    situated(follower("a").stuck("CrashLooping").outdated(), follower("b").stuck("CrashLooping").outdated()),
			want:   order{change: "a", reason: v1alpha1.ReasonRestarting},
		},
		"AllDownNext": {
			reason: "And then the next, even if the first waits for it.",
			sit:    situated(follower("a").starting(), follower("b").stuck("CrashLooping").outdated()),
			want:   order{change: "b", reason: v1alpha1.ReasonRestarting},
		},
		"FailoverUnderWay": {
			reason: "A member that is about to lead is left alone.",
			sit:    situated(follower("a").starting().outdated(), follower("b").outdated()),
			want:   order{reason: awaits},
		},
		"Shrink": {
			reason: "The last letter goes first.",
			sit:    situated(leader("a"), follower("b").surplus(), follower("c").surplus()),
			want:   order{remove: "c", reason: v1alpha1.ReasonRemoving},
		},
		"ShrinkWithoutStandby": {
			reason: "Nobody goes while one that stays is not well.",
			sit:    situated(leader("a"), follower("b").starting(), follower("c").surplus()),
			want:   order{reason: awaits},
		},
		"ShrinkBeforeConfiguration": {
			reason: "Nor before Patroni knows that commits wait for nobody.",
			sit:    func() situation { s := situated(leader("a"), follower("b").surplus()); s.applied = false; return s }(),
			want:   order{reason: awaits},
		},
		"ShrinkOneByOne": {
			reason: "Nor while the one before is on its way out.",
			sit: func() situation {
				s := situated(leader("a"), follower("b").surplus())
				s.strangers = []string{"db-c"}
				return s
			}(),
			want: order{reason: awaits},
		},
		"StartedOnceMore": {
			reason: "A parameter that a follower has only after its leader takes another start.",
			sit:    situated(leader("a"), follower("b").pending(), follower("c").pending()),
			want:   order{change: "b", again: true, reason: v1alpha1.ReasonRestarting},
		},
		"StartedOnceMoreOnly": {
			reason: "And that once.",
			sit: situated(leader("a"), func() view {
				v := follower("b").pending()
				v.restarted = true
				return v
			}()),
			want: order{done: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.sit.decide()
			got.message = ""
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(order{})); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestDecideProperties holds orders in random situations to what must never happen, whatever was observed.
func TestDecideProperties(t *testing.T) {
	for seed := range uint64(20000) {
		sit := random(rand.New(rand.NewPCG(seed, 1)))
		o := sit.decide()
		if o.change != "" && o.remove != "" {
			t.Fatalf("seed %d: %s is changed and %s removed at once", seed, o.change, o.remove)
		}
		touched := o.change + o.remove
		if touched == "" {
			continue
		}
		i := slices.IndexFunc(sit.views, func(v view) bool { return v.letter == touched })
		if i < 0 || !sit.views[i].exists {
			t.Fatalf("seed %d: %q is touched and does not exist", seed, touched)
		}
		for _, broken := range broken(sit, o, sit.views[i]) {
			t.Fatalf("seed %d: %s\n%+v\n%+v", seed, broken, o, sit)
		}
	}
}

// broken rules of an order.
func broken(sit situation, o order, touched view) []string {
	var words []string
	say := func(is bool, format string, args ...any) {
		if is {
			words = append(words, fmt.Sprintf(format, args...))
		}
	}
	well := 0
	for _, v := range sit.views {
		if v.letter == touched.letter {
			continue
		}
		if v.healthy() {
			well++
		}

		// The one that was changed before is well again, unless nobody leads.
		say(v.exists && v.current && sit.leads && !v.healthy() && o.change != "", "%s was changed and is not well", v.letter)
		say(touched.Ready && v.expected && !v.healthy(), "%s serves and is touched while %s is not well", touched.letter, v.letter)
		say(touched.leading() && o.change != "" && v.exists && !v.current && !v.healthy(), "the leader is changed before %s", v.letter)
	}
	say(!sit.known, "it is not known how members are")
	say(sit.paused, "failover is paused")
	say(touched.leading() && len(sit.views) > 1 && well == 0, "the leader is touched with nobody to follow it")
	say(o.remove != "" && (!sit.leads || !sit.applied || len(sit.strangers) > 0), "a member is let go too early")
	say(o.remove != "" && touched.expected, "a member is let go that should be there")
	say(o.change != "" && touched.current && !o.again, "a member is changed that is as asked")
	return words
}

func random(r *rand.Rand) situation {
	sit := situation{known: r.IntN(10) > 0, paused: r.IntN(20) == 0, synchronous: r.IntN(2) == 0, applied: r.IntN(4) > 0}
	if r.IntN(6) == 0 {
		sit.strangers = []string{"db-z"}
	}
	n, expected := 1+r.IntN(5), 1+r.IntN(5)
	led := r.IntN(5) == 0
	for i := range max(n, expected) {
		v := follower(letters[i])
		v.exists, v.expected = i < n && r.IntN(12) > 0, i < expected
		v.current, v.settled = v.exists && r.IntN(2) == 0, v.exists && r.IntN(6) > 0
		v.restarted = r.IntN(2) == 0
		if !v.exists && !v.expected {
			continue
		}
		switch x := r.IntN(12); {
		case x < 3 && !led && v.exists:
			role := leader(v.letter)
			v.TopologyMember, led = role.TopologyMember, true
			sit.leads = true
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
		sit.views = append(sit.views, v)
	}
	return sit
}

// TestUpdated: a change is over once every member runs what it was told and was well with it. A member that is lost later undoes
// no change.
func TestUpdated(t *testing.T) {
	// The last member of a change is the one that led, orders-db-a.
	set := func(w *world) map[string]any {
		return compose.Map(w.request.Observed[nameMemberPrefix+"a"].Map(), "status")
	}
	seen := func(w *world) map[string]any {
		m, _ := compose.List(w.request.Observed[nameTopology].Map(), "status", "atProvider", "members")[0].(map[string]any)
		return m
	}
	gone := func(w *world) {
		delete(seen(w), "revision")
		delete(seen(w), "role")
		seen(w)["ready"], seen(w)["state"] = false, observev1alpha1.MemberStarting
	}
	for name, tc := range map[string]struct {
		reason  string
		before  string
		observe func(*world)
		want    []string
	}{
		"Well":          {"Every member runs it and is well.", "False", func(*world) {}, []string{"True", "Updated"}},
		"OtherRevision": {"The pod is the one before.", "False", func(w *world) { seen(w)["revision"] = "before" }, []string{"False", "AwaitingStandby"}},
		"OtherRevisionUnheard": {
			"The pod is the one before, although it was not told yet that the change began.", "True",
			func(w *world) { seen(w)["revision"] = "before" },
			[]string{"False", "AwaitingStandby"},
		},
		"NotLookedAt": {
			"The controller has not seen the template yet.", "True",
			func(w *world) { set(w)["observedGeneration"] = 0.0 },
			[]string{"False", "AwaitingStandby"},
		},
		"NotRolledOut": {
			"The pod before is gone, and the next one was not ready yet.", "True",
			func(w *world) { gone(w); set(w)["currentRevision"] = "before" },
			[]string{"False", "AwaitingStandby"},
		},
		"Gone":     {"Nobody knows whether the pod that comes runs it.", "False", gone, []string{"False", "AwaitingStandby"}},
		"Starting": {"It runs it and does not serve yet.", "False", func(w *world) { seen(w)["ready"] = false }, []string{"False", "AwaitingStandby"}},
		"Behind": {
			"It follows and does not have every commit yet.", "False", func(w *world) {
				seen(w)["role"], seen(w)["state"], seen(w)["lag"] = observev1alpha1.RoleReplica, observev1alpha1.MemberStreaming, observev1alpha1.LagBehind
			}, []string{"False", "AwaitingStandby"},
		},
		"Hindered": {
			"What hinders the last member is told as of any other.", "False", func(w *world) {
				gone(w)
				seen(w)["reason"], seen(w)["message"] = "Unschedulable", "no node has room"
			}, []string{"False", "Unschedulable"},
		},
		"LostLater": {"Its pod is lost after the change was over.", "True", gone, []string{"True", "Updated"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := running(t, basic)
			compose.Condition(w.request.Composite.Map(), "Updated")["status"] = tc.before
			tc.observe(w)
			status, reason, message := condition(w.plan(), "Updated")
			if diff := cmp.Diff(tc.want, []string{status, reason}); diff != "" {
				t.Errorf("%s\n%s\nUpdated: -want, +got:\n%s", tc.reason, message, diff)
			}
		})
	}
}
