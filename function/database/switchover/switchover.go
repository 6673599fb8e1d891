// SPDX-License-Identifier: Apache-2.0

// Package switchover decides whether the leader hands over, and to which member.
package switchover

import (
	"fmt"
	"slices"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/encoding"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/maintenance"
	"github.com/capstan-dev/capstan/function/database/names"
	"github.com/capstan-dev/capstan/function/database/order"
)

// A Move is a switchover that is requested and has no outcome yet.
type Move struct {
	ID, From, To string

	// Own reports that it is Capstan's own, because Node, on which the leader runs, is cordoned.
	Own  bool
	Node string

	// Asked reports that the Topology has it already, and Begin that it gets it now.
	Asked, Begin bool

	// Gate that blocks it, or reason and message why no member can become the leader.
	Gate    maintenance.Gate
	Reason  xpv2.ConditionReason
	Message string
}

// OwnMoves begin the ids of Capstan's own switchovers.
const OwnMoves = "capstan-"

// Outcome of a switchover that the Topology reports.
func Outcome(s *facts.Cluster, id string) (observev1alpha1.SwitchoverOutcome, bool) {
	i := slices.IndexFunc(s.Seen.Switchovers, func(o observev1alpha1.SwitchoverOutcome) bool { return o.ID == id })
	if i < 0 {
		return observev1alpha1.SwitchoverOutcome{}, false
	}
	return s.Seen.Switchovers[i], true
}

// Ended reports whether a switchover has an outcome.
func Ended(s *facts.Cluster, id string) bool {
	o, known := Outcome(s, id)
	return known && o.State != observev1alpha1.SwitchoverAsked
}

// Handed is the switchover that the Topology was given before.
func Handed(s *facts.Cluster) *observev1alpha1.TopologySwitchover {
	o := s.Observed[s.In(names.Topology)]
	if o == nil {
		return nil
	}
	m := compose.Map(o.Map(), "spec", "forProvider", "switchover")
	if id := compose.Text(m, "id"); id != "" {
		return &observev1alpha1.TopologySwitchover{ID: id, From: compose.Text(m, "from"), To: compose.Text(m, "to")}
	}
	return nil
}

// Skipped is the id that the Database was made with: recreated from its manifest, it must not switch over a second time.
// It is recorded before there is a member.
func Skipped(s *facts.Cluster) string {
	// A switchover that was requested before clients are switched is not meant for another generation.
	if o := s.Observed[s.In(names.DCS)]; o != nil && !s.Side {
		return compose.Text(o.Map(), "metadata", "annotations", names.AnnotationSkipped)
	}
	if s.Spec.Switchover != nil {
		return s.Spec.Switchover.ID
	}
	return ""
}

// Requested switchover: first the one that the Topology has and that is not over, then the one of the spec, then one of a leader
// whose node is cordoned.
func Requested(s *facts.Cluster, sit order.Situation) *Move {
	if h := Handed(s); h != nil && !Ended(s, h.ID) {
		m := &Move{ID: h.ID, From: h.From, To: h.To, Asked: true}
		// A request that is removed from the spec before members have it was never made.
		_, begun := Outcome(s, h.ID)
		if begun || s.Spec.Switchover != nil && s.Spec.Switchover.ID == h.ID {
			return m
		}
		if o := moveOffNode(s, sit); o != nil && o.ID == h.ID {
			o.From, o.To, o.Asked = h.From, h.To, true
			return o
		}
	}
	if w := s.Spec.Switchover; w != nil && w.ID != Skipped(s) && !Ended(s, w.ID) {
		return &Move{ID: w.ID, From: s.Seen.Leader, To: w.To}
	}
	return moveOffNode(s, sit)
}

// moveOffNode moves the leader off a cordoned node before its pod is evicted, and only when another member can become the leader.
// It is requested once on each timeline, so that it does not repeat, and not again when it fails.
func moveOffNode(s *facts.Cluster, sit order.Situation) *Move {
	i := slices.IndexFunc(sit.Views, order.View.Leading)
	if !s.Leads() || i < 0 || !sit.Views[i].Cordoned || sit.Views[i].Node == "" {
		return nil
	}
	h := encoding.Hash(map[string]any{"leader": sit.Views[i].Name, "node": sit.Views[i].Node, "timeline": s.Seen.Timeline})
	if Ended(s, OwnMoves+h) {
		return nil
	}
	if !slices.ContainsFunc(sit.Views, sit.CanLead) {
		return nil
	}
	return &Move{ID: OwnMoves + h, From: sit.Views[i].Name, Own: true, Node: sit.Views[i].Node}
}

// Judge a move: whether it can begin now, and which member becomes the leader.
func Judge(s *facts.Cluster, m Move, sit order.Situation, o order.Order) *Move {
	if m.Asked || sit.Handing {
		return &m
	}
	// A person decided on a switchover of the spec, so only a freeze blocks it.
	m.Gate = sit.Freeze
	if m.Own {
		m.Gate = sit.Gate
	}
	m.Reason, m.Message = obstacle(s, m, sit, o)
	if m.Reason == "" {
		if m.To, m.Message = sit.Candidate(m.From, m.To); m.Message != "" {
			m.Reason = v1alpha1.ReasonAwaitingCandidate
		}
	}
	m.Begin = m.Reason == "" && !m.Gate.Closed()
	return &m
}

// obstacle to a move that begins now, whichever member is to lead, or nothing.
func obstacle(s *facts.Cluster, m Move, sit order.Situation, o order.Order) (reason xpv2.ConditionReason, message string) {
	ill := func(v order.View) bool { return v.Exists && v.Current && !v.Healthy() }
	switch {
	case s.Spec.Hibernated || slices.ContainsFunc(sit.Views, func(v order.View) bool { return v.Stopped }):
		return v1alpha1.ReasonHibernated, "members are stopped: set spec.hibernated to false"
	case !sit.Known:
		return v1alpha1.ReasonAwaitingTopology, order.UnknownMembers
	case sit.Paused:
		return v1alpha1.ReasonPaused, "failover is paused by hand: " + sit.Resume
	case !sit.HasLeader:
		return v1alpha1.ReasonNoLeader, "there is no leader: see the condition Available"
	case o.Touches():
		return v1alpha1.ReasonAwaitingCandidate, "a member is being changed: the switchover starts after that"
	case m.Own && sit.Unarchived != "":
		return v1alpha1.ReasonAwaitingArchive, fmt.Sprintf("the leader, member %s, hands over %s", m.From, sit.HoldsLeader(order.ActMove))
	case m.Own && slices.ContainsFunc(sit.Views, ill):
		return v1alpha1.ReasonAwaitingCandidate, "a member is not healthy: the switchover starts when it is"
	default:
		return "", ""
	}
}

// Moving reports whether the leader is handing over, without an outcome yet.
func Moving(s *facts.Cluster, m *Move) bool {
	return m != nil && m.Asked || slices.ContainsFunc(s.Seen.Switchovers, func(o observev1alpha1.SwitchoverOutcome) bool {
		return o.State == observev1alpha1.SwitchoverAsked
	})
}
