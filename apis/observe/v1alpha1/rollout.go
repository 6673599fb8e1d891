// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// AnnotationRollout tells on an Analysis where the rollout of its Algorithm stands: a
// RolloutTold in JSON. The provider serves it as metrics.
const AnnotationRollout = "capstan.dev/rollout"

// RolloutTold is where a rollout stands.
//
// +kubebuilder:object:generate=false
type RolloutTold struct {
	// Phase and its reason, as status.rollout of the Algorithm has them.
	Phase  string `json:"phase"`
	Reason string `json:"reason,omitempty"`

	// Since tells when the phase began. A revision that has never been followed by
	// another is stable since nobody knows when.
	Since *metav1.Time `json:"since,omitempty"`
}
