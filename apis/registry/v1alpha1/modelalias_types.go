// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// A ModelAlias is a name, such as champion, that points to one version of a model in a model registry. If another
// client moves it, the provider moves it back. It stays in the registry when the ModelAlias is deleted, unless
// managementPolicies include Delete.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,managed,capstan}
// +kubebuilder:printcolumn:name="Synced",type=string,JSONPath=`.status.conditions[?(@.type=="Synced")].status`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Connected",type=string,JSONPath=`.status.conditions[?(@.type=="Connected")].reason`
// +kubebuilder:printcolumn:name="Model",type=string,JSONPath=`.spec.forProvider.model`
// +kubebuilder:printcolumn:name="Alias",type=string,JSONPath=`.spec.forProvider.alias`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.atProvider.version`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ModelAlias struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state of the alias.
	Spec ModelAliasSpec `json:"spec"`

	// Status is the observed state of the alias.
	//
	// +optional
	Status ModelAliasStatus `json:"status,omitempty"`
}

// ModelAliasList is a list of ModelAliases.
//
// +kubebuilder:object:root=true
type ModelAliasList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ModelAlias `json:"items"`
}

// ModelAliasSpec is the desired state of an alias.
type ModelAliasSpec struct {
	// ManagementPolicies are what the provider can do with the alias. Default: everything except Delete.
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

	// ForProvider is the desired state of the alias.
	ForProvider ModelAliasParameters `json:"forProvider"`
}

// ModelAliasParameters are the desired state of an alias.
//
// +kubebuilder:example={"model": "reco", "alias": "champion", "version": "7"}
type ModelAliasParameters struct {
	// Adopt allows the provider to take over an existing alias that has no owner, at any version. Default: false.
	//
	// +kubebuilder:default=false
	// +kubebuilder:example=false
	// +optional
	Adopt bool `json:"adopt,omitempty"`

	// Model of the alias: its name in the registry. It cannot change.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern="^[^/:\\\\%\"'`\\x00-\\x1f\\x7f]+$"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="model: cannot be changed; make another ModelAlias"
	// +kubebuilder:example="reco"
	Model string `json:"model"`

	// Alias is the name. The registry reserves latest, and v followed by digits. It cannot change.
	//
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_-]{1,200}$`
	// +kubebuilder:validation:XValidation:rule="self.lowerAscii() != 'latest' && !self.lowerAscii().matches('^v[0-9]+$')",messageExpression="'alias: ' + self + ' is reserved by the registry; choose another name, for instance champion'"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="alias: cannot be changed; make another ModelAlias"
	// +kubebuilder:example="champion"
	Alias string `json:"alias"`

	// Version that the alias points to: its number.
	//
	// +kubebuilder:validation:Pattern=`^[1-9][0-9]{0,17}$`
	// +kubebuilder:example="7"
	Version string `json:"version"`

	// Evidence is why the alias points to the version: each key becomes the tag capstan.dev/<alias>.<key> of the
	// version, before the alias moves there. Tags of that form that are not in the map are removed from the version.
	// Tags on previous versions stay as their history, also when the ModelAlias is deleted. Default: none; earlier
	// evidence is removed from the version.
	//
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=20
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^[a-z][a-z0-9.-]{0,36}$'))",message="evidence: a key must have 1 to 37 lower case letters, digits, . or -, and begin with a letter"
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(self[k]) <= 1024)",message="evidence: a value must have at most 1024 characters; store longer text elsewhere, and its address here"
	// +kubebuilder:example={"revision": "reco-5d9f7c", "live-since": "2026-10-01T12:00:00Z"}
	// +optional
	Evidence map[string]string `json:"evidence,omitempty"`
}

// ModelAliasStatus is the observed state of an alias.
type ModelAliasStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	// AtProvider is the observed state in the registry.
	//
	// +optional
	AtProvider ModelAliasObservation `json:"atProvider,omitempty"`
}

// ModelAliasObservation is the observed state in the registry.
type ModelAliasObservation struct {
	// Version that the alias points to.
	//
	// +optional
	Version string `json:"version,omitempty"`

	// EvidenceKeys that the version of the spec has as tags capstan.dev/<alias>.<key>, sorted. They are read while the
	// spec has evidence, or some is left to remove.
	//
	// +listType=set
	// +optional
	EvidenceKeys []string `json:"evidenceKeys,omitempty"`
}
