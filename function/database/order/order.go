// SPDX-License-Identifier: Apache-2.0

// Package order decides what happens to the members of a generation in one pass. It is a table of rules over a situation.
package order

import (
	"fmt"
	"slices"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/database/maintenance"
)

// An Order is what happens to the members that exist in one pass: at most one of them is changed, restarted or removed.
type Order struct {
	// Change is the letter of the member that is given what the spec asks for, and again that it already was and is only started
	// once more.
	Change string
	Again  bool

	// Remove is the letter of the member that is removed. Its volume stays.
	Remove string

	// Reason and message why it does not go on, when it does not; failed when it does not go on by itself.
	Reason  xpv2.ConditionReason
	Message string
	Failed  bool

	// Done reports that every member is as asked.
	Done bool

	// Held reports that it would go on, and may not now; until is when it is worth another look, if that is known.
	Held  bool
	Until time.Time

	// Stop and start are members of a Database that is hibernated or wakes.
	Stop, Start []string
}

// Touches reports whether members are changed in any way.
func (o Order) Touches() bool {
	return o.Change != "" || o.Remove != "" || len(o.Stop) > 0 || len(o.Start) > 0
}

// A View is what is known of one member that exists or should.
type View struct {
	observev1alpha1.TopologyMember

	letter, Name string

	// Exists reports whether its StatefulSet is there, and expected whether it should.
	Exists, Expected bool

	// current reports whether its StatefulSet is as the spec asks, and restarted that it was started once more since.
	Current, restarted bool

	// settled reports whether its pod is the one that its StatefulSet asks for, and rolling that one has yet to take the place of
	// another.
	Settled, rolling bool

	// stopped reports that its StatefulSet asks for no pod, ledLast that it led when that began, and emptied that its controller
	// knows of none.
	Stopped, ledLast, emptied bool
}

// Leading member.
func (v View) Leading() bool { return v.Role == observev1alpha1.RoleLeader }

// Healthy member: it leads, or follows closely.
func (v View) Healthy() bool {
	if !v.Exists || !v.Settled || !v.Ready {
		return false
	}
	if v.Leading() {
		return v.State == observev1alpha1.MemberRunning
	}
	return v.State == observev1alpha1.MemberStreaming && v.Lag == observev1alpha1.LagInSync
}

// Blocked member: it does not serve, and that does not pass by itself.
func (v View) Blocked() bool { return !v.Ready && v.Reason != "" }

// A Situation is what an order is given in.
type Situation struct {
	Views []View

	// Known reports whether the Topology has told, and leads that a member leads.
	Known, Leads, Paused bool

	// Resume says how a person ends a pause.
	Resume string

	// synchronous reports that a commit waits for another member.
	synchronous bool

	// Applied reports whether members have the coordination that is desired, so that no commit waits for a member that is
	// removed.
	Applied bool

	// Strangers are members that are on their way out and still there.
	Strangers []string

	// Hibernated is what the spec asks for, and fenced what a restore does.
	Hibernated, Fenced bool

	// Handing reports that an upgrade fences this generation: nothing happens to its members until clients are led away, or it
	// goes on.
	Handing bool

	// Moving reports that the leader was asked to hand over.
	Moving bool

	// Gate for members that serve, and freeze the part of it that holds everything.
	Gate, Freeze maintenance.Gate

	// Hooks hold members that serve, too, as long as those before a change are not done.
	Hooks maintenance.Gate
}

