// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/members"
	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/database/decision"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/order"
	"github.com/capstan-dev/capstan/function/database/switchover"
)

// switchedOver reports the outcome of the switchover of the spec, or of Capstan's own.
func switchedOver(s *decision.Pass) xpv2.Condition {
	w, m := s.Spec.Switchover, s.Move
	if len(s.Problems) > 0 || w == nil && (m == nil || m.Asked && !m.Own) {
		return xpv2.Condition{}
	}
	if w != nil {
		if c := requestedOutcome(s.Decision, w.ID); c.Status != "" {
			return c
		}
	}
	if m == nil {
		return unknown(v1alpha1.ReasonAwaitingTopology, order.UnknownMembers)
	}
	what := m.ID
	if m.Own {
		what = fmt.Sprintf("node %s of the leader is cordoned", m.Node)
	}
	switch {
	case m.Asked || m.Begin:
		return no(v1alpha1.ReasonSwitchingOver, fmt.Sprintf("%s: the leader, member %s, hands over to member %s", what, m.From, m.To))
	case m.Gate.Closed():
		return no(m.Gate.Reason, what+": "+m.Gate.Message)
	default:
		return no(m.Reason, what+": "+m.Message)
	}
}

// requestedOutcome of the switchover of the spec, when that is known.
func requestedOutcome(s *decision.Decision, id string) xpv2.Condition {
	switch o, known := switchover.Outcome(s.Cluster, id); {
	case known && o.State == observev1alpha1.SwitchoverDone:
		return yes(v1alpha1.ReasonSwitchedOver, fmt.Sprintf("%s: member %s became the leader; for another switchover, choose another id", id, o.To))
	case known && o.State == observev1alpha1.SwitchoverFailed:
		return no(v1alpha1.ReasonSwitchoverFailed, fmt.Sprintf("%s: %s; to try again, choose another id", id, o.Message))
	case id == switchover.Skipped(s.Cluster):
		return no(v1alpha1.ReasonSwitchoverSkipped, id+": the Database was created with this id, so nothing was switched over: for a switchover, choose another id")
	case s.Move != nil && s.Move.ID != id:
		return no(v1alpha1.ReasonSwitchingOver, id+": another switchover must end first")
	default:
		return xpv2.Condition{}
	}
}

// switchoverStatus is the outcome of the switchover of the spec.
func switchoverStatus(s *decision.Decision) *v1alpha1.SwitchoverStatus {
	w := s.Spec.Switchover
	if w == nil {
		return nil
	}
	st := &v1alpha1.SwitchoverStatus{ID: w.ID, To: w.To, Outcome: v1alpha1.SwitchoverWaiting}
	switch o, known := switchover.Outcome(s.Cluster, w.ID); {
	case known:
		st.Outcome, st.From, st.To, st.Message, st.At = o.State, o.From, o.To, o.Message, &o.At
	case w.ID == switchover.Skipped(s.Cluster):
		st.Outcome = v1alpha1.SwitchoverSkipped
	case s.Move != nil && s.Move.ID == w.ID && s.Move.Asked:
		st.Outcome, st.From, st.To = observev1alpha1.SwitchoverAsked, s.Move.From, s.Move.To
	}
	return st
}

// reinitializeStatus is what became of the request to copy a member again.
func reinitializeStatus(s *facts.Cluster) *v1alpha1.ReinitializeStatus {
	r := s.Spec.Reinitialize
	if r == nil {
		return nil
	}
	st := &v1alpha1.ReinitializeStatus{ID: r.ID, Member: r.Member, Outcome: members.ReinitializeWaiting, Message: awaited(s, "spec.reinitialize.member", r.Member)}
	for _, m := range s.Seen.Members {
		if did := m.Reinitialize; m.Name == r.Member && did != nil && did.ID == r.ID {
			st.Outcome, st.Message = did.Outcome, did.Message
		}
	}
	return st
}

// fenceStatus is what became of the request to stop a member.
func fenceStatus(s *facts.Cluster) *v1alpha1.FenceStatus {
	r := s.Spec.Fence
	if r == nil {
		return nil
	}
	st := &v1alpha1.FenceStatus{ID: r.ID, Member: r.Member, Outcome: members.FenceWaiting, Message: awaited(s, "spec.fence.member", r.Member)}
	for _, m := range s.Seen.Members {
		if did := m.Fence; m.Name == r.Member && did != nil && did.ID == r.ID {
			st.Outcome, st.Message = did.Outcome, did.Message
		}
	}
	return st
}

// awaited is why a request to a member has no outcome while the member reports none.
func awaited(s *facts.Cluster, field, member string) string {
	all := make([]string, 0, len(s.Seen.Members))
	for _, m := range s.Seen.Members {
		all = append(all, m.Name)
	}
	if len(all) > 0 && !slices.Contains(all, member) {
		// After a restore members have other names, so that a request of before must not refuse the spec.
		return fmt.Sprintf("%s: %q: is not one of the members %v: choose one of them", field, member, all)
	}
	return "the member has not reported that it has the request: its image may be of an earlier version"
}
