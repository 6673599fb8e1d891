// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// A ModelVersion is one version of a model in a model registry. The registry assigns its number, which becomes the
// external name. The provider creates it exactly once, even if it stops in between, because the version has its owner
// as a tag.
//
// With managementPolicies ["Observe"] it creates nothing and resolves the field version or alias. status.atProvider
// then has the version, its source and its artifacts, and follows the alias when it moves.
//
// It stays in the registry when the ModelVersion is deleted, unless managementPolicies include Delete.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,managed,capstan}
// +kubebuilder:printcolumn:name="Synced",type=string,JSONPath=`.status.conditions[?(@.type=="Synced")].status`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Connected",type=string,JSONPath=`.status.conditions[?(@.type=="Connected")].reason`
// +kubebuilder:printcolumn:name="Model",type=string,JSONPath=`.spec.forProvider.model`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.atProvider.version`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ModelVersion struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state of the version.
	Spec ModelVersionSpec `json:"spec"`

	// Status is the observed state of the version.
	//
	// +optional
	Status ModelVersionStatus `json:"status,omitempty"`
}

// ModelVersionList is a list of ModelVersions.
//
// +kubebuilder:object:root=true
type ModelVersionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ModelVersion `json:"items"`
}

// ModelVersionSpec is the desired state of a version.
//
// +kubebuilder:validation:XValidation:rule="(!has(self.forProvider.version) && !has(self.forProvider.alias)) || (has(self.managementPolicies) && self.managementPolicies == ['Observe'])",message="version and alias: are only for observing: remove them, or set managementPolicies to [\"Observe\"]"
// +kubebuilder:validation:XValidation:rule="has(self.forProvider.source) || (has(self.managementPolicies) && !self.managementPolicies.exists(p, p == '*' || p == 'Create'))",message="source: is required, because managementPolicies include Create"
type ModelVersionSpec struct {
	// ManagementPolicies are what the provider can do with the version. ["Observe"] only reads it. Default: everything
	// except Delete.
	//
	// +kubebuilder:default={"Observe","Create","Update","LateInitialize"}
	// +kubebuilder:example={"Observe","Create","Update","LateInitialize"}
	// +optional
	ManagementPolicies xpv2.ManagementPolicies `json:"managementPolicies,omitempty"`

	// ProviderConfigReference names the ProviderConfig of this namespace, or the ClusterProviderConfig, with the
	// address of the model registry. Default: the ClusterProviderConfig mlflow.
	//
	// +kubebuilder:default={"kind": "ClusterProviderConfig", "name": "mlflow"}
	// +kubebuilder:example={"kind": "ClusterProviderConfig", "name": "mlflow"}
	// +kubebuilder:validation:XValidation:rule="self.kind in ['ProviderConfig', 'ClusterProviderConfig']",messageExpression="'providerConfigRef.kind: ' + self.kind + ' is neither ProviderConfig nor ClusterProviderConfig'"
	// +kubebuilder:validation:XValidation:rule="size(self.name) <= 63 && self.name.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",messageExpression="'providerConfigRef.name: ' + self.name + ' is not the name of a config: at most 63 lower case letters, digits, - and .'"
	// +optional
	ProviderConfigReference *xpv2.ProviderConfigReference `json:"providerConfigRef,omitempty"`

	// ForProvider is the desired state of the version.
	ForProvider ModelVersionParameters `json:"forProvider"`
}

