// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

var (
	_ resource.ModernManaged = &Credential{}
	_ resource.ManagedList   = &CredentialList{}
)

// GetCondition of this Credential.
func (c *Credential) GetCondition(ct xpv2.ConditionType) xpv2.Condition {
	return c.Status.GetCondition(ct)
}

// SetConditions of this Credential.
func (c *Credential) SetConditions(cs ...xpv2.Condition) { c.Status.SetConditions(cs...) }

// GetManagementPolicies of this Credential.
func (c *Credential) GetManagementPolicies() xpv2.ManagementPolicies {
	return c.Spec.ManagementPolicies
}

// SetManagementPolicies of this Credential.
func (c *Credential) SetManagementPolicies(p xpv2.ManagementPolicies) { c.Spec.ManagementPolicies = p }

// GetProviderConfigReference is nil: this kind talks to nothing outside the cluster.
func (c *Credential) GetProviderConfigReference() *xpv2.ProviderConfigReference { return nil }

// SetProviderConfigReference does nothing: this kind talks to nothing outside the cluster.
func (c *Credential) SetProviderConfigReference(*xpv2.ProviderConfigReference) {}

// GetWriteConnectionSecretToReference is nil: this kind has no connection details.
func (c *Credential) GetWriteConnectionSecretToReference() *xpv2.LocalSecretReference { return nil }

// SetWriteConnectionSecretToReference does nothing: this kind has no connection details.
func (c *Credential) SetWriteConnectionSecretToReference(*xpv2.LocalSecretReference) {}

// GetItems of this list.
func (l *CredentialList) GetItems() []resource.Managed {
	items := make([]resource.Managed, len(l.Items))
	for i := range l.Items {
		items[i] = &l.Items[i]
	}

	return items
}
