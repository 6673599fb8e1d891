// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DatabaseRestore restores the data of an earlier moment in place, or undoes that. A restore creates another generation
// of the Database from its own backups, beside the live one. Clients are switched to it once all of its members are
// ready; Services, Secrets and passwords keep their names and values. The previous generation is stopped and kept for a
// while.
//
// +kubebuilder:validation:ExactlyOneOf=id;undo
// +kubebuilder:validation:AtMostOneOf=at;restorePoint
// +kubebuilder:validation:XValidation:rule="!has(self.undo) || !has(self.at) && !has(self.restorePoint)",fieldPath=".undo",message="undo must not be set with at or restorePoint: it returns to a generation as it is"
type DatabaseRestore struct {
	// ID of the request. Each ID is carried out at most once, even if the Database is deleted and applied again; use
	// another ID for another restore. The ID that a Database is created with is not carried out. If the request is
	// removed before clients are switched, everything it created is removed, except volumes.
	//
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",message="must be letters, digits, '-', '_' and '.', with a letter or digit at both ends"
	// +kubebuilder:example="2026-09-26-a"
	// +optional
	ID string `json:"id,omitempty"`

	// At is the moment to restore, to the second or finer: the result has every commit up to then and no later one. It
	// must be a moment of the live generation. Default: the latest moment in its archive.
	//
	// +kubebuilder:example="2026-09-26T08:59:00Z"
	// +optional
	At Moment `json:"at,omitempty"`

	// RestorePoint is the moment to restore by its name, from spec.backup.restorePoint: the result has every commit up
	// to then and no later one.
	//
	// +kubebuilder:example="3f2a9c1b7d"
	// +optional
	RestorePoint RestorePointName `json:"restorePoint,omitempty"`

	// KeepOldFor is how long the previous generation is kept, stopped, so that undo can return to it: from 1m to 720h.
	// It counts from the switch of clients; a later change has no effect. Its volumes stay after that time. Default:
	// 24h.
	//
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,6}s)?$') && self != '' && duration(self) >= duration('1m') && duration(self) <= duration('720h')",message="must be from 1m to 720h, for instance 24h"
	// +kubebuilder:example="24h"
	// +optional
	KeepOldFor *metav1.Duration `json:"keepOldFor,omitempty"`

	// Undo is the ID of the latest restore, to return to the previous generation while that is kept. That generation
	// becomes live again with every commit it had. Commits since the restore are only in the other generation, which is
	// then kept.
	//
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",message="must be the id of a restore"
	// +kubebuilder:example="2026-09-26-a"
	// +optional
	Undo string `json:"undo,omitempty"`
}

// GenerationStatus is which generation of the data is live. It exists after the first restore or upgrade.
type GenerationStatus struct {
	// Active generation: 1 is the one that the Database was created with.
	Active int32 `json:"active"`

	// Since is when clients were switched to it.
	//
	// +optional
	Since *metav1.Time `json:"since,omitempty"`

	// Kept generations are stopped and hold their data.
	//
	// +listType=map
	// +listMapKey=generation
	// +optional
	Kept []KeptGeneration `json:"kept,omitempty"`
}

// KeptGeneration is stopped and holds its data.
type KeptGeneration struct {
	// Generation that is kept.
	Generation int32 `json:"generation"`

	// Restore or upgrade that replaced it.
	Restore string `json:"restore"`

	// Version of its data, if there was an upgrade.
	//
	// +optional
	Version string `json:"version,omitempty"`

	// Until is when its members are removed. Their volumes stay.
	Until metav1.Time `json:"until"`
}

// RestorePhase is the progress of a restore.
type RestorePhase string

// Progress of a restore.
const (
	// RestoreWaiting: it has not started.
	RestoreWaiting RestorePhase = "Waiting"
	// RestoreFilling: members of the new generation restore the data beside the live one.
	RestoreFilling RestorePhase = "Filling"
	// RestoreFencing: the previous generation stops, so that it cannot take writes afterwards.
	RestoreFencing RestorePhase = "Fencing"
	// RestoreDone: clients use the new generation.
	RestoreDone RestorePhase = "Done"
	// RestoreUndone: clients use the previous generation again.
	RestoreUndone RestorePhase = "Undone"
	// RestoreFailed: it failed, and the previous generation continues unchanged.
	RestoreFailed RestorePhase = "Failed"
	// RestoreSkipped: the Database was created with this ID.
	RestoreSkipped RestorePhase = "Skipped"
)

// RestoreStatus is the result of spec.restore.
type RestoreStatus struct {
	// ID of the request, or of the restore that is undone.
	ID string `json:"id"`

	// Undo reports whether the restore is undone.
	//
	// +optional
	Undo bool `json:"undo,omitempty"`

	// Phase: Waiting, Filling, Fencing, Done, Undone, Failed or Skipped.
	Phase RestorePhase `json:"phase"`

	// From is the generation that was live before.
	//
	// +optional
	From int32 `json:"from,omitempty"`

	// To is the generation that is live afterwards.
	//
	// +optional
	To int32 `json:"to,omitempty"`

	// At is the moment to restore; absent for the latest.
	//
	// +optional
	At Moment `json:"at,omitempty"`

	// RestorePoint is the moment to restore by its name.
	//
	// +optional
	RestorePoint RestorePointName `json:"restorePoint,omitempty"`

	// Since is when this phase began.
	//
	// +optional
	Since *metav1.Time `json:"since,omitempty"`

	// Message explains what it waits for, or what blocks it.
	//
	// +optional
	Message string `json:"message,omitempty"`
}
