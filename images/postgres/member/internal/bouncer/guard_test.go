// SPDX-License-Identifier: Apache-2.0

package bouncer

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestGuard(t *testing.T) {
	type event struct {
		after time.Duration // since the event before
		ask   bool
		sight Sight
	}
	leads := func(server string) Sight { return Sight{Serves, server} }
	gone, silent, unclear, answers := Sight{Outlook: Gone}, Sight{Outlook: Silent}, Sight{}, Sight{Outlook: Answers}
	for name, tc := range map[string]struct {
		reason string
		events []event
		want   []Action
	}{
		"Handover": {
			"Clients wait from the word of the leader until another leads, not while the old one still answers.",
			[]event{{0, false, leads("a")}, {time.Second, true, Sight{}}, {0, false, leads("a")}, {time.Second, false, gone}, {time.Second, false, leads("b")}},
			[]Action{Nothing, Hold, Nothing, Nothing, Release},
		},
		"Restart": {
			"A leader that starts again is another server.",
			[]event{{0, false, leads("a")}, {0, true, Sight{}}, {time.Second, false, gone}, {time.Second, false, leads("a, started again")}},
			[]Action{Nothing, Hold, Nothing, Release},
		},
		"NoStop": {
			"A leader that does not stop after all is not waited for, and not believed again at once.",
			[]event{{0, false, leads("a")}, {0, true, Sight{}}, {HandoverLimit, false, leads("a")}, {time.Second, true, Sight{}}, {Rest, true, Sight{}}},
			[]Action{Nothing, Hold, Release, Nothing, Hold},
		},
		"AskedTwice": {
			"A second word does not make the wait longer.",
			[]event{{0, false, leads("a")}, {0, true, Sight{}}, {HandoverLimit / 2, true, Sight{}}, {HandoverLimit / 2, false, leads("a")}},
			[]Action{Nothing, Hold, Nothing, Release},
		},
		"NoOther": {
			"When no other leads, the wait is that of a loss, from its beginning.",
			[]event{{0, false, leads("a")}, {0, true, Sight{}}, {HandoverLimit, false, gone}, {LossLimit - HandoverLimit, false, gone}, {time.Second, false, gone}, {time.Second, false, leads("b")}},
			[]Action{Nothing, Hold, Nothing, Release, Nothing, Renew},
		},
		"Loss": {
			"Clients of a leader that is gone wait until one leads.",
			[]event{{0, false, leads("a")}, {time.Second, false, gone}, {time.Second, false, gone}, {time.Second, false, leads("b")}},
			[]Action{Nothing, Hold, Nothing, Release},
		},
		"LossForLong": {
			"After a while they are told, and wait again only after there was a leader.",
			[]event{{0, false, leads("a")}, {0, false, gone}, {LossLimit, false, gone}, {time.Second, false, gone}, {time.Second, false, leads("b")}, {time.Second, false, gone}},
			[]Action{Nothing, Hold, Release, Nothing, Renew, Hold},
		},
		"Silence": {
			"One that is slow is not lost; one that says nothing for long is.",
			[]event{{0, false, leads("a")}, {0, false, silent}, {0, false, silent}, {0, false, leads("a")}, {0, false, silent}, {0, false, silent}, {0, false, silent}},
			[]Action{Nothing, Nothing, Nothing, Nothing, Nothing, Nothing, Hold},
		},
		"Unclear": {
			"From what cannot be told nothing follows.",
			[]event{{0, false, leads("a")}, {0, false, unclear}, {time.Hour, false, unclear}},
			[]Action{Nothing, Nothing, Nothing},
		},
		"Answers": {
			"A server that is there and takes no more connections is not waited for, unless it said that it stops.",
			[]event{{0, false, leads("a")}, {0, false, answers}, {0, false, gone}, {0, false, answers}, {0, true, Sight{}}, {0, false, answers}},
			[]Action{Nothing, Nothing, Hold, Release, Hold, Nothing},
		},
		"Unseen": {
			"Before a leader was seen there is nothing to wait for.",
			[]event{{0, false, gone}, {0, true, Sight{}}, {0, false, leads("a")}},
			[]Action{Nothing, Nothing, Nothing},
		},
		"ChangedUnseen": {
			"A leader that changed between two looks leaves connections to the old one.",
			[]event{{0, false, leads("a")}, {0, false, leads("b")}},
			[]Action{Nothing, Renew},
		},
		"HandoverInLoss": {
			"A word during a loss neither holds anybody twice nor makes the wait longer.",
			[]event{{0, false, leads("a")}, {0, false, gone}, {0, true, Sight{}}, {LossLimit, false, gone}},
			[]Action{Nothing, Hold, Nothing, Release},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, now := &Guard{}, time.Now()
			var got []Action
			for _, e := range tc.events {
				now = now.Add(e.after)
				if e.ask {
					got = append(got, g.Ask(now))
				} else {
					got = append(got, g.See(now, e.sight))
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestGuardAlwaysReleases: whatever is seen and asked, holds and releases alternate, and no wait outlasts its bound by more than
// the time between two looks. With every look that finds another leader than before, clients go on.
func TestGuardAlwaysReleases(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		g, now := &Guard{}, time.Now()
		var held time.Time
		for range 400 {
			now = now.Add(time.Duration(r.IntN(3000)) * time.Millisecond)
			var did Action
			asked := r.IntN(4) == 0
			s := Sight{Outlook: Outlook(r.IntN(5)), Server: string(rune('a' + r.IntN(3)))}
			if asked {
				did = g.Ask(now)
			} else {
				did = g.See(now, s)
			}
			switch {
			case did == Hold && !held.IsZero(), did == Release && held.IsZero(), did == Renew && !held.IsZero():
				t.Fatalf("seed %d: action %d while held is %t", seed, did, !held.IsZero())
			case did == Hold:
				held = now
			case did == Release:
				held = time.Time{}
			}
			if held.IsZero() != (g.Cause() == "") {
				t.Fatalf("seed %d: the cause is %q while held is %t", seed, g.Cause(), !held.IsZero())
			}
			if !asked && !held.IsZero() && now.Sub(held) > LossLimit {
				t.Fatalf("seed %d: clients wait for %s", seed, now.Sub(held))
			}
		}
	}
}
