// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capstan-dev/capstan/apis/members"
)

// now in these tests, and the end of a fence that begins now.
var (
	now   = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	until = now.Add(3 * time.Minute)
)

// asked is an object with a fence for the second generation, and a record in a state.
func asked(state string, change ...func(*Object)) Object {
	o := Object{ID: "u1", To: "orders.g2", Limit: 3 * time.Minute, Paused: true}
	if state != "" {
		o.Record = members.FenceRecord{ID: "u1", To: "orders.g2", State: state}
	}
	if state == members.FenceHeld {
		o.Record.Until = &until
	}
	for _, c := range change {
		c(&o)
	}
	return o
}

// open is an object without a fence, and a record that says why.
func open(why string) Object {
	return Object{Record: members.FenceRecord{ID: "u1", To: "orders.g2", State: members.FenceWithdrawn, Why: why}}
}

func TestSettle(t *testing.T) {
	withdraw := func(o *Object) { o.Withdraw = true }
	late := func(o *Object) { o.Record.Until = &now }
	earlier := func(o *Object) { o.To, o.Limit = "", 0 }
	for name, tc := range map[string]struct {
		reason string
		object Object
		want   Object
		writes bool
		force  string
	}{
		"Nothing":         {"There is no fence.", Object{}, Object{}, false, ""},
		"NoPause":         {"Without a pause another member would be promoted.", Object{ID: "u1", To: "orders.g2"}, Object{ID: "u1", To: "orders.g2"}, false, ""},
		"First":           {"It has an end from the first moment on.", asked(""), asked(members.FenceHeld), true, "u1"},
		"Offered":         {"As one that was offered.", asked(members.FenceOffered), asked(members.FenceHeld), true, "u1"},
		"Held":            {"The other generation has time.", asked(members.FenceHeld), asked(members.FenceHeld), false, "u1"},
		"Late":            {"The time is over.", asked(members.FenceHeld, late), open("orders.g2 did not take over by 2026-11-25T12:00:00Z: see the log of its first member"), true, ""},
		"Asked":           {"Capstan asks for the end.", asked(members.FenceHeld, withdraw), open(givenUp), true, ""},
		"AskedAtOnce":     {"Also when no member knew of the fence before.", asked("", withdraw), open(givenUp), true, ""},
		"Committed":       {"The other generation serves, whatever is asked.", asked(members.FenceCommitted, withdraw), asked(members.FenceCommitted, withdraw), false, "u1"},
		"Again":           {"What Crossplane wrote before it knew is removed.", asked(members.FenceWithdrawn), open(""), true, ""},
		"EarlierFunction": {"A function that does not know of the record ends the fence itself.", asked("", earlier), asked("", earlier), false, "u1"},
		"OtherUpgrade": {
			"A record of an earlier upgrade is no decision about this one.",
			asked("", func(o *Object) {
				o.Record = members.FenceRecord{ID: "u1", To: "orders.g1", State: members.FenceWithdrawn}
			}), asked(members.FenceHeld), true, "u1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, writes := tc.object.Settle(now)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nSettle(): -want, +got:\n%s", tc.reason, diff)
			}
			if writes != tc.writes || got.InForce() != tc.force {
				t.Errorf("%s\nSettle() writes %t, in force %q", tc.reason, writes, got.InForce())
			}
		})
	}
}

func TestLater(t *testing.T) {
	commit := func(o Object) (Object, bool, error) { return o.Commit("u1", "orders.g2") }
	offer := func(o Object) (Object, bool, error) { return o.Offer("u1", "orders.g2") }
	giveUp := func(o Object) (Object, bool, error) {
		next, changed := o.GiveUp("u1", "orders.g2", "why")
		return next, changed, nil
	}
	idle := func(state string) Object { return Object{Record: asked(state).Record} }
	of := func(to string) Object {
		return Object{Record: members.FenceRecord{ID: "u1", To: to, State: members.FenceOffered}}
	}
	for name, tc := range map[string]struct {
		reason string
		does   func(Object) (Object, bool, error)
		object Object
		want   Object
		writes bool
		err    error
	}{
		"Offer":      {"It says that it asks.", offer, Object{}, idle(members.FenceOffered), true, nil},
		"OfferAgain": {"Once.", offer, idle(members.FenceWithdrawn), idle(members.FenceWithdrawn), false, nil},
		"OfferLate":  {"Not in a fence that members hold without it.", offer, asked(""), asked(""), false, ErrTaken},
		"OfferAfterWithdrawn": {
			"A fence that was withdrawn is over, also while it is desired still: otherwise the next one would have no end.",
			func(o Object) (Object, bool, error) { return o.Offer("u2", "orders.g3") },
			asked(members.FenceWithdrawn),
			Object{Record: members.FenceRecord{ID: "u2", To: "orders.g3", State: members.FenceOffered}},
			true, nil,
		},
		"OfferAfterCommitted": {
			"The former generation stays stopped.", func(o Object) (Object, bool, error) { return o.Offer("u2", "orders.g3") },
			asked(members.FenceCommitted), asked(members.FenceCommitted), false, ErrTaken,
		},
		"OfferAfterLater":  {"A generation that was forgotten takes nothing from a later one.", offer, of("orders.g10"), of("orders.g10"), false, ErrTaken},
		"OfferAfterFormer": {"A later one takes over.", offer, of("orders.g1"), of("orders.g2"), true, nil},
		"Commit":           {"The fence is held.", commit, asked(members.FenceHeld), asked(members.FenceCommitted), true, nil},
		"CommitAgain":      {"It serves after a restart, too.", commit, idle(members.FenceCommitted), idle(members.FenceCommitted), false, nil},
		"CommitWithdrawn":  {"The former generation serves.", commit, asked(members.FenceWithdrawn), asked(members.FenceWithdrawn), false, ErrWithdrawn},
		"CommitUnfenced":   {"The former generation is not fenced.", commit, idle(members.FenceHeld), idle(members.FenceHeld), false, ErrOpen},
		"CommitAsked": {
			"Capstan asked for the end.", commit, asked(members.FenceHeld, func(o *Object) { o.Withdraw = true }),
			asked(members.FenceHeld, func(o *Object) { o.Withdraw = true }), false, ErrOpen,
		},
		"CommitForAnother": {"The fence is for another one.", commit, of("orders.g3"), of("orders.g3"), false, ErrTaken},
		"GiveUp":           {"The former generation continues at once.", giveUp, asked(members.FenceHeld), open("why"), true, nil},
		"GiveUpBefore":     {"It will not be fenced for this.", giveUp, idle(members.FenceOffered), open("why"), true, nil},
		"GiveUpLate":       {"What serves cannot give up.", giveUp, asked(members.FenceCommitted), asked(members.FenceCommitted), false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, writes, err := tc.does(tc.object)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if writes != tc.writes || !errors.Is(err, tc.err) {
				t.Errorf("%s\nwrites %t, error %v", tc.reason, writes, err)
			}
		})
	}
}
