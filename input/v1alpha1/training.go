// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TrainingSettings are the limits of a platform team for every Training. What exceeds them is reported by Accepted=False, and leaves a
// run that is active unchanged; so does a limit that is set later. Defaults and lists of Algorithms hold for Trainings, too.
type TrainingSettings struct {
	// MaxWorkers is the largest number of pods of a Training, spec.workers and spec.spares together, at least 1. Default: no limit.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:example=64
	// +optional
	MaxWorkers *int32 `json:"maxWorkers,omitempty"`

	// MaxGPUs is the largest number of GPUs, or devices of a DRA driver, of all pods of a Training together. With 0 a Training can have
	// none. Default: no limit.
	//
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:example=512
	// +optional
	MaxGPUs *int32 `json:"maxGPUs,omitempty"`

	// MaxDeadline is the longest spec.deadline, from 1m to 8760h. The next run of a Training without a deadline has this one. Default: no
	// limit.
	//
	// +kubebuilder:example="168h"
	// +optional
	MaxDeadline *metav1.Duration `json:"maxDeadline,omitempty"`

	// Allowed limits what specs can name.
	//
	// +optional
	Allowed AllowedToTrainings `json:"allowed,omitzero"`
}

// AllowedToTrainings is what specs of Trainings can name, beside what is allowed to Algorithms. A list that is not set allows everything,
// and an empty one nothing.
type AllowedToTrainings struct {
	// Queues that spec.queue.name can be. With a list a Training must have a queue. Default: every queue, and none.
	//
	// +kubebuilder:validation:MaxItems=256
	// +listType=atomic
	// +kubebuilder:example={{"name": "batch"}, {"name": "production", "namespaces": {"payments"}}}
	// +optional
	Queues []Allowed `json:"queues,omitempty"`
}