// ModelVersionParameters are the desired state of a version.
//
// +kubebuilder:validation:XValidation:rule="has(self.source) == has(oldSelf.source)",message="source: cannot be added or removed; make another ModelVersion"
// +kubebuilder:validation:XValidation:rule="has(self.runId) == has(oldSelf.runId)",message="runId: cannot be added or removed; make another ModelVersion"
// +kubebuilder:validation:XValidation:rule="!has(self.version) || !has(self.alias)",message="version and alias: set only one of them"
// +kubebuilder:example={"model": "reco", "source": "s3://models/reco/7"}
type ModelVersionParameters struct {
	// Adopt allows the provider to take over the version in the annotation crossplane.io/external-name, if it exists
	// and has no owner. Default: false.
	//
	// +kubebuilder:default=false
	// +kubebuilder:example=false
	// +optional
	Adopt bool `json:"adopt,omitempty"`

	// Model of the version: its name in the registry. It cannot change.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern="^[^/:\\\\%\"'`\\x00-\\x1f\\x7f]+$"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="model: cannot be changed; make another ModelVersion"
	// +kubebuilder:example="reco"
	Model string `json:"model"`

	// Source is the URI of the model's files. It cannot change. The config can restrict its prefix. Paths on the
	// server's own disk are never allowed; with a ClusterProviderConfig, models:/ and runs:/ are not allowed either,
	// unless it lists them.
	//
	// +kubebuilder:validation:MaxLength=500
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z][a-z0-9+.-]+:/[^\\\\\\\\?#[:space:][:cntrl:]]*$') && !self.startsWith('file:') && !self.contains('..') && !self.matches('%(25|2[eEfF]|5[cC]|7[fF]|[01][0-9a-fA-F])')",messageExpression="'source: ' + self + ' is not the plain URI of files, for instance s3://models/reco/7: file:, .., ?, #, spaces, backslashes and %25, %2e, %2f, %5c are not allowed'"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="source: cannot be changed; make another ModelVersion"
	// +kubebuilder:example="s3://models/reco/7"
	// +optional
	Source *string `json:"source,omitempty"`

	// RunID of the run that produced the model. It cannot change.
	//
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][A-Za-z0-9_-]{0,255}$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="runId: cannot be changed; make another ModelVersion"
	// +kubebuilder:example="5c3a2f6d8b1e4f0a9c7d6e5f4a3b2c1d"
	// +optional
	RunID *string `json:"runId,omitempty"`

	// Version to observe: its number.
	//
	// +kubebuilder:validation:Pattern=`^[1-9][0-9]{0,17}$`
	// +kubebuilder:example="7"
	// +optional
	Version *string `json:"version,omitempty"`

	// Alias whose version to observe. When it moves, the status follows.
	//
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_-]{1,255}$`
	// +kubebuilder:validation:XValidation:rule="self.lowerAscii() != 'latest' && !self.lowerAscii().matches('^v[0-9]+$')",messageExpression="'alias: ' + self + ' is reserved by the registry; observe a version by its number'"
	// +kubebuilder:example="champion"
	// +optional
	Alias *string `json:"alias,omitempty"`

	// Description for people. Default: the one in the registry stays.
	//
	// +kubebuilder:validation:MaxLength=5000
	// +kubebuilder:example="Trained on the data of October."
	// +optional
	Description *string `json:"description,omitempty"`

	// Tags of the version. Tags from other sources stay. Keys that begin with capstan.dev/ or mlflow. are reserved.
	//
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=50
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^[A-Za-z0-9_. /-]{1,250}$') && !k.matches('(^|/)[.]{0,2}(/|$)') && size(self[k]) <= 5000)",message="tags: a key must have 1 to 250 letters, digits, spaces or ._/-, and no path segment that is empty, . or ..; a value at most 5000 characters"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.lowerAscii().startsWith('capstan.dev/') && !k.lowerAscii().startsWith('mlflow.'))",message="tags: keys that begin with capstan.dev/ or mlflow. are reserved"
	// +kubebuilder:example={"dataset": "2026-10"}
	// +optional
	Tags map[string]string `json:"tags,omitempty"`
}

// ModelVersionStatus is the observed state of a version.
type ModelVersionStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	// AtProvider is the observed state in the registry.
	//
	// +optional
	AtProvider ModelVersionObservation `json:"atProvider,omitempty"`
}

// ModelVersionObservation is the observed state in the registry.
type ModelVersionObservation struct {
	// Model of the version.
	//
	// +optional
	Model string `json:"model,omitempty"`

	// Version is its number.
	//
	// +optional
	Version string `json:"version,omitempty"`

	// Source is the URI that it was registered with.
	//
	// +optional
	Source string `json:"source,omitempty"`

	// ArtifactURI is where its files can be downloaded.
	//
	// +optional
	ArtifactURI string `json:"artifactUri,omitempty"`

	// Digest of the files, from the tag digest of the version: sha256: and 64 hexadecimal digits. It is absent without
	// the tag, or if the tag has another form, which the condition Ready reports.
	//
	// +optional
	Digest string `json:"digest,omitempty"`

	// RunID of the run that produced the model.
	//
	// +optional
	RunID string `json:"runId,omitempty"`

	// Status in the registry: PENDING_REGISTRATION, FAILED_REGISTRATION or READY.
	//
	// +optional
	Status string `json:"status,omitempty"`

	// Aliases that point to the version, sorted.
	//
	// +listType=set
	// +optional
	Aliases []string `json:"aliases,omitempty"`

	// TagKeys that this ModelVersion has set, sorted.
	//
	// +listType=set
	// +optional
	TagKeys []string `json:"tagKeys,omitempty"`
}
