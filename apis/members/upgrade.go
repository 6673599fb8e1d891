// SPDX-License-Identifier: Apache-2.0

package members

// Annotations of a generation that another one is upgraded from or to.
const (
	// AnnotationUpgrade is how far the member is that fills a generation of a later
	// major version, as the JSON of an UpgradeReport.
	AnnotationUpgrade = "capstan.dev/member-upgrade"

	// AnnotationFenced is what a leader reports once it has stopped for good, as the
	// JSON of a FenceReport.
	AnnotationFenced = "capstan.dev/member-fenced"
)

// FollowerSlot is the replication slot, and the name of the copy, by which a
// generation of a later major version copies and follows the one before.
const FollowerSlot = "capstan_upgrade"

// Phases of an upgrade, in the order in which they come.
const (
	// UpgradeCopying: the running data is copied.
	UpgradeCopying = "Copying"
	// UpgradeChecking: the copy follows, and it is tried whether it can be upgraded.
	UpgradeChecking = "Checking"
	// UpgradeIncompatible: something in the data stands in the way. Findings names it.
	// It is tried again every minute.
	UpgradeIncompatible = "Incompatible"
	// UpgradeReady: the copy follows and can be upgraded. That is tried again every hour.
	UpgradeReady = "Ready"
	// UpgradeCatchingUp: the former leader is being stopped, and the copy gets the
	// rest of its write-ahead log.
	UpgradeCatchingUp = "CatchingUp"
	// UpgradeConverting: the copy has all, and becomes data of the later version.
	UpgradeConverting = "Converting"
	// UpgradeFailed: it did not work, and nothing was changed in the generation
	// before, which continues. The same upgrade does not begin again.
	UpgradeFailed = "Failed"
	// UpgradeSettling: the new generation takes writes; statistics are computed and
	// extensions brought to the version that comes with the server.
	UpgradeSettling = "Settling"
	// UpgradeDone: nothing is left to do.
	UpgradeDone = "Done"
)

// UpgradeReport is how far an upgrade is. It changes only when a fact changes.
type UpgradeReport struct {
	// ID of the upgrade.
	ID string `json:"id"`

	// Phase that it is in.
	Phase string `json:"phase"`

	// Message says more about the phase, and why it takes longer than it should.
	Message string `json:"message,omitempty"`

	// Findings are the words of PostgreSQL for what stands in the way, after Checked.
	Findings string `json:"findings,omitempty"`

	// Checked is when it was last tried whether the data can be upgraded, in RFC 3339.
	Checked string `json:"checked,omitempty"`

	// GapSeconds is for how long writes are expected to wait, measured in that try.
	GapSeconds int64 `json:"gapSeconds,omitempty"`
}

// FenceReport is what a leader reports that stopped because of a fence.
type FenceReport struct {
	// ID of the fence.
	ID string `json:"id"`

	// Position of the checkpoint that it stopped with, such as 0/3000148, and its
	// Timeline. There is nothing after it.
	Position string `json:"position"`
	Timeline int64  `json:"timeline"`

	// System identifier of the data.
	System string `json:"system"`
}
