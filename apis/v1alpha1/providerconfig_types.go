// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// The keys of a Secret that opens an S3 server. The last is there only with
// temporary credentials.
const (
	KeyAccessKeyID     = "accessKeyId"
	KeySecretAccessKey = "secretAccessKey"
	KeySessionToken    = "sessionToken"
)

// The keys of a Secret for HTTP basic authentication.
const (
	KeyUsername = "username"
	KeyPassword = "password"
)

// KeyToken is the key of a Secret that holds a bearer token.
const KeyToken = "token"

// The names of the ClusterProviderConfigs that managed resources use when they
// name none.
const (
	DefaultS3Config     = "s3"
	DefaultMLflowConfig = "mlflow"
)

// A ProviderConfig says how managed resources of the same namespace reach one
// outside service: an S3 server, an MLflow model registry or a Prometheus.
// Everything in it is the namespace's own: its Secrets are read from this
// namespace and no other. Its URLs are checked when a connection is made:
// loopback, link-local and metadata addresses and those of the API server are
// refused, unless the provider runs with --allow-tenant-cidr. It cannot be
// deleted while a managed resource uses it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,provider,capstan}
// +kubebuilder:printcolumn:name="Connected",type=string,JSONPath=`.status.conditions[?(@.type=="Connected")].reason`
// +kubebuilder:printcolumn:name="Users",type=integer,JSONPath=`.status.users`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="metadata.name: must have at most 63 characters, because those who use it carry it as a label"
type ProviderConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says where the service is and how to be let in.
	Spec ProviderConfigSpec `json:"spec"`

	// Status tells who uses this config and whether the service answers.
	//
	// +optional
	Status xpv2.ProviderConfigStatus `json:"status,omitempty"`
}

// ProviderConfigList holds many ProviderConfigs.
//
// +kubebuilder:object:root=true
type ProviderConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ProviderConfig `json:"items"`
}

// ProviderConfigSpec says where a service is and how to be let in.
//
// +kubebuilder:validation:ExactlyOneOf=s3;mlflow;prometheus
// +kubebuilder:example={"s3": {"endpoint": "https://s3.example.org", "credentials": {"secretRef": {"name": "s3"}}}}
type ProviderConfigSpec struct {
	// S3 is an object store that speaks S3, for kind Bucket.
	//
	// +optional
	S3 *S3Config `json:"s3,omitempty"`

	// MLflow is a tracking server with a model registry, for the kinds
	// RegisteredModel, ModelVersion and ModelAlias.
	//
	// +optional
	MLflow *MLflowConfig `json:"mlflow,omitempty"`

	// Prometheus answers queries about metrics.
	//
	// +optional
	Prometheus *PrometheusConfig `json:"prometheus,omitempty"`

	// Retry says how long the provider waits after a failure before it tries the
	// same managed resource again. It does not change how often what works is
	// looked at.
	//
	// +optional
	Retry *Retry `json:"retry,omitempty"`
}

// A ClusterProviderConfig says how managed resources of many namespaces reach
// one outside service that they share. The platform team writes it. Its Secrets
// are read from spec.secretsNamespace. A managed resource that names no config
// uses the ClusterProviderConfig named after its backend: s3 or mlflow.
//
// On shared ground nobody can reach what is another's: buckets carry the prefix
// of their namespace, whatever is found there is not adopted unless
// spec.adoption allows it, and every query sees only the metrics of the
// namespace that asks. It cannot be deleted while a managed resource uses it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories={crossplane,provider,capstan}
// +kubebuilder:printcolumn:name="Connected",type=string,JSONPath=`.status.conditions[?(@.type=="Connected")].reason`
// +kubebuilder:printcolumn:name="Users",type=integer,JSONPath=`.status.users`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="metadata.name: must have at most 63 characters, because those who use it carry it as a label"
type ClusterProviderConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says where the service is, how to be let in and who may use it.
	Spec ClusterProviderConfigSpec `json:"spec"`

	// Status tells who uses this config and whether the service answers.
	//
	// +optional
	Status xpv2.ProviderConfigStatus `json:"status,omitempty"`
}

// ClusterProviderConfigList holds many ClusterProviderConfigs.
//
// +kubebuilder:object:root=true
type ClusterProviderConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterProviderConfig `json:"items"`
}

