// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// Keys of a Secret with credentials of an S3 server. The session token exists only with temporary credentials.
const (
	KeyAccessKeyID     = "accessKeyId"
	KeySecretAccessKey = "secretAccessKey"
	KeySessionToken    = "sessionToken"
)

// Keys of a Secret for HTTP basic authentication.
const (
	KeyUsername = "username"
	KeyPassword = "password"
)

// KeyToken is the key of a Secret that holds a bearer token.
const KeyToken = "token"

// Names of the ClusterProviderConfigs that managed resources use when they name none.
const (
	DefaultS3Config          = "s3"
	DefaultMLflowConfig      = "mlflow"
	DefaultOpenLineageConfig = "openlineage"
)

// A ProviderConfig connects managed resources of the same namespace to one outside service: an S3 server, an MLflow
// model registry, a Prometheus or a server for OpenLineage. Its Secrets are read from this namespace only. Its URLs are checked at every
// connection: private, loopback, link-local and metadata addresses and the API server are blocked, except Services of the
// same namespace, unless the provider runs with --allow-tenant-cidr or --allow-tenant-host. It cannot be deleted while a
// managed resource uses it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,provider,capstan}
// +kubebuilder:printcolumn:name="Connected",type=string,JSONPath=`.status.conditions[?(@.type=="Connected")].reason`
// +kubebuilder:printcolumn:name="Users",type=integer,JSONPath=`.status.users`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="metadata.name: must have at most 63 characters, because it is a label of the resources that use it"
type ProviderConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the address of the service and the credentials for it.
	Spec ProviderConfigSpec `json:"spec"`

	// Status reports how many managed resources use this config and whether the service responds.
	//
	// +optional
	Status xpv2.ProviderConfigStatus `json:"status,omitempty"`
}

// ProviderConfigList is a list of ProviderConfigs.
//
// +kubebuilder:object:root=true
type ProviderConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ProviderConfig `json:"items"`
}

// ProviderConfigSpec is the address of a service and the credentials for it: exactly one of s3, mlflow, prometheus and
// openLineage.
//
// +kubebuilder:validation:ExactlyOneOf=s3;mlflow;prometheus;openLineage
// +kubebuilder:example={"s3": {"endpoint": "https://s3.example.org", "credentials": {"secretRef": {"name": "s3"}}}}
type ProviderConfigSpec struct {
	// S3 is an object store with the S3 protocol, for kind Bucket.
	//
	// +optional
	S3 *S3Config `json:"s3,omitempty"`

	// MLflow is a tracking server with a model registry, for the kinds RegisteredModel, ModelVersion and ModelAlias.
	//
	// +optional
	MLflow *MLflowConfig `json:"mlflow,omitempty"`

	// Prometheus is a server for queries about metrics, for kind Analysis.
	//
	// +optional
	Prometheus *PrometheusConfig `json:"prometheus,omitempty"`

	// OpenLineage is a server for events about runs and their data, for kind Lineage.
	//
	// +optional
	OpenLineage *OpenLineageConfig `json:"openLineage,omitempty"`

	// Retry is how long the provider waits after a failure before it tries the same managed resource again. It has no
	// effect on resources without a failure.
	//
	// +optional
	Retry *Retry `json:"retry,omitempty"`
}

// A ClusterProviderConfig connects managed resources of many namespaces to one outside service that they share. The
// platform team creates it. Its Secrets are read from spec.secretsNamespace. A managed resource that names no config
// uses the ClusterProviderConfig with the name of its backend: s3, mlflow, prometheus or openlineage.
//
// Namespaces that share a service are isolated from each other. By default, bucket names begin with the namespace.
// Existing buckets and models are not adopted unless spec.adoption allows it. A query sees only metrics of its own
// namespace. The config cannot be deleted while a managed resource uses it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories={crossplane,provider,capstan}
// +kubebuilder:printcolumn:name="Connected",type=string,JSONPath=`.status.conditions[?(@.type=="Connected")].reason`
// +kubebuilder:printcolumn:name="Users",type=integer,JSONPath=`.status.users`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="metadata.name: must have at most 63 characters, because it is a label of the resources that use it"
type ClusterProviderConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the address of the service, the credentials for it, and the namespaces that can use it.
	Spec ClusterProviderConfigSpec `json:"spec"`

	// Status reports how many managed resources use this config and whether the service responds.
	//
	// +optional
	Status xpv2.ProviderConfigStatus `json:"status,omitempty"`
}

