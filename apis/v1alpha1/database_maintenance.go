// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// DatabaseMaintenance defines when healthy members can be restarted or removed, and when the leader can change. It
// never delays what clients do not notice: reloaded parameters, logins, databases, added members and storage, and the
// repair of a failed member.
type DatabaseMaintenance struct {
	// Windows in which Capstan can start to change a member. It starts only if at least 10 minutes of the window are
	// left, because a member takes at most that long. A change that needs more time continues in the next window; in
	// between the Database is complete. Default: any time.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=14
	// +listType=atomic
	// +kubebuilder:example={{"days":{"Sun"},"start":"02:00","duration":"2h","timeZone":"Europe/Zurich"}}
	// +optional
	Windows []MaintenanceWindow `json:"windows,omitempty"`

	// Approval: Auto, or Manual for changes that wait until spec.maintenance.approve names them. Default: Auto.
	//
	// +kubebuilder:default=Auto
	// +kubebuilder:example=Manual
	// +optional
	Approval MaintenanceApproval `json:"approval,omitempty"`

	// Approve is the hash of the approved change, from status.change.hash. Another change needs another approval.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]*$')",message="must be the value of status.change.hash"
	// +kubebuilder:example="c3f2a9c1b5d"
	// +optional
	// +capstan:form:title="Approve a change",group=acts
	Approve string `json:"approve,omitempty"`

	// Freeze blocks everything that waits for a window, even in a window and with an approval, and also a requested
	// switchover or hibernation.
	//
	// +optional
	Freeze *MaintenanceFreeze `json:"freeze,omitempty"`

	// Hooks run around a change that restarts or removes members.
	//
	// +optional
	Hooks *MaintenanceHooks `json:"hooks,omitempty"`
}

// MaintenanceApproval is how a change is approved.
//
// +kubebuilder:validation:Enum=Auto;Manual
type MaintenanceApproval string

// How a change is approved.
const (
	// ApprovalAuto: no approval is needed.
	ApprovalAuto MaintenanceApproval = "Auto"
	// ApprovalManual: the hash of the change must be in spec.maintenance.approve.
	ApprovalManual MaintenanceApproval = "Manual"
)

// Weekday on which a window begins.
//
// +kubebuilder:validation:Enum=Mon;Tue;Wed;Thu;Fri;Sat;Sun
type Weekday string

// MaintenanceWindow is a recurring time window.
type MaintenanceWindow struct {
	// Days on which it begins. It can last into the next day. Default: every day.
	//
	// +kubebuilder:validation:MaxItems=7
	// +listType=set
	// +kubebuilder:example={"Sat","Sun"}
	// +optional
	Days []Weekday `json:"days,omitempty"`

	// Start is the local time of day in the time zone. If daylight saving time skips it, the window begins at the end
	// of the skipped hour; if the time occurs twice, it begins the first time.
	//
	// +kubebuilder:validation:MaxLength=5
	// +kubebuilder:validation:XValidation:rule="self.matches('^([01][0-9]|2[0-3]):[0-5][0-9]$')",message="must be a time of day, for instance \"02:00\""
	// +kubebuilder:example="02:00"
	Start string `json:"start"`

	// Duration, from 15m to 24h. Changes of daylight saving time do not affect it.
	//
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,6}s)?$') && self != '' && duration(self) >= duration('15m') && duration(self) <= duration('24h')",message="must be from 15m to 24h, for instance 2h: a change of a member starts only with 10 minutes left"
	// +kubebuilder:example="2h"
	Duration metav1.Duration `json:"duration"`

	// TimeZone of start and days: a name of the IANA time zone database. Default: UTC.
	//
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z][-A-Za-z0-9_+]*(/[A-Za-z0-9][-A-Za-z0-9_+]*)*$') && self != 'Local'",message="must be the name of a time zone, for instance Europe/Zurich"
	// +kubebuilder:default=UTC
	// +kubebuilder:example="Europe/Zurich"
	// +optional
	TimeZone string `json:"timeZone,omitempty"`
}

// MaintenanceFreeze is a time in which no change starts.
type MaintenanceFreeze struct {
	// Until is the end of the freeze.
	//
	// +kubebuilder:example="2026-12-27T06:00:00Z"
	Until metav1.Time `json:"until"`
}

// DatabaseSwitchover promotes another member to leader, once for each ID.
type DatabaseSwitchover struct {
	// ID of the request. Each ID is carried out at most once; use another ID for another switchover. The ID that a
	// Database is created with is not carried out.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$') && !self.startsWith('capstan-')",message="must be letters, digits, '-', '_' and '.', with a letter or digit at both ends, and must not start with capstan-"
	// +kubebuilder:example="2026-11-22-1"
	ID string `json:"id"`

	// To is the next leader, one of status.members. The switchover waits until that member is healthy, has every
	// commit, and is on a node that accepts pods. Default: any such member.
	//
	// +kubebuilder:validation:MaxLength=42
	// +kubebuilder:example="orders-db-b"
	// +optional
	To string `json:"to,omitempty"`
}

