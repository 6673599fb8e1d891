// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

// Conditions of a Database with spec.from.backup.follow.
const (
	// TypeFollowing: True while the standby has replayed everything that the primary archived. It exists until the
	// promotion.
	TypeFollowing xpv2.ConditionType = "Following"
	// TypePromoted: True once the Database was promoted and no other primary was seen. It exists with spec.promote, and
	// after a promotion.
	TypePromoted xpv2.ConditionType = "Promoted"
)

// Reasons of the condition Following.
const (
	// ReasonCaughtUp: all that is archived is replayed. Nothing to do.
	ReasonCaughtUp xpv2.ConditionReason = "CaughtUp"
	// ReasonFollowingBehind: for minutes the archive has had more than what is replayed. Read the log of the leader.
	ReasonFollowingBehind xpv2.ConditionReason = "FollowingBehind"
	// ReasonArchiveUnreachable: the primary's archive cannot be read. The message has the cause.
	ReasonArchiveUnreachable xpv2.ConditionReason = "ArchiveUnreachable"
	// ReasonPrimaryReplaced: the primary was restored or upgraded, and archives elsewhere. Make another standby of it.
	ReasonPrimaryReplaced xpv2.ConditionReason = "PrimaryReplaced"
	// ReasonFollowingUnknown: the leader has not reported what it follows yet. Wait, or see the condition Available.
	ReasonFollowingUnknown xpv2.ConditionReason = "FollowingUnknown"
)

// Reasons of the condition Promoted.
const (
	// ReasonStandbyPromoted: the Database is a primary. Nothing to do.
	ReasonStandbyPromoted xpv2.ConditionReason = "Promoted"
	// ReasonPromotionWaits: the promotion begins later. The message names what it waits for.
	ReasonPromotionWaits xpv2.ConditionReason = "PromotionWaits"
	// ReasonPrimaryActive: the primary still archives. Stop it, then the promotion begins by itself.
	ReasonPrimaryActive xpv2.ConditionReason = "PrimaryActive"
	// ReasonPromotionSkipped: the Database was created with this ID. Use another ID to promote it.
	ReasonPromotionSkipped xpv2.ConditionReason = "PromotionSkipped"
	// ReasonNotStandby: there is nothing to promote. Remove spec.promote.
	ReasonNotStandby xpv2.ConditionReason = "NotStandby"
	// ReasonSecondPrimary: the former primary archived more after the promotion, which this Database does not have. Stop
	// one of the two.
	ReasonSecondPrimary xpv2.ConditionReason = "SecondPrimary"
)

// ReasonStandby of Available, of ConsumersReady and of the conditions of backups: the Database is a standby of another one. To let it take writes, set spec.promote.
const ReasonStandby xpv2.ConditionReason = "Standby"
