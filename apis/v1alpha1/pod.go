// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import corev1 "k8s.io/api/core/v1"

// Scheduling restricts the nodes that pods can run on.
type Scheduling struct {
	// NodeSelector holds labels that a node must have, for instance the product of its GPU.
	//
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 317 && k.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$'))",message="keys must be label keys, for instance nvidia.com/gpu.product"
	// +kubebuilder:example={"nvidia.com/gpu.product":"NVIDIA-A100-SXM4-40GB"}
	// +optional
	NodeSelector map[string]LabelValue `json:"nodeSelector,omitempty"`

	// Tolerations of taints. An Algorithm tolerates the taints of the GPU in its spec.resources without an entry.
	//
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:XValidation:rule="!has(self.operator) || self.operator in ['Equal', 'Exists', 'Lt', 'Gt']",message="operator must be Equal or Exists, or Lt or Gt where the cluster supports them"
	// +kubebuilder:validation:items:XValidation:rule="!has(self.effect) || self.effect in ['', 'NoSchedule', 'PreferNoSchedule', 'NoExecute']",message="effect must be NoSchedule, PreferNoSchedule or NoExecute, or absent for all of them"
	// +kubebuilder:validation:items:XValidation:rule="(has(self.key) && self.key != '') || (has(self.operator) && self.operator == 'Exists')",message="a toleration without key needs operator Exists, which then tolerates every taint"
	// +kubebuilder:validation:items:XValidation:rule="!has(self.operator) || self.operator != 'Exists' || !has(self.value) || self.value == ''",message="a toleration with operator Exists must not have a value"
	// +kubebuilder:validation:items:XValidation:rule="!has(self.tolerationSeconds) || (has(self.effect) && self.effect == 'NoExecute')",message="tolerationSeconds needs effect NoExecute"
	// +listType=atomic
	// +kubebuilder:example={{"key":"dedicated","operator":"Equal","value":"gpu","effect":"NoExecute","tolerationSeconds":300}}
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// RuntimeClassName selects a container runtime, for instance nvidia.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of an object: lower case letters, digits, '-' and '.', with a letter or digit at both ends"
	// +kubebuilder:example="nvidia"
	// +optional
	RuntimeClassName string `json:"runtimeClassName,omitempty"`

	// PriorityClassName is the priority of the pods when nodes are full.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of an object: lower case letters, digits, '-' and '.', with a letter or digit at both ends"
	// +kubebuilder:example="production"
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`
}

// PodMetadata are labels and annotations of the pods.
type PodMetadata struct {
	// Labels of the pods, beside those that Capstan sets.
	//
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 317 && k.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$'))",message="keys must be label keys, for instance example.org/team"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('capstan.dev/') && !(k in ['app.kubernetes.io/name', 'app.kubernetes.io/managed-by', 'pod-template-hash']))",message="keys must not begin with capstan.dev/ or be app.kubernetes.io/name, app.kubernetes.io/managed-by or pod-template-hash: Capstan and Kubernetes select pods by them"
	// +kubebuilder:example={"example.org/team":"reco"}
	// +optional
	Labels map[string]LabelValue `json:"labels,omitempty"`

	// Annotations of the pods, beside those that Capstan sets.
	//
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 317 && k.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$'))",message="keys must be annotation keys, for instance example.org/contact"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('capstan.dev/'))",message="keys must not begin with capstan.dev/: Capstan sets those"
	// +kubebuilder:example={"example.org/contact":"reco-team"}
	// +optional
	Annotations map[string]AnnotationValue `json:"annotations,omitempty"`
}

// AnnotationValue is the value of an annotation.
//
// +kubebuilder:validation:MaxLength=4096
type AnnotationValue string

// LabelValue is the value of a label.
//
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$')",message="must be the value of a label: letters, digits, '-', '_' and '.', with a letter or digit at both ends"
type LabelValue string
