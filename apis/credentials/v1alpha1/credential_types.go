// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

const (
	// LabelCredential marks a Secret as the external resource of the Credential
	// it names. A Secret without it is never adopted, changed or deleted.
	LabelCredential = "credentials.capstan.dev/credential"

	// KeyPassword is the key of the generated password in the Secret.
	KeyPassword = "password"
)

// A Credential is a generated password, kept in a Secret of the same namespace.
// The Secret is the Credential's external resource: its name is the external
// name (by default the name of the Credential), it has no owner, it is kept when
// the Credential goes (unless managementPolicies include Delete), and it is
// adopted and never generated anew when the Credential comes back.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,managed,capstan}
// +kubebuilder:printcolumn:name="Synced",type=string,JSONPath=`.status.conditions[?(@.type=="Synced")].status`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Secret",type=string,JSONPath=`.status.atProvider.secretName`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="metadata.name: must have at most 63 characters, because the Secret carries it as a label"
type Credential struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is generated.
	Spec CredentialSpec `json:"spec"`

	// Status is what was seen.
	//
	// +optional
	Status CredentialStatus `json:"status,omitempty"`
}

// CredentialList holds many Credentials.
//
// +kubebuilder:object:root=true
type CredentialList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Credential `json:"items"`
}

// CredentialSpec says what is generated.
type CredentialSpec struct {
	// ManagementPolicies are what the provider may do with the Secret. The
	// default leaves out Delete: the Secret stays when the Credential goes.
	//
	// +kubebuilder:default={"Observe","Create","Update","LateInitialize"}
	// +kubebuilder:example={"Observe","Create","Update","LateInitialize"}
	// +optional
	ManagementPolicies xpv2.ManagementPolicies `json:"managementPolicies,omitempty"`

	// ForProvider is what is generated.
	//
	// +kubebuilder:default={}
	// +optional
	ForProvider CredentialParameters `json:"forProvider,omitempty"`
}

// CredentialParameters say what is generated.
type CredentialParameters struct {
	// Length of the password in characters. A password that exists keeps its
	// length.
	//
	// +kubebuilder:default=32
	// +kubebuilder:validation:Minimum=16
	// +kubebuilder:validation:Maximum=128
	// +kubebuilder:example=32
	// +optional
	Length *int32 `json:"length,omitempty"`
}

// CredentialStatus is what was seen.
type CredentialStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	// AtProvider is what was seen.
	//
	// +optional
	AtProvider CredentialObservation `json:"atProvider,omitempty"`
}

// CredentialObservation is what was seen.
type CredentialObservation struct {
	// SecretName is the Secret that holds the credential.
	//
	// +optional
	SecretName string `json:"secretName,omitempty"`

	// Keys of the Secret, sorted.
	//
	// +listType=atomic
	// +optional
	Keys []string `json:"keys,omitempty"`
}
