// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Settings are what a platform team decides for every Algorithm and Database of
// a control plane.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:categories=crossplane
type Settings struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Algorithm holds settings of the kind Algorithm.
	//
	// +optional
	Algorithm AlgorithmSettings `json:"algorithm,omitempty"`
}

// AlgorithmSettings are what a platform team decides for every Algorithm.
type AlgorithmSettings struct {
	// CPU requested by a replica that does not say how much. Default: 250m.
	//
	// +kubebuilder:example="250m"
	// +optional
	CPU *resource.Quantity `json:"cpu,omitempty"`

	// Memory requested and limited by a replica that does not say how much.
	// Default: 256Mi.
	//
	// +kubebuilder:example="256Mi"
	// +optional
	Memory *resource.Quantity `json:"memory,omitempty"`
}