// ClusterProviderConfigList is a list of ClusterProviderConfigs.
//
// +kubebuilder:object:root=true
type ClusterProviderConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterProviderConfig `json:"items"`
}

// ClusterProviderConfigSpec is the address of a service, the credentials for it, and the namespaces that can use it.
//
// +kubebuilder:validation:ExactlyOneOf=s3;mlflow;prometheus;openLineage
// +kubebuilder:example={"s3": {"endpoint": "https://s3.example.org", "credentials": {"secretRef": {"name": "s3"}}}}
type ClusterProviderConfigSpec struct {
	// S3 is an object store with the S3 protocol, for kind Bucket.
	//
	// +optional
	S3 *SharedS3Config `json:"s3,omitempty"`

	// MLflow is a tracking server with a model registry, for the kinds RegisteredModel, ModelVersion and ModelAlias.
	//
	// +optional
	MLflow *MLflowConfig `json:"mlflow,omitempty"`

	// Prometheus is a server for queries about metrics, for kind Analysis. Every query is restricted to its own
	// namespace by the label namespace.
	//
	// +optional
	Prometheus *PrometheusConfig `json:"prometheus,omitempty"`

	// OpenLineage is a server for events about runs and their data, for kind Lineage.
	//
	// +optional
	OpenLineage *OpenLineageConfig `json:"openLineage,omitempty"`

	// SecretsNamespace is the namespace of the Secrets that this config names. Default: crossplane-system.
	//
	// +kubebuilder:default="crossplane-system"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:example="crossplane-system"
	// +optional
	SecretsNamespace string `json:"secretsNamespace,omitempty"`

	// AllowedNamespaces are the namespaces that can use this config. * stands for any characters. Default: every
	// namespace.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9*]([a-z0-9*-]*[a-z0-9*])?$`
	// +kubebuilder:example={"shop","team-*"}
	// +listType=set
	// +optional
	AllowedNamespaces []string `json:"allowedNamespaces,omitempty"`

	// Adoption is what a namespace can do with existing buckets and models that have no owner. Refused leaves them
	// alone. Unowned lets a managed resource with adopt: true take them over, and lets models be observed. What another
	// namespace owns is never changed. Default: Refused.
	//
	// +kubebuilder:default=Refused
	// +kubebuilder:example=Refused
	// +optional
	Adoption Adoption `json:"adoption,omitempty"`

	// Retry is how long the provider waits after a failure before it tries the same managed resource again. It has no
	// effect on resources without a failure.
	//
	// +optional
	Retry *Retry `json:"retry,omitempty"`
}

// Adoption of existing buckets and models that have no owner.
//
// +kubebuilder:validation:Enum=Refused;Unowned
type Adoption string

const (
	// AdoptionRefused leaves them alone.
	AdoptionRefused Adoption = "Refused"
	// AdoptionUnowned lets a managed resource take them over.
	AdoptionUnowned Adoption = "Unowned"
)

