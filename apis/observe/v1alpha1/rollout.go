// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// AnnotationRollout is an annotation of an Analysis with the state of its Algorithm's rollout: a RolloutTold in JSON.
// The provider exports it as metrics.
const AnnotationRollout = "capstan.dev/rollout"

// RolloutTold is the state of a rollout.
//
// +kubebuilder:object:generate=false
type RolloutTold struct {
	// Phase and its reason, as status.rollout of the Algorithm has them.
	Phase  string `json:"phase"`
	Reason string `json:"reason,omitempty"`

	// Since is when the phase began. It is absent for a revision that has been stable since the Algorithm was created.
	Since *metav1.Time `json:"since,omitempty"`
}
