// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SignalStatus is a Signal of events.capstan.dev that is in force, or whose hook still runs.
type SignalStatus struct {
	// Name of the Signal.
	Name string `json:"name"`

	// Do is what it does: Hold, Abort, MinReplicas, Backup or Hook.
	Do string `json:"do"`

	// Until is when it ends.
	Until metav1.Time `json:"until"`

	// Cause is where it comes from and why.
	//
	// +optional
	Cause string `json:"cause,omitempty"`

	// Ignored says why it has no effect. Empty: it has.
	//
	// +optional
	Ignored string `json:"ignored,omitempty"`

	// Hook is how far the hook is that it runs. Only for Hook.
	//
	// +optional
	Hook *SignalHookStatus `json:"hook,omitempty"`
}

// SignalHookStatus is the run of a hook that a Signal asks for. There is one for each Signal.
type SignalHookStatus struct {
	// Name of the hook.
	Name string `json:"name"`

	// Key of the run, which the request or the Job has as well.
	Key string `json:"key"`

	// Result: Waiting, Running, Passed or Failed.
	Result HookResult `json:"result"`

	// Message says why it failed.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// StartedAt is when it did.
	//
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`

	// Object that runs it, once it exists, in the form of kubectl, such as job/reco-hook-flush-1a2b3c4d5e.
	//
	// +optional
	Object string `json:"object,omitempty"`
}
