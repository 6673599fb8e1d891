// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
)

// DatabaseBackupTarget is where backups go.
//
// +kubebuilder:validation:ExactlyOneOf=connectionSecretRef;volume
type DatabaseBackupTarget struct {
	// ConnectionSecretRef names the connection Secret of a Bucket of this namespace,
	// or another with its keys: endpoint, region, bucket, accessKeyId,
	// secretAccessKey and, for an authority of its own, ca.crt. Several Databases may
	// share a bucket.
	//
	// +optional
	ConnectionSecretRef *LocalReference `json:"connectionSecretRef,omitempty"`

	// Volume of this cluster, for where there is no object storage. A pod of its own
	// serves it. It is one volume: what takes it takes all backups, so that it stands
	// in for no copy elsewhere.
	//
	// +optional
	Volume *DatabaseBackupVolume `json:"volume,omitempty"`
}

// DatabaseBackupVolume is a volume that backups go to.
//
// +kubebuilder:validation:XValidation:rule="has(self.storageClassName) == has(oldSelf.storageClassName) && (!has(self.storageClassName) || self.storageClassName == oldSelf.storageClassName)",fieldPath=".storageClassName",message="cannot be changed: a volume stays in its class"
type DatabaseBackupVolume struct {
	// Size of the volume. It can be raised at any time, where its StorageClass lets it
	// grow, and cannot shrink. Default: three times spec.storage.
	//
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('1Gi')) >= 0",message="must be a quantity of at least 1Gi, for instance 150Gi"
	// +kubebuilder:validation:XValidation:rule="!isQuantity(string(self)) || !isQuantity(string(oldSelf)) || quantity(string(self)).compareTo(quantity(string(oldSelf))) >= 0",message="cannot shrink: what is there is kept"
	// +kubebuilder:example="150Gi"
	// +optional
	Size *resource.Quantity `json:"size,omitempty"`

	// StorageClassName of the volume. Default: the platform's for backups, or else
	// that of the members' volumes.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="must be the name of a StorageClass"
	// +kubebuilder:example="standard"
	// +optional
	StorageClassName string `json:"storageClassName,omitempty"`
}

// BackupVolumeStatus is the volume that backups go to.
type BackupVolumeStatus struct {
	// Claim that it is bound to.
	Claim string `json:"claim"`

	// Size that it has.
	//
	// +optional
	Size string `json:"size,omitempty"`

	// UsedPercent of it, in steps of 5.
	//
	// +optional
	UsedPercent int32 `json:"usedPercent,omitempty"`
}
