// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DatabaseRestore brings the data of a moment back in place, or takes that back. A
// restore makes another generation of the Database from its own backups, beside the
// one that serves, and leads clients there once all of its members are well; Services,
// Secrets and passwords keep their names and values. The generation before is stopped
// and kept for a while.
//
// +kubebuilder:validation:ExactlyOneOf=id;undo
// +kubebuilder:validation:AtMostOneOf=at;restorePoint
// +kubebuilder:validation:XValidation:rule="!has(self.undo) || !has(self.at) && !has(self.restorePoint)",fieldPath=".undo",message="must not be set with at or restorePoint: it goes back to a generation as it is"
type DatabaseRestore struct {
	// ID of this wish. Each id is carried out at most once, also when the Database is
	// deleted and applied again; for another restore choose another. One that the
	// Database is made with is not carried out. Taken back before clients were led
	// over, what was begun is removed but for its volumes.
	//
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",message="must be letters, digits, '-', '_' and '.', with a letter or digit at both ends"
	// +kubebuilder:example="2026-09-26-a"
	// +optional
	ID string `json:"id,omitempty"`

	// At is the moment to restore, to the second or finer: what was committed by then
	// is there, and nothing later. It is one of the generation that serves. Default:
	// the latest that its archive has.
	//
	// +kubebuilder:example="2026-09-26T08:59:00Z"
	// +optional
	At Moment `json:"at,omitempty"`

	// RestorePoint is the moment to restore by the name that spec.backup.restorePoint
	// gave it: what was committed by then is there, and nothing later.
	//
	// +kubebuilder:example="3f2a9c1b7d"
	// +optional
	RestorePoint RestorePointName `json:"restorePoint,omitempty"`

	// KeepOldFor is how long the generation that served before is kept, stopped, so
	// that one can go back to it: from 1m to 720h. Default: 24h. It counts from when
	// clients are led over; a later change of it has no effect. Its volumes stay after
	// it.
	//
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,6}s)?$') && self != '' && duration(self) >= duration('1m') && duration(self) <= duration('720h')",message="must be from 1m to 720h, for instance 24h"
	// +kubebuilder:example="24h"
	// +optional
	KeepOldFor *metav1.Duration `json:"keepOldFor,omitempty"`

	// Undo names the restore to take back, the last one, while the generation before
	// it is kept: that one leads again with all that was committed in it, and what was
	// committed since is only in the other, which is kept in its turn.
	//
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",message="must be the id of a restore"
	// +kubebuilder:example="2026-09-26-a"
	// +optional
	Undo string `json:"undo,omitempty"`
}

// GenerationStatus tells which generation of the data clients are led to. It is there
// once there was a restore or an upgrade.
type GenerationStatus struct {
	// Active generation: 1 is the one that the Database was made with.
	Active int32 `json:"active"`

	// Since is when clients were led to it.
	//
	// +optional
	Since *metav1.Time `json:"since,omitempty"`

	// Kept generations are stopped, and hold their data.
	//
	// +listType=map
	// +listMapKey=generation
	// +optional
	Kept []KeptGeneration `json:"kept,omitempty"`
}

// KeptGeneration is stopped, and holds its data.
type KeptGeneration struct {
	// Generation that is kept.
	Generation int32 `json:"generation"`

	// Restore or upgrade that led clients away from it.
	Restore string `json:"restore"`

	// Version of its data, once there was an upgrade.
	//
	// +optional
	Version string `json:"version,omitempty"`

	// Until is when its members are let go. Their volumes stay.
	Until metav1.Time `json:"until"`
}

// RestorePhase says how far a restore has come.
type RestorePhase string

// How far a restore has come.
const (
	// RestoreWaiting: nothing was begun.
	RestoreWaiting RestorePhase = "Waiting"
	// RestoreFilling: the generation to go to comes up beside the one that serves.
	RestoreFilling RestorePhase = "Filling"
	// RestoreFencing: the generation that served is being stopped, so that no write is
	// taken by it afterwards.
	RestoreFencing RestorePhase = "Fencing"
	// RestoreDone: clients are led to the other generation.
	RestoreDone RestorePhase = "Done"
	// RestoreUndone: they were, and were led back.
	RestoreUndone RestorePhase = "Undone"
	// RestoreSkipped: the Database was made with this id.
	RestoreSkipped RestorePhase = "Skipped"
)

// RestoreStatus is what became of spec.restore.
type RestoreStatus struct {
	// ID of the wish, or of the restore that is taken back.
	ID string `json:"id"`

	// Undo tells that it is taken back.
	//
	// +optional
	Undo bool `json:"undo,omitempty"`

	// Phase: Waiting, Filling, Fencing, Done, Undone or Skipped.
	Phase RestorePhase `json:"phase"`

	// From and To are the generations that served before and that serve afterwards.
	//
	// +optional
	From int32 `json:"from,omitempty"`

	// To is the generation that serves afterwards.
	//
	// +optional
	To int32 `json:"to,omitempty"`

	// At is the moment that is restored; none is the latest.
	//
	// +optional
	At Moment `json:"at,omitempty"`

	// RestorePoint is the moment by its name.
	//
	// +optional
	RestorePoint RestorePointName `json:"restorePoint,omitempty"`

	// Since is when this phase began.
	//
	// +optional
	Since *metav1.Time `json:"since,omitempty"`

	// Message says what it waits for, or why it does not go on.
	//
	// +optional
	Message string `json:"message,omitempty"`
}
