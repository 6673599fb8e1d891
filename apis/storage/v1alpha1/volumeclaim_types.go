// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// A VolumeClaim observes the data volumes of a Database and lets them grow. It raises the requests of their persistent
// volume claims, and reports the progress. If the Database has volumes for the write-ahead log, it creates their claims,
// too, and the claim of a volume that is filled from a snapshot. It never creates another claim, deletes or shrinks a
// volume, or changes volumes of other members and Databases.
// Each Database composes one.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,managed,capstan}
// +kubebuilder:printcolumn:name="Synced",type=string,JSONPath=`.status.conditions[?(@.type=="Synced")].status`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Size",type=string,JSONPath=`.spec.forProvider.size`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.atProvider.state`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type VolumeClaim struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired size of the volumes.
	Spec VolumeClaimSpec `json:"spec"`

	// Status is the observed size of the volumes.
	//
	// +optional
	Status VolumeClaimStatus `json:"status,omitempty"`
}

// VolumeClaimList is a list of VolumeClaims.
//
// +kubebuilder:object:root=true
type VolumeClaimList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []VolumeClaim `json:"items"`
}

// VolumeClaimSpec is the desired size of the volumes.
type VolumeClaimSpec struct {
	// ManagementPolicies: a VolumeClaim observes volumes and lets them grow (Update). Default: ["Observe", "Update"].
	//
	// +kubebuilder:default={"Observe","Update"}
	// +kubebuilder:validation:XValidation:rule="self.all(p, p == 'Observe' || p == 'Update')",message="must be Observe, Update or nothing: a VolumeClaim does not delete volumes"
	// +kubebuilder:example={"Observe","Update"}
	// +optional
	ManagementPolicies xpv2.ManagementPolicies `json:"managementPolicies,omitempty"`

	// ForProvider is the desired size of the volumes.
	ForProvider VolumeClaimParameters `json:"forProvider"`
}

// VolumeClaimParameters are the volumes and their desired size.
type VolumeClaimParameters struct {
	// Database of the volumes: persistent volume claims of this namespace whose label capstan.dev/database has this
	// value.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:example="orders-db"
	Database string `json:"database"`

	// Identity of the Database. Claims whose label capstan.dev/identity has another value are not changed. Without an
	// identity no claim is changed.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:example="3f2a9c1b5d7e48609a1b2c3d4e5f6071"
	// +optional
	Identity string `json:"identity,omitempty"`

	// Members whose volumes can grow. The volume of a removed member keeps its size.
	//
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	// +kubebuilder:example={"orders-db-a","orders-db-b","orders-db-c"}
	// +optional
	Members []string `json:"members,omitempty"`

	// WALVolumes are the volumes for the write-ahead log. Without it none is created, and those that exist keep their size.
	//
	// +optional
	WALVolumes *WALVolumes `json:"wal,omitempty"`

	// Filled is the volume of data that a new Database begins with. Its claim is created once, if there is none.
	//
	// +optional
	Filled *FilledVolume `json:"filled,omitempty"`

	// Size is the minimum size of every volume of data. A larger volume keeps its size.
	//
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('1')) >= 0",message="must be a quantity above 0, for instance 50Gi"
	// +kubebuilder:example="50Gi"
	Size resource.Quantity `json:"size"`
}

// WALVolumes are volumes for the write-ahead log, one of each member. The claim of member orders-db-a is
// wal-orders-db-a-0. It is created once and stays, like a claim of data.
type WALVolumes struct {
	// Size is the minimum size of every volume of the log. A larger volume keeps its size.
	//
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('1')) >= 0",message="must be a quantity above 0, for instance 20Gi"
	// +kubebuilder:example="20Gi"
	Size resource.Quantity `json:"size"`

	// StorageClassName of volumes that are created. Default: the cluster's default class.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:example="fast"
	// +optional
	StorageClassName string `json:"storageClassName,omitempty"`
}

// FilledVolume is the volume of data of one member, filled from a VolumeSnapshot. The claim of member orders-db-a is
// data-orders-db-a-0. It is created before its StatefulSet, which would create an empty one.
type FilledVolume struct {
	// Member whose volume it is.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:example="orders-db-a"
	Member string `json:"member"`

	// Snapshot is the VolumeSnapshot of this namespace.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:example="orders-db-20261121-060000"
	Snapshot string `json:"snapshot"`

	// StorageClassName of the volume. Default: the cluster's default class.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:example="fast"
	// +optional
	StorageClassName string `json:"storageClassName,omitempty"`

	// Labels of the claim, beside the labels of every volume of the Database.
	//
	// +kubebuilder:validation:MaxProperties=8
	// +kubebuilder:example={"capstan.dev/generation":"1"}
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
}

// VolumeClaimStatus is the observed size of the volumes.
type VolumeClaimStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	// AtProvider is the observed size of the volumes.
	//
	// +optional
	AtProvider VolumeClaimObservation `json:"atProvider,omitempty"`
}

// HoldsWAL is what a volume of the write-ahead log holds.
const HoldsWAL = "WAL"

// States of a volume.
const (
	// VolumePending: it does not exist yet.
	VolumePending = "Pending"
	// VolumeReady: it has the desired size.
	VolumeReady = "Ready"
	// VolumeGrowing: its storage grows.
	VolumeGrowing = "Growing"
	// VolumeFileSystemPending: its storage has grown, and its file system will grow when the kubelet of its node
	// resizes it.
	VolumeFileSystemPending = "FileSystemResizePending"
	// VolumeNotExpandable: its StorageClass does not support growth.
	VolumeNotExpandable = "NotExpandable"
	// VolumeFailed: it cannot grow, for the reason in its message.
	VolumeFailed = "Failed"
)

// VolumeClaimObservation is the observed size of the volumes.
type VolumeClaimObservation struct {
	// State is the worst state of all volumes: Failed, NotExpandable, Growing, FileSystemResizePending, Pending or
	// Ready.
	//
	// +optional
	State string `json:"state,omitempty"`

	// Volumes by the name of their claim.
	//
	// +listType=map
	// +listMapKey=name
	// +optional
	Volumes []VolumeObservation `json:"volumes,omitempty"`
}

// VolumeObservation is one volume.
type VolumeObservation struct {
	// Name of its claim.
	Name string `json:"name"`

	// Member whose data it holds.
	Member string `json:"member"`

	// Holds is WAL for a volume of the write-ahead log, and empty for a volume of data.
	//
	// +optional
	Holds string `json:"holds,omitempty"`

	// StorageClass of the volume.
	//
	// +optional
	StorageClass string `json:"storageClass,omitempty"`

	// Requested is the size that its claim requests.
	//
	// +optional
	Requested string `json:"requested,omitempty"`

	// Granted is its size, including the file system.
	//
	// +optional
	Granted string `json:"granted,omitempty"`

	// State: Pending, Ready, Growing, FileSystemResizePending, NotExpandable or Failed.
	State string `json:"state"`

	// Message has the cause when it neither is ready nor grows.
	//
	// +optional
	Message string `json:"message,omitempty"`
}
