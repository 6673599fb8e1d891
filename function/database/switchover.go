// SPDX-License-Identifier: Apache-2.0

package database

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database/encoding"
)

// A move is a switchover that is wanted and has no outcome yet.
type move struct {
	id, from, to string

	// own reports that it is Capstan's own, because node, on which the leader runs, is being emptied.
	own  bool
	node string

	// asked reports that the Topology has it already, and begin that it gets it now.
	asked, begin bool

	// gate that holds it, or reason and message why nobody could lead.
	gate    gate
	reason  xpv2.ConditionReason
	message string
}

// ownMoves begin the ids of switchovers that Capstan asks for itself.
const ownMoves = "capstan-"

// outcome of a switchover that the Topology tells of.
func (s *cluster) outcome(id string) (observev1alpha1.SwitchoverOutcome, bool) {
	i := slices.IndexFunc(s.seen.Switchovers, func(o observev1alpha1.SwitchoverOutcome) bool { return o.ID == id })
	if i < 0 {
		return observev1alpha1.SwitchoverOutcome{}, false
	}
	return s.seen.Switchovers[i], true
}

// ended reports whether a switchover has an outcome.
func (s *cluster) ended(id string) bool {
	o, told := s.outcome(id)
	return told && o.State != observev1alpha1.SwitchoverAsked
}

// handed is the switchover that the Topology was given before.
func (s *cluster) handed() *observev1alpha1.TopologySwitchover {
	o := s.Observed[s.in(nameTopology)]
	if o == nil {
		return nil
	}
	m := compose.Map(o.Map(), "spec", "forProvider", "switchover")
	if id := compose.Text(m, "id"); id != "" {
		return &observev1alpha1.TopologySwitchover{ID: id, From: compose.Text(m, "from"), To: compose.Text(m, "to")}
	}
	return nil
}

// skipped is the id that the Database was made with: recreated from its manifest, it must not switch over a second time.
// It is written down before there is a member.
func (s *cluster) skipped() string {
	// No switchover that was asked for before clients are switched is meant for another generation.
	if o := s.Observed[s.in(nameDCS)]; o != nil && !s.side {
		return compose.Text(o.Map(), "metadata", "annotations", annotationSkipped)
	}
	if s.spec.Switchover != nil {
		return s.spec.Switchover.ID
	}
	return ""
}

// moves is the switchover that is wanted now: one that the Topology was given and that is not over, then that of the spec, then
// one of a leader whose node is being emptied.
func (s *cluster) requestedMove(sit situation) *move {
	if h := s.handed(); h != nil && !s.ended(h.ID) {
		m := &move{id: h.ID, from: h.From, to: h.To, asked: true}
		// A request that is taken back before members have it was never made.
		_, begun := s.outcome(h.ID)
		if begun || s.spec.Switchover != nil && s.spec.Switchover.ID == h.ID {
			return m
		}
		if o := s.moveOffNode(sit); o != nil && o.id == h.ID {
			o.from, o.to, o.asked = h.From, h.To, true
			return o
		}
	}
	if w := s.spec.Switchover; w != nil && w.ID != s.skipped() && !s.ended(w.ID) {
		return &move{id: w.ID, from: s.seen.Leader, to: w.To}
	}
	return s.moveOffNode(sit)
}

// moveOffNode a node that is being emptied: before the pod of the leader has to go, and only when somebody can lead elsewhere. It
// is asked for once on each timeline, so that it does not go back and forth, and is not tried again when it fails.
func (s *cluster) moveOffNode(sit situation) *move {
	i := slices.IndexFunc(sit.views, view.leading)
	if !s.leads() || i < 0 || !sit.views[i].Cordoned || sit.views[i].Node == "" {
		return nil
	}
	h := encoding.Hash(map[string]any{"leader": sit.views[i].name, "node": sit.views[i].Node, "timeline": s.seen.Timeline})
	if s.ended(ownMoves + h) {
		return nil
	}
	if !slices.ContainsFunc(sit.views, sit.canLead) {
		return nil
	}
	return &move{id: ownMoves + h, from: sit.views[i].name, own: true, node: sit.views[i].Node}
}

