// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DatabaseUpgrade holds options of an upgrade to a later major version, which a higher spec.version requests. An
// upgrade creates another generation of the Database from a copy of the live one, and switches clients to it; Services,
// Secrets and passwords keep their names and values. The previous generation is stopped and kept unchanged for a while.
//
// +kubebuilder:validation:AtMostOneOf=retry;undo
type DatabaseUpgrade struct {
	// Retry is any word, which starts another attempt of an upgrade that failed or was undone. Each word starts one
	// attempt. Without a new word an upgrade is attempted once.
	//
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",message="must be letters, digits, '-', '_' and '.', with a letter or digit at both ends"
	// +kubebuilder:example="2"
	// +optional
	Retry string `json:"retry,omitempty"`

	// KeepOldFor is how long the generation of the previous version is kept, stopped, so that undo can return to it:
	// from 1m to 720h. It counts from the switch of clients; a later change has no effect. Its volumes stay after that
	// time. Default: 24h.
	//
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,6}s)?$') && self != '' && duration(self) >= duration('1m') && duration(self) <= duration('720h')",message="must be from 1m to 720h, for instance 24h"
	// +kubebuilder:example="24h"
	// +optional
	KeepOldFor *metav1.Duration `json:"keepOldFor,omitempty"`

	// Wait is what commits wait for after clients were switched: None, so that one member acknowledges commits until the
	// others have copied the data; or Standby, so that no commit is acknowledged before a standby has it. With Standby
	// writes pause for as long as the copy of the data to one standby takes; reads are served. To end the wait at once, set
	// None. Standby needs two replicas, and a durability other than Asynchronous. Default: None.
	//
	// +kubebuilder:default=None
	// +kubebuilder:example=Standby
	// +optional
	Wait UpgradeWait `json:"wait,omitempty"`

	// Undo is status.upgrade.id of the latest upgrade, to return to the previous version while its generation is kept.
	// It becomes live again with every commit from before the upgrade. COMMITS SINCE THE UPGRADE ARE NOT IN IT: they
	// are only in the generation of the later version, which is then kept. Set spec.version to the previous version as
	// well.
	//
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self.matches('^upgrade-[1-9][0-9]{0,2}-[1-9][0-9]{0,2}(-[-A-Za-z0-9_.]+)?$')",message="must be the id of an upgrade, for instance upgrade-15-17"
	// +kubebuilder:example="upgrade-15-17"
	// +optional
	Undo string `json:"undo,omitempty"`
}

// UpgradeWait is what commits wait for after an upgrade.
//
// +kubebuilder:validation:Enum=None;Standby
type UpgradeWait string

// What commits wait for after an upgrade.
const (
	// UpgradeWaitNone: one member acknowledges commits until the others have copied the data.
	UpgradeWaitNone UpgradeWait = "None"
	// UpgradeWaitStandby: no commit is acknowledged before a standby has it.
	UpgradeWaitStandby UpgradeWait = "Standby"
)

// UpgradePhase is the progress of an upgrade.
type UpgradePhase string

// Progress of an upgrade. Until Switching the generation of the previous version works as usual.
const (
	// UpgradeWaiting: it has not started.
	UpgradeWaiting UpgradePhase = "Waiting"
	// UpgradeCopying: the data is copied while clients write.
	UpgradeCopying UpgradePhase = "Copying"
	// UpgradeChecking: the copy replicates, and a test shows whether it can be upgraded.
	UpgradeChecking UpgradePhase = "Checking"
	// UpgradeIncompatible: something in the data blocks the upgrade.
	UpgradeIncompatible UpgradePhase = "Incompatible"
	// UpgradeReady: the copy replicates and can be upgraded; the upgrade continues when it is allowed to.
	UpgradeReady UpgradePhase = "Ready"
	// UpgradeSwitching: the previous generation takes no more writes, and the copy is upgraded.
	UpgradeSwitching UpgradePhase = "Switching"
	// UpgradeSettling: clients use the later version; statistics are computed.
	UpgradeSettling UpgradePhase = "Settling"
	// UpgradeDone: the upgrade is complete.
	UpgradeDone UpgradePhase = "Done"
	// UpgradeFailed: it failed, and the previous generation continues unchanged.
	UpgradeFailed UpgradePhase = "Failed"
	// UpgradeUndoing: the previous generation starts, to switch clients back.
	UpgradeUndoing UpgradePhase = "Undoing"
	// UpgradeUndone: clients use the previous version again.
	UpgradeUndone UpgradePhase = "Undone"
)

// UpgradeStatus is the state or the result of an upgrade.
type UpgradeStatus struct {
	// ID of the upgrade, such as upgrade-15-17.
	ID string `json:"id"`

	// From is the previous major version.
	From string `json:"from,omitempty"`

	// To is the later major version.
	//
	// +optional
	To string `json:"to,omitempty"`

	// Phase: Waiting, Copying, Checking, Incompatible, Ready, Switching, Settling, Done, Failed, Undoing or Undone.
	Phase UpgradePhase `json:"phase"`

	// Findings are PostgreSQL's messages about what blocks the upgrade.
	//
	// +optional
	Findings string `json:"findings,omitempty"`

	// GapSeconds is the expected interruption of writes in seconds, as measured on the copy.
	//
	// +optional
	GapSeconds int64 `json:"gapSeconds,omitempty"`

	// Since is when it started, or when clients were switched.
	//
	// +optional
	Since *metav1.Time `json:"since,omitempty"`

	// Message explains what it waits for, or what blocks it.
	//
	// +optional
	Message string `json:"message,omitempty"`
}
