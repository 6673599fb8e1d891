// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// ModelOrigin says where a model comes from.
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
	// ModelFromVolume: from a PersistentVolumeClaim that somebody has filled.
	ModelFromVolume ModelOrigin = "volume"
)

// Model is mounted read-only, and verified before the container starts. It belongs
// to the revision: another version is another revision.
//
// +kubebuilder:validation:XValidation:rule="(self.from == 'registry') == has(self.registry)",fieldPath=".registry",message="from: registry needs registry, and nothing else has it"
// +kubebuilder:validation:XValidation:rule="(self.from == 's3') == has(self.s3)",fieldPath=".s3",message="from: s3 needs s3, and nothing else has it"
// +kubebuilder:validation:XValidation:rule="(self.from == 'oci') == has(self.oci)",fieldPath=".oci",message="from: oci needs oci, and nothing else has it"
// +kubebuilder:validation:XValidation:rule="(self.from == 'volume') == has(self.volume)",fieldPath=".volume",message="from: volume needs volume, and nothing else has it"
// +kubebuilder:validation:XValidation:rule="!has(self.cache) || (self.from != 'volume' && (self.from != 'oci' || (has(self.oci) && has(self.oci.delivery) && self.oci.delivery == 'InitContainer')))",fieldPath=".cache",message="a cache is for models that are downloaded: a volume needs none, and an image volume is cached by the node"
// +kubebuilder:validation:XValidation:rule="self.from != 'oci' || !has(self.digest) || (has(self.oci) && has(self.oci.delivery) && self.oci.delivery == 'InitContainer')",fieldPath=".digest",message="an image volume is verified by the digest in its reference: put it there"
// +kubebuilder:validation:XValidation:rule="self.from != 'oci' || !has(self.size) || (has(self.oci) && has(self.oci.delivery) && self.oci.delivery == 'InitContainer')",fieldPath=".size",message="an image volume is verified by the digest in its reference: put it there"
// +kubebuilder:validation:XValidation:rule="self.from != 'volume' || !has(self.credentials)",fieldPath=".credentials",message="credentials are for what is downloaded, and a volume is not: remove them"
type Model struct {
	// From says where the model comes from: registry, s3, oci or volume.
	//
	// +kubebuilder:example=registry
	From ModelOrigin `json:"from"`

	// Registry says which model of the model registry.
	//
	// +optional
	Registry *RegistryModel `json:"registry,omitempty"`

	// S3 says which objects of object storage.
	//
	// +optional
	S3 *S3Model `json:"s3,omitempty"`

	// OCI says which image or artifact.
	//
	// +optional
	OCI *OCIModel `json:"oci,omitempty"`

	// Volume says which PersistentVolumeClaim.
	//
	// +optional
	Volume *VolumeModel `json:"volume,omitempty"`

	// Credentials name a Secret of this namespace that opens what the model is
	// downloaded from: with the keys of a Bucket's connection Secret, or username
	// and password or token of the model registry, or .dockerconfigjson. Default:
	// spec.imagePullSecrets for an image volume, and else none.
	//
	// +optional
	Credentials *LocalReference `json:"credentials,omitempty"`

	// Digest that the model must have: sha256 of the sorted lines that sha256sum
	// writes of its files. Default: the tag digest of the registry's version, if it
	// has one, and else nothing is compared.
	//
	// +kubebuilder:validation:XValidation:rule="self.matches('^sha256:[0-9a-f]{64}$')",message="must be sha256: and 64 digits or letters from a to f, as companion digest prints it"
	// +kubebuilder:validation:MaxLength=71
	// +kubebuilder:example="sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	// +optional
	Digest string `json:"digest,omitempty"`

	// Size that the files of the model must have together, in bytes.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:example=1073741824
	// +optional
	Size *int64 `json:"size,omitempty"`

	// MountPath is the folder that the model appears in.
	//
	// +kubebuilder:default="/models"
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^/[^:]+$') && self != '/dev/shm'",message="must be an absolute path without ':', other than / and /dev/shm"
	// +kubebuilder:example="/models"
	// +optional
	MountPath string `json:"mountPath,omitempty"`

	// Cache keeps downloaded models on a volume that all replicas share. Default:
	// each replica downloads the model onto the disk of its node.
	//
	// +optional
	Cache *ModelCache `json:"cache,omitempty"`
}

