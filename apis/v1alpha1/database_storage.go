// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// StorageGrowth lets volumes grow by themselves when data fills them. What is no
// data, such as write-ahead log that a replication slot or an archive that fails
// holds back, does not let them grow: more room would only put off the end.
type StorageGrowth struct {
	// WhenFreePercent: the volumes of all members grow when less than this share of
	// a member's is free. It is looked at in steps of 5.
	//
	// +kubebuilder:validation:Minimum=5
	// +kubebuilder:validation:Maximum=50
	// +kubebuilder:validation:MultipleOf=5
	// +kubebuilder:default=15
	// +kubebuilder:example=15
	// +optional
	WhenFreePercent int32 `json:"whenFreePercent,omitempty"`

	// ByPercent of their size volumes grow at a time, rounded up to whole GiB.
	//
	// +kubebuilder:validation:Minimum=20
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:default=20
	// +kubebuilder:example=20
	// +optional
	ByPercent int32 `json:"byPercent,omitempty"`

	// Max size that volumes grow to by themselves. It is no bound for spec.storage.
	//
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('1Gi')) >= 0",message="must be a quantity of at least 1Gi, for instance 200Gi"
	// +kubebuilder:example="200Gi"
	Max resource.Quantity `json:"max"`
}

// StorageStatus tells how large and how full volumes are.
type StorageStatus struct {
	// Wanted is the size that every volume should have: spec.storage, or more where
	// volumes have grown by themselves.
	//
	// +optional
	Wanted string `json:"wanted,omitempty"`

	// Size that every volume has at least.
	//
	// +optional
	Size string `json:"size,omitempty"`

	// State: Ready, Pending, Growing, FileSystemResizePending, NotExpandable or
	// Failed.
	//
	// +optional
	State string `json:"state,omitempty"`

	// Volumes of the members.
	//
	// +listType=map
	// +listMapKey=member
	// +optional
	Volumes []VolumeStatus `json:"volumes,omitempty"`
}

// VolumeStatus is one volume.
type VolumeStatus struct {
	// Member whose data it holds.
	Member string `json:"member"`

	// Size that it has.
	//
	// +optional
	Size string `json:"size,omitempty"`

	// UsedPercent of it, in steps of 5, rounded down.
	//
	// +optional
	UsedPercent int32 `json:"usedPercent,omitempty"`

	// Fill is what fills it, once it is half full: Data, Slot, Archive or WAL.
	//
	// +optional
	Fill string `json:"fill,omitempty"`
}

// Reasons of the condition StorageHealthy while volumes grow, or should.
const (
	// ReasonGrowing: volumes are being made larger.
	ReasonGrowing xpv2.ConditionReason = "Growing"
	// ReasonGrowthFailed: a volume could not be made larger.
	ReasonGrowthFailed xpv2.ConditionReason = "GrowthFailed"
	// ReasonGrowthBound: volumes have grown by themselves as far as they may.
	ReasonGrowthBound xpv2.ConditionReason = "GrowthBound"
	// ReasonGrowthHeld: what fills a volume is no data, so that it does not grow by
	// itself.
	ReasonGrowthHeld xpv2.ConditionReason = "GrowthHeld"
)
