// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// DatabaseMaintenance says when members that serve may be restarted, let go, or
// relieved of the lead. What disturbs nobody is not held: parameters that are
// reloaded, logins, databases, members and storage that are added, and the repair
// of a member that does not serve.
type DatabaseMaintenance struct {
	// Windows in which a member may be begun. Default: any time. A member is begun
	// only while the window lasts at least 10 minutes more, which is what a member
	// takes at most; a change that a window is too short for goes on in the next, and
	// the Database is whole in between.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=14
	// +listType=atomic
	// +kubebuilder:example={{"days":{"Sun"},"start":"02:00","duration":"2h","timeZone":"Europe/Zurich"}}
	// +optional
	Windows []MaintenanceWindow `json:"windows,omitempty"`

	// Approval: Auto, or Manual for changes that wait until spec.maintenance.approve
	// names them.
	//
	// +kubebuilder:default=Auto
	// +kubebuilder:example=Manual
	// +optional
	Approval MaintenanceApproval `json:"approval,omitempty"`

	// Approve is the hash of the change that may be carried out, from
	// status.change.hash. Another change needs another approval.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]*$')",message="must be the hash that status.change tells"
	// +kubebuilder:example="c3f2a9c1b5d"
	// +optional
	Approve string `json:"approve,omitempty"`

	// Freeze holds everything up that is held for a window, whatever the windows and
	// the approval say, and also a switchover and hibernation that are asked for.
	//
	// +optional
	Freeze *MaintenanceFreeze `json:"freeze,omitempty"`

	// Hooks are run around a change that restarts members or lets them go.
	//
	// +optional
	Hooks *MaintenanceHooks `json:"hooks,omitempty"`
}

// MaintenanceApproval says who lets a change begin.
//
// +kubebuilder:validation:Enum=Auto;Manual
type MaintenanceApproval string

// Who lets a change begin.
const (
	// ApprovalAuto: nobody has to.
	ApprovalAuto MaintenanceApproval = "Auto"
	// ApprovalManual: whoever writes the hash of the change into
	// spec.maintenance.approve.
	ApprovalManual MaintenanceApproval = "Manual"
)

// Weekday that a window begins on.
//
// +kubebuilder:validation:Enum=Mon;Tue;Wed;Thu;Fri;Sat;Sun
type Weekday string

// MaintenanceWindow is a time that comes again.
type MaintenanceWindow struct {
	// Days on which it begins. It may last into the next day. Default: every day.
	//
	// +kubebuilder:validation:MaxItems=7
	// +listType=set
	// +kubebuilder:example={"Sat","Sun"}
	// +optional
	Days []Weekday `json:"days,omitempty"`

	// Start by the clock of the time zone. On the day that the clock leaves this
	// time out, the window begins when the clock goes on; on the day that has it
	// twice, it begins the first time.
	//
	// +kubebuilder:validation:MaxLength=5
	// +kubebuilder:validation:XValidation:rule="self.matches('^([01][0-9]|2[0-3]):[0-5][0-9]$')",message="must be a time of day, for instance \"02:00\""
	// +kubebuilder:example="02:00"
	Start string `json:"start"`

	// Duration, from 15m to 24h. It is as long on days on which the clock is set.
	//
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,6}s)?$') && self != '' && duration(self) >= duration('15m') && duration(self) <= duration('24h')",message="must be from 15m, because a member is begun only with 10 minutes left, to 24h, for instance 2h"
	// +kubebuilder:example="2h"
	Duration metav1.Duration `json:"duration"`

	// TimeZone that start and days are meant in, by its name in the IANA database.
	// Default: UTC.
	//
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z][-A-Za-z0-9_+]*(/[A-Za-z0-9][-A-Za-z0-9_+]*)*$') && self != 'Local'",message="must be the name of a time zone, for instance Europe/Zurich"
	// +kubebuilder:default=UTC
	// +kubebuilder:example="Europe/Zurich"
	// +optional
	TimeZone string `json:"timeZone,omitempty"`
}

