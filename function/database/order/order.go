// SPDX-License-Identifier: Apache-2.0

// Package order decides what happens to the members of a generation in one pass. It is a table of rules over a situation.
package order

import (
	"cmp"
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
	// Change is the letter of the member that gets what the spec asks for. Again reports that it has that already and only restarts.
	Change string
	Again  bool

	// Remove is the letter of the member that is removed. Its volume stays.
	Remove string

	// Reason and message of what happens, or why nothing does. Failed reports that it does not continue by itself.
	Reason  xpv2.ConditionReason
	Message string
	Failed  bool

	// Done reports that every member matches the spec.
	Done bool

	// Held reports that it could continue, but is not allowed to now; Until is when that may change, if known.
	Held  bool
	Until time.Time

	// Stop and Start are members of a Database that hibernates or wakes.
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

	// Exists reports whether its StatefulSet exists, and Expected whether it should.
	Exists, Expected bool

	// Current reports whether its StatefulSet matches the spec, and restarted that it was restarted since.
	Current, restarted bool

	// Settled reports whether its pod is the one that its StatefulSet asks for, and rolling that its pod has yet to be replaced.
	Settled, rolling bool

	// Lacks is why its pod could not start with what the spec asks for, or "".
	Lacks string

	// Stopped reports that its StatefulSet asks for no pod, ledLast that it was the leader when that began, and emptied that its
	// controller knows of no pod.
	Stopped, ledLast, emptied bool
}

// Leading member.
func (v View) Leading() bool { return v.Role == observev1alpha1.RoleLeader }

// Healthy member: a running leader, or a standby with every commit. Standbys that are apart from each other may be no majority without the leader,
// whose restart would stop all writes.
func (v View) Healthy() bool {
	if !v.Exists || !v.Settled || !v.Ready {
		return false
	}
	if v.Leading() {
		return v.State == observev1alpha1.MemberRunning
	}
	return v.State == observev1alpha1.MemberStreaming && v.Lag == observev1alpha1.LagInSync && !v.apart()
}

func (v View) apart() bool { return v.Reason == string(v1alpha1.ReasonMembersApart) }

// Blocked member: it does not serve, and that does not pass by itself. One that is apart from another one, and follows, counts in its group.
func (v View) Blocked() bool {
	return !v.Ready && v.Reason != "" && (!v.apart() || v.State != observev1alpha1.MemberStreaming)
}

// A Situation is what an order is given in.
type Situation struct {
	Views []View

	// Known reports whether the Topology has reported, HasLeader that there is a leader, and Paused that failover is paused by hand.
	Known, HasLeader, Paused bool

	// Resume says how a person ends a pause.
	Resume string

	// synchronous reports that a commit waits for another member.
	synchronous bool

	// Applied reports whether members have the coordination that is desired, so that no commit waits for a member that is
	// removed.
	Applied bool

	// Leaving are members that are being removed and still exist.
	Leaving []string

	// Hibernated is what the spec asks for. Fenced reports that a restore stops this generation.
	Hibernated, Fenced bool

	// Handing reports that an upgrade fences this generation: its members stay unchanged until clients are switched to another, or
	// until it continues.
	Handing bool

	// Moving reports that the leader is handing over.
	Moving bool

	// Unarchived is why changes that the leader has do not reach the archive, or "". Then only a person moves the leader.
	Unarchived string

	// Gate for members that serve, and Freeze its part that blocks everything.
	Gate, Freeze maintenance.Gate

	// Hooks block members that serve, too, until the hooks before a change are done.
	Hooks maintenance.Gate
}

// Decide what happens to the members. The rules:
//   - While the leader is unknown, nothing happens.
//   - A member that serves is changed only when all others are healthy and the gate is open.
//   - The member that was changed last is healthy again before the next.
//   - Members that do not serve come first, then standbys, then the leader.
func (s Situation) Decide() Order {
	switch {
	case s.Fenced:
		return s.Fence()
	case s.Handing:
		return Order{
			Reason: v1alpha1.ReasonUpgradeSwitching, Message: "members are not changed while clients are switched to another generation: see the conditions Upgraded and Restored",
			Held: true, Done: len(s.Outdated())+len(s.Surplus()) == 0 && !s.Hibernated,
		}
	case s.Hibernated:
		return s.hibernate()
	case slices.ContainsFunc(s.Views, func(v View) bool { return v.Stopped }):
		return s.Wake()
	}
	g, o := cmp.Or(s.Gate, s.Hooks), s.Rolled()
	if !g.Closed() || o.Done || o.Failed || s.Repairs(o) {
		return o
	}
	// An order that waits for a member anyway keeps its own message.
	if o.Change == "" && o.Remove == "" && o.Reason != v1alpha1.ReasonAwaitingStandby {
		return o
	}
	return Order{Reason: g.Reason, Message: g.Message, Until: g.Until, Held: true, Failed: g.Failed}
}

// Repairs reports whether an order changes a member that does not serve.
func (s Situation) Repairs(o Order) bool {
	return slices.ContainsFunc(s.Views, func(v View) bool { return v.letter == o.Change && v.Blocked() })
}

// Rolled is the order that rolls out the spec, one member after the other.
func (s Situation) Rolled() Order {
	outdated, surplus := s.Outdated(), s.Surplus()
	switch {
	case len(outdated) == 0 && len(surplus) == 0:
		return Order{Done: true}
	case !s.Known:
		return Order{Reason: v1alpha1.ReasonAwaitingTopology, Message: UnknownMembers}
	case s.Paused:
		return Order{Reason: v1alpha1.ReasonPaused, Message: "failover is paused by hand: " + s.Resume}
	case s.Moving:
		return Order{Reason: v1alpha1.ReasonSwitchingOver, Message: "waiting for the switchover to end: see the condition SwitchedOver"}
	}
	switch o := s.shrink(surplus); {
	case o.Remove != "", o.Held:
		return o
	case len(outdated) == 0:
		return s.waiting("the next member is removed when all remaining members are healthy")
	default:
		return s.update(outdated)
	}
}