// S3Config is the address of an S3 server and the credentials for it.
//
// +kubebuilder:example={"endpoint": "https://s3.example.org", "credentials": {"secretRef": {"name": "s3"}}}
type S3Config struct {
	// Endpoint is the URL of the server. Default: Amazon S3 of the region.
	//
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHostname() != '' && !self.contains('@') && !self.contains('?') && !self.contains('#')",messageExpression="'endpoint: ' + self + ' is not an http or https URL of a host, without user, query and fragment, for instance https://s3.example.org'"
	// +kubebuilder:example="https://s3.example.org"
	// +optional
	Endpoint string `json:"endpoint,omitempty"`

	// Region of the server, and of buckets without a region. Default: us-east-1.
	//
	// +kubebuilder:default="us-east-1"
	// +kubebuilder:validation:Pattern=`^[a-z0-9-]{1,63}$`
	// +kubebuilder:example="eu-central-1"
	// +optional
	Region string `json:"region,omitempty"`

	// PathStyle puts the bucket name into the path of URLs instead of the host name. Default: true with an endpoint,
	// because few servers have certificates and DNS names for every bucket; otherwise false.
	//
	// +kubebuilder:example=true
	// +optional
	PathStyle *bool `json:"pathStyle,omitempty"`

	// Credentials of the provider itself.
	Credentials S3Credentials `json:"credentials"`

	// CABundle holds the certificates of trusted authorities in PEM format. Default: the authorities of the system.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	// +kubebuilder:validation:XValidation:rule="self.contains('-----BEGIN CERTIFICATE-----')",message="caBundle: must hold at least one certificate in PEM"
	// +kubebuilder:example="-----BEGIN CERTIFICATE-----\n…\n-----END CERTIFICATE-----\n"
	// +optional
	CABundle string `json:"caBundle,omitempty"`

	// WorkloadCredentials are copied into the connection Secret of every bucket, for its clients. Without them the
	// connection Secret has no credentials: the provider's own are never copied.
	//
	// +optional
	WorkloadCredentials *S3Credentials `json:"workloadCredentials,omitempty"`
}