// MaintenanceFreeze is a time in which nothing is begun.
type MaintenanceFreeze struct {
	// Until when.
	//
	// +kubebuilder:example="2026-12-27T06:00:00Z"
	Until metav1.Time `json:"until"`
}

// DatabaseSwitchover moves the lead, once for each id.
type DatabaseSwitchover struct {
	// ID of this wish. Each id is carried out at most once; for another switchover
	// choose another. One that the Database is made with is not carried out.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$') && !self.startsWith('capstan-')",message="must be letters, digits, '-', '_' and '.', with a letter or digit at both ends, and must not start with capstan-"
	// +kubebuilder:example="2026-11-22-1"
	ID string `json:"id"`

	// To is the member that leads afterwards, one of status.members. It has to be
	// healthy, to have every commit, and to be on a node that takes pods; until it
	// is, the switchover waits. Default: any such member.
	//
	// +kubebuilder:validation:MaxLength=42
	// +kubebuilder:example="orders-db-b"
	// +optional
	To string `json:"to,omitempty"`
}

// DatabaseChange is what is still to be done until what runs is what is asked for.
type DatabaseChange struct {
	// Hash of the change, for spec.maintenance.approve. It depends on what is to be
	// run, not on the time or on how far it has come.
	Hash string `json:"hash"`

	// Summary in a line.
	Summary string `json:"summary"`

	// State: Waiting, Approved, Running or Failed.
	State ChangeState `json:"state"`

	// Message why it waits, or how far it has come.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// Effects of the change, by field.
	//
	// +listType=atomic
	// +optional
	Effects []ChangeEffect `json:"effects,omitempty"`

	// Order of the members that are still to be restarted, moved or let go.
	//
	// +listType=atomic
	// +optional
	Order []string `json:"order,omitempty"`

	// WritePause that clients have to expect, in words.
	//
	// +optional
	WritePause string `json:"writePause,omitempty"`

	// Window that it waits for, or that it runs in. None when it may run at any
	// time.
	//
	// +optional
	Window *MaintenancePeriod `json:"window,omitempty"`
}

// ChangeState says how far a change has come.
type ChangeState string

// How far a change has come.
const (
	// ChangeWaiting: for a window, an approval, the end of a freeze, or a member.
	ChangeWaiting ChangeState = "Waiting"
	// ChangeApproved: it was approved by hand, and waits for something else.
	ChangeApproved ChangeState = "Approved"
	// ChangeRunning: it goes on by itself.
	ChangeRunning ChangeState = "Running"
	// ChangeFailed: a step failed, and somebody has to correct something.
	ChangeFailed ChangeState = "Failed"
)

// ChangeEffect is what a field does.
type ChangeEffect struct {
	// Field of the spec or of the platform's settings.
	Field string `json:"field"`

	// Effect: Reload, Restart, Scale, Grow, Switchover or Upgrade.
	Effect string `json:"effect"`

	// Parameters of PostgreSQL that change by it, sorted.
	//
	// +listType=atomic
	// +optional
	Parameters []string `json:"parameters,omitempty"`

	// Cause: Spec, Settings when the platform's settings changed, Node when a node is
	// being emptied, or Capstan when another version of it computes other values.
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

// MaintenancePeriod is one time of a window.
type MaintenancePeriod struct {
	// Start of it.
	Start metav1.Time `json:"start"`

	// End of it.
	End metav1.Time `json:"end"`
}

// SwitchoverStatus is what became of spec.switchover.
type SwitchoverStatus struct {
	// ID of the wish.
	ID string `json:"id"`

	// Outcome: Waiting, Asked, Done, Failed, or Skipped for one that the Database
	// was made with.
	Outcome string `json:"outcome"`

	// From and To are the members that led before and lead since.
	//
	// +optional
	From string `json:"from,omitempty"`

	// To is the member that was to lead, or that leads since.
	//
	// +optional
	To string `json:"to,omitempty"`

	// At is when Patroni was asked.
	//
	// +optional
	At *metav1.Time `json:"at,omitempty"`

	// Message says more.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// Outcomes of a switchover, beside those that a Topology tells.
const (
	SwitchoverWaiting = "Waiting"
	SwitchoverSkipped = "Skipped"
)