// Decide what happens to the members. The rules: nothing while it is not known who leads; nobody that serves is touched unless
// all others are well; whoever was changed last is well again before the next; followers come before the leader, and those that
// do not serve anyway before those that do. Nobody that serves is touched while the gate is closed.
func (s Situation) Decide() Order {
	switch {
	case s.Fenced:
		return s.Fence()
	case s.Handing:
		return Order{
			Reason: v1alpha1.ReasonUpgradeSwitching, Message: "nothing is done to members while the data is upgraded: see the condition Upgraded",
			Held: true, Done: len(s.Outdated())+len(s.Surplus()) == 0 && !s.Hibernated,
		}
	case s.Hibernated:
		return s.hibernate()
	case slices.ContainsFunc(s.Views, func(v View) bool { return v.Stopped }):
		return s.Wake()
	}
	g := s.Gate
	if !g.Closed() {
		g = s.Hooks
	}
	o := s.Rolled()
	if !g.Closed() || o.Done || o.Failed || s.Repairs(o) {
		return o
	}
	// What waits for a member as well is told when it would go on.
	if o.Change == "" && o.Remove == "" && o.Reason != v1alpha1.ReasonAwaitingStandby {
		return o
	}
	return Order{Reason: g.Reason, Message: g.Message, Until: g.Until, Held: true, Failed: g.Failed}
}

// Repairs reports whether an order changes a member that does not serve.
func (s Situation) Repairs(o Order) bool {
	return slices.ContainsFunc(s.Views, func(v View) bool { return v.letter == o.Change && v.Blocked() })
}

// Rolled out is what the spec asks for, one member after the other.
func (s Situation) Rolled() Order {
	outdated := s.Outdated()
	surplus := s.Having(func(v View) bool { return v.Exists && !v.Expected })
	switch {
	case len(outdated) == 0 && len(surplus) == 0:
		return Order{Done: true}
	case !s.Known:
		return Order{Reason: v1alpha1.ReasonAwaitingTopology, Message: UnknownMembers}
	case s.Paused:
		return Order{Reason: v1alpha1.ReasonPaused, Message: "failover is paused by hand: " + s.Resume}
	case s.Moving:
		return Order{Reason: v1alpha1.ReasonSwitchingOver, Message: "waiting for the lead to move: see the condition SwitchedOver"}
	}
	if o, ok := s.shrink(surplus); ok {
		return o
	}
	if len(outdated) == 0 {
		return s.waiting("the next member is removed once all that remain are well")
	}
	return s.update(outdated)
}

// Having a property: those members.
func (s Situation) Having(is func(View) bool) []View {
	var vs []View
	for _, v := range s.Views {
		if is(v) {
			vs = append(vs, v)
		}
	}
	return vs
}

// Outdated members, or, when there are none, those that have to start once more: some parameters a follower can only have after
// its leader.
func (s Situation) Outdated() []View {
	if vs := s.Having(func(v View) bool { return v.Exists && !v.Current }); len(vs) > 0 {
		return vs
	}
	return s.Having(func(v View) bool { return v.Healthy() && !v.restarted && len(v.PendingRestart) > 0 })
}

// shrink lets the last surplus member go, when all that remain are well.
func (s Situation) shrink(surplus []View) (Order, bool) {
	if len(surplus) == 0 || !s.Leads || !s.Applied || len(s.Strangers) > 0 {
		return Order{}, false
	}
	last := surplus[len(surplus)-1]
	if !s.othersWell(last) {
		return Order{}, false
	}
	return Order{Remove: last.letter, Reason: v1alpha1.ReasonRemoving, Message: fmt.Sprintf("member %s is removed; its volume stays", last.Name)}, true
}

// othersWell reports whether all members but one, those that should be there and those that are, are well.
func (s Situation) othersWell(than View) bool {
	return !slices.ContainsFunc(s.Views, func(v View) bool { return v.letter != than.letter && !v.Healthy() })
}