// SharedS3Config is the address of an S3 server that many namespaces share.
//
// +kubebuilder:validation:XValidation:rule="!has(self.workloadKeyPerNamespace) || !self.workloadKeyPerNamespace || has(self.workloadCredentials)",message="workloadKeyPerNamespace: needs workloadCredentials, whose secretRef.name is the first part of the names of the Secrets"
// +kubebuilder:example={"endpoint": "https://s3.example.org", "credentials": {"secretRef": {"name": "s3"}}}
type SharedS3Config struct {
	S3Config `json:",inline"`

	// BucketPrefix is the prefix of every bucket name on the server. {namespace} stands for the namespace of the
	// Bucket. Without {namespace} all namespaces share the same names: the first one gets a name. Default:
	// {namespace}-.
	//
	// +kubebuilder:default="{namespace}-"
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([a-z0-9.-]|\{namespace\})*$`
	// +kubebuilder:example="{namespace}-"
	// +optional
	BucketPrefix *string `json:"bucketPrefix,omitempty"`

	// WorkloadKeyPerNamespace reads the key for the clients of buckets from a Secret for each namespace: the name in
	// workloadCredentials, a hyphen, and the namespace of the Bucket. The key of a namespace needs rights on the buckets
	// of that namespace only. Default: false, so that the clients of all namespaces have the same key, and with it the
	// buckets of all.
	//
	// +kubebuilder:example=true
	// +optional
	WorkloadKeyPerNamespace bool `json:"workloadKeyPerNamespace,omitempty"`
}

// S3Credentials are an access key.
type S3Credentials struct {
	// SecretRef names the Secret with the keys accessKeyId, secretAccessKey and, for temporary credentials,
	// sessionToken. A change of the Secret takes effect within seconds.
	SecretRef SecretReference `json:"secretRef"`
}

// A SecretReference names a Secret. Its namespace is the namespace of the ProviderConfig, or spec.secretsNamespace of a
// ClusterProviderConfig.
type SecretReference struct {
	// Name of the Secret.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	// +kubebuilder:example="s3"
	Name string `json:"name"`
}

// MLflowConfig is the address of an MLflow tracking server and the credentials for it.
//
// +kubebuilder:validation:XValidation:rule="!has(self.credentials) || (has(self.credentials.allowPlaintext) && self.credentials.allowPlaintext) || !isURL(self.url) || url(self.url).getScheme() != 'http'",message="credentials: over an http URL everybody on the way can read them: use https, or set credentials.allowPlaintext"
// +kubebuilder:example={"url": "https://mlflow.example.org"}
type MLflowConfig struct {
	// URL of the server, with its path if it has one.
	//
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHostname() != '' && !self.contains('@') && !self.contains('?') && !self.contains('#')",messageExpression="'url: ' + self + ' is not an http or https URL of a host, without user, query and fragment, for instance https://mlflow.example.org'"
	// +kubebuilder:example="https://mlflow.example.org"
	URL string `json:"url"`

	// Credentials for the server. Default: none.
	//
	// +optional
	Credentials *HTTPCredentials `json:"credentials,omitempty"`

	// CABundle holds the certificates of trusted authorities in PEM format. Default: the authorities of the system.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	// +kubebuilder:validation:XValidation:rule="self.contains('-----BEGIN CERTIFICATE-----')",message="caBundle: must hold at least one certificate in PEM"
	// +kubebuilder:example="-----BEGIN CERTIFICATE-----\n…\n-----END CERTIFICATE-----\n"
	// +optional
	CABundle string `json:"caBundle,omitempty"`

	// AllowedSources are prefixes: the source of a new model version must begin with one of them. Default: every scheme
	// except file is allowed.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:items:Pattern=`^[a-z][a-z0-9+.-]+:/`
	// +kubebuilder:example={"s3://models/","mlflow-artifacts:/"}
	// +listType=set
	// +optional
	AllowedSources []string `json:"allowedSources,omitempty"`
}

// PrometheusConfig is the address of a Prometheus server and the credentials for it.
//
// +kubebuilder:validation:XValidation:rule="!has(self.credentials) || (has(self.credentials.allowPlaintext) && self.credentials.allowPlaintext) || !isURL(self.url) || url(self.url).getScheme() != 'http'",message="credentials: over an http URL everybody on the way can read them: use https, or set credentials.allowPlaintext"
// +kubebuilder:example={"url": "https://prometheus.example.org"}
type PrometheusConfig struct {
	// URL of the server, with its path if it has one.
	//
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHostname() != '' && !self.contains('@') && !self.contains('?') && !self.contains('#')",messageExpression="'url: ' + self + ' is not an http or https URL of a host, without user, query and fragment, for instance https://prometheus.example.org'"
	// +kubebuilder:example="https://prometheus.example.org"
	URL string `json:"url"`

	// Credentials for the server. Default: none.
	//
	// +optional
	Credentials *HTTPCredentials `json:"credentials,omitempty"`

	// CABundle holds the certificates of trusted authorities in PEM format. Default: the authorities of the system.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	// +kubebuilder:validation:XValidation:rule="self.contains('-----BEGIN CERTIFICATE-----')",message="caBundle: must hold at least one certificate in PEM"
	// +kubebuilder:example="-----BEGIN CERTIFICATE-----\n…\n-----END CERTIFICATE-----\n"
	// +optional
	CABundle string `json:"caBundle,omitempty"`
}

// OpenLineageConfig is the address of a server for OpenLineage events, such as Marquez or DataHub, and the credentials for it.
//
// +kubebuilder:validation:XValidation:rule="!has(self.credentials) || (has(self.credentials.allowPlaintext) && self.credentials.allowPlaintext) || !isURL(self.url) || url(self.url).getScheme() != 'http'",message="credentials: over an http URL everybody on the way can read them: use https, or set credentials.allowPlaintext"
// +kubebuilder:example={"url": "https://lineage.example.org"}
type OpenLineageConfig struct {
	// URL of the server, with its path if it has one. Events are sent to api/v1/lineage below it.
	//
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHostname() != '' && !self.contains('@') && !self.contains('?') && !self.contains('#')",messageExpression="'url: ' + self + ' is not an http or https URL of a host, without user, query and fragment, for instance https://lineage.example.org'"
	// +kubebuilder:example="https://lineage.example.org"
	URL string `json:"url"`

	// JobNamespace is the namespace of jobs in events. {namespace} stands for the namespace of the Pipeline, which keeps
	// namespaces apart. Clusters that share a server need different ones. Default: {namespace}.
	//
	// +kubebuilder:default="{namespace}"
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[a-zA-Z0-9._:/-]*\{namespace\}[a-zA-Z0-9._:/-]*$`
	// +kubebuilder:example="prod-eu/{namespace}"
	// +optional
	JobNamespace string `json:"jobNamespace,omitempty"`

	// Credentials for the server. An API key is a bearer token. Default: none.
	//
	// +optional
	Credentials *HTTPCredentials `json:"credentials,omitempty"`

	// CABundle holds the certificates of trusted authorities in PEM format. Default: the authorities of the system.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	// +kubebuilder:validation:XValidation:rule="self.contains('-----BEGIN CERTIFICATE-----')",message="caBundle: must hold at least one certificate in PEM"
	// +kubebuilder:example="-----BEGIN CERTIFICATE-----\n…\n-----END CERTIFICATE-----\n"
	// +optional
	CABundle string `json:"caBundle,omitempty"`
}

