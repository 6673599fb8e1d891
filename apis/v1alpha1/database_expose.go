// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

// DatabaseExpose lets clients outside the cluster in, by way of a load balancer.
type DatabaseExpose struct {
	// SourceRanges are the addresses that may connect, 1 to 32 ranges. There is no
	// default: to let the whole Internet in, say 0.0.0.0/0. Both the load balancer
	// and the network policy hold to them.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +listType=set
	// +kubebuilder:example={"203.0.113.0/24"}
	SourceRanges []SourceRange `json:"sourceRanges"`

	// Hostname that clients outside connect to, and that the certificate is for, too.
	// Who asks for it points the name to the address of the load balancer. Default:
	// the address itself, which the certificate is for as well.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)+$')",message="must be a DNS name with a dot in it, in lower case, for instance orders-db.example.org"
	// +kubebuilder:example="orders-db.example.org"
	// +optional
	Hostname string `json:"hostname,omitempty"`
}

// SourceRange is a range of addresses.
//
// +kubebuilder:validation:MaxLength=43
// +kubebuilder:validation:XValidation:rule="isCIDR(self) && cidr(self) == cidr(self).masked()",message="must be a range of addresses without bits behind it, for instance 203.0.113.0/24"
type SourceRange string

// TypeExposed tells whether clients outside the cluster have an address to connect
// to. It is told only with spec.expose.
const TypeExposed xpv2.ConditionType = "Exposed"

// Reasons of the condition Exposed.
const (
	// ReasonAddressAssigned: the load balancer has an address.
	ReasonAddressAssigned xpv2.ConditionReason = "AddressAssigned"
	// ReasonAddressPending: it has none yet.
	ReasonAddressPending xpv2.ConditionReason = "AddressPending"
)