// fit to lead at once: it has every commit, and its node takes pods.
func (s situation) canLead(v view) bool {
	return v.exists && v.expected && !v.stopped && !v.leading() && v.healthy() && !v.Cordoned &&
		(!s.synchronous || v.Role == observev1alpha1.RoleSyncStandby)
}

// cannotLead says why a member cannot lead now, and what to do, or nothing when it can.
func (s situation) cannotLead(to string) string {
	i := slices.IndexFunc(s.views, func(v view) bool { return v.name == to })
	switch {
	case i < 0:
		names := make([]string, 0, len(s.views))
		for _, v := range s.views {
			names = append(names, v.name)
		}
		return fmt.Sprintf("spec.switchover.to: %q: is none of the members %v: choose one of them, with another id", to, names)
	case s.canLead(s.views[i]):
		return ""
	}
	switch v := s.views[i]; {
	case !v.expected:
		return fmt.Sprintf("member %s is to be let go: choose another one", to)
	case v.hindered():
		return fmt.Sprintf("member %s is hindered: %s", to, v.Message)
	case !v.healthy():
		return fmt.Sprintf("member %s is not ready, or does not have every commit yet: wait, or choose another one", to)
	case v.Cordoned:
		return fmt.Sprintf("member %s is on node %s, which takes no pods: choose another one, or let the node take pods (kubectl uncordon)", to, v.Node)
	default:
		return fmt.Sprintf("member %s is none of those that a commit waits for: wait, or choose another one", to)
	}
}

// judged move: whether it can be asked for now, and who leads then.
func (s *cluster) judged(m move, sit situation, o order) *move {
	if m.asked || sit.handing {
		return &m
	}
	// One that was asked for by hand is a decision, which only a freeze holds.
	m.gate = sit.freeze
	if m.own {
		m.gate = sit.gate
	}
	ill := func(v view) bool { return v.exists && v.current && !v.healthy() }
	switch {
	case s.spec.Hibernated || slices.ContainsFunc(sit.views, func(v view) bool { return v.stopped }):
		m.reason, m.message = v1alpha1.ReasonHibernated, "members are stopped: set spec.hibernated to false"
	case !sit.known:
		m.reason, m.message = v1alpha1.ReasonAwaitingTopology, unknownMembers
	case sit.paused:
		m.reason, m.message = v1alpha1.ReasonPaused, "failover is paused by hand: "+sit.resume
	case !sit.leads:
		m.reason, m.message = v1alpha1.ReasonNoLeader, "no member leads: see the condition Available"
	case o.touches():
		m.reason, m.message = v1alpha1.ReasonAwaitingCandidate, "a member is being changed: the lead moves afterwards"
	case m.own && slices.ContainsFunc(sit.views, ill):
		m.reason, m.message = v1alpha1.ReasonAwaitingCandidate, "a member is not well: the lead moves once it is"
	default:
		if m.to, m.message = sit.candidate(m.from, m.to); m.message != "" {
			m.reason = v1alpha1.ReasonAwaitingCandidate
		}
	}
	m.begin = m.reason == "" && !m.gate.closed()
	return &m
}

// candidate for a move is the one that is named, or else the first that is fit; or why there is none.
func (s situation) candidate(from, to string) (candidate, why string) {
	switch i := slices.IndexFunc(s.views, s.canLead); {
	case to != "" && to == from:
		return to, "" // It leads already, which is written down.
	case to != "":
		return to, s.cannotLead(to)
	case i < 0:
		return "", "no member that has every commit is on a node that takes pods: wait, or add one"
	default:
		return s.views[i].name, ""
	}
}

