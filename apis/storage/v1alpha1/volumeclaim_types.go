// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// A VolumeClaim watches over the data volumes of a Database, and lets them grow:
// it raises what their persistent volume claims request, and tells how far the
// cluster has come with it. It never makes, deletes or shrinks a volume, and
// leaves alone those of members and Databases that it is not told of. The
// Database's composition makes one for each Database.
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

	// Spec is how large volumes should be.
	Spec VolumeClaimSpec `json:"spec"`

	// Status is how large they are.
	//
	// +optional
	Status VolumeClaimStatus `json:"status,omitempty"`
}

// VolumeClaimList holds many VolumeClaims.
//
// +kubebuilder:object:root=true
type VolumeClaimList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []VolumeClaim `json:"items"`
}

// VolumeClaimSpec is how large volumes should be.
type VolumeClaimSpec struct {
	// ManagementPolicies: a VolumeClaim observes, and lets volumes grow (Update).
	//
	// +kubebuilder:default={"Observe","Update"}
	// +kubebuilder:validation:XValidation:rule="self.all(p, p == 'Observe' || p == 'Update')",message="must be Observe, Update or nothing: a VolumeClaim makes and deletes no volume"
	// +kubebuilder:example={"Observe","Update"}
	// +optional
	ManagementPolicies xpv2.ManagementPolicies `json:"managementPolicies,omitempty"`

	// ForProvider is how large volumes should be.
	ForProvider VolumeClaimParameters `json:"forProvider"`
}

// VolumeClaimParameters say which volumes are looked at, and how large they should
// be.
type VolumeClaimParameters struct {
	// Database whose volumes are looked at: persistent volume claims of this
	// namespace with the label capstan.dev/database of this value.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:example="orders-db"
	Database string `json:"database"`

	// Identity of the Database. Claims whose label capstan.dev/identity has another
	// value are left alone. Until the Database has an identity, all are.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:example="3f2a9c1b5d7e48609a1b2c3d4e5f6071"
	// +optional
	Identity string `json:"identity,omitempty"`

	// Members whose volumes are let grow. The volume of a member that was let go
	// keeps the size that it has.
	//
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	// +kubebuilder:example={"orders-db-a","orders-db-b","orders-db-c"}
	// +optional
	Members []string `json:"members,omitempty"`

	// Size that every volume should have at least. A volume that is larger stays so.
	//
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('1')) >= 0",message="must be a quantity above 0, for instance 50Gi"
	// +kubebuilder:example="50Gi"
	Size resource.Quantity `json:"size"`
}

// VolumeClaimStatus is how large volumes are.
type VolumeClaimStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	// AtProvider is how large volumes are.
	//
	// +optional
	AtProvider VolumeClaimObservation `json:"atProvider,omitempty"`
}

// States of a volume.
const (
	// VolumePending: it is not there yet.
	VolumePending = "Pending"
	// VolumeReady: it is as large as it should be.
	VolumeReady = "Ready"
	// VolumeGrowing: its storage is being made larger.
	VolumeGrowing = "Growing"
	// VolumeFileSystemPending: its storage is larger, and its file system grows as
	// soon as the kubelet of the node that it is mounted on gets to it.
	VolumeFileSystemPending = "FileSystemResizePending"
	// VolumeNotExpandable: its StorageClass does not let volumes grow.
	VolumeNotExpandable = "NotExpandable"
	// VolumeFailed: it could not be let grow, for the reason that its message tells.
	VolumeFailed = "Failed"
)

// VolumeClaimObservation is how large volumes are.
type VolumeClaimObservation struct {
	// State of the volume that is furthest from what it should be: Failed,
	// NotExpandable, Growing, FileSystemResizePending, Pending or Ready.
	//
	// +optional
	State string `json:"state,omitempty"`

	// Volumes by name of their claim.
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

	// StorageClass that it was made by.
	//
	// +optional
	StorageClass string `json:"storageClass,omitempty"`

	// Requested is the size that its claim asks for.
	//
	// +optional
	Requested string `json:"requested,omitempty"`

	// Granted is the size that it has, its file system included.
	//
	// +optional
	Granted string `json:"granted,omitempty"`

	// State: Pending, Ready, Growing, FileSystemResizePending, NotExpandable or
	// Failed.
	State string `json:"state"`

	// Message tells the cause when it is neither ready nor on its way.
	//
	// +optional
	Message string `json:"message,omitempty"`
}
