// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DatabaseUpgrade is about an upgrade to a later major version, which a higher
// spec.version asks for. An upgrade makes another generation of the Database from a copy
// of the one that serves, and leads clients there; Services, Secrets and passwords keep
// their names and values. The generation before is stopped and kept for a while, as it
// was.
//
// +kubebuilder:validation:AtMostOneOf=retry;undo
type DatabaseUpgrade struct {
	// Retry tries an upgrade once more that failed or was undone: any word that it was
	// not tried with before. Without another word an upgrade is tried once.
	//
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",message="must be letters, digits, '-', '_' and '.', with a letter or digit at both ends"
	// +kubebuilder:example="2"
	// +optional
	Retry string `json:"retry,omitempty"`

	// KeepOldFor is how long the generation of the former version is kept, stopped, so
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

	// Undo is status.upgrade.id of the last upgrade, to take it back while the generation
	// of the former version is kept: that one leads again, with all that was committed
	// before the upgrade. WHAT WAS COMMITTED SINCE IS NOT IN IT: it is only in the
	// generation of the later version, which is kept in its turn. Set spec.version to the
	// former version as well.
	//
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self.matches('^upgrade-[1-9][0-9]{0,2}-[1-9][0-9]{0,2}(-[-A-Za-z0-9_.]+)?$')",message="must be the id of an upgrade, for instance upgrade-15-17"
	// +kubebuilder:example="upgrade-15-17"
	// +optional
	Undo string `json:"undo,omitempty"`
}

// UpgradePhase says how far an upgrade has come.
type UpgradePhase string

// How far an upgrade has come. Until Switching the generation of the former version
// serves as if nothing were.
const (
	// UpgradeWaiting: nothing was begun.
	UpgradeWaiting UpgradePhase = "Waiting"
	// UpgradeCopying: the data is copied while clients write.
	UpgradeCopying UpgradePhase = "Copying"
	// UpgradeChecking: the copy follows, and it is tried whether it can be upgraded.
	UpgradeChecking UpgradePhase = "Checking"
	// UpgradeIncompatible: something in the data stands in the way.
	UpgradeIncompatible UpgradePhase = "Incompatible"
	// UpgradeReady: the copy follows and can be upgraded; it goes on once it may.
	UpgradeReady UpgradePhase = "Ready"
	// UpgradeSwitching: the former generation takes no writes any more, and the copy is
	// upgraded.
	UpgradeSwitching UpgradePhase = "Switching"
	// UpgradeSettling: clients are led to the later version; statistics are computed.
	UpgradeSettling UpgradePhase = "Settling"
	// UpgradeDone: clients are led to the later version.
	UpgradeDone UpgradePhase = "Done"
	// UpgradeFailed: it did not work, and the former generation goes on as it was.
	UpgradeFailed UpgradePhase = "Failed"
	// UpgradeUndoing: the former generation is started, to lead clients back.
	UpgradeUndoing UpgradePhase = "Undoing"
	// UpgradeUndone: clients were led back.
	UpgradeUndone UpgradePhase = "Undone"
)

// UpgradeStatus is what became of an upgrade.
type UpgradeStatus struct {
	// ID of the upgrade, such as upgrade-15-17.
	ID string `json:"id"`

	// From and To are major versions.
	From string `json:"from,omitempty"`

	// To is the later one.
	//
	// +optional
	To string `json:"to,omitempty"`

	// Phase: Waiting, Copying, Checking, Incompatible, Ready, Switching, Settling, Done,
	// Failed, Undoing or Undone.
	Phase UpgradePhase `json:"phase"`

	// Findings are PostgreSQL's own words for what stands in the way.
	//
	// +optional
	Findings string `json:"findings,omitempty"`

	// GapSeconds is for how long writes are expected to wait when clients are led over,
	// as measured on the copy.
	//
	// +optional
	GapSeconds int64 `json:"gapSeconds,omitempty"`

	// Since is when it was begun, or when clients were led over.
	//
	// +optional
	Since *metav1.Time `json:"since,omitempty"`

	// Message says what it waits for, or why it does not go on.
	//
	// +optional
	Message string `json:"message,omitempty"`
}
