// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MaintenanceHooks are run around a change that restarts members or lets them go: each
// once for a change, one after the other, as a Job of its own.
type MaintenanceHooks struct {
	// Before the first member is begun, and not before the change may be carried out:
	// in a window, approved, and not in a freeze. A member that does not serve is
	// repaired without them.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=name
	// +optional
	Before []MaintenanceHook `json:"before,omitempty"`

	// After the last member is done and well, or after a change was taken back whose
	// hooks before had begun. A hook that fails holds up the next change.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=name
	// +optional
	After []MaintenanceHook `json:"after,omitempty"`
}

// MaintenanceHook is one thing to do around a change. It runs at least once: a node
// that is lost while it runs has it begin again.
//
// +kubebuilder:validation:XValidation:rule="has(self.sql) != has(self.http)",message="set exactly one of sql and http"
type MaintenanceHook struct {
	// Name of the hook.
	//
	// +kubebuilder:validation:MaxLength=30
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be lower case letters, digits and '-', with a letter or digit at both ends"
	// +kubebuilder:example="stop-jobs"
	Name string `json:"name"`

	// SQL to run on the leader.
	//
	// +optional
	SQL *SQLHook `json:"sql,omitempty"`

	// HTTP request to make.
	//
	// +optional
	HTTP *HTTPHook `json:"http,omitempty"`

	// Timeout after which it has failed, from 1s to 1h.
	//
	// +kubebuilder:default="5m"
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,6}s)?$') && self != '' && duration(self) >= duration('1s') && duration(self) <= duration('1h')",message="must be from 1s to 1h, for instance 5m"
	// +kubebuilder:example="5m"
	// +optional
	Timeout metav1.Duration `json:"timeout,omitempty"`

	// OnFailure: Stop holds the change, and every later one, until the hook succeeds
	// or is changed; Continue goes on.
	//
	// +kubebuilder:default=Stop
	// +kubebuilder:example=Stop
	// +optional
	OnFailure HookFailure `json:"onFailure,omitempty"`
}

// HookFailure says what a hook that fails means.
//
// +kubebuilder:validation:Enum=Stop;Continue
type HookFailure string

// What a hook that fails means.
const (
	// HookStops: nothing goes on.
	HookStops HookFailure = "Stop"
	// HookContinues: it is told, and the change goes on.
	HookContinues HookFailure = "Continue"
)

// SQLHook is SQL that is run on the leader.
type SQLHook struct {
	// Database to run it in, one of spec.databases. It is run as the first of
	// spec.consumers that reads and writes there. Default: the first.
	//
	// +kubebuilder:validation:MaxLength=48
	// +kubebuilder:example="orders"
	// +optional
	Database string `json:"database,omitempty"`

	// Statement, or several with ; between them, which are one transaction then.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:example="UPDATE jobs SET paused = true"
	Statement string `json:"statement"`
}

// HTTPHook is an HTTP request.
type HTTPHook struct {
	// URL to call, with http or https, and without a user or password: everybody who
	// may read the Database can read it. The certificate of an https server is checked
	// with the authorities of the database's image. Redirects are not followed.
	//
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="isURL(self) && self.matches('^https?://[^/?#@]+([/?#].*)?$')",message="must be an http or https URL without a user, for instance http://orders.shop.svc/maintenance"
	// +kubebuilder:example="http://orders.shop.svc:8080/maintenance"
	URL string `json:"url"`

	// Method: POST, GET, PUT, PATCH or DELETE. The request has no body.
	//
	// +kubebuilder:validation:Enum=POST;GET;PUT;PATCH;DELETE
	// +kubebuilder:default=POST
	// +kubebuilder:example=POST
	// +optional
	Method string `json:"method,omitempty"`

	// ExpectedStatus of the answer. Default: any from 200 to 299.
	//
	// +kubebuilder:validation:Minimum=100
	// +kubebuilder:validation:Maximum=599
	// +kubebuilder:example=204
	// +optional
	ExpectedStatus int32 `json:"expectedStatus,omitempty"`
}

// HookStatus is what became of a hook of the change that is under way.
type HookStatus struct {
	// Name of the hook.
	Name string `json:"name"`

	// When: Before or After.
	When HookTime `json:"when"`

	// State: Waiting, Running, Succeeded or Failed.
	State HookState `json:"state"`

	// Job that runs it, for kubectl logs.
	//
	// +optional
	Job string `json:"job,omitempty"`
}

// HookTime says when a hook is run.
type HookTime string

// When a hook is run.
const (
	HookBefore HookTime = "Before"
	HookAfter  HookTime = "After"
)

// HookState is the state of a hook.
type HookState string

// States of a hook.
const (
	HookWaiting   HookState = "Waiting"
	HookRunning   HookState = "Running"
	HookSucceeded HookState = "Succeeded"
	HookFailed    HookState = "Failed"
)
