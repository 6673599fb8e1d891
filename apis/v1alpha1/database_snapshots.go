// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DatabaseSnapshots are VolumeSnapshots of one member's volume, beside the backups. A new Database can begin with one, and
// replays the archive from there.
type DatabaseSnapshots struct {
	// ClassName is the VolumeSnapshotClass of the snapshots. It must be of the driver of the members' volumes. Its
	// snapshots must show the whole volume at one moment, which nearly all drivers do.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="must be the name of a VolumeSnapshotClass"
	// +kubebuilder:example="csi-snapshots"
	ClassName string `json:"className"`

	// Schedule of snapshots in UTC, as five cron fields: minute, hour, day, month, weekday. Default: once a day between
	// twelve and eighteen hours, at a minute derived from namespace and name.
	//
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-0-9A-Za-z*/,]+( [-0-9A-Za-z*/,]+){4}$')",message="must have five fields with a space between: minute, hour, day, month, weekday, for instance 0 */6 * * *"
	// +kubebuilder:example="0 */4 * * *"
	// +optional
	Schedule string `json:"schedule,omitempty"`

	// Keep is the number of snapshots that are kept. An older one is removed after the next one is ready. From 1 to 100.
	// Default: 7.
	//
	// +kubebuilder:default=7
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:example=7
	// +optional
	Keep int32 `json:"keep,omitempty"`
}

// SnapshotsStatus is the state of the snapshots.
type SnapshotsStatus struct {
	// Schedule in effect, in UTC.
	//
	// +optional
	Schedule string `json:"schedule,omitempty"`

	// Last snapshot that is ready.
	//
	// +optional
	Last *SnapshotTaken `json:"last,omitempty"`

	// Kept is the number of snapshots after the last run.
	//
	// +optional
	Kept int32 `json:"kept,omitempty"`
}

// SnapshotTaken is one snapshot.
type SnapshotTaken struct {
	// Name of the VolumeSnapshot.
	Name string `json:"name"`

	// Member whose volume it shows.
	//
	// +optional
	Member string `json:"member,omitempty"`

	// At is a time by which it was taken: a later moment can be restored from it.
	//
	// +optional
	At *metav1.Time `json:"at,omitempty"`

	// Size that a volume needs to be filled from it.
	//
	// +optional
	Size string `json:"size,omitempty"`

	// Took is the time until it was ready.
	//
	// +optional
	Took string `json:"took,omitempty"`
}
