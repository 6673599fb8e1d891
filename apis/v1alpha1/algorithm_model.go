// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// ModelOrigin is where a model comes from.
//
// +kubebuilder:validation:Enum=registry;s3;oci;volume
type ModelOrigin string

// Where a model comes from.
const (
	// ModelFromRegistry: from the model registry, by version or alias.
	ModelFromRegistry ModelOrigin = "registry"
	// ModelFromS3: from object storage.
	ModelFromS3 ModelOrigin = "s3"
	// ModelFromOCI: from a registry of container images.
	ModelFromOCI ModelOrigin = "oci"
	// ModelFromVolume: from an existing PersistentVolumeClaim that holds the model.
	ModelFromVolume ModelOrigin = "volume"
)

// Model is verified before the container starts, and mounted read-only. It is part of the revision: another version is
// another revision.
//
// +kubebuilder:validation:XValidation:rule="(self.from == 'registry') == has(self.registry)",fieldPath=".registry",message="registry is required when from is registry, and only then"
// +kubebuilder:validation:XValidation:rule="(self.from == 's3') == has(self.s3)",fieldPath=".s3",message="s3 is required when from is s3, and only then"
// +kubebuilder:validation:XValidation:rule="(self.from == 'oci') == has(self.oci)",fieldPath=".oci",message="oci is required when from is oci, and only then"
// +kubebuilder:validation:XValidation:rule="(self.from == 'volume') == has(self.volume)",fieldPath=".volume",message="volume is required when from is volume, and only then"
// +kubebuilder:validation:XValidation:rule="!has(self.cache) || (self.from != 'volume' && (self.from != 'oci' || (has(self.oci) && has(self.oci.delivery) && self.oci.delivery == 'InitContainer')))",fieldPath=".cache",message="a cache is only for downloaded models: remove it, because a volume needs none and the node caches an image volume"
// +kubebuilder:validation:XValidation:rule="self.from != 'oci' || !has(self.digest) || (has(self.oci) && has(self.oci.delivery) && self.oci.delivery == 'InitContainer')",fieldPath=".digest",message="an image volume is verified by the digest in oci.reference: move it there"
// +kubebuilder:validation:XValidation:rule="self.from != 'oci' || !has(self.size) || (has(self.oci) && has(self.oci.delivery) && self.oci.delivery == 'InitContainer')",fieldPath=".size",message="an image volume is verified by the digest in oci.reference: remove size"
// +kubebuilder:validation:XValidation:rule="self.from != 'volume' || !has(self.credentials)",fieldPath=".credentials",message="credentials are only for downloads, and a volume is not downloaded: remove them"
type Model struct {
	// From is where the model comes from: registry, s3, oci or volume. The field of the same name must be set, and no
	// other of them.
	//
	// +kubebuilder:example=registry
	From ModelOrigin `json:"from"`

	// Registry is a model in the model registry.
	//
	// +optional
	Registry *RegistryModel `json:"registry,omitempty"`

	// S3 is a set of objects in object storage.
	//
	// +optional
	S3 *S3Model `json:"s3,omitempty"`

	// OCI is an image or artifact in a container registry.
	//
	// +optional
	OCI *OCIModel `json:"oci,omitempty"`

	// Volume is a PersistentVolumeClaim that holds the model.
	//
	// +optional
	Volume *VolumeModel `json:"volume,omitempty"`

	// Credentials name a Secret of this namespace for the download. It has the keys of a Bucket's connection Secret,
	// or username and password or token of the model registry, or .dockerconfigjson. Default: spec.imagePullSecrets for
	// an image volume, otherwise none.
	//
	// +optional
	Credentials *LocalReference `json:"credentials,omitempty"`

	// Digest that the model must have: sha256 of the sorted lines that sha256sum prints for its files. Default: the tag
	// digest of the registry's version if it has one, otherwise no check.
	//
	// +kubebuilder:validation:XValidation:rule="self.matches('^sha256:[0-9a-f]{64}$')",message="must be sha256: and 64 hexadecimal digits in lower case, as companion digest prints it"
	// +kubebuilder:validation:MaxLength=71
	// +kubebuilder:example="sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	// +optional
	Digest string `json:"digest,omitempty"`

	// Size in bytes that all files of the model must have together. Default: no check.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:example=1073741824
	// +optional
	Size *int64 `json:"size,omitempty"`

	// MountPath is the directory where the model appears. Default: /models.
	//
	// +kubebuilder:default="/models"
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^/[^:]+$') && self != '/dev/shm'",message="must be an absolute path without ':', other than / and /dev/shm"
	// +kubebuilder:example="/models"
	// +optional
	MountPath string `json:"mountPath,omitempty"`

	// Cache keeps downloaded models on a volume that all replicas share. A change makes no new revision. Default: each
	// replica downloads the model to the disk of its node.
	//
	// +optional
	Cache *ModelCache `json:"cache,omitempty"`
}

