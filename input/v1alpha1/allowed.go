// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// AllowedToAlgorithms is what specs of Algorithms can name. A list that is not set allows everything, and an empty one nothing. What a
// list refuses is reported by Accepted=False, and leaves everything that runs unchanged; so does a list that is set later.
type AllowedToAlgorithms struct {
	// Hosts that spec.route.host can be. A name that begins with *. allows every name below it. With a list a route must
	// have a host. Default: every host.
	//
	// +kubebuilder:validation:MaxItems=256
	// +listType=atomic
	// +kubebuilder:example={{"name": "*.{namespace}.apps.example.org"}, {"name": "www.example.org", "namespaces": {"shop"}}}
	// +optional
	Hosts []Allowed `json:"hosts,omitempty"`

	// Gateways that spec.route.gateway can be, as namespace/name. The name * allows every Gateway of the namespace. The
	// platform's own Gateway (algorithm.gateway) is always allowed. Default: every Gateway.
	//
	// +kubebuilder:validation:MaxItems=256
	// +listType=atomic
	// +kubebuilder:example={{"name": "gateway/shared"}, {"name": "{namespace}/*"}}
	// +optional
	Gateways []Allowed `json:"gateways,omitempty"`

	// PriorityClasses that spec.pod.priorityClassName can be. Default: every class.
	//
	// +kubebuilder:validation:MaxItems=256
	// +listType=atomic
	// +kubebuilder:example={{"name": "batch"}, {"name": "production", "namespaces": {"shop"}}}
	// +optional
	PriorityClasses []Allowed `json:"priorityClasses,omitempty"`

	// ServiceAccounts that spec.pod.serviceAccountName can be. An Algorithm that names none has an account of its own without
	// rights, which is always allowed. Default: every ServiceAccount of the Algorithm's namespace.
	//
	// +kubebuilder:validation:MaxItems=256
	// +listType=atomic
	// +kubebuilder:example={{"name": "models-reader"}}
	// +optional
	ServiceAccounts []Allowed `json:"serviceAccounts,omitempty"`

	// Tolerations that spec.pod.tolerations can have: the key of a taint for all its values, or key=value. *
	// allows every toleration, also one without a key, which tolerates every taint. Default: every toleration.
	//
	// +kubebuilder:validation:MaxItems=256
	// +listType=atomic
	// +kubebuilder:example={{"name": "dedicated=gpu"}, {"name": "example.org/spot"}}
	// +optional
	Tolerations []Allowed `json:"tolerations,omitempty"`
}

// AllowedToDatabases is what specs of Databases can name. A list that is not set allows everything, and an empty one nothing. What a
// list refuses is reported by Accepted=False, and leaves everything that runs unchanged; so does a list that is set later.
type AllowedToDatabases struct {
	// Hostnames that spec.expose.hostname can be. A name that begins with *. allows every name below it. Default: every
	// host name.
	//
	// +kubebuilder:validation:MaxItems=256
	// +listType=atomic
	// +kubebuilder:example={{"name": "*.{namespace}.db.example.org"}}
	// +optional
	Hostnames []Allowed `json:"hostnames,omitempty"`

	// Issuers that spec.tls.issuerRef can be, as kind/name. The name * allows every issuer of the kind. The platform's
	// own issuer (database.issuerRef) is always allowed. Default: every issuer.
	//
	// +kubebuilder:validation:MaxItems=256
	// +listType=atomic
	// +kubebuilder:example={{"name": "ClusterIssuer/platform"}, {"name": "Issuer/*"}}
	// +optional
	Issuers []Allowed `json:"issuers,omitempty"`

	// Roles that spec.workloadIdentity.roleArn can be. A name that ends in /* allows every role below that path. Default: every
	// role, so that only the trust policies of the roles decide which ServiceAccount gets which.
	//
	// +kubebuilder:validation:MaxItems=256
	// +listType=atomic
	// +kubebuilder:example={{"name": "arn:aws:iam::123456789012:role/{namespace}/*"}}
	// +optional
	Roles []Allowed `json:"roles,omitempty"`

	// PriorityClasses that spec.pod.priorityClassName can be. Default: every class.
	//
	// +kubebuilder:validation:MaxItems=256
	// +listType=atomic
	// +kubebuilder:example={{"name": "databases"}}
	// +optional
	PriorityClasses []Allowed `json:"priorityClasses,omitempty"`

	// Tolerations that spec.pod.tolerations can have: the key of a taint for all its values, or key=value. *
	// allows every toleration, also one without a key, which tolerates every taint. Default: every toleration.
	//
	// +kubebuilder:validation:MaxItems=256
	// +listType=atomic
	// +kubebuilder:example={{"name": "dedicated=databases"}}
	// +optional
	Tolerations []Allowed `json:"tolerations,omitempty"`
}

// Allowed is one entry of a list.
type Allowed struct {
	// Name that is allowed. {namespace} in it stands for the namespace of the object.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:example="*.{namespace}.apps.example.org"
	Name string `json:"name"`

	// Namespaces that the entry is for. Default: every namespace.
	//
	// +kubebuilder:validation:MaxItems=256
	// +listType=set
	// +kubebuilder:example={"shop"}
	// +optional
	Namespaces []string `json:"namespaces,omitempty"`
}
