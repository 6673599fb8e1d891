// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

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

// Model is verified before the container starts, and mounted read-only. It is part of the revision: another version is
// another revision.
//
// +kubebuilder:validation:XValidation:rule="!has(self.cache) || !self.uri.startsWith('pvc:')",fieldPath=".cache",message="a cache is only for downloaded models: remove it, because a volume needs none"
// +kubebuilder:validation:XValidation:rule="has(self.digest) || !self.uri.startsWith('http:')",fieldPath=".digest",message="is missing: anyone on the way can replace what http:// downloads: set digest, or use https://"
// +kubebuilder:validation:XValidation:rule="!has(self.credentials) || !self.uri.startsWith('pvc:')",fieldPath=".credentials",message="credentials are only for downloads, and a volume is not downloaded: remove them"
// +kubebuilder:validation:XValidation:rule="!has(self.config) || self.uri.startsWith('models:')",fieldPath=".config",message="config is only for the model registry: remove it, or name a model of the registry with models:/ in uri"
// +kubebuilder:validation:XValidation:rule="!has(self.liveAlias) || self.uri.startsWith('models:')",fieldPath=".liveAlias",message="liveAlias is only for the model registry: remove it, or name a model of the registry with models:/ in uri"
// +kubebuilder:validation:XValidation:rule="!has(self.candidateAlias) || self.uri.startsWith('models:')",fieldPath=".candidateAlias",message="candidateAlias is only for the model registry: remove it, or name a model of the registry with models:/ in uri"
// +kubebuilder:validation:XValidation:rule="!has(self.liveAlias) || !self.uri.startsWith('models:') || !self.uri.split('?')[0].endsWith('@' + self.liveAlias)",fieldPath=".liveAlias",message="liveAlias must differ from the alias in uri: that one chooses the version, liveAlias reports the live one"
// +kubebuilder:validation:XValidation:rule="!has(self.candidateAlias) || !self.uri.startsWith('models:') || !self.uri.split('?')[0].endsWith('@' + self.candidateAlias) && (!has(self.liveAlias) || self.liveAlias != self.candidateAlias)",fieldPath=".candidateAlias",message="candidateAlias must differ from the alias in uri and from liveAlias: choose another name"
type Model struct {
	// URI of the model, by its scheme:
	//
	// s3://bucket/prefix, object storage: one object, or all whose keys begin with it and a slash. ?endpoint=https://…
	// and &region=… say where. Default: the keys endpoint and region of the credentials, otherwise AWS and us-east-1.
	//
	// gs://bucket/prefix, Google Cloud Storage, likewise. ?endpoint=https://… says where. Default: the key endpoint of
	// the credentials, otherwise Google.
	//
	// hf://organisation/repository@revision, Hugging Face: a commit, tag or branch, default main, and /path for a part
	// of it. ?endpoint=https://… names another hub. Default: the key endpoint of the credentials, otherwise
	// https://huggingface.co.
	//
	// https://host/file, one file. http:// needs digest.
	//
	// models:/name/7 or models:/name@champion, the model registry: a version, or an alias. When an alias moves to
	// another version, a new revision rolls out. ?endpoint=https://… is the registry for downloads that it serves
	// itself, &s3Endpoint=https://… the object storage of the others. Default: the key endpoint of the credentials,
	// for object storage otherwise AWS.
	//
	// oci://registry/repository:tag, an image or artifact, preferably with @sha256:…, so that it never moves. The node
	// mounts it, or an init container downloads it where the platform's setting modelImages says so, and with digest
	// or cache.
	//
	// pvc://claim/path, a folder of a PersistentVolumeClaim of this namespace.
	//
	// +kubebuilder:validation:MaxLength=1536
	// +kubebuilder:validation:XValidation:rule="self.matches('^(models:/|(s3|gs|hf|oci|pvc|https?)://)')",message="must begin with s3://, gs://, hf://, https://, http://, models:/, oci:// or pvc://"
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('s3:') || self.matches('^s3://[a-z0-9][-a-z0-9.]+/[^[:space:]?#]*[^/[:space:]?#]/?([?](endpoint=https?://[^[:space:]?&#]+|region=[a-z0-9-]+)(&(endpoint=https?://[^[:space:]?&#]+|region=[a-z0-9-]+))?)?$') && !self.contains('..')",message="must be of the form s3://bucket/prefix or s3://bucket/prefix?endpoint=https://host&region=eu-central-1, without .."
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('gs:') || self.matches('^gs://[a-z0-9][-a-z0-9._]+/[^[:space:]?#]*[^/[:space:]?#]/?([?]endpoint=https?://[^[:space:]?&#]+)?$') && !self.contains('..')",message="must be of the form gs://bucket/prefix or gs://bucket/prefix?endpoint=https://host, without .."
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('hf:') || self.matches('^hf://[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*(@(refs/(pr|convert)/)?[A-Za-z0-9][A-Za-z0-9._-]*)?(/[^[:space:]?#@]*[^/[:space:]?#@])?([?]endpoint=https?://[^[:space:]?&#]+)?$') && !self.contains('..')",message="must be of the form hf://organisation/repository, with @revision, /path and ?endpoint=https://host as needed, without .."
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('http') || self.matches('^https?://[^/[:space:]?#@]+/([^[:space:]?#]*[^/[:space:]?#])([?][^[:space:]#]*)?$')",message="must name a file, as in https://host/path/file, without a login: that belongs into the Secret of credentials"
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('models:') || self.matches('^models:/[^/:%?#]+(/[1-9][0-9]{0,17}|@[A-Za-z0-9_-]{1,200})([?](endpoint|s3Endpoint)=https?://[^[:space:]?&#]+(&(endpoint|s3Endpoint)=https?://[^[:space:]?&#]+)?)?$')",message="must name a version or an alias: models:/name/7 or models:/name@alias, with ?endpoint=https://host and &s3Endpoint=https://host as needed; a name has no / : % ? and #"
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('models:') || !self.matches('(?i)^models:/[^?]*@(latest|v[0-9]+)([?]|$)')",message="must not have the alias latest or v with digits, which the registry reserves: choose another"
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('oci:') || self.matches('^oci://[a-zA-Z0-9][a-zA-Z0-9._:/-]*(@sha256:[0-9a-f]{64})?$')",message="must be oci:// and the reference of an image, for instance oci://registry.example.org/models/reco@sha256:…"
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('pvc:') || self.matches('^pvc://[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*(/[^?#]*)?$') && !self.matches('/[.][.](/|$)')",message="must be of the form pvc://claim/path, with the name of a PersistentVolumeClaim and without .., ? and #"
	// +kubebuilder:example="s3://models/reco/7"
	// +capstan:form:title="Model",order=110,group=basic
	URI string `json:"uri"`

	// Credentials is the name of a Secret of this namespace for the download. It has the keys of a Bucket's connection
	// Secret, or serviceAccountKey of Google, or username and password or token, or .dockerconfigjson. Default:
	// spec.pod.imagePullSecrets for an image volume, otherwise none.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of an object: lower case letters, digits, '-' and '.', with a letter or digit at both ends"
	// +kubebuilder:example="models"
	// +optional
	Credentials string `json:"credentials,omitempty"`

	// Digest that the model must have: sha256 of the sorted lines that sha256sum prints for its files. With / and a number
	// behind it, all files together must have so many bytes, and a download of more ends early. Default: the tag digest of
	// the registry's version if it has one, otherwise no check.
	//
	// +kubebuilder:validation:XValidation:rule="self.matches('^sha256:[0-9a-f]{64}(/[1-9][0-9]{0,17})?$')",message="must be sha256: and 64 hexadecimal digits in lower case, as companion digest prints it, with / and the size in bytes as needed"
	// +kubebuilder:validation:MaxLength=90
	// +kubebuilder:example="sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	// +optional
	Digest string `json:"digest,omitempty"`

	// Cache keeps downloaded models on a volume that all replicas share, which Capstan creates with the first revision
	// that uses it, and deletes with the Algorithm. It can grow where the storage class allows it, and never shrink.
	// Models that were not used for a day are removed when space is needed; models in use stay. Access mode
	// ReadWriteOnce keeps all replicas on one node. A change makes no new revision. Default: each replica downloads the
	// model to the disk of its node.
	//
	// +optional
	Cache *ModelCache `json:"cache,omitempty"`

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

	// Config is the kind and name of what has the address of the model registry: ProviderConfig/NAME of this namespace,
	// or ClusterProviderConfig/NAME. Default: the platform's setting, or ClusterProviderConfig/mlflow.
	//
	// +kubebuilder:validation:MaxLength=85
	// +kubebuilder:validation:XValidation:rule="self.matches('^(Cluster)?ProviderConfig/[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?$')",message="must be ProviderConfig/NAME or ClusterProviderConfig/NAME, with at most 63 lower case letters, digits, - and . in NAME"
	// +kubebuilder:example="ClusterProviderConfig/mlflow"
	// +optional
	Config string `json:"config,omitempty"`

	// Delivery is how the files of an image reach the container, by the platform's settings and what the fields above need.
	Delivery ModelDelivery `json:"-"`
}

