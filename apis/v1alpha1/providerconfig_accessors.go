// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

var (
	_ resource.ProviderConfig           = &ProviderConfig{}
	_ resource.ProviderConfig           = &ClusterProviderConfig{}
	_ resource.TypedProviderConfigUsage = &ProviderConfigUsage{}
	_ resource.ProviderConfigUsageList  = &ProviderConfigUsageList{}
)

// GetCondition of this ProviderConfig.
func (c *ProviderConfig) GetCondition(t xpv2.ConditionType) xpv2.Condition {
	return c.Status.GetCondition(t)
}

// SetConditions of this ProviderConfig.
func (c *ProviderConfig) SetConditions(cs ...xpv2.Condition) { c.Status.SetConditions(cs...) }

// GetUsers of this ProviderConfig.
func (c *ProviderConfig) GetUsers() int64 { return c.Status.Users }

// SetUsers of this ProviderConfig.
func (c *ProviderConfig) SetUsers(n int64) { c.Status.Users = n }

// GetCondition of this ClusterProviderConfig.
func (c *ClusterProviderConfig) GetCondition(t xpv2.ConditionType) xpv2.Condition {
	return c.Status.GetCondition(t)
}

// SetConditions of this ClusterProviderConfig.
func (c *ClusterProviderConfig) SetConditions(cs ...xpv2.Condition) { c.Status.SetConditions(cs...) }

// GetUsers of this ClusterProviderConfig.
func (c *ClusterProviderConfig) GetUsers() int64 { return c.Status.Users }

// SetUsers of this ClusterProviderConfig.
func (c *ClusterProviderConfig) SetUsers(n int64) { c.Status.Users = n }

// GetProviderConfigReference of this usage.
func (u *ProviderConfigUsage) GetProviderConfigReference() xpv2.ProviderConfigReference {
	return u.ProviderConfigReference
}

// SetProviderConfigReference of this usage.
func (u *ProviderConfigUsage) SetProviderConfigReference(r xpv2.ProviderConfigReference) {
	u.ProviderConfigReference = r
}

// GetResourceReference of this usage.
func (u *ProviderConfigUsage) GetResourceReference() xpv2.TypedReference { return u.ResourceReference }

// SetResourceReference of this usage.
func (u *ProviderConfigUsage) SetResourceReference(r xpv2.TypedReference) { u.ResourceReference = r }

// GetItems of this list.
func (l *ProviderConfigUsageList) GetItems() []resource.ProviderConfigUsage {
	items := make([]resource.ProviderConfigUsage, len(l.Items))
	for i := range l.Items {
		items[i] = &l.Items[i]
	}
	return items
}
