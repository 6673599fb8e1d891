// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SignalStatus is a Signal of events.capstan.dev that is in force.
type SignalStatus struct {
	// Name of the Signal.
	Name string `json:"name"`

	// Do is what it does: Hold, Abort, MinReplicas or Backup.
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
}
