// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
)

// DatabaseBackupTarget is where backups go.
//
// +kubebuilder:validation:ExactlyOneOf=connectionSecretRef;volume
type DatabaseBackupTarget struct {
	// ConnectionSecretRef names the connection Secret of a Bucket of this namespace, or another Secret with its keys:
	// endpoint, region, bucket, accessKeyId, secretAccessKey and, for a private authority, ca.crt. With workloadIdentity it
	// needs no keys. Several Databases can share a bucket.
	//
	// +optional
	ConnectionSecretRef *LocalReference `json:"connectionSecretRef,omitempty"`

	// Volume of this cluster, for platforms without object storage. A separate pod serves it. All backups are on this
	// one volume, so it does not replace a copy in another place. MySQL does not have it yet.
	//
	// +optional
	Volume *DatabaseBackupVolume `json:"volume,omitempty"`
}

// DatabaseBackupVolume is a volume for backups.
//
// +kubebuilder:validation:XValidation:rule="has(self.storageClassName) == has(oldSelf.storageClassName) && (!has(self.storageClassName) || self.storageClassName == oldSelf.storageClassName)",fieldPath=".storageClassName",message="storageClassName cannot be changed: a volume stays in its class"
type DatabaseBackupVolume struct {
	// Size of the volume. You can raise it at any time if its StorageClass supports that; it cannot shrink. Default:
	// three times spec.storage.
	//
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('1Gi')) >= 0",message="must be a quantity of at least 1Gi, for instance 150Gi"
	// +kubebuilder:validation:XValidation:rule="!isQuantity(string(self)) || !isQuantity(string(oldSelf)) || quantity(string(self)).compareTo(quantity(string(oldSelf))) >= 0",message="cannot shrink: set the previous size or a larger one"
	// +kubebuilder:example="150Gi"
	// +optional
	Size *resource.Quantity `json:"size,omitempty"`

	// StorageClassName of the volume, which cannot change. Default: the platform's class for backups, otherwise the
	// class of the members' volumes.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="must be the name of a StorageClass"
	// +kubebuilder:example="standard"
	// +optional
	StorageClassName string `json:"storageClassName,omitempty"`
}

// BackupVolumeStatus is the state of a volume for backups.
type BackupVolumeStatus struct {
	// Claim is the PersistentVolumeClaim of the volume.
	Claim string `json:"claim"`

	// Size of the volume.
	//
	// +optional
	Size string `json:"size,omitempty"`

	// UsedPercent is how full the volume is, in steps of 5.
	//
	// +optional
	UsedPercent int32 `json:"usedPercent,omitempty"`
}