// moving reports whether the leader was asked to hand over and nothing was heard yet.
func (s *cluster) moving(m *move) bool {
	return m != nil && m.asked || slices.ContainsFunc(s.seen.Switchovers, func(o observev1alpha1.SwitchoverOutcome) bool {
		return o.State == observev1alpha1.SwitchoverAsked
	})
}

// switchover for the Topology: the one that is wanted, as soon as it can be, or the last one, so that nothing changes after it is
// done.
func (s *decision) switchover() *observev1alpha1.TopologySwitchover {
	h := s.handed()
	switch {
	case s.move != nil && s.move.asked:
		return h
	case s.move != nil && s.move.begin:
		return &observev1alpha1.TopologySwitchover{ID: s.move.id, From: s.move.from, To: s.move.to}
	case h != nil && s.ended(h.ID):
		return h
	default:
		return nil
	}
}

// switchedOver tells what became of the switchover of the spec, or of Capstan's own.
func switchedOver(s *state) xpv2.Condition {
	w, m := s.spec.Switchover, s.move
	if len(s.problems) > 0 || w == nil && (m == nil || m.asked && !m.own) {
		return xpv2.Condition{}
	}
	if w != nil {
		if status, reason, message := s.requestedOutcome(w.ID); reason != "" {
			return xpv2.Condition{Status: status, Reason: reason, Message: message}
		}
	}
	if m == nil {
		return unknown(v1alpha1.ReasonAwaitingTopology, unknownMembers)
	}
	what := m.id
	if m.own {
		what = fmt.Sprintf("node %s of the leader takes no pods", m.node)
	}
	switch {
	case m.asked || m.begin:
		return no(v1alpha1.ReasonSwitchingOver, fmt.Sprintf("%s: member %s was asked to hand over to %s", what, m.from, m.to))
	case m.gate.closed():
		return no(m.gate.reason, what+": "+m.gate.message)
	default:
		return no(m.reason, what+": "+m.message)
	}
}

// requestedOutcome is what became of the switchover of the spec, when that is known.
func (s *decision) requestedOutcome(id string) (corev1.ConditionStatus, xpv2.ConditionReason, string) {
	switch o, told := s.outcome(id); {
	case told && o.State == observev1alpha1.SwitchoverDone:
		return corev1.ConditionTrue, v1alpha1.ReasonSwitchedOver, fmt.Sprintf("%s: member %s leads since; for another switchover choose another id", id, o.To)
	case told && o.State == observev1alpha1.SwitchoverFailed:
		return corev1.ConditionFalse, v1alpha1.ReasonSwitchoverFailed, fmt.Sprintf("%s: %s; to try again choose another id", id, o.Message)
	case id == s.skipped():
		return corev1.ConditionFalse, v1alpha1.ReasonSwitchoverSkipped, id + ": the Database was made with this id, and nothing was moved: for a switchover choose another id"
	case s.move != nil && s.move.id != id:
		return corev1.ConditionFalse, v1alpha1.ReasonSwitchingOver, id + ": another switchover has to end first"
	default:
		return "", "", ""
	}
}

// switchoverStatus is what became of the switchover of the spec.
func (s *decision) switchoverStatus() *v1alpha1.SwitchoverStatus {
	w := s.spec.Switchover
	if w == nil {
		return nil
	}
	st := &v1alpha1.SwitchoverStatus{ID: w.ID, To: w.To, Outcome: v1alpha1.SwitchoverWaiting}
	switch o, told := s.outcome(w.ID); {
	case told:
		st.Outcome, st.From, st.To, st.Message, st.At = o.State, o.From, o.To, o.Message, &o.At
	case w.ID == s.skipped():
		st.Outcome = v1alpha1.SwitchoverSkipped
	case s.move != nil && s.move.id == w.ID && s.move.asked:
		st.Outcome, st.From, st.To = observev1alpha1.SwitchoverAsked, s.move.from, s.move.to
	}
	return st
}
