// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

// Conditions of an Algorithm about its service level objective.
const (
	// TypeWithinSLO: True while some of the error budget of spec.slo is left. It is Unknown while the budget is
	// unknown, and exists only with spec.slo.
	TypeWithinSLO xpv2.ConditionType = "WithinSLO"
)

// Reasons of the condition WithinSLO, beside TooLittleData, Measuring, NoData, QueryFailed and ProviderMissing, for
// which it is Unknown.
const (
	// ReasonBudgetLeft: more than freezeRolloutsAtPercent of the error budget is left. Nothing to do.
	ReasonBudgetLeft xpv2.ConditionReason = "BudgetLeft"
	// ReasonBudgetLow: some of the error budget is left, but not more than freezeRolloutsAtPercent. Rollouts hold.
	ReasonBudgetLow xpv2.ConditionReason = "BudgetLow"
	// ReasonBudgetExhausted: the error budget is used up. Find out why requests fail or are slow.
	ReasonBudgetExhausted xpv2.ConditionReason = "BudgetExhausted"
)
