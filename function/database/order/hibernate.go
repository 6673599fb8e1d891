// SPDX-License-Identifier: Apache-2.0

package order

import (
	"fmt"
	"slices"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// Away reports that the pod of a member that is stopped is gone.
func (v View) Away() bool { return v.Stopped && v.emptied && v.Node == "" && !v.Ready }

// runs reports that the pod of a member is there.
func (v View) runs() bool {
	return !v.Stopped && v.Node != "" && v.State != observev1alpha1.MemberStopped
}

// hibernate stops the members: first all that follow, and once their pods are gone the one that leads, which ends in good order
// with every commit. It is written down who led.
func (s Situation) hibernate() Order {
	o := Order{Reason: v1alpha1.ReasonHibernating}
	up := s.Having(func(v View) bool { return v.Exists && !v.Away() })
	running := s.Having(func(v View) bool { return v.Exists && !v.Stopped })
	switch leader := slices.IndexFunc(running, View.Leading); {
	case len(up) == 0:
		return Order{Done: true}
	case len(running) == 0:
		o.Message = fmt.Sprintf("waiting for the pod of member %s to end", up[0].Name)
	case s.Freeze.Closed():
		return Order{Reason: s.Freeze.Reason, Message: s.Freeze.Message, Until: s.Freeze.Until, Held: true}
	case !s.Known:
		o.Reason, o.Message = v1alpha1.ReasonAwaitingTopology, UnknownMembers
	case s.Paused:
		o.Reason, o.Message = v1alpha1.ReasonPaused, "members are not stopped while failover is paused by hand: "+s.Resume
	case s.Moving:
		o.Reason, o.Message = v1alpha1.ReasonSwitchingOver, "waiting for the lead to move"
	case !s.Leads || leader < 0:
		o.Reason = v1alpha1.ReasonNoLeader
		o.Message = "members are stopped once one of them leads, so that the one with every commit is the last: see the condition Available"
	case len(running) > 1:
		for i, v := range running {
			if i != leader {
				o.Stop = append(o.Stop, v.letter)
			}
		}
		o.Message = "members that follow are stopped, the leader after them"
	case len(up) > 1:
		o.Message = "the leader is stopped once the pods of the others have ended"
	default:
		o.Stop = []string{running[0].letter}
		o.Message = fmt.Sprintf("the leader, member %s, is stopped", running[0].Name)
	}
	return o
}

// Fence a generation off that clients are to be led away from: its members are stopped in the same order, so that every commit is
// in its archive and on the volume of the one that led last. One that nobody leads has nothing to wait for.
func (s Situation) Fence() Order {
	running := s.Having(func(v View) bool { return v.Exists && !v.Stopped })
	if !s.Known || s.Leads || len(running) == 0 {
		return s.hibernate()
	}
	o := Order{Reason: v1alpha1.ReasonHibernating, Message: "members are stopped, all at once because none of them leads"}
	for _, v := range running {
		o.Stop = append(o.Stop, v.letter)
	}
	return o
}

// Halt all members of a generation at once that an upgrade has fenced: its leader has stopped in good order, and what followed it
// has all of it.
func (s Situation) Halt() Order {
	o := Order{Reason: v1alpha1.ReasonHibernating, Message: "members are stopped: another generation goes on with their data"}
	for _, v := range s.Having(func(v View) bool { return v.Exists && !v.Stopped }) {
		o.Stop = append(o.Stop, v.letter)
	}
	o.Done = len(o.Stop) == 0
	return o
}

// Wake the members: first the one that led last, because the others may lack what was committed after they were stopped, then all
// others.
func (s Situation) Wake() Order {
	o := Order{Reason: v1alpha1.ReasonWaking}
	sleeping := s.Having(func(v View) bool { return v.Exists && v.Stopped })
	up := s.Having(func(v View) bool { return v.Exists && !v.Stopped })
	led := slices.IndexFunc(sleeping, func(v View) bool { return v.ledLast })
	letters := func(vs []View) []string {
		out := make([]string, 0, len(vs))
		for _, v := range vs {
			out = append(out, v.letter)
		}
		return out
	}
	switch {
	case led >= 0:
		o.Start = []string{sleeping[led].letter}
		o.Message = fmt.Sprintf("member %s, which led last, is started", sleeping[led].Name)
	case len(up) == 0, s.Leads:
		o.Start = letters(sleeping)
		o.Message = "members that follow are started"
	case !s.Known:
		o.Reason, o.Message = v1alpha1.ReasonAwaitingTopology, UnknownMembers
	case slices.ContainsFunc(up, View.Blocked), s.synchronous && slices.ContainsFunc(up, View.runs):
		// Where commits wait for others, the members know which of them has all commits, and may have to ask the others. Where
		// the former leader is blocked the others are started as well: members promote none that lacks something.
		o.Start = letters(sleeping)
		o.Message = fmt.Sprintf("members that follow are started, because member %s does not lead yet", up[0].Name)
	default:
		o.Message = fmt.Sprintf("waiting for member %s, which led last, to lead", up[0].Name)
	}
	return o
}

// UnknownMembers is told while nobody looks.
const UnknownMembers = "it is not known how members are: see whether provider-capstan runs, and the Topology of this Database"