// RegistryModel is a model of the model registry, by version or by alias.
//
// +kubebuilder:validation:XValidation:rule="has(self.version) != has(self.alias)",message="set exactly one of version and alias"
// +kubebuilder:validation:XValidation:rule="!has(self.alias) || !has(self.liveAlias) || self.alias != self.liveAlias",fieldPath=".liveAlias",message="liveAlias must differ from alias: alias chooses the version, liveAlias reports the live one"
// +kubebuilder:validation:XValidation:rule="!has(self.candidateAlias) || (!has(self.alias) || self.alias != self.candidateAlias) && (!has(self.liveAlias) || self.liveAlias != self.candidateAlias)",fieldPath=".candidateAlias",message="candidateAlias must differ from alias and liveAlias: choose another name"
type RegistryModel struct {
	// Name of the model in the registry.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^/:%]+$')",message="must be the name of a model: without / : and %"
	// +kubebuilder:example="reco"
	Name string `json:"name"`

	// Version to serve: its number.
	//
	// +kubebuilder:validation:MaxLength=18
	// +kubebuilder:validation:XValidation:rule="self.matches('^[1-9][0-9]*$')",message="must be the number of a version"
	// +kubebuilder:example="7"
	// +optional
	Version string `json:"version,omitempty"`

	// Alias whose version to serve. When it moves to another version, a new revision rolls out.
	//
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_-]+$') && self.lowerAscii() != 'latest' && !self.lowerAscii().matches('^v[0-9]+$')",message="must be letters, digits, '_' and '-', and not be latest or v with digits, which the registry reserves"
	// +kubebuilder:example="champion"
	// +optional
	Alias string `json:"alias,omitempty"`

	// LiveAlias is an alias that Capstan keeps on the version of the live revision. Only one Algorithm can manage an
	// alias.
	//
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_-]+$') && self.lowerAscii() != 'latest' && !self.lowerAscii().matches('^v[0-9]+$')",message="must be letters, digits, '_' and '-', and not be latest or v with digits, which the registry reserves"
	// +kubebuilder:example="live"
	// +optional
	LiveAlias string `json:"liveAlias,omitempty"`

	// CandidateAlias is an alias that Capstan keeps on the version of the candidate of spec.lifecycle until it has all
	// traffic. After a rollback it stays, with the evidence, while the spec still describes that revision. Only one
	// Algorithm can manage an alias.
	//
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_-]+$') && self.lowerAscii() != 'latest' && !self.lowerAscii().matches('^v[0-9]+$')",message="must be letters, digits, '_' and '-', and not be latest or v with digits, which the registry reserves"
	// +kubebuilder:example="challenger"
	// +optional
	CandidateAlias string `json:"candidateAlias,omitempty"`

	// ProviderConfigReference names the ProviderConfig of this namespace, or the ClusterProviderConfig, with the
	// address of the registry. Default: the platform's setting, or the ClusterProviderConfig mlflow.
	//
	// +kubebuilder:validation:XValidation:rule="self.kind in ['ProviderConfig', 'ClusterProviderConfig']",messageExpression="'providerConfigRef.kind: ' + self.kind + ' is neither ProviderConfig nor ClusterProviderConfig'"
	// +kubebuilder:validation:XValidation:rule="size(self.name) <= 63 && self.name.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",messageExpression="'providerConfigRef.name: ' + self.name + ' is not the name of a config: at most 63 lower case letters, digits, - and .'"
	// +kubebuilder:example={"kind": "ClusterProviderConfig", "name": "mlflow"}
	// +optional
	ProviderConfigReference *xpv2.ProviderConfigReference `json:"providerConfigRef,omitempty"`

	// Endpoint is the URL of the registry for downloads, when the registry serves the files itself (mlflow-artifacts:).
	// Default: the key endpoint of spec.model.credentials.
	//
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://[^[:space:]]+$')",message="must be a URL that begins with https:// or http://"
	// +kubebuilder:example="https://mlflow.example.org"
	// +optional
	Endpoint string `json:"endpoint,omitempty"`

	// S3Endpoint is the URL of the object storage for downloads, when the version's source is in object storage.
	// Default: the key endpoint of spec.model.credentials, otherwise AWS.
	//
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://[^[:space:]]+$')",message="must be a URL that begins with https:// or http://"
	// +kubebuilder:example="https://s3.example.org"
	// +optional
	S3Endpoint string `json:"s3Endpoint,omitempty"`
}

