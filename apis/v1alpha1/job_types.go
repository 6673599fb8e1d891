// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// JobPod is what the pods of a Training or a Pipeline have beside the container of the program, in the form of a PodSpec of
// core/v1.
type JobPod struct {
	Scheduling `json:",inline"`

	// Volumes of core/v1 that spec.volumeMounts mounts. The platform's settings define the kinds. Default kinds: configMap,
	// downwardAPI, emptyDir, persistentVolumeClaim, projected and secret. A token of the ServiceAccount needs serviceAccountName.
	//
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:example={{"name":"data","persistentVolumeClaim":{"claimName":"transactions"}}}
	// +optional
	Volumes []PodVolume `json:"volumes,omitempty"`

	// ServiceAccountName is a ServiceAccount of this namespace, for programs that use workload identity, for instance to read a bucket.
	// Default: Capstan creates an account without rights and without a token.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of an object: lower case letters, digits, '-' and '.', with a letter or digit at both ends"
	// +kubebuilder:example="fraud"
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// ImagePullSecrets are Secrets of this namespace with credentials for a private registry.
	//
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=name
	// +optional
	ImagePullSecrets []LocalReference `json:"imagePullSecrets,omitempty"`

	// SecurityContext of the pods.
	//
	// +optional
	SecurityContext *PodSecurity `json:"securityContext,omitempty"`
}

// JobQueue is a queue of Kueue.
type JobQueue struct {
	// Name of a LocalQueue of this namespace.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be the name of a LocalQueue: lower case letters, digits and '-', with a letter or digit at both ends"
	// +kubebuilder:example="research"
	Name string `json:"name"`

	// Priority is the name of a WorkloadPriorityClass of Kueue. Default: the priority of the pods.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="must be the name of a WorkloadPriorityClass: lower case letters, digits, '-' and '.', with a letter or digit at both ends"
	// +kubebuilder:example="high"
	// +optional
	Priority string `json:"priority,omitempty"`
}
