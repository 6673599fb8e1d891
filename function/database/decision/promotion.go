// SPDX-License-Identifier: Apache-2.0

package decision

import (
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/database/facts"
	"github.com/capstan-dev/capstan/function/database/memory"
)

// A Promotion is what becomes of spec.promote in this pass.
type Promotion struct {
	// Begins reports that the promotion is recorded now. Members carry it out once the record is kept.
	Begins bool

	// Reason and Message say why it does not begin.
	Reason  xpv2.ConditionReason
	Message string
}

// Promotion that the spec requests and that was not carried out; zero without one.
func (s *Decision) Promotion() Promotion { return promotion(s.Cluster) }

func promotion(s *facts.Cluster) Promotion {
	if s.Spec.Promote == nil || s.Memory.Promoted != nil {
		return Promotion{}
	}
	f, id := s.FollowReport(), s.Spec.Promote.ID
	switch {
	case !s.Follows():
		return Promotion{Reason: v1alpha1.ReasonNotStandby, Message: "spec.promote.id: \"" + id + "\": this Database is no standby, " +
			"because spec.from.backup.follow is not true: remove spec.promote"}
	case !s.Known:
		return Promotion{Reason: v1alpha1.ReasonPromotionWaits, Message: "it is not known whether this Database was promoted before: see the Credential of the Database"}
	case s.Memory.SkippedPromotion(id), len(s.Sets) == 0:
		return Promotion{Reason: v1alpha1.ReasonPromotionSkipped, Message: "spec.promote.id: \"" + id + "\": the Database was created with this id, " +
			"which promotes nothing: to promote it, set another id"}
	case !s.Leads(), f.State == "":
		return Promotion{Reason: v1alpha1.ReasonPromotionWaits, Message: "the standby has no leader that has reported what it follows: see the condition Available"}
	case f.Active:
		return Promotion{Reason: v1alpha1.ReasonPrimaryActive, Message: "spec.promote.id: \"" + id + "\": the primary has archived under stanza " + f.Stanza +
			" within the last two minutes, so it runs: stop it (spec.hibernated: true in its Database, or stop its nodes), and the promotion begins by itself; " +
			"to remain a standby, remove spec.promote"}
	}
	return Promotion{Begins: true}
}

// skipPromotion records the id that a Database is created with: it promotes nothing. It reports whether there is one.
func (s *Pass) skipPromotion(m *memory.Memory) bool {
	p := s.Spec.Promote
	if p == nil || !s.Follows() || m.Promoted != nil || m.SkippedPromotion(p.ID) {
		return false
	}
	m.Done = Remembered(s.Cluster, m.Done, memory.Done{ID: p.ID, Kind: memory.StepPromote, State: v1alpha1.RestoreSkipped, When: s.Moment()})
	return true
}
