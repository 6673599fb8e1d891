// SPDX-License-Identifier: Apache-2.0

package database

import (
	"fmt"
	"slices"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
)

// What is written on the StatefulSet of a member that is stopped.
const (
	stoppedLeading   = "Leader"
	stoppedFollowing = "Follower"
)

// away reports that the pod of a member that is stopped is gone.
func (v view) away() bool { return v.stopped && v.emptied && v.Node == "" && !v.Ready }

// runs reports that the pod of a member is there.
func (v view) runs() bool {
	return !v.stopped && v.Node != "" && v.State != observev1alpha1.MemberStopped
}

// asleep reports whether members are stopped on purpose, or are still being started again.
func (s *cluster) asleep() bool {
	if s.spec.Hibernated {
		return true
	}
	for _, o := range s.sets {
		if o.stopped != "" || o.replicas == 0 {
			return true
		}
	}
	return false
}

// hibernated reports whether nothing runs any more, as the spec asks.
func (s *cluster) hibernated() bool {
	if !s.asleep() || !s.spec.Hibernated && len(s.problems) == 0 {
		return false
	}
	return !slices.ContainsFunc(s.situation("").views, func(v view) bool { return v.exists && !v.away() })
}

// hibernate stops the members: first all that follow, and once their pods are gone the one that leads, which ends in good order
// with every commit. It is written down who led.
func (s situation) hibernate() order {
	o := order{reason: v1alpha1.ReasonHibernating}
	up := s.having(func(v view) bool { return v.exists && !v.away() })
	running := s.having(func(v view) bool { return v.exists && !v.stopped })
	switch leader := slices.IndexFunc(running, view.leading); {
	case len(up) == 0:
		return order{done: true}
	case len(running) == 0:
		o.message = fmt.Sprintf("waiting for the pod of member %s to end", up[0].name)
	case s.freeze.closed():
		return order{reason: s.freeze.reason, message: s.freeze.message, until: s.freeze.until, held: true}
	case !s.known:
		o.reason, o.message = v1alpha1.ReasonAwaitingTopology, unknownMembers
	case s.paused:
		o.reason, o.message = v1alpha1.ReasonPaused, "members are not stopped while failover is paused by hand: "+s.resume
	case s.moving:
		o.reason, o.message = v1alpha1.ReasonSwitchingOver, "waiting for the lead to move"
	case !s.leads || leader < 0:
		o.reason = v1alpha1.ReasonNoLeader
		o.message = "members are stopped once one of them leads, so that the one with every commit is the last: see the condition Available"
	case len(running) > 1:
		for i, v := range running {
			if i != leader {
				o.stop = append(o.stop, v.letter)
			}
		}
		o.message = "members that follow are stopped, the leader after them"
	case len(up) > 1:
		o.message = "the leader is stopped once the pods of the others have ended"
	default:
		o.stop = []string{running[0].letter}
		o.message = fmt.Sprintf("the leader, member %s, is stopped", running[0].name)
	}
	return o
}

// fence a generation off that clients are to be led away from: its members are stopped in the same order, so that every commit is
// in its archive and on the volume of the one that led last. One that nobody leads has nothing to wait for.
func (s situation) fence() order {
	running := s.having(func(v view) bool { return v.exists && !v.stopped })
	if !s.known || s.leads || len(running) == 0 {
		return s.hibernate()
	}
	o := order{reason: v1alpha1.ReasonHibernating, message: "members are stopped, all at once because none of them leads"}
	for _, v := range running {
		o.stop = append(o.stop, v.letter)
	}
	return o
}

// halt all members of a generation at once that an upgrade has fenced: its leader has stopped in good order, and what followed it
// has all of it.
func (s situation) halt() order {
	o := order{reason: v1alpha1.ReasonHibernating, message: "members are stopped: another generation goes on with their data"}
	for _, v := range s.having(func(v view) bool { return v.exists && !v.stopped }) {
		o.stop = append(o.stop, v.letter)
	}
	o.done = len(o.stop) == 0
	return o
}

// wake the members: first the one that led last, because the others may lack what was committed after they were stopped, then all
// others.
func (s situation) wake() order {
	o := order{reason: v1alpha1.ReasonWaking}
	sleeping := s.having(func(v view) bool { return v.exists && v.stopped })
	up := s.having(func(v view) bool { return v.exists && !v.stopped })
	led := slices.IndexFunc(sleeping, func(v view) bool { return v.ledLast })
	letters := func(vs []view) []string {
		out := make([]string, 0, len(vs))
		for _, v := range vs {
			out = append(out, v.letter)
		}
		return out
	}
	switch {
	case led >= 0:
		o.start = []string{sleeping[led].letter}
		o.message = fmt.Sprintf("member %s, which led last, is started", sleeping[led].name)
	case len(up) == 0, s.leads:
		o.start = letters(sleeping)
		o.message = "members that follow are started"
	case !s.known:
		o.reason, o.message = v1alpha1.ReasonAwaitingTopology, unknownMembers
	case slices.ContainsFunc(up, view.hindered), s.synchronous && slices.ContainsFunc(up, view.runs):
		// Where commits wait for others, the members know which of them has all commits, and may have to ask the others. Where
		// the former leader is blocked the others are started as well: members promote none that lacks something.
		o.start = letters(sleeping)
		o.message = fmt.Sprintf("members that follow are started, because member %s does not lead yet", up[0].name)
	default:
		o.message = fmt.Sprintf("waiting for member %s, which led last, to lead", up[0].name)
	}
	return o
}

// unknownMembers is told while nobody looks.
const unknownMembers = "it is not known how members are: see whether provider-capstan runs, and the Topology of this Database"
