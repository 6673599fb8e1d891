// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// DatabaseExpose makes a Database reachable from outside the cluster through a load balancer.
type DatabaseExpose struct {
	// SourceRanges are the addresses that can connect, 1 to 32 ranges. There is no default: to allow the whole
	// Internet, write 0.0.0.0/0. Both the load balancer and a NetworkPolicy enforce them.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +listType=set
	// +kubebuilder:example={"203.0.113.0/24"}
	SourceRanges []SourceRange `json:"sourceRanges"`

	// Hostname for clients outside the cluster; the certificate covers it. You must point it to the address of the load
	// balancer in DNS. Default: only the address itself, which the certificate covers as well.
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
// +kubebuilder:validation:XValidation:rule="isCIDR(self) && cidr(self) == cidr(self).masked()",message="must be a range of addresses with zero host bits, for instance 203.0.113.0/24"
type SourceRange string