// ModelCache is the claim of a volume that all replicas share, in the form of a PersistentVolumeClaimSpec of core/v1.
type ModelCache struct {
	// AccessModes of the volume: one, which cannot change. ReadWriteOnce keeps all replicas on one node. Default:
	// ReadWriteMany.
	//
	// +kubebuilder:default={ReadWriteMany}
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1
	// +kubebuilder:validation:items:Enum=ReadWriteMany;ReadWriteOnce
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot be changed: a volume keeps its access mode"
	// +listType=atomic
	// +kubebuilder:example={ReadWriteMany}
	// +optional
	AccessModes []corev1.PersistentVolumeAccessMode `json:"accessModes,omitempty"`

	// StorageClassName of the volume, which cannot change. Default: the cluster's default class.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of an object: lower case letters, digits, '-' and '.', with a letter or digit at both ends"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot be changed: a volume stays in its class"
	// +kubebuilder:example="shared"
	// +optional
	StorageClassName string `json:"storageClassName,omitempty"`

	// Resources of the volume.
	Resources ModelCacheResources `json:"resources"`
}

// ModelCacheResources are volume resource requirements of core/v1.
type ModelCacheResources struct {
	// Requests of the volume.
	Requests ModelCacheRequests `json:"requests"`
}

// ModelCacheRequests are the resources that a volume has.
type ModelCacheRequests struct {
	// Storage is the size of the volume. It can grow where the storage class allows it, and never shrink.
	//
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('1Mi')) >= 0",message="must be a quantity of at least 1Mi, for instance 20Gi"
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity(string(oldSelf))) >= 0",message="cannot be lowered: a volume does not shrink"
	// +kubebuilder:example="20Gi"
	Storage *resource.Quantity `json:"storage"`
}
