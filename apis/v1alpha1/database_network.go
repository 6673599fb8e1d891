// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// DatabaseNetwork defines which clients can connect.
type DatabaseNetwork struct {
	// From lists the clients that can connect. With an empty list only Capstan can.
	//
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +kubebuilder:example={{"namespace":"bi"}}
	From []DatabaseClient `json:"from"`
}

// DatabaseClient is a set of clients that can connect: pods, or a range of addresses.
//
// +kubebuilder:validation:XValidation:rule="!has(self.cidr) || !(has(self.namespace) || has(self.podLabels))",message="set cidr, or namespace and podLabels"
type DatabaseClient struct {
	// Namespace of the pods, or * for every namespace. Default: this namespace.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == '*' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be the name of a namespace, or * for every namespace"
	// +kubebuilder:example="bi"
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// PodLabels that the pods have. Default: every pod of the namespace.
	//
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 317 && k.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$'))",message="keys must be label keys, for instance app.kubernetes.io/name"
	// +kubebuilder:example={"app":"reports"}
	// +optional
	PodLabels map[string]LabelValue `json:"podLabels,omitempty"`

	// CIDR is a range of addresses outside the cluster.
	//
	// +kubebuilder:validation:MaxLength=43
	// +kubebuilder:validation:XValidation:rule="isCIDR(self)",message="must be a range of addresses, for instance 10.0.0.0/8"
	// +kubebuilder:example="10.0.0.0/8"
	// +optional
	CIDR string `json:"cidr,omitempty"`
}

// DatabaseTLS defines which issuer signs the certificate that clients see.
type DatabaseTLS struct {
	// IssuerRef names an issuer of cert-manager. To add or remove an issuer restarts the members one by one. Default:
	// the issuer of the platform's settings, otherwise an authority of this Database, whose certificate is in the
	// Secrets of consumers.
	//
	// +optional
	IssuerRef *IssuerReference `json:"issuerRef,omitempty"`
}

// IssuerReference names an issuer of cert-manager.
type IssuerReference struct {
	// Kind: Issuer, of this namespace, or ClusterIssuer. Default: ClusterIssuer.
	//
	// +kubebuilder:validation:Enum=Issuer;ClusterIssuer
	// +kubebuilder:default=ClusterIssuer
	// +kubebuilder:example=ClusterIssuer
	// +optional
	Kind string `json:"kind,omitempty"`

	// Name of the issuer.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of an object: lower case letters, digits, '-' and '.', with a letter or digit at both ends"
	// +kubebuilder:example="platform"
	Name string `json:"name"`
}
