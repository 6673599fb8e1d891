// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

// Conditions of an Algorithm about its service level objective.
const (
	// TypeWithinSLO tells whether some of the error budget of spec.slo is left. It is
	// Unknown while nobody knows, and told only with spec.slo.
	TypeWithinSLO xpv2.ConditionType = "WithinSLO"
)

// Reasons of the condition WithinSLO, beside TooLittleData, Measuring, NoData,
// QueryFailed and ProviderMissing, which it is Unknown for.
const (
	// ReasonBudgetLeft: more of the error budget is left than minBudgetPercent.
	ReasonBudgetLeft xpv2.ConditionReason = "BudgetLeft"
	// ReasonBudgetLow: some of it is left, and no more than minBudgetPercent.
	ReasonBudgetLow xpv2.ConditionReason = "BudgetLow"
	// ReasonBudgetExhausted: nothing of it is left.
	ReasonBudgetExhausted xpv2.ConditionReason = "BudgetExhausted"
)
