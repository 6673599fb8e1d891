// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// StorageGrowth lets volumes grow automatically when data fills them. They do not grow for write-ahead log that a
// replication slot or a failing archive retains: more space would only delay the failure.
type StorageGrowth struct {
	// WhenFreePercent is the limit: when a member has less free space than this percentage, the volumes of all members
	// grow. From 5 to 50 in steps of 5. Default: 15.
	//
	// +kubebuilder:validation:Minimum=5
	// +kubebuilder:validation:Maximum=50
	// +kubebuilder:validation:MultipleOf=5
	// +kubebuilder:default=15
	// +kubebuilder:example=15
	// +optional
	WhenFreePercent int32 `json:"whenFreePercent,omitempty"`

	// ByPercent is the percentage of their size by which volumes grow each time, rounded up to whole GiB. From 20 to
	// 100. Default: 20.
	//
	// +kubebuilder:validation:Minimum=20
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:default=20
	// +kubebuilder:example=20
	// +optional
	ByPercent int32 `json:"byPercent,omitempty"`

	// Max is the size up to which volumes grow automatically. It does not limit spec.storage.
	//
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('1Gi')) >= 0",message="must be a quantity of at least 1Gi, for instance 200Gi"
	// +kubebuilder:example="200Gi"
	Max resource.Quantity `json:"max"`
}

// StorageStatus is how large and how full the volumes are.
type StorageStatus struct {
	// Wanted is the desired size of every volume: spec.storage, or more if volumes have grown automatically.
	//
	// +optional
	Wanted string `json:"wanted,omitempty"`

	// Size is the size of the smallest volume.
	//
	// +optional
	Size string `json:"size,omitempty"`

	// WALSize is the size of the smallest volume for the write-ahead log, once every member has one.
	//
	// +optional
	WALSize string `json:"walSize,omitempty"`

	// State: Ready, Pending, Growing, FileSystemResizePending, NotExpandable or Failed.
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

// VolumeStatus is the state of one volume.
type VolumeStatus struct {
	// Member whose data it holds.
	Member string `json:"member"`

	// Size of the volume.
	//
	// +optional
	Size string `json:"size,omitempty"`

	// UsedPercent is how full the volume is, in steps of 5, rounded down.
	//
	// +optional
	UsedPercent int32 `json:"usedPercent,omitempty"`

	// Fill is what fills the volume, once it is half full: Data, Slot, Archive or WAL.
	//
	// +optional
	Fill string `json:"fill,omitempty"`

	// WALVolume is the member's volume for the write-ahead log, if it has one.
	//
	// +optional
	WALVolume *WALVolumeStatus `json:"wal,omitempty"`

	// Diverged is since when the volume also holds data of a former leader that could not follow, in the folder
	// pgdata.diverged. It is removed after seven days, or when the volume gets full.
	//
	// +optional
	Diverged *metav1.Time `json:"diverged,omitempty"`
}

// WALVolumeStatus is the state of a volume for the write-ahead log.
type WALVolumeStatus struct {
	// Size of the volume.
	//
	// +optional
	Size string `json:"size,omitempty"`

	// UsedPercent is how full the volume is, in steps of 5, rounded down.
	//
	// +optional
	UsedPercent int32 `json:"usedPercent,omitempty"`

	// Fill is what fills the volume, once it is half full: Slot, Archive or WAL.
	//
	// +optional
	Fill string `json:"fill,omitempty"`
}
