// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/database/decision"
	"github.com/capstan-dev/capstan/function/database/facts"
)

// following reports whether a standby has replayed what its primary archived.
func following(s *decision.Pass) xpv2.Condition {
	f := s.FollowReport()
	switch {
	case !s.Standby():
		return xpv2.Condition{}
	case !s.Leads():
		return unknown(v1alpha1.ReasonFollowingUnknown, "the standby has no leader: see the condition Available")
	}
	switch f.State {
	case observev1alpha1.FollowCaughtUp:
		return yes(v1alpha1.ReasonCaughtUp, fmt.Sprintf("all that the primary archived under stanza %s is replayed: see status.standby", f.Stanza))
	case observev1alpha1.FollowBehind:
		return no(v1alpha1.ReasonFollowingBehind, f.Message)
	case observev1alpha1.FollowReplaced:
		return no(v1alpha1.ReasonPrimaryReplaced, f.Message)
	case observev1alpha1.FollowUnreachable:
		return no(v1alpha1.ReasonArchiveUnreachable, "the archive of the primary cannot be read: "+f.Message)
	}
	return unknown(v1alpha1.ReasonFollowingUnknown, "the leader has not reported what it follows yet")
}

// promoted reports whether a standby was promoted, and no other primary was seen.
func promoted(s *decision.Pass) xpv2.Condition {
	f, p := s.FollowReport(), s.Promotion()
	switch {
	case p.Reason != "":
		return no(p.Reason, p.Message)
	case p.Begins:
		return no(v1alpha1.ReasonPromotionWaits, "the promotion is being recorded, and members carry it out next")
	case s.Memory.Promoted == nil || !s.Follows():
		return xpv2.Condition{}
	case f.State == observev1alpha1.FollowSecondPrimary:
		return no(v1alpha1.ReasonSecondPrimary, "spec.from.backup: "+f.Message+": it still writes, and its changes since then are not here. Nothing is merged: "+
			"stop it, and let it begin again as a standby of this Database; or delete this Database")
	case !s.Leads(), f.State != "":
		return no(v1alpha1.ReasonPromotionWaits, "members carry out the promotion: see the condition Available")
	default:
		return yes(v1alpha1.ReasonStandbyPromoted, fmt.Sprintf("the Database takes writes since promotion %q", s.Memory.Promoted.ID))
	}
}

// standbyStatus of a Database that follows another one, or did.
func standbyStatus(s *facts.Cluster) *v1alpha1.StandbyStatus {
	if !s.Follows() {
		return nil
	}
	f := s.FollowReport()
	st := &v1alpha1.StandbyStatus{Standby: s.Standby(), Stanza: f.Stanza, ReplayedTo: facts.Stamp(f.ReplayedTo)}
	if p := s.Memory.Promoted; p != nil {
		st.Promotion, st.PromotedAt = p.ID, &metav1.Time{Time: p.When}
	}
	return st
}
