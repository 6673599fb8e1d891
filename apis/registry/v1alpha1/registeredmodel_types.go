// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

const (
	// TagOwner marks an entry of the registry as the external resource of one managed resource. Its value is the UID of
	// the cluster's namespace kube-system, the namespace and the name of the managed resource, joined by slashes.
	TagOwner = "capstan.dev/owner"

	// TagAliasPrefix is the prefix of the tags of a model that hold the owner of an alias; the name of the alias
	// follows.
	TagAliasPrefix = "capstan.dev/alias."

	// TagEvidencePrefix is the prefix of the tags of a version with evidence of a ModelAlias; the name of the alias, a
	// dot and the key follow. Aliases have no dots, so that no tag is ambiguous or equal to TagOwner.
	TagEvidencePrefix = "capstan.dev/"

	// TagDigest is the tag with the digest of a version's files. The client that creates the version sets it.
	TagDigest = "digest"
)

// A RegisteredModel is a model in a model registry: a name for versions and aliases. Its name there is the external
// name, by default the name of the RegisteredModel. It stays in the registry when the RegisteredModel is deleted,
// unless managementPolicies include Delete.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,managed,capstan}
// +kubebuilder:printcolumn:name="Synced",type=string,JSONPath=`.status.conditions[?(@.type=="Synced")].status`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Connected",type=string,JSONPath=`.status.conditions[?(@.type=="Connected")].reason`
// +kubebuilder:printcolumn:name="Model",type=string,JSONPath=`.metadata.annotations.crossplane\.io/external-name`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type RegisteredModel struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state of the model.
	Spec RegisteredModelSpec `json:"spec"`

	// Status is the observed state of the model.
	//
	// +optional
	Status RegisteredModelStatus `json:"status,omitempty"`
}

// RegisteredModelList is a list of RegisteredModels.
//
// +kubebuilder:object:root=true
type RegisteredModelList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []RegisteredModel `json:"items"`
}

// RegisteredModelSpec is the desired state of a model.
type RegisteredModelSpec struct {
	// ManagementPolicies are what the provider can do with the model. Default: everything except Delete, because to
	// delete a model deletes all its versions.
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

	// ForProvider is the desired state of the model.
	//
	// +kubebuilder:default={}
	// +optional
	ForProvider RegisteredModelParameters `json:"forProvider,omitempty"`
}

// RegisteredModelParameters are the desired state of a model.
type RegisteredModelParameters struct {
	// Adopt allows the provider to take over an existing model of this name that has no owner. Default: false.
	//
	// +kubebuilder:default=false
	// +kubebuilder:example=false
	// +optional
	Adopt bool `json:"adopt,omitempty"`

	// Description for people. Default: the one in the registry stays.
	//
	// +kubebuilder:validation:MaxLength=5000
	// +kubebuilder:example="Recommends products to visitors of the shop."
	// +optional
	Description *string `json:"description,omitempty"`

	// Tags of the model. Tags from other sources stay. Keys that begin with capstan.dev/ or mlflow. are reserved.
	//
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=50
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^[A-Za-z0-9_. /-]{1,250}$') && !k.matches('(^|/)[.]{0,2}(/|$)') && size(self[k]) <= 5000)",message="tags: a key must have 1 to 250 letters, digits, spaces or ._/-, and no path segment that is empty, . or ..; a value at most 5000 characters"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.lowerAscii().startsWith('capstan.dev/') && !k.lowerAscii().startsWith('mlflow.'))",message="tags: keys that begin with capstan.dev/ or mlflow. are reserved"
	// +kubebuilder:example={"team": "shop"}
	// +optional
	Tags map[string]string `json:"tags,omitempty"`
}

// RegisteredModelStatus is the observed state of a model.
type RegisteredModelStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	// AtProvider is the observed state in the registry.
	//
	// +optional
	AtProvider RegisteredModelObservation `json:"atProvider,omitempty"`
}

// RegisteredModelObservation is the observed state in the registry.
type RegisteredModelObservation struct {
	// Name of the model in the registry.
	//
	// +optional
	Name string `json:"name,omitempty"`

	// Description in the registry.
	//
	// +optional
	Description string `json:"description,omitempty"`

	// TagKeys that this RegisteredModel has set, sorted.
	//
	// +listType=set
	// +optional
	TagKeys []string `json:"tagKeys,omitempty"`

	// Aliases of the model with their versions, sorted by alias.
	//
	// +listType=map
	// +listMapKey=alias
	// +optional
	Aliases []AliasObservation `json:"aliases,omitempty"`
}

// An AliasObservation is an alias and its version.
type AliasObservation struct {
	// Alias is the name of the alias.
	Alias string `json:"alias"`

	// Version that it points to.
	Version string `json:"version"`
}