// RegistryModel is a model of the model registry.
//
// +kubebuilder:validation:XValidation:rule="has(self.version) != has(self.alias)",message="set exactly one of version and alias"
// +kubebuilder:validation:XValidation:rule="!has(self.alias) || !has(self.liveAlias) || self.alias != self.liveAlias",fieldPath=".liveAlias",message="liveAlias must not be the alias that is followed: the one says what should be live, the other what is"
// +kubebuilder:validation:XValidation:rule="!has(self.candidateAlias) || (!has(self.alias) || self.alias != self.candidateAlias) && (!has(self.liveAlias) || self.liveAlias != self.candidateAlias)",fieldPath=".candidateAlias",message="candidateAlias must be neither alias nor liveAlias: each says something else"
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

	// Alias whose version to serve. When it moves, a new revision follows.
	//
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_-]+$') && self.lowerAscii() != 'latest' && !self.lowerAscii().matches('^v[0-9]+$')",message="must be letters, digits, '_' and '-', and neither latest nor v with digits, which the registry reserves"
	// +kubebuilder:example="champion"
	// +optional
	Alias string `json:"alias,omitempty"`

	// LiveAlias is an alias that Capstan keeps on the version that callers reach.
	// No two Algorithms may keep the same.
	//
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_-]+$') && self.lowerAscii() != 'latest' && !self.lowerAscii().matches('^v[0-9]+$')",message="must be letters, digits, '_' and '-', and neither latest nor v with digits, which the registry reserves"
	// +kubebuilder:example="live"
	// +optional
	LiveAlias string `json:"liveAlias,omitempty"`

	// CandidateAlias is an alias that Capstan keeps on the version of the revision that
	// spec.lifecycle tries, until all callers reach it. One that was rolled back keeps
	// it, with the evidence, as long as the spec asks for it. No two Algorithms may keep
	// the same.
	//
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_-]+$') && self.lowerAscii() != 'latest' && !self.lowerAscii().matches('^v[0-9]+$')",message="must be letters, digits, '_' and '-', and neither latest nor v with digits, which the registry reserves"
	// +kubebuilder:example="challenger"
	// +optional
	CandidateAlias string `json:"candidateAlias,omitempty"`

	// ProviderConfigReference names the ProviderConfig of this namespace, or the
	// ClusterProviderConfig, that says where the registry is. Default: the
	// ClusterProviderConfig mlflow.
	//
	// +kubebuilder:validation:XValidation:rule="self.kind in ['ProviderConfig', 'ClusterProviderConfig']",messageExpression="'providerConfigRef.kind: ' + self.kind + ' is neither ProviderConfig nor ClusterProviderConfig'"
	// +kubebuilder:validation:XValidation:rule="size(self.name) <= 63 && self.name.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",messageExpression="'providerConfigRef.name: ' + self.name + ' is not the name of a config: at most 63 lower case letters, digits, - and .'"
	// +kubebuilder:example={"kind": "ClusterProviderConfig", "name": "mlflow"}
	// +optional
	ProviderConfigReference *xpv2.ProviderConfigReference `json:"providerConfigRef,omitempty"`

	// Endpoint is the URL of the registry that replicas download from when it hands
	// out the files itself (mlflow-artifacts:). Default: the key endpoint of
	// spec.model.credentials.
	//
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://[^[:space:]]+$')",message="must be a URL that begins with https:// or http://"
	// +kubebuilder:example="https://mlflow.example.org"
	// +optional
	Endpoint string `json:"endpoint,omitempty"`

	// S3Endpoint is the URL of the object storage that replicas download from when
	// the version's source is in it. Default: the key endpoint of
	// spec.model.credentials, and else AWS.
	//
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://[^[:space:]]+$')",message="must be a URL that begins with https:// or http://"
	// +kubebuilder:example="https://s3.example.org"
	// +optional
	S3Endpoint string `json:"s3Endpoint,omitempty"`
}

