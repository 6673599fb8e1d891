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

// wanted reports that the StatefulSet of a member asks for a pod.
func (v View) wanted() bool { return v.Exists && !v.Stopped }

func letters(vs []View) []string {
	out := make([]string, 0, len(vs))
	for _, v := range vs {
		out = append(out, v.letter)
	}
	return out
}

// hibernate stops the members: first the standbys, and once their pods are gone the leader, which ends in good order with every
// commit. Its StatefulSet records that it was the leader.
func (s Situation) hibernate() Order {
	o := Order{Reason: v1alpha1.ReasonHibernating}
	up := s.Having(func(v View) bool { return v.Exists && !v.Away() })
	running := s.Having(View.wanted)
	switch leader := slices.IndexFunc(running, View.Leading); {
	case len(up) == 0:
		return Order{Done: true}
	case len(running) == 0:
		o.Message = fmt.Sprintf("waiting for the pod of member %s to stop", up[0].Name)
	case s.Freeze.Closed():
		return Order{Reason: s.Freeze.Reason, Message: s.Freeze.Message, Until: s.Freeze.Until, Held: true}
	case !s.Known:
		o.Reason, o.Message = v1alpha1.ReasonAwaitingTopology, UnknownMembers
	case s.Paused:
		o.Reason, o.Message = v1alpha1.ReasonPaused, "members are not stopped while failover is paused by hand: "+s.Resume
	case s.Moving:
		o.Reason, o.Message = v1alpha1.ReasonSwitchingOver, "waiting for the switchover to end"
	case !s.HasLeader || leader < 0:
		o.Reason = v1alpha1.ReasonNoLeader
		o.Message = "members are stopped when there is a leader, so that the member with every commit stops last: see the condition Available"
	case len(running) > 1:
		o.Stop = letters(slices.Delete(running, leader, leader+1))
		o.Message = "standbys are being stopped; the leader is stopped after them"
	case len(up) > 1:
		o.Message = "the leader is stopped when the pods of the standbys have ended"
	default:
		o.Stop = []string{running[0].letter}
		o.Message = fmt.Sprintf("the leader, member %s, is being stopped", running[0].Name)
	}
	return o
}

// Fence a generation from which clients are switched to another: its members are stopped in the same order, so that every commit
// is in its archive and on the volume of its last leader. Without a leader there is nothing to wait for.
func (s Situation) Fence() Order {
	running := s.Having(View.wanted)
	if !s.Known || s.HasLeader || len(running) == 0 {
		return s.hibernate()
	}
	return Order{Reason: v1alpha1.ReasonHibernating, Message: "members are stopped all at once, because there is no leader", Stop: letters(running)}
}

// Halt all members of a generation at once that an upgrade has fenced: its leader has stopped in good order, and its standbys
// have every commit.
func (s Situation) Halt() Order {
	running := s.Having(View.wanted)
	return Order{
		Reason: v1alpha1.ReasonHibernating, Message: "members are stopped: another generation continues with their data",
		Stop: letters(running), Done: len(running) == 0,
	}
}

// Wake the members: first the last leader, because the others may lack what was committed after they were stopped, then the
// others.
func (s Situation) Wake() Order {
	o := Order{Reason: v1alpha1.ReasonWaking}
	sleeping := s.Having(func(v View) bool { return v.Exists && v.Stopped })
	up := s.Having(View.wanted)
	last := slices.IndexFunc(sleeping, func(v View) bool { return v.ledLast })
	switch {
	case last >= 0:
		o.Start = []string{sleeping[last].letter}
		o.Message = fmt.Sprintf("member %s, the last leader, is being started", sleeping[last].Name)
	case len(up) == 0, s.HasLeader:
		o.Start = letters(sleeping)
		o.Message = "members are being started"
	case !s.Known:
		o.Reason, o.Message = v1alpha1.ReasonAwaitingTopology, UnknownMembers
	case slices.ContainsFunc(up, View.Blocked), s.synchronous && slices.ContainsFunc(up, View.runs):
		// Where commits wait for others, the members find out which of them has all commits, and may need the others for that.
		// Where the last leader is blocked the others are started as well: members promote none that lacks a commit.
		o.Start = letters(sleeping)
		o.Message = fmt.Sprintf("the other members are being started, because member %s is not the leader yet", up[0].Name)
	default:
		o.Message = fmt.Sprintf("waiting for member %s, the last leader, to become the leader again", up[0].Name)
	}
	return o
}

// UnknownMembers is the message while the Topology reports nothing.
const UnknownMembers = "the state of members is unknown: check that provider-capstan runs, and see the Topology of this Database"
