// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// OnlyLooks reports whether the policies of mg let it change nothing outside.
func OnlyLooks(mg resource.Managed) bool {
	return !slices.ContainsFunc(mg.GetManagementPolicies(), func(a xpv2.ManagementAction) bool {
		return a != xpv2.ManagementActionObserve && a != xpv2.ManagementActionLateInitialize
	})
}

// May reports whether the policies of mg allow an action.
func May(mg resource.Managed, action xpv2.ManagementAction) bool {
	return slices.ContainsFunc(mg.GetManagementPolicies(), func(a xpv2.ManagementAction) bool {
		return a == action || a == xpv2.ManagementActionAll
	})
}
