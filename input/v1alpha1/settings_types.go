// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	apisv1alpha1 "github.com/capstan-dev/capstan/apis/v1alpha1"
)

// Settings are the choices of a platform team for every Algorithm and Database of a control plane.
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

	// Database holds settings of the kind Database.
	//
	// +optional
	Database DatabaseSettings `json:"database,omitempty"`

	// Training holds settings of the kind Training.
	//
	// +optional
	Training TrainingSettings `json:"training,omitzero"`

	// Pipeline holds settings of the kind Pipeline.
	//
	// +optional
	Pipeline PipelineSettings `json:"pipeline,omitzero"`

	// Alerts holds settings of the alerts of both kinds.
	//
	// +optional
	Alerts AlertSettings `json:"alerts,omitzero"`

	// Preview holds settings of the kind Preview.
	//
	// +optional
	Preview PreviewSettings `json:"preview,omitzero"`
}

// PreviewSettings are the choices of a platform team for every Preview. To limit the number of Previews in a namespace, use a ResourceQuota
// with count/previews.capstan.dev.
type PreviewSettings struct {
	// Domain below which Previews are reached from outside the cluster, each as NAME-HASH.DOMAIN, if its spec names no host. A
	// Gateway must serve the names below it. Default: none, so that a Preview without a host is reached inside the cluster only.
	//
	// +kubebuilder:validation:MaxLength=189
	// +kubebuilder:example="preview.example.org"
	// +optional
	Domain string `json:"domain,omitempty"`

	// Scheme of the URLs of Previews outside the cluster: http or https. Default: https.
	//
	// +kubebuilder:validation:Enum=http;https
	// +kubebuilder:example="https"
	// +optional
	Scheme string `json:"scheme,omitempty"`

	// MaxTTL is how long a Preview can live from its creation. A lower value does not end Previews that exist before their time. Default:
	// 2160h.
	//
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Type=string
	// +kubebuilder:example="168h"
	// +optional
	MaxTTL *metav1.Duration `json:"maxTTL,omitempty"`
}

// AlertSettings are the choices of a platform team for the alerts of Algorithms and Databases.
type AlertSettings struct {
	// RunbookPage is the page that the annotation runbook_url of alerts leads to: an http or https URL without #. The URL
	// of an alert has # and the alert's name in lower case after it. Default: docs/alerts.md of Capstan.
	//
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:example="https://wiki.example.org/runbooks/capstan"
	// +optional
	RunbookPage string `json:"runbookPage,omitempty"`
}

// AlgorithmSettings are the choices of a platform team for every Algorithm. A change affects Algorithms that do not set
// the field themselves; settings that reach the pods apply to their next revision and restart nothing.
type AlgorithmSettings struct {
	// CPU request of a replica without one and without a GPU. Default: 250m.
	//
	// +kubebuilder:example="250m"
	// +optional
	CPU *resource.Quantity `json:"cpu,omitempty"`

	// Memory request and limit of a replica without them and without a GPU. Default: 256Mi.
	//
	// +kubebuilder:example="256Mi"
	// +optional
	Memory *resource.Quantity `json:"memory,omitempty"`

	// GPU holds the defaults of replicas that request a GPU.
	//
	// +optional
	GPU AlgorithmGPUSettings `json:"gpu,omitzero"`

	// CompanionImage is the image of the program that downloads models and warms up replicas. Without a tag it has the
	// tag of the function's version, and the public image its digest, too. Default: ghcr.io/capstan-dev/companion.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:example="registry.example.org/capstan-dev/companion"
	// +optional
	CompanionImage string `json:"companionImage,omitempty"`

	// Gateway of routes that name none. Default: none, so every route must name one.
	//
	// +kubebuilder:example={"name": "shared", "namespace": "gateway", "sectionName": "web"}
	// +optional
	Gateway *apisv1alpha1.GatewayReference `json:"gateway,omitempty"`

	// GatewayNamespaces are the namespaces whose pods serve Gateways. An Algorithm with a route accepts requests from
	// them. * accepts requests from everywhere, for Gateways outside the cluster. Default: the namespace of the route's
	// Gateway.
	//
	// +kubebuilder:validation:MaxItems=16
	// +listType=set
	// +kubebuilder:example={"gateway"}
	// +optional
	GatewayNamespaces []string `json:"gatewayNamespaces,omitempty"`

	// Prometheus is the config with the address of Prometheus, for Algorithms that name none. Default: the
	// ClusterProviderConfig prometheus.
	//
	// +kubebuilder:example={"kind": "ClusterProviderConfig", "name": "prometheus"}
	// +optional
	Prometheus *xpv2.ProviderConfigReference `json:"prometheus,omitempty"`

	// MetricsNamespaces are the namespaces whose pods can scrape Algorithms, or * for every namespace. Default:
	// monitoring.
	//
	// +kubebuilder:validation:MaxItems=16
	// +listType=set
	// +kubebuilder:example={"monitoring"}
	// +optional
	MetricsNamespaces []string `json:"metricsNamespaces,omitempty"`

	// MLflow is the config with the address of the model registry, for models that name none. Default: the
	// ClusterProviderConfig mlflow.
	//
	// +kubebuilder:example={"kind": "ClusterProviderConfig", "name": "mlflow"}
	// +optional
	MLflow *xpv2.ProviderConfigReference `json:"mlflow,omitempty"`

	// ModelImages is how the files of a model that is an image (oci://) reach the container: ImageVolume, which needs
	// Kubernetes 1.35 and a container runtime that mounts images, or InitContainer, which downloads them. A model with
	// digest, size or cache is always downloaded. Default: ImageVolume.
	//
	// +kubebuilder:example=InitContainer
	// +optional
	ModelImages apisv1alpha1.ModelDelivery `json:"modelImages,omitempty"`

	// Pod limits what spec.pod of an Algorithm can add to pods.
	//
	// +optional
	Pod AlgorithmPodSettings `json:"pod,omitzero"`

	// Allowed limits what specs can name beyond their namespace. Default: no limits.
	//
	// +optional
	Allowed AllowedToAlgorithms `json:"allowed,omitzero"`
}