// ClusterProviderConfigSpec says where a service is, how to be let in and who
// may use it.
//
// +kubebuilder:validation:ExactlyOneOf=s3;mlflow;prometheus
// +kubebuilder:example={"s3": {"endpoint": "https://s3.example.org", "credentials": {"secretRef": {"name": "s3"}}}}
type ClusterProviderConfigSpec struct {
	// S3 is an object store that speaks S3, for kind Bucket.
	//
	// +optional
	S3 *SharedS3Config `json:"s3,omitempty"`

	// MLflow is a tracking server with a model registry, for the kinds
	// RegisteredModel, ModelVersion and ModelAlias.
	//
	// +optional
	MLflow *MLflowConfig `json:"mlflow,omitempty"`

	// Prometheus answers queries about metrics. Every query is narrowed to the
	// namespace that asks, by the label namespace.
	//
	// +optional
	Prometheus *PrometheusConfig `json:"prometheus,omitempty"`

	// SecretsNamespace is where the Secrets that this config names are.
	//
	// +kubebuilder:default="crossplane-system"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:example="crossplane-system"
	// +optional
	SecretsNamespace string `json:"secretsNamespace,omitempty"`

	// AllowedNamespaces may use this config: names, in which * stands for any
	// characters. When it is left out every namespace may.
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

	// Adoption says what a namespace may do with buckets and models that are on
	// the server already and belong to nobody. Refused leaves them alone. Unowned
	// lets a managed resource that asks for it (adopt: true) take them, and lets
	// models be observed. What belongs to another namespace is never touched.
	//
	// +kubebuilder:default=Refused
	// +kubebuilder:example=Refused
	// +optional
	Adoption Adoption `json:"adoption,omitempty"`

	// Retry says how long the provider waits after a failure before it tries the
	// same managed resource again. It does not change how often what works is
	// looked at.
	//
	// +optional
	Retry *Retry `json:"retry,omitempty"`
}

// Adoption of what belongs to nobody.
//
// +kubebuilder:validation:Enum=Refused;Unowned
type Adoption string

const (
	// AdoptionRefused leaves alone what belongs to nobody.
	AdoptionRefused Adoption = "Refused"
	// AdoptionUnowned lets a managed resource take what belongs to nobody.
	AdoptionUnowned Adoption = "Unowned"
)

// S3Config says where an S3 server is and how to be let in.
//
// +kubebuilder:example={"endpoint": "https://s3.example.org", "credentials": {"secretRef": {"name": "s3"}}}
type S3Config struct {
	// Endpoint is the URL of the server. When it is left out it is Amazon S3 of
	// the region.
	//
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHostname() != '' && !self.contains('@') && !self.contains('?') && !self.contains('#')",messageExpression="'endpoint: ' + self + ' is not an http or https URL of a host, without user, query and fragment, for instance https://s3.example.org'"
	// +kubebuilder:example="https://s3.example.org"
	// +optional
	Endpoint string `json:"endpoint,omitempty"`

	// Region of the server, and of buckets that name none.
	//
	// +kubebuilder:default="us-east-1"
	// +kubebuilder:validation:Pattern=`^[a-z0-9-]{1,63}$`
	// +kubebuilder:example="eu-central-1"
	// +optional
	Region string `json:"region,omitempty"`

	// PathStyle puts the bucket into the path of URLs and not before the host
	// name. The default is true with an endpoint, because few servers have
	// certificates and DNS names for every bucket, and false without.
	//
	// +kubebuilder:example=true
	// +optional
	PathStyle *bool `json:"pathStyle,omitempty"`

	// Credentials are what the provider itself uses.
	Credentials S3Credentials `json:"credentials"`

	// CABundle holds the certificates, in PEM, of who may have signed the
	// server's. When it is left out the system's are used.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	// +kubebuilder:validation:XValidation:rule="self.contains('-----BEGIN CERTIFICATE-----')",message="caBundle: must hold at least one certificate in PEM"
	// +kubebuilder:example="-----BEGIN CERTIFICATE-----\n…\n-----END CERTIFICATE-----\n"
	// +optional
	CABundle string `json:"caBundle,omitempty"`

	// WorkloadCredentials are handed to those who use a bucket, in its connection
	// Secret. When they are left out the connection Secret has none: the
	// provider's own are never handed on.
	//
	// +optional
	WorkloadCredentials *S3Credentials `json:"workloadCredentials,omitempty"`
}

