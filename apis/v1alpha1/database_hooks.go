// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MaintenanceHooks run around a change that restarts or removes members, each once per change, or for a Signal, each once for it:
// one after the other, each as a Job.
type MaintenanceHooks struct {
	// Before lists hooks that run before the first member is touched, once the change can start: in a window, approved,
	// and not frozen. The repair of a failed member does not run hooks.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=name
	// +optional
	Before []MaintenanceHook `json:"before,omitempty"`

	// After lists hooks that run when the last member is done and healthy, or when a change is reverted after hooks in
	// before have started. A hook that fails blocks the next change.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=name
	// +optional
	After []MaintenanceHook `json:"after,omitempty"`

	// OnSignal lists hooks that run when a Signal of events.capstan.dev names one. No change waits for them, and they wait for none.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=name
	// +optional
	OnSignal []DatabaseHook `json:"onSignal,omitempty"`
}

// MaintenanceHook is one action around a change.
type MaintenanceHook struct {
	DatabaseHook `json:",inline"`

	// OnFailure: Stop blocks the change and every later one until the hook succeeds or is changed; Continue continues
	// with the change. Default: Stop.
	//
	// +kubebuilder:default=Stop
	// +kubebuilder:example=Stop
	// +optional
	OnFailure HookFailure `json:"onFailure,omitempty"`
}

// DatabaseHook is one action of a Database. It runs at least once: if its node is lost, it starts again.
//
// +kubebuilder:validation:XValidation:rule="has(self.sql) != has(self.http)",message="set exactly one of sql and http"
type DatabaseHook struct {
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

	// HTTP request to send.
	//
	// +optional
	HTTP *HTTPHook `json:"http,omitempty"`

	// Timeout after which the hook has failed, from 1s to 1h. Default: 5m.
	//
	// +kubebuilder:default="5m"
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,6}s)?$') && self != '' && duration(self) >= duration('1s') && duration(self) <= duration('1h')",message="must be from 1s to 1h, for instance 5m"
	// +kubebuilder:example="5m"
	// +optional
	Timeout metav1.Duration `json:"timeout,omitempty"`
}

// HookFailure is what happens when a hook fails.
//
// +kubebuilder:validation:Enum=Stop;Continue
type HookFailure string

// What happens when a hook fails.
const (
	// HookStops: the change is blocked.
	HookStops HookFailure = "Stop"
	// HookContinues: the failure is reported and the change continues.
	HookContinues HookFailure = "Continue"
)

// SQLHook is SQL to run on the leader.
type SQLHook struct {
	// Database to run it in, one of spec.databases. It runs as the first of spec.consumers with access ReadWrite there.
	// Default: the first.
	//
	// +kubebuilder:validation:MaxLength=48
	// +kubebuilder:example="orders"
	// +optional
	Database string `json:"database,omitempty"`

	// Statement to run. Several statements, separated by ;, are one transaction.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:example="UPDATE jobs SET paused = true"
	Statement string `json:"statement"`
}

// HTTPHook is an HTTP request.
type HTTPHook struct {
	// URL to call, with http or https, and without credentials, because everybody with read access to the Database can
	// see it. Certificates are verified with the authorities of the database's image. Redirects are not followed.
	//
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="isURL(self) && self.matches('^https?://[^/?#@]+([/?#].*)?$')",message="must be an http or https URL without a user, for instance http://orders.shop.svc/maintenance"
	// +kubebuilder:example="http://orders.shop.svc:8080/maintenance"
	URL string `json:"url"`

	// Method: POST, GET, PUT, PATCH or DELETE. The request has no body. Default: POST.
	//
	// +kubebuilder:validation:Enum=POST;GET;PUT;PATCH;DELETE
	// +kubebuilder:default=POST
	// +kubebuilder:example=POST
	// +optional
	Method string `json:"method,omitempty"`

	// ExpectedStatus of the response. Default: any from 200 to 299.
	//
	// +kubebuilder:validation:Minimum=100
	// +kubebuilder:validation:Maximum=599
	// +kubebuilder:example=204
	// +optional
	ExpectedStatus int32 `json:"expectedStatus,omitempty"`
}

// HookStatus is the state of a hook of the current change.
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

// HookTime is when a hook runs.
type HookTime string

// When a hook runs.
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