// AlgorithmPodSettings limit what spec.pod of an Algorithm can add to pods.
type AlgorithmPodSettings struct {
	// Volumes are the kinds of volumes that spec.pod.volumes can have, as core/v1 names them. With an empty list it can
	// have none. The Pod Security Standard "restricted" has no other kinds. An Algorithm with a kind that is removed
	// keeps what runs, and its condition Accepted is False. Default: configMap, downwardAPI, emptyDir,
	// persistentVolumeClaim, projected and secret.
	//
	// +kubebuilder:validation:MaxItems=9
	// +listType=set
	// +kubebuilder:example={"configMap","emptyDir","secret"}
	// +optional
	Volumes []PodVolumeKind `json:"volumes,omitempty"`
}

// PodVolumeKind is a kind of volume, as core/v1 names it.
//
// +kubebuilder:validation:Enum=configMap;csi;downwardAPI;emptyDir;ephemeral;image;persistentVolumeClaim;projected;secret
type PodVolumeKind string

// Kinds of volumes.
const (
	VolumeConfigMap             PodVolumeKind = "configMap"
	VolumeCSI                   PodVolumeKind = "csi"
	VolumeDownwardAPI           PodVolumeKind = "downwardAPI"
	VolumeEmptyDir              PodVolumeKind = "emptyDir"
	VolumeEphemeral             PodVolumeKind = "ephemeral"
	VolumeImage                 PodVolumeKind = "image"
	VolumePersistentVolumeClaim PodVolumeKind = "persistentVolumeClaim"
	VolumeProjected             PodVolumeKind = "projected"
	VolumeSecret                PodVolumeKind = "secret"
)

// PodVolumeKinds are all kinds, in the order of the alphabet.
func PodVolumeKinds() []PodVolumeKind {
	return []PodVolumeKind{
		VolumeConfigMap, VolumeCSI, VolumeDownwardAPI, VolumeEmptyDir, VolumeEphemeral, VolumeImage, VolumePersistentVolumeClaim,
		VolumeProjected, VolumeSecret,
	}
}

// UsualPodVolumes are the kinds without settings: those that reach nothing beyond the namespace. CSI drivers and generic
// ephemeral volumes can, and images of volumes need a later Kubernetes.
func UsualPodVolumes() []PodVolumeKind {
	return []PodVolumeKind{
		VolumeConfigMap, VolumeDownwardAPI, VolumeEmptyDir, VolumePersistentVolumeClaim, VolumeProjected, VolumeSecret,
	}
}

// AlgorithmGPUSettings are the defaults of replicas that request a GPU.
type AlgorithmGPUSettings struct {
	// CPU request of a replica without one. Default: 1.
	//
	// +kubebuilder:example="4"
	// +optional
	CPU *resource.Quantity `json:"cpu,omitempty"`

	// Memory request of a replica without one. Such a replica has no limit, because drivers and models need very
	// different amounts of it. Default: 4Gi.
	//
	// +kubebuilder:example="16Gi"
	// +optional
	Memory *resource.Quantity `json:"memory,omitempty"`
}