// SharedS3Config says where an S3 server is that many namespaces share.
//
// +kubebuilder:example={"endpoint": "https://s3.example.org", "credentials": {"secretRef": {"name": "s3"}}}
type SharedS3Config struct {
	S3Config `json:",inline"`

	// BucketPrefix begins the name of every bucket on the server. {namespace}
	// stands for the namespace of the Bucket. Without {namespace}, namespaces
	// share one ground of names: who comes first has a name.
	//
	// +kubebuilder:default="{namespace}-"
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([a-z0-9.-]|\{namespace\})*$`
	// +kubebuilder:example="{namespace}-"
	// +optional
	BucketPrefix *string `json:"bucketPrefix,omitempty"`
}

// S3Credentials are an access key.
type S3Credentials struct {
	// SecretRef names the Secret with the keys accessKeyId, secretAccessKey and,
	// for temporary credentials, sessionToken. A changed Secret is honoured within
	// seconds.
	SecretRef SecretReference `json:"secretRef"`
}

// A SecretReference names a Secret. Its namespace is not the reference's to say:
// it is that of a ProviderConfig, or spec.secretsNamespace of a
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

// MLflowConfig says where an MLflow tracking server is and how to be let in.
//
// +kubebuilder:example={"url": "https://mlflow.example.org"}
type MLflowConfig struct {
	// URL of the server, with its path if it has one.
	//
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHostname() != '' && !self.contains('@') && !self.contains('?') && !self.contains('#')",messageExpression="'url: ' + self + ' is not an http or https URL of a host, without user, query and fragment, for instance https://mlflow.example.org'"
	// +kubebuilder:example="https://mlflow.example.org"
	URL string `json:"url"`

	// Credentials that the server asks for. When they are left out none are sent.
	//
	// +optional
	Credentials *HTTPCredentials `json:"credentials,omitempty"`

	// CABundle holds the certificates, in PEM, of who may have signed the
	// server's. When it is left out the system's are used.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	// +kubebuilder:validation:XValidation:rule="self.contains('-----BEGIN CERTIFICATE-----')",message="caBundle: must hold at least one certificate in PEM"
	// +kubebuilder:example="-----BEGIN CERTIFICATE-----\n…\n-----END CERTIFICATE-----\n"
	// +optional
	CABundle string `json:"caBundle,omitempty"`

	// AllowedSources are the prefixes of which the source of a new model version
	// must have one. When they are left out every scheme but file is allowed.
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

// PrometheusConfig says where a Prometheus server is and how to be let in.
//
// +kubebuilder:example={"url": "https://prometheus.example.org"}
type PrometheusConfig struct {
	// URL of the server, with its path if it has one.
	//
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHostname() != '' && !self.contains('@') && !self.contains('?') && !self.contains('#')",messageExpression="'url: ' + self + ' is not an http or https URL of a host, without user, query and fragment, for instance https://prometheus.example.org'"
	// +kubebuilder:example="https://prometheus.example.org"
	URL string `json:"url"`

	// Credentials that the server asks for. When they are left out none are sent.
	//
	// +optional
	Credentials *HTTPCredentials `json:"credentials,omitempty"`

	// CABundle holds the certificates, in PEM, of who may have signed the
	// server's. When it is left out the system's are used.
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
}

// BasicCredentials are a user and a password.
type BasicCredentials struct {
	// SecretRef names the Secret with the keys username and password. A changed
	// Secret is honoured within seconds.
	SecretRef SecretReference `json:"secretRef"`
}

// BearerCredentials are a token.
type BearerCredentials struct {
	// SecretRef names the Secret with the key token. A changed Secret is honoured
	// within seconds.
	SecretRef SecretReference `json:"secretRef"`
}

// Retry says how long to wait after failures. The wait doubles with each failure
// in a row, from baseDelay to maxDelay.
//
// +kubebuilder:validation:XValidation:rule="!has(self.baseDelay) || !has(self.maxDelay) || duration(self.baseDelay) <= duration(self.maxDelay)",message="retry: baseDelay must not be longer than maxDelay"
type Retry struct {
	// BaseDelay is the wait after the first failure, at least 1s. The default is
	// 1s.
	//
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="baseDelay: must be at least 1s"
	// +kubebuilder:example="1s"
	// +optional
	BaseDelay *metav1.Duration `json:"baseDelay,omitempty"`

	// MaxDelay is the longest wait, at least 10s. The default is 30s.
	//
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('10s')",message="maxDelay: must be at least 10s"
	// +kubebuilder:example="10m"
	// +optional
	MaxDelay *metav1.Duration `json:"maxDelay,omitempty"`
}

// A ProviderConfigUsage records that a managed resource uses a ProviderConfig or
// a ClusterProviderConfig, so that neither can be deleted meanwhile. Capstan
// makes it.
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

// ProviderConfigUsageList holds many ProviderConfigUsages.
//
// +kubebuilder:object:root=true
type ProviderConfigUsageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ProviderConfigUsage `json:"items"`
}
