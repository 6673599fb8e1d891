// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/json"
)

// PodSpec is what the pods have beside the container of the Algorithm, in the form of a PodSpec of core/v1. Fields that it
// does not have are Capstan's own. The whole pod keeps the Pod Security Standard "restricted".
type PodSpec struct {
	Scheduling `json:",inline"`

	// InitContainers are containers of core/v1 that run to their end, one after the other, before the model is
	// downloaded and the container of the Algorithm starts. One with restartPolicy Always keeps running, as a sidecar
	// does. Unless set, each gets allowPrivilegeEscalation false, drops all capabilities, and requests 10m of CPU and
	// 32Mi of memory.
	//
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:example={{"name":"features","image":"registry.example.org/algo/features:1.4","volumeMounts":{{"name":"features","mountPath":"/features"}}}}
	// +optional
	InitContainers []PodContainer `json:"initContainers,omitempty"`

	// Containers are sidecars: containers of core/v1 that run beside the container of the Algorithm. They start after
	// initContainers and before the container of the Algorithm, and end after it. The defaults of initContainers hold.
	// Their ports are open only to the pod itself, except spec.metrics.port.
	//
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:example={{"name":"tokens","image":"registry.example.org/platform/tokens:2.0","args":{"--refresh=5m"}}}
	// +optional
	Containers []PodContainer `json:"containers,omitempty"`

	// Volumes of core/v1 that spec.volumeMounts and the containers of this block mount. The platform's settings define the
	// kinds. Default kinds: configMap, downwardAPI, emptyDir, persistentVolumeClaim, projected and secret. A token of
	// the ServiceAccount needs serviceAccountName.
	//
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:example={{"name":"features","emptyDir":{"sizeLimit":"1Gi"}}}
	// +optional
	Volumes []PodVolume `json:"volumes,omitempty"`

	// ServiceAccountName is a ServiceAccount of this namespace, for workloads that call the Kubernetes API or use
	// workload identity. Default: Capstan creates an account without rights and without a token.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of an object: lower case letters, digits, '-' and '.', with a letter or digit at both ends"
	// +kubebuilder:example="reco"
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

// PodSecurity is a pod security context of core/v1.
type PodSecurity struct {
	// RunAsUser is the numeric user that the containers run as. An image needs it when its user is root or only a name,
	// because pods run under the Pod Security Standard "restricted". Default: the image's user.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	// +kubebuilder:example=65532
	// +optional
	RunAsUser *int64 `json:"runAsUser,omitempty"`
}

// PodContainer is a container of core/v1. The schema names only what admission checks. It keeps all other fields, and the
// function refuses fields that core/v1 does not have: the complete schema would be several times the one of an Algorithm.
//
// +kubebuilder:pruning:PreserveUnknownFields
type PodContainer struct {
	// Name of the container, other than algorithm, model and warm-up.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && !(self in ['algorithm', 'model', 'warm-up'])",message="must be lower case letters, digits and '-', with a letter or digit at both ends, and not algorithm, model or warm-up, which Capstan uses"
	// +kubebuilder:example="tokens"
	Name string `json:"name"`

	// Image of the container. spec.pod.imagePullSecrets are also for it.
	//
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^[][a-zA-Z0-9._:/@+-]+$')",message="must be an image reference: letters, digits and any of . _ - / : @ +"
	// +kubebuilder:example="registry.example.org/platform/tokens:2.0"
	Image string `json:"image"`

	// SecurityContext of the container, within the Pod Security Standard "restricted".
	//
	// +optional
	SecurityContext *PodContainerSecurity `json:"securityContext,omitempty"`

	// Core is the whole container, including the fields above.
	Core corev1.Container `json:"-"`
}

// PodContainerSecurity is a security context of core/v1.
//
// +kubebuilder:pruning:PreserveUnknownFields
type PodContainerSecurity struct {
	// Privileged must be false. Default: false.
	//
	// +kubebuilder:validation:XValidation:rule="!self",message="must be false: pods run under the Pod Security Standard restricted"
	// +kubebuilder:example=false
	// +optional
	Privileged *bool `json:"privileged,omitempty"`

	// AllowPrivilegeEscalation must be false. Default: false.
	//
	// +kubebuilder:validation:XValidation:rule="!self",message="must be false: pods run under the Pod Security Standard restricted"
	// +kubebuilder:example=false
	// +optional
	AllowPrivilegeEscalation *bool `json:"allowPrivilegeEscalation,omitempty"`

	// RunAsNonRoot must be true. Default: true.
	//
	// +kubebuilder:validation:XValidation:rule="self",message="must be true: pods run under the Pod Security Standard restricted"
	// +kubebuilder:example=true
	// +optional
	RunAsNonRoot *bool `json:"runAsNonRoot,omitempty"`

	// RunAsUser is the numeric user of the container. Default: the one of the pod, or else the image's.
	//
	// +kubebuilder:validation:XValidation:rule="self >= 1 && self <= 2147483647",message="must be from 1 to 2147483647, which excludes root: pods run under the Pod Security Standard restricted"
	// +kubebuilder:example=65532
	// +optional
	RunAsUser *int64 `json:"runAsUser,omitempty"`
}

// UnmarshalJSON reads a container of core/v1.
func (c *PodContainer) UnmarshalJSON(raw []byte) error {
	type named PodContainer
	into := named{}
	if err := json.Unmarshal(raw, &into); err != nil {
		return err
	}
	if err := json.Unmarshal(raw, &into.Core); err != nil {
		return err
	}
	*c = PodContainer(into)
	return nil
}

// MarshalJSON writes a container of core/v1.
func (c PodContainer) MarshalJSON() ([]byte, error) { return json.Marshal(c.Core) }

// PodVolume is a volume of core/v1. The schema keeps the fields that it does not name, and the function checks them: which
// kinds of volumes are allowed is a setting of the platform.
//
// +kubebuilder:pruning:PreserveUnknownFields
type PodVolume struct {
	// Name of the volume, other than config, shared-memory, model, model-credentials, warm-up, and names that begin with
	// secret-.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && !self.startsWith('secret-') && !(self in ['config', 'shared-memory', 'model', 'model-credentials', 'warm-up'])",message="must be lower case letters, digits and '-', with a letter or digit at both ends, and not config, shared-memory, model, model-credentials, warm-up or secret-…, which Capstan uses"
	// +kubebuilder:example="features"
	Name string `json:"name"`

	// Core is the whole volume, including its name.
	Core corev1.Volume `json:"-"`
}

// UnmarshalJSON reads a volume of core/v1.
func (v *PodVolume) UnmarshalJSON(raw []byte) error {
	core := corev1.Volume{}
	if err := json.Unmarshal(raw, &core); err != nil {
		return err
	}
	*v = PodVolume{Name: core.Name, Core: core}
	return nil
}

// MarshalJSON writes a volume of core/v1.
func (v PodVolume) MarshalJSON() ([]byte, error) { return json.Marshal(v.Core) }

// PodVolumeMount is a folder of the Algorithm's own container where a volume appears.
type PodVolumeMount struct {
	// Name of the volume in volumes, or config, model, or secret-NAME with a name in spec.secrets: those are read-only.
	//
	// +kubebuilder:validation:MaxLength=260
	// +kubebuilder:example="features"
	Name string `json:"name"`

	// MountPath is the folder. It must not overlap with the folders of spec.config, spec.secrets, spec.model and shared
	// memory. Where it names one of these, it is the folder of that.
	//
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^/[^:]+$') && self != '/dev/shm'",message="must be an absolute path without ':', other than / and /dev/shm"
	// +kubebuilder:example="/features"
	MountPath string `json:"mountPath"`

	// SubPath is the folder or file of the volume that appears. A running container does not get changes of such a file, so
	// that a Secret needs rotate Rolling. Default: the whole volume.
	//
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !self.matches('(^|/)[.][.](/|$)')",message="must be a relative path without the segment .."
	// +kubebuilder:example="current"
	// +optional
	SubPath string `json:"subPath,omitempty"`

	// ReadOnly reports whether the container cannot write to the volume. Default: false.
	//
	// +kubebuilder:example=true
	// +optional
	ReadOnly bool `json:"readOnly,omitempty"`
}