// S3Model is a set of objects of object storage.
type S3Model struct {
	// URI of one object, or of all whose keys begin with it and a slash.
	//
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^s3://[a-z0-9][-a-z0-9.]+/[^[:space:]]*[^/[:space:]]/?$') && !self.contains('..')",message="must be of the form s3://bucket/prefix"
	// +kubebuilder:example="s3://models/reco/7"
	URI string `json:"uri"`

	// Endpoint is the URL of the object storage. Default: the key endpoint of
	// spec.model.credentials, and else AWS.
	//
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://[^[:space:]]+$')",message="must be a URL that begins with https:// or http://"
	// +kubebuilder:example="https://s3.example.org"
	// +optional
	Endpoint string `json:"endpoint,omitempty"`

	// Region of the bucket. Default: the key region of spec.model.credentials, and
	// else us-east-1.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9-]+$')",message="must be the name of a region, for instance eu-central-1"
	// +kubebuilder:example="eu-central-1"
	// +optional
	Region string `json:"region,omitempty"`
}

// ModelDelivery says how an image becomes files.
//
// +kubebuilder:validation:Enum=ImageVolume;InitContainer
type ModelDelivery string

// How an image becomes files.
const (
	// DeliverImageVolume mounts the image, which the node pulls and keeps.
	DeliverImageVolume ModelDelivery = "ImageVolume"
	// DeliverInitContainer downloads the image before the container starts, on
	// clusters whose nodes mount no images.
	DeliverInitContainer ModelDelivery = "InitContainer"
)

// OCIModel is an image or artifact that holds a model.
type OCIModel struct {
	// Reference of the image, best with its digest, so that it never moves.
	//
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z0-9][a-zA-Z0-9._:/-]*(@sha256:[0-9a-f]{64})?$')",message="must be the reference of an image, for instance registry.example.org/models/reco@sha256:…"
	// +kubebuilder:example="registry.example.org/models/reco:7"
	Reference string `json:"reference"`

	// Delivery says how the image becomes files: ImageVolume, which needs Kubernetes
	// 1.35 and a container runtime that mounts images, or InitContainer.
	//
	// +kubebuilder:default=ImageVolume
	// +kubebuilder:example=ImageVolume
	// +optional
	Delivery ModelDelivery `json:"delivery,omitempty"`
}

// VolumeModel is a PersistentVolumeClaim that somebody has filled.
type VolumeModel struct {
	// ClaimName of the claim in this namespace.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of an object: lower case letters, digits, '-' and '.', with a letter or digit at both ends"
	// +kubebuilder:example="models"
	ClaimName string `json:"claimName"`

	// Path of the model in the volume. Default: all of it.
	//
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !self.matches('(^|/)[.][.](/|$)')",message="must be relative and without .."
	// +kubebuilder:example="reco/7"
	// +optional
	Path string `json:"path,omitempty"`
}

// ModelCache is a volume that all replicas share. It is made with the first
// revision that wants it and goes with the Algorithm.
type ModelCache struct {
	// Size of the volume. It can grow where the storage class lets it. Models that
	// were not used for a day make room for others; those that serve do not.
	//
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('1Mi')) >= 0",message="must be a quantity of at least 1Mi, for instance 20Gi"
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity(string(oldSelf))) >= 0",message="cannot be lowered: a volume does not shrink"
	// +kubebuilder:example="20Gi"
	Size *resource.Quantity `json:"size"`

	// StorageClassName of the volume. Default: the cluster's default class.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of an object: lower case letters, digits, '-' and '.', with a letter or digit at both ends"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot be changed: a volume stays in its class"
	// +kubebuilder:example="shared"
	// +optional
	StorageClassName string `json:"storageClassName,omitempty"`

	// AccessMode of the volume. ReadWriteOnce keeps all replicas on one node.
	//
	// +kubebuilder:default=ReadWriteMany
	// +kubebuilder:validation:Enum=ReadWriteMany;ReadWriteOnce
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot be changed: a volume keeps its access mode"
	// +kubebuilder:example=ReadWriteMany
	// +optional
	AccessMode corev1.PersistentVolumeAccessMode `json:"accessMode,omitempty"`
}