// update the next of the members that are outdated.
func (s Situation) update(outdated []View) Order {
	slices.SortStableFunc(outdated, func(a, b View) int { return rank(a) - rank(b) })
	next := outdated[0]
	o := Order{
		Change: next.letter, Again: next.Current,
		Reason:  v1alpha1.ReasonRestarting,
		Message: fmt.Sprintf("member %s restarts with what the spec asks for", next.Name),
	}
	// Who does not serve loses nothing by being changed. Only one at a time nevertheless, and a change that did not help the
	// first is not tried on others as long as somebody leads.
	if next.Blocked() {
		if busy := s.Having(func(v View) bool { return v.letter != next.letter && s.busy(v) }); len(busy) > 0 {
			return s.WaitingFor(busy[0])
		}
		return o
	}
	if !next.Healthy() {
		return s.WaitingFor(next)
	}
	if ill := s.Having(func(v View) bool { return v.letter != next.letter && !v.Healthy() }); len(ill) > 0 {
		return s.WaitingFor(ill[0])
	}
	if next.Leading() && len(s.Views) > 1 && !s.successor() {
		return s.waiting("the leader is changed once a member that has every commit can lead on a node that takes pods")
	}
	return o
}

// rank of the members by who is changed first.
func rank(v View) int {
	switch {
	case v.Blocked():
		return 0
	case !v.Leading():
		return 1
	default:
		return 2
	}
}

// busy member: one that was changed and is not well. While nobody leads nobody can be well, and it is enough that its pod is the
// new one.
func (s Situation) busy(v View) bool {
	if !s.Leads {
		return v.Exists && v.Current && !v.Settled
	}
	return v.Exists && v.Current && !v.Healthy()
}

// successor reports whether a member can lead at once.
func (s Situation) successor() bool {
	return slices.ContainsFunc(s.Views, func(v View) bool {
		return v.Expected && !v.Leading() && v.Healthy() && !v.Cordoned &&
			(!s.synchronous || v.Role == observev1alpha1.RoleSyncStandby)
	})
}

// Arriving members, with which a change is not over: those that do not run yet what their StatefulSets ask for, and, until all
// were well once, those that are not well. A member that is lost later undoes no change.
func (s Situation) Arriving(wereWell bool) []View {
	return s.Having(func(v View) bool { return v.rolling || !wereWell && !v.Healthy() })
}

func (s Situation) waiting(message string) Order {
	if ill := s.Having(func(v View) bool { return !v.Healthy() }); len(ill) > 0 {
		return s.WaitingFor(ill[0])
	}
	return Order{Reason: v1alpha1.ReasonAwaitingStandby, Message: message}
}

// WaitingFor a member that is not well. One that was changed and is blocked is a step that failed: it needs somebody.
func (s Situation) WaitingFor(v View) Order {
	if v.Blocked() {
		o := Order{Reason: xpv2.ConditionReason(v.Reason), Failed: v.Current}
		o.Message = fmt.Sprintf("it does not go on, because member %s is blocked: %s", v.Name, v.Message)
		return o
	}
	return Order{Reason: v1alpha1.ReasonAwaitingStandby, Message: fmt.Sprintf("waiting for member %s to be ready and to have every commit", v.Name)}
}

// Queue of the members that are still to be touched, in that order.
func (s Situation) Queue() []string {
	outdated := s.Outdated()
	slices.SortStableFunc(outdated, func(a, b View) int { return rank(a) - rank(b) })
	surplus := s.Surplus()
	slices.Reverse(surplus)
	var names []string
	for _, v := range append(surplus, outdated...) {
		if !slices.Contains(names, v.Name) {
			names = append(names, v.Name)
		}
	}
	return names
}

// Pause of writes that clients have to expect.
func (s Situation) Pause(requestedMove bool) string {
	touched := append(s.Outdated(), s.Surplus()...)
	leads := requestedMove || slices.ContainsFunc(touched, View.Leading)
	switch {
	case leads && len(s.Views) == 1:
		return "until the only member has started again, usually less than a minute"
	case leads:
		return "2 to 4 s, once, while the lead moves to a member that has every commit"
	default:
		return "none"
	}
}

// Surplus members, by letter.
func (s Situation) Surplus() []View {
	return s.Having(func(v View) bool { return v.Exists && !v.Expected })
}