// Having returns the members with a property.
func (s Situation) Having(is func(View) bool) []View {
	var vs []View
	for _, v := range s.Views {
		if is(v) {
			vs = append(vs, v)
		}
	}
	return vs
}

// Outdated members in the order of changes, or, when there are none, members that have to restart again: a standby can take some
// parameters only after its leader.
func (s Situation) Outdated() []View {
	vs := s.Having(func(v View) bool { return v.Exists && !v.Current })
	if len(vs) == 0 {
		vs = s.Having(func(v View) bool { return v.Healthy() && !v.restarted && len(v.PendingRestart) > 0 })
	}
	slices.SortStableFunc(vs, func(a, b View) int { return rank(a) - rank(b) })
	return vs
}

// shrink removes the last surplus member, when all that remain are healthy.
func (s Situation) shrink(surplus []View) Order {
	if len(surplus) == 0 || !s.HasLeader || !s.Applied || len(s.Leaving) > 0 {
		return Order{}
	}
	last := surplus[len(surplus)-1]
	if slices.ContainsFunc(s.Views, func(v View) bool { return v.letter != last.letter && !v.Healthy() }) {
		return Order{}
	}
	if why := s.HoldsLeader(ActMove); why != "" && last.Leading() {
		return awaitsArchive(fmt.Sprintf("the leader, member %s, is removed %s", last.Name, why))
	}
	return Order{Remove: last.letter, Reason: v1alpha1.ReasonRemoving, Message: fmt.Sprintf("member %s is removed; its volume stays", last.Name)}
}

// update the next of the members that are outdated.
func (s Situation) update(outdated []View) Order {
	next := outdated[0]
	o := Order{
		Change: next.letter, Again: next.Current,
		Reason:  v1alpha1.ReasonRestarting,
		Message: fmt.Sprintf("member %s restarts to apply the spec", next.Name),
	}
	if next.Lacks != "" {
		return Order{Reason: v1alpha1.ReasonVolumePending, Message: next.Lacks}
	}
	// A member that does not serve loses nothing by a change. Still only one at a time: while there is a leader, a change that did
	// not help the first is not tried on others.
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
	if next.Leading() && len(s.Views) > 1 && !slices.ContainsFunc(s.Views, s.CanLead) {
		return s.waiting("the leader restarts when a standby with every commit, on a node that accepts pods, can become the leader")
	}
	if why := s.HoldsLeader(ActMove); why != "" && next.Leading() && len(s.Views) > 1 {
		return awaitsArchive(fmt.Sprintf("the leader, member %s, restarts %s", next.Name, why))
	}
	return o
}

// awaitsArchive is the order of a leader that does not hand over yet.
func awaitsArchive(message string) Order {
	return Order{Reason: v1alpha1.ReasonAwaitingArchive, Message: message, Held: true}
}

// rank of a member in the order of changes.
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

// busy member: one that was changed and is not healthy. Without a leader no member can be healthy, and it is enough that its pod
// is the new one.
func (s Situation) busy(v View) bool {
	if !s.HasLeader {
		return v.Exists && v.Current && !v.Settled
	}
	return v.Exists && v.Current && !v.Healthy()
}

// Arriving members, for which a change is not over: members that do not run what their StatefulSets ask for yet, and, until all
// were healthy once, members that are not healthy. A member that is lost later undoes no change.
func (s Situation) Arriving(wereWell bool) []View {
	return s.Having(func(v View) bool { return v.rolling || !wereWell && !v.Healthy() })
}

// waiting for the first member that is not healthy, or for what a message names.
func (s Situation) waiting(message string) Order {
	if ill := s.Having(func(v View) bool { return !v.Healthy() }); len(ill) > 0 {
		return s.WaitingFor(ill[0])
	}
	return Order{Reason: v1alpha1.ReasonAwaitingStandby, Message: message}
}

// WaitingFor a member that is not healthy. A member that was changed and is blocked is a failed step: it needs a person.
func (s Situation) WaitingFor(v View) Order {
	if v.Blocked() {
		return Order{
			Reason: xpv2.ConditionReason(v.Reason), Failed: v.Current,
			Message: fmt.Sprintf("the change is stopped, because member %s is blocked: %s", v.Name, v.Message),
		}
	}
	message := fmt.Sprintf("waiting for member %s to be ready and to have every commit", v.Name)
	if v.apart() {
		message = "waiting for members to hear from each other: " + v.Message
	}
	return Order{Reason: v1alpha1.ReasonAwaitingStandby, Message: message}
}

// Queue of the members that are still to be touched, in that order.
func (s Situation) Queue() []string {
	surplus := s.Surplus()
	slices.Reverse(surplus)
	var names []string
	for _, v := range append(surplus, s.Outdated()...) {
		if !slices.Contains(names, v.Name) {
			names = append(names, v.Name)
		}
	}
	return names
}

// Pause of writes that clients have to expect.
func (s Situation) Pause(requestedMove bool) string {
	touched := append(s.Outdated(), s.Surplus()...)
	moves := requestedMove || slices.ContainsFunc(touched, View.Leading)
	switch {
	case moves && len(s.Views) == 1:
		return "until the only member has started again, usually less than a minute"
	case moves:
		return "2 to 4 s, once, while a standby with every commit becomes the leader"
	default:
		return "none"
	}
}

// Surplus members exist and should not, by letter.
func (s Situation) Surplus() []View {
	return s.Having(func(v View) bool { return v.Exists && !v.Expected })
}
