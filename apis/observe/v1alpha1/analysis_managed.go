// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

var (
	_ resource.ModernManaged = &Analysis{}
	_ resource.ManagedList   = &AnalysisList{}
)

// GetCondition of this Analysis.
func (a *Analysis) GetCondition(ct xpv2.ConditionType) xpv2.Condition {
	return a.Status.GetCondition(ct)
}

// SetConditions of this Analysis.
func (a *Analysis) SetConditions(cs ...xpv2.Condition) { a.Status.SetConditions(cs...) }

// GetManagementPolicies of this Analysis.
func (a *Analysis) GetManagementPolicies() xpv2.ManagementPolicies { return a.Spec.ManagementPolicies }

// SetManagementPolicies of this Analysis.
func (a *Analysis) SetManagementPolicies(p xpv2.ManagementPolicies) { a.Spec.ManagementPolicies = p }

// GetProviderConfigReference is nil: this kind talks to nothing outside the cluster.
func (a *Analysis) GetProviderConfigReference() *xpv2.ProviderConfigReference { return nil }

// SetProviderConfigReference does nothing: this kind talks to nothing outside the cluster.
func (a *Analysis) SetProviderConfigReference(*xpv2.ProviderConfigReference) {}

// GetWriteConnectionSecretToReference is nil: this kind has no connection details.
func (a *Analysis) GetWriteConnectionSecretToReference() *xpv2.LocalSecretReference { return nil }

// SetWriteConnectionSecretToReference does nothing: this kind has no connection details.
func (a *Analysis) SetWriteConnectionSecretToReference(*xpv2.LocalSecretReference) {}

// GetItems of this list.
func (l *AnalysisList) GetItems() []resource.Managed {
	items := make([]resource.Managed, len(l.Items))
	for i := range l.Items {
		items[i] = &l.Items[i]
	}

	return items
}
