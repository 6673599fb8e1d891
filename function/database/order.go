// SPDX-License-Identifier: Apache-2.0

package database

import (
	"fmt"
	"slices"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// An order is what happens to the members that exist in one pass: at most one of them is changed, restarted or removed.
type order struct {
	// change is the letter of the member that is given what the spec asks for, and again that it already was and is only started
	// once more.
	change string
	again  bool

	// remove is the letter of the member that is removed. Its volume stays.
	remove string

	// reason and message why it does not go on, when it does not; failed when it does not go on by itself.
	reason  xpv2.ConditionReason
	message string
	failed  bool

	// done reports that every member is as asked.
	done bool

	// held reports that it would go on, and may not now; until is when it is worth another look, if that is known.
	held  bool
	until time.Time

	// stop and start are members of a Database that is hibernated or wakes.
	stop, start []string
}

// touches reports whether members are changed in any way.
func (o order) touches() bool {
	return o.change != "" || o.remove != "" || len(o.stop) > 0 || len(o.start) > 0
}

// A view is what is known of one member that exists or should.
type view struct {
	observev1alpha1.TopologyMember

	letter, name string

	// exists reports whether its StatefulSet is there, and expected whether it should.
	exists, expected bool

	// current reports whether its StatefulSet is as the spec asks, and restarted that it was started once more since.
	current, restarted bool

	// settled reports whether its pod is the one that its StatefulSet asks for, and rolling that one has yet to take the place of
	// another.
	settled, rolling bool

	// stopped reports that its StatefulSet asks for no pod, ledLast that it led when that began, and emptied that its controller
	// knows of none.
	stopped, ledLast, emptied bool
}

// leading member.
func (v view) leading() bool { return v.Role == observev1alpha1.RoleLeader }

// healthy member: it leads, or follows closely.
func (v view) healthy() bool {
	if !v.exists || !v.settled || !v.Ready {
		return false
	}
	if v.leading() {
		return v.State == observev1alpha1.MemberRunning
	}
	return v.State == observev1alpha1.MemberStreaming && v.Lag == observev1alpha1.LagInSync
}

// hindered member: it does not serve, and that does not pass by itself.
func (v view) hindered() bool { return !v.Ready && v.Reason != "" }

// A situation is what an order is given in.
type situation struct {
	views []view

	// known reports whether the Topology has told, and leads that a member leads.
	known, leads, paused bool

	// resume says how a person ends a pause.
	resume string

	// synchronous reports that a commit waits for another member.
	synchronous bool

	// applied reports whether members have the coordination that is desired, so that no commit waits for a member that is
	// removed.
	applied bool

	// strangers are members that are on their way out and still there.
	strangers []string

	// hibernated is what the spec asks for, and fenced what a restore does.
	hibernated, fenced bool

	// handing reports that an upgrade fences this generation: nothing happens to its members until clients are led away, or it
	// goes on.
	handing bool

	// moving reports that the leader was asked to hand over.
	moving bool

	// gate for members that serve, and freeze the part of it that holds everything.
	gate, freeze gate

	// hooks hold members that serve, too, as long as those before a change are not done.
	hooks gate
}

// decide what happens to the members. The rules: nothing while it is not known who leads; nobody that serves is touched unless
// all others are well; whoever was changed last is well again before the next; followers come before the leader, and those that
// do not serve anyway before those that do. Nobody that serves is touched while the gate is closed.
func (s situation) decide() order {
	switch {
	case s.fenced:
		return s.fence()
	case s.handing:
		return order{
			reason: v1alpha1.ReasonUpgradeSwitching, message: "nothing is done to members while the data is upgraded: see the condition Upgraded",
			held: true, done: len(s.outdated())+len(s.surplus()) == 0 && !s.hibernated,
		}
	case s.hibernated:
		return s.hibernate()
	case slices.ContainsFunc(s.views, func(v view) bool { return v.stopped }):
		return s.wake()
	}
	g := s.gate
	if !g.closed() {
		g = s.hooks
	}
	o := s.rolled()
	if !g.closed() || o.done || o.failed || s.repairs(o) {
		return o
	}
	// What waits for a member as well is told when it would go on.
	if o.change == "" && o.remove == "" && o.reason != v1alpha1.ReasonAwaitingStandby {
		return o
	}
	return order{reason: g.reason, message: g.message, until: g.until, held: true, failed: g.failed}
}

// repairs reports whether an order changes a member that does not serve.
func (s situation) repairs(o order) bool {
	return slices.ContainsFunc(s.views, func(v view) bool { return v.letter == o.change && v.hindered() })
}

// rolled out is what the spec asks for, one member after the other.
func (s situation) rolled() order {
	outdated := s.outdated()
	surplus := s.having(func(v view) bool { return v.exists && !v.expected })
	switch {
	case len(outdated) == 0 && len(surplus) == 0:
		return order{done: true}
	case !s.known:
		return order{reason: v1alpha1.ReasonAwaitingTopology, message: unknownMembers}
	case s.paused:
		return order{reason: v1alpha1.ReasonPaused, message: "failover is paused by hand: " + s.resume}
	case s.moving:
		return order{reason: v1alpha1.ReasonSwitchingOver, message: "waiting for the lead to move: see the condition SwitchedOver"}
	}
	if o, ok := s.shrink(surplus); ok {
		return o
	}
	if len(outdated) == 0 {
		return s.waiting("the next member is let go once all that remain are well")
	}
	return s.update(outdated)
}

func (s situation) having(is func(view) bool) []view {
	var vs []view
	for _, v := range s.views {
		if is(v) {
			vs = append(vs, v)
		}
	}
	return vs
}

// outdated members, or, when there are none, those that have to start once more: some parameters a follower can only have after
// its leader.
func (s situation) outdated() []view {
	if vs := s.having(func(v view) bool { return v.exists && !v.current }); len(vs) > 0 {
		return vs
	}
	return s.having(func(v view) bool { return v.healthy() && !v.restarted && len(v.PendingRestart) > 0 })
}

// shrink lets the last surplus member go, when all that remain are well.
func (s situation) shrink(surplus []view) (order, bool) {
	if len(surplus) == 0 || !s.leads || !s.applied || len(s.strangers) > 0 {
		return order{}, false
	}
	last := surplus[len(surplus)-1]
	if !s.othersWell(last) {
		return order{}, false
	}
	return order{remove: last.letter, reason: v1alpha1.ReasonRemoving, message: fmt.Sprintf("member %s is let go; its volume stays", last.name)}, true
}

// othersWell reports whether all members but one, those that should be there and those that are, are well.
func (s situation) othersWell(than view) bool {
	return !slices.ContainsFunc(s.views, func(v view) bool { return v.letter != than.letter && !v.healthy() })
}

// update the next of the members that are outdated.
func (s situation) update(outdated []view) order {
	slices.SortStableFunc(outdated, func(a, b view) int { return rank(a) - rank(b) })
	next := outdated[0]
	o := order{
		change: next.letter, again: next.current,
		reason:  v1alpha1.ReasonRestarting,
		message: fmt.Sprintf("member %s is started anew with what the spec asks for", next.name),
	}
	// Who does not serve loses nothing by being changed. Only one at a time nevertheless, and a change that did not help the
	// first is not tried on others as long as somebody leads.
	if next.hindered() {
		if busy := s.having(func(v view) bool { return v.letter != next.letter && s.busy(v) }); len(busy) > 0 {
			return s.waitingFor(busy[0])
		}
		return o
	}
	if !next.healthy() {
		return s.waitingFor(next)
	}
	if ill := s.having(func(v view) bool { return v.letter != next.letter && !v.healthy() }); len(ill) > 0 {
		return s.waitingFor(ill[0])
	}
	if next.leading() && len(s.views) > 1 && !s.successor() {
		return s.waiting("the leader is changed once a member that has every commit can lead on a node that takes pods")
	}
	return o
}

// rank of the members by who is changed first.
func rank(v view) int {
	switch {
	case v.hindered():
		return 0
	case !v.leading():
		return 1
	default:
		return 2
	}
}

// busy member: one that was changed and is not well. While nobody leads nobody can be well, and it is enough that its pod is the
// new one.
func (s situation) busy(v view) bool {
	if !s.leads {
		return v.exists && v.current && !v.settled
	}
	return v.exists && v.current && !v.healthy()
}

// successor reports whether a member can lead at once.
func (s situation) successor() bool {
	return slices.ContainsFunc(s.views, func(v view) bool {
		return v.expected && !v.leading() && v.healthy() && !v.Cordoned &&
			(!s.synchronous || v.Role == observev1alpha1.RoleSyncStandby)
	})
}

// arriving members, with which a change is not over: those that do not run yet what their StatefulSets ask for, and, until all
// were well once, those that are not well. A member that is lost later undoes no change.
func (s situation) arriving(wereWell bool) []view {
	return s.having(func(v view) bool { return v.rolling || !wereWell && !v.healthy() })
}

func (s situation) waiting(message string) order {
	if ill := s.having(func(v view) bool { return !v.healthy() }); len(ill) > 0 {
		return s.waitingFor(ill[0])
	}
	return order{reason: v1alpha1.ReasonAwaitingStandby, message: message}
}

// waitingFor a member that is not well. One that was changed and is blocked is a step that failed: it needs somebody.
func (s situation) waitingFor(v view) order {
	if v.hindered() {
		o := order{reason: xpv2.ConditionReason(v.Reason), failed: v.current}
		o.message = fmt.Sprintf("it does not go on, because member %s is hindered: %s", v.name, v.Message)
		return o
	}
	return order{reason: v1alpha1.ReasonAwaitingStandby, message: fmt.Sprintf("waiting for member %s to be ready and to have every commit", v.name)}
}