// HTTPCredentials are either a user with a password, or a token.
//
// +kubebuilder:validation:ExactlyOneOf=basic;bearer
// +kubebuilder:example={"basic": {"secretRef": {"name": "mlflow"}}}
type HTTPCredentials struct {
	// Basic sends a user and a password.
	//
	// +optional
	Basic *BasicCredentials `json:"basic,omitempty"`

	// Bearer sends a token.
	//
	// +optional
	Bearer *BearerCredentials `json:"bearer,omitempty"`

	// AllowPlaintext allows an http URL, over which everybody on the way can read the credentials. It is for networks that encrypt by
	// themselves, as a service mesh does. Default: false.
	//
	// +kubebuilder:example=false
	// +optional
	AllowPlaintext bool `json:"allowPlaintext,omitempty"`
}

// BasicCredentials are a user and a password.
type BasicCredentials struct {
	// SecretRef names the Secret with the keys username and password. A change of the Secret takes effect within
	// seconds.
	SecretRef SecretReference `json:"secretRef"`
}

// BearerCredentials are a token.
type BearerCredentials struct {
	// SecretRef names the Secret with the key token. A change of the Secret takes effect within seconds.
	SecretRef SecretReference `json:"secretRef"`
}

// Retry is how long to wait after failures. The delay doubles with each failure in a row, from baseDelay to maxDelay.
//
// +kubebuilder:validation:XValidation:rule="!has(self.baseDelay) || !has(self.maxDelay) || duration(self.baseDelay) <= duration(self.maxDelay)",message="retry: baseDelay must not be longer than maxDelay"
type Retry struct {
	// BaseDelay is the delay after the first failure, at least 1s. Default: 1s.
	//
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="baseDelay: must be at least 1s"
	// +kubebuilder:example="1s"
	// +optional
	BaseDelay *metav1.Duration `json:"baseDelay,omitempty"`

	// MaxDelay is the maximum delay, at least 10s. Default: 30s.
	//
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('10s')",message="maxDelay: must be at least 10s"
	// +kubebuilder:example="10m"
	// +optional
	MaxDelay *metav1.Duration `json:"maxDelay,omitempty"`
}

// A ProviderConfigUsage records that a managed resource uses a ProviderConfig or a ClusterProviderConfig, so that the
// config cannot be deleted. Capstan creates it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,provider,capstan}
// +kubebuilder:printcolumn:name="Config-Kind",type=string,JSONPath=`.providerConfigRef.kind`
// +kubebuilder:printcolumn:name="Config-Name",type=string,JSONPath=`.providerConfigRef.name`
// +kubebuilder:printcolumn:name="Resource-Kind",type=string,JSONPath=`.resourceRef.kind`
// +kubebuilder:printcolumn:name="Resource-Name",type=string,JSONPath=`.resourceRef.name`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ProviderConfigUsage struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	xpv2.TypedProviderConfigUsage `json:",inline"`
}

// ProviderConfigUsageList is a list of ProviderConfigUsages.
//
// +kubebuilder:object:root=true
type ProviderConfigUsageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ProviderConfigUsage `json:"items"`
}
