// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MaxSignals are the most Signals to one object that count at a time: the oldest, and tasks after all others.
const MaxSignals = 16

// ActiveSignal is a Signal of events.capstan.dev that is in force.
type ActiveSignal struct {
	// Name of the Signal.
	Name string `json:"name"`

	// UID of the Signal: another one of the same name is another request.
	UID string `json:"uid"`

	// Do: Hold, Abort, MinReplicas, Backup or Hook.
	Do string `json:"do"`

	// Replicas for MinReplicas.
	//
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// Revision for Abort.
	//
	// +optional
	Revision string `json:"revision,omitempty"`

	// Hook that Hook runs.
	//
	// +optional
	Hook string `json:"hook,omitempty"`

	// Until is the end of the Signal.
	Until metav1.Time `json:"until"`

	// Cause is where it comes from and why.
	//
	// +optional
	Cause string `json:"cause,omitempty"`
}