// DatabaseChange is what Capstan still has to change until the observed state matches the desired state.
type DatabaseChange struct {
	// Hash of the change, for spec.maintenance.approve. It depends on the desired state, not on time or progress.
	Hash string `json:"hash"`

	// Summary in one line.
	Summary string `json:"summary"`

	// State: Waiting, Approved, Running or Failed.
	State ChangeState `json:"state"`

	// Message explains what it waits for, or its progress.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// Effects of the change, by field.
	//
	// +listType=atomic
	// +optional
	Effects []ChangeEffect `json:"effects,omitempty"`

	// Order of the members that are still to restart, move or be removed.
	//
	// +listType=atomic
	// +optional
	Order []string `json:"order,omitempty"`

	// WritePause is the expected interruption of writes, in words.
	//
	// +optional
	WritePause string `json:"writePause,omitempty"`

	// Window that it waits for or runs in. It is absent if the change can run at any time.
	//
	// +optional
	Window *MaintenancePeriod `json:"window,omitempty"`
}

// ChangeState is the progress of a change.
type ChangeState string

// Progress of a change.
const (
	// ChangeWaiting: it waits for a window, an approval, the end of a freeze, or a member.
	ChangeWaiting ChangeState = "Waiting"
	// ChangeApproved: it was approved by hand, and waits for something else.
	ChangeApproved ChangeState = "Approved"
	// ChangeRunning: it makes progress.
	ChangeRunning ChangeState = "Running"
	// ChangeFailed: a step failed and needs a correction.
	ChangeFailed ChangeState = "Failed"
)

// ChangeEffect is the effect of one field.
type ChangeEffect struct {
	// Field of the spec or of the platform's settings.
	Field string `json:"field"`

	// Effect: Reload, Restart, Scale, Grow, Switchover or Upgrade.
	Effect string `json:"effect"`

	// Parameters of the server that it changes, sorted.
	//
	// +listType=atomic
	// +optional
	Parameters []string `json:"parameters,omitempty"`

	// Cause: Spec; Settings when the platform's settings changed; Node when a node is drained; or Capstan when another
	// version of it computes other values.
	//
	// +optional
	Cause string `json:"cause,omitempty"`
}

// Effects of a change.
const (
	EffectReload     = "Reload"
	EffectRestart    = "Restart"
	EffectScale      = "Scale"
	EffectGrow       = "Grow"
	EffectSwitchover = "Switchover"
	EffectUpgrade    = "Upgrade"
)

// Causes of a change.
const (
	ChangedBySpec     = "Spec"
	ChangedBySettings = "Settings"
	ChangedByNode     = "Node"
	ChangedByCapstan  = "Capstan"
)

// MaintenancePeriod is one occurrence of a window.
type MaintenancePeriod struct {
	// Start of the window.
	Start metav1.Time `json:"start"`

	// End of the window.
	End metav1.Time `json:"end"`
}

// SwitchoverStatus is the result of spec.switchover.
type SwitchoverStatus struct {
	// ID of the request.
	ID string `json:"id"`

	// Outcome: Waiting, Asked, Done, Failed, or Skipped for an ID that the Database was created with.
	Outcome string `json:"outcome"`

	// From is the previous leader.
	//
	// +optional
	From string `json:"from,omitempty"`

	// To is the requested or the new leader.
	//
	// +optional
	To string `json:"to,omitempty"`

	// At is when the members received the request.
	//
	// +optional
	At *metav1.Time `json:"at,omitempty"`

	// Message has details.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// Outcomes of a switchover, beside the outcomes of a Topology.
const (
	SwitchoverWaiting = "Waiting"
	SwitchoverSkipped = "Skipped"
)

// DatabaseReinitialize copies a standby again from the leader.
type DatabaseReinitialize struct {
	// ID of the request. Each ID is carried out at most once; use another ID for another copy. A member whose data is
	// newer than the request does not carry it out.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",message="must be letters, digits, '-', '_' and '.', with a letter or digit at both ends"
	// +kubebuilder:example="2026-11-25-1"
	ID string `json:"id"`

	// Member to copy again, one of status.members. The leader refuses: switch over first.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([-a-z0-9.]*[a-z0-9])?$')",message="must be the name of a member, for instance orders-db-b"
	// +kubebuilder:example="orders-db-b"
	Member string `json:"member"`
}

// DatabaseFence keeps a standby stopped.
type DatabaseFence struct {
	// ID of the request. Each ID is decided once: use another ID for another try after a refusal. A member whose data is
	// newer than the request does not stop.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",message="must be letters, digits, '-', '_' and '.', with a letter or digit at both ends"
	// +kubebuilder:example="2026-11-26-1"
	ID string `json:"id"`

	// Member to stop, one of status.members. The leader refuses: switch over first.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([-a-z0-9.]*[a-z0-9])?$')",message="must be the name of a member, for instance orders-db-b"
	// +kubebuilder:example="orders-db-b"
	Member string `json:"member"`
}

// FenceStatus is the result of spec.fence.
type FenceStatus struct {
	// ID of the request.
	ID string `json:"id"`

	// Member to stop.
	Member string `json:"member"`

	// Outcome: Waiting, Stopped, Refused for the leader, or Skipped for data that is newer than the request.
	Outcome string `json:"outcome"`

	// Message has details.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// ReinitializeStatus is the result of spec.reinitialize.
type ReinitializeStatus struct {
	// ID of the request.
	ID string `json:"id"`

	// Member to copy again.
	Member string `json:"member"`

	// Outcome: Waiting, Copying, Done, Refused for the leader, or Skipped for data that is newer than the request.
	Outcome string `json:"outcome"`

	// Message has details.
	//
	// +optional
	Message string `json:"message,omitempty"`
}