// S3Model is a set of objects in object storage.
type S3Model struct {
	// URI of one object, or of all objects whose keys begin with it and a slash.
	//
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^s3://[a-z0-9][-a-z0-9.]+/[^[:space:]]*[^/[:space:]]/?$') && !self.contains('..')",message="must be of the form s3://bucket/prefix"
	// +kubebuilder:example="s3://models/reco/7"
	URI string `json:"uri"`

	// Endpoint is the URL of the object storage. Default: the key endpoint of spec.model.credentials, otherwise AWS.
	//
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://[^[:space:]]+$')",message="must be a URL that begins with https:// or http://"
	// +kubebuilder:example="https://s3.example.org"
	// +optional
	Endpoint string `json:"endpoint,omitempty"`

	// Region of the bucket. Default: the key region of spec.model.credentials, otherwise us-east-1.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9-]+$')",message="must be the name of a region, for instance eu-central-1"
	// +kubebuilder:example="eu-central-1"
	// +optional
	Region string `json:"region,omitempty"`
}

// ModelDelivery is how the files of an image reach the container.
//
// +kubebuilder:validation:Enum=ImageVolume;InitContainer
type ModelDelivery string

// How the files of an image reach the container.
const (
	// DeliverImageVolume mounts the image, which the node pulls and caches.
	DeliverImageVolume ModelDelivery = "ImageVolume"
	// DeliverInitContainer downloads the image before the container starts, for clusters whose nodes cannot mount
	// images.
	DeliverInitContainer ModelDelivery = "InitContainer"
)

// OCIModel is an image or artifact that holds a model.
type OCIModel struct {
	// Reference of the image, preferably with its digest, so that it never moves.
	//
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z0-9][a-zA-Z0-9._:/-]*(@sha256:[0-9a-f]{64})?$')",message="must be the reference of an image, for instance registry.example.org/models/reco@sha256:…"
	// +kubebuilder:example="registry.example.org/models/reco:7"
	Reference string `json:"reference"`

	// Delivery is how the files reach the container: ImageVolume, which needs Kubernetes 1.35 and a container runtime
	// that mounts images, or InitContainer. Default: ImageVolume.
	//
	// +kubebuilder:default=ImageVolume
	// +kubebuilder:example=ImageVolume
	// +optional
	Delivery ModelDelivery `json:"delivery,omitempty"`
}

// VolumeModel is an existing PersistentVolumeClaim that holds the model.
type VolumeModel struct {
	// ClaimName is the name of the claim in this namespace.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of an object: lower case letters, digits, '-' and '.', with a letter or digit at both ends"
	// +kubebuilder:example="models"
	ClaimName string `json:"claimName"`

	// Path of the model in the volume. Default: the whole volume.
	//
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !self.matches('(^|/)[.][.](/|$)')",message="must be relative and without .."
	// +kubebuilder:example="reco/7"
	// +optional
	Path string `json:"path,omitempty"`
}

// ModelCache is a volume that all replicas share. Capstan creates it with the first revision that uses it, and deletes
// it with the Algorithm.
type ModelCache struct {
	// Size of the volume. It can grow where the storage class allows it, and never shrink. Models that were not used
	// for a day are removed when space is needed; models in use stay.
	//
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('1Mi')) >= 0",message="must be a quantity of at least 1Mi, for instance 20Gi"
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity(string(oldSelf))) >= 0",message="cannot be lowered: a volume does not shrink"
	// +kubebuilder:example="20Gi"
	Size *resource.Quantity `json:"size"`

	// StorageClassName of the volume, which cannot change. Default: the cluster's default class.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of an object: lower case letters, digits, '-' and '.', with a letter or digit at both ends"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot be changed: a volume stays in its class"
	// +kubebuilder:example="shared"
	// +optional
	StorageClassName string `json:"storageClassName,omitempty"`

	// AccessMode of the volume, which cannot change. ReadWriteOnce keeps all replicas on one node. Default:
	// ReadWriteMany.
	//
	// +kubebuilder:default=ReadWriteMany
	// +kubebuilder:validation:Enum=ReadWriteMany;ReadWriteOnce
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot be changed: a volume keeps its access mode"
	// +kubebuilder:example=ReadWriteMany
	// +optional
	AccessMode corev1.PersistentVolumeAccessMode `json:"accessMode,omitempty"`
}
