// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// Engines of servers.
const (
	EnginePostgres = "postgres"
	EngineMySQL    = "mysql"
)

// Suffixes of the roles of a database in a PostgreSQL server.
const (
	// SuffixOwner is the suffix of the role that owns a database and everything in it. It cannot log in.
	SuffixOwner = "_owner"

	// SuffixReader is the suffix of the role that can read everything in a database. It cannot log in.
	SuffixReader = "_reader"
)

// An Access manages databases, logins, grants, and for PostgreSQL owners and trusted extensions, in a server of
// PostgreSQL or MySQL. It connects over TLS as a role that is not a superuser. It never drops anything: a login that it
// no longer names is disabled, and its own deletion changes nothing. Each Database composes one.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,managed,capstan}
// +kubebuilder:printcolumn:name="Synced",type=string,JSONPath=`.status.conditions[?(@.type=="Synced")].status`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Host",type=string,JSONPath=`.spec.forProvider.server.host`
// +kubebuilder:printcolumn:name="Databases",type=string,JSONPath=`.status.atProvider.databases[*].name`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Access struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state of the server.
	Spec AccessSpec `json:"spec"`

	// Status is the observed state of the server.
	//
	// +optional
	Status AccessStatus `json:"status,omitempty"`
}

// AccessList is a list of Accesses.
//
// +kubebuilder:object:root=true
type AccessList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Access `json:"items"`
}

// AccessSpec is the desired state of the server.
type AccessSpec struct {
	// ManagementPolicies, without Delete, because the deletion of an Access changes nothing in the server. Default:
	// ["Observe", "Create", "Update"].
	//
	// +kubebuilder:default={"Observe","Create","Update"}
	// +kubebuilder:example={"Observe","Create","Update"}
	// +kubebuilder:validation:XValidation:rule="self.all(p, p != 'Delete' && p != '*')",message="must not have Delete or *: an Access drops nothing"
	// +optional
	ManagementPolicies xpv2.ManagementPolicies `json:"managementPolicies,omitempty"`

	// ForProvider is the desired state of the server.
	ForProvider AccessParameters `json:"forProvider"`
}

// AccessParameters are the desired state of the server.
//
// +kubebuilder:validation:XValidation:rule="!has(self.logins) || self.logins.all(l, has(self.databases) && self.databases.exists(d, d.name == l.database))",fieldPath=".logins",message="database of each login must be one of databases"
// +kubebuilder:validation:XValidation:rule="!has(self.logins) || self.logins.all(l, !has(l.alternate) || self.logins.all(o, o.name != l.alternate && (o.name == l.name || !has(o.alternate) || o.alternate != l.alternate)))",fieldPath=".logins",message="an alternate must not be another login or its alternate: choose another name"
// +kubebuilder:validation:XValidation:rule="!has(self.server.engine) || self.server.engine != 'mysql' || !has(self.extensions) || self.extensions.size() == 0",fieldPath=".extensions",message="engine mysql has no extensions: remove extensions"
// +kubebuilder:validation:XValidation:rule="!has(self.server.engine) || self.server.engine != 'mysql' || !has(self.logins) || self.logins.all(l, l.name.size() <= 32 && (!has(l.alternate) || l.alternate.size() <= 32))",fieldPath=".logins",message="names and alternates of logins must have at most 32 characters for engine mysql: choose shorter ones"
type AccessParameters struct {
	// Server to connect to.
	Server Server `json:"server"`

	// Suspended stops all connections to the server, for instance because it is hibernated. The latest observation
	// stays in the status. Default: false.
	//
	// +kubebuilder:example=false
	// +optional
	Suspended bool `json:"suspended,omitempty"`

	// Databases in the server.
	//
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	Databases []AccessDatabase `json:"databases,omitempty"`

	// Logins in the server.
	//
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	Logins []Login `json:"logins,omitempty"`

	// Extensions in each of the databases, for engine postgres only. The member that is the leader creates those that
	// need a superuser.
	//
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	// +kubebuilder:example={"pg_trgm"}
	// +optional
	Extensions []string `json:"extensions,omitempty"`
}

// Server is a server to connect to.
type Server struct {
	// Engine of the server: postgres or mysql. Default: postgres.
	//
	// +kubebuilder:default=postgres
	// +kubebuilder:validation:Enum=postgres;mysql
	// +kubebuilder:example=mysql
	// +optional
	Engine string `json:"engine,omitempty"`

	// Host is the DNS name of the leader, <Service>.<namespace>.svc with the namespace of the Access: the provider
	// connects to no other namespace. The server's certificate must be valid for this name.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?[.][a-z0-9]([-a-z0-9]*[a-z0-9])?[.]svc$')",message="must be <Service>.<namespace>.svc, with the namespace of the Access"
	// +kubebuilder:example="orders-db-rw.production.svc"
	Host string `json:"host"`

	// Port of the host. Default: 5432 for engine postgres, 3306 for engine mysql.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +kubebuilder:example=5432
	// +optional
	Port *int32 `json:"port,omitempty"`

	// Username to log in with. In PostgreSQL its role must be able to create roles and databases; in MySQL it needs the
	// rights that docs/access.md lists. Default: capstan.
	//
	// +kubebuilder:default=capstan
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:example="capstan"
	// +optional
	Username string `json:"username,omitempty"`

	// PasswordSecretRef is the key of a Secret of this namespace with the password.
	PasswordSecretRef SecretKeyReference `json:"passwordSecretRef"`

	// CASecretRef is the key of a Secret of this namespace with the certificates that verify the server's certificate.
	CASecretRef SecretKeyReference `json:"caSecretRef"`
}

// SecretKeyReference is one key of a Secret of this namespace.
type SecretKeyReference struct {
	// Name of the Secret.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of an object: lower case letters, digits, '-' and '.', with a letter or digit at both ends"
	// +kubebuilder:example="orders-db-access"
	Name string `json:"name"`

	// Key in the Secret.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._a-zA-Z0-9]+$') && self != '.' && !self.startsWith('..')",message="must be letters, digits, '-', '_' and '.', and not start with '..'"
	// +kubebuilder:example="password"
	Key string `json:"key"`
}

// AccessDatabase is one database.
type AccessDatabase struct {
	// Name of the database. In PostgreSQL the role <name>_owner owns it and everything in it.
	//
	// +kubebuilder:validation:MaxLength=48
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z][a-z0-9_]*$')",message="must be lower case letters, digits and _, and start with a letter"
	// +kubebuilder:example="orders"
	Name string `json:"name"`
}

// Login is a role that can log in, or two roles that take turns.
//
// +kubebuilder:validation:XValidation:rule="!has(self.alternate) || self.alternate != self.name",fieldPath=".alternate",message="alternate takes turns with name: choose another name"
// +kubebuilder:validation:XValidation:rule="!has(self.retireWhenIdle) || has(self.alternate)",fieldPath=".retireWhenIdle",message="retireWhenIdle needs alternate: set it, or remove retireWhenIdle"
type Login struct {
	// Name of the role.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z][a-z0-9_]*$') && !self.startsWith('pg_')",message="must be lower case letters, digits and _, and start with a letter but not with pg_"
	// +kubebuilder:example="api"
	Name string `json:"name"`

	// Alternate is a second role that takes turns with name. The key username in the Secret of passwordSecretRef, from
	// a Credential with an alternateUsername, is the role in use. The other role gets the next password, stays valid
	// for the overlap, or is disabled. Default: one role.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z][-a-z0-9_]*$') && !self.startsWith('pg_')",message="must be lower case letters, digits, - and _, and start with a letter but not with pg_"
	// +kubebuilder:example="api-b"
	// +optional
	Alternate string `json:"alternate,omitempty"`

	// RetireWhenIdle disables the replaced role once it has had no session for ten minutes, before the overlap ends. Do
	// not set it if this server does not see all sessions: with standbys or poolers. Default: false.
	//
	// +kubebuilder:example=true
	// +optional
	RetireWhenIdle bool `json:"retireWhenIdle,omitempty"`

	// Database that the login can connect to, one of databases.
	//
	// +kubebuilder:validation:MaxLength=48
	// +kubebuilder:example="orders"
	Database string `json:"database"`

	// Access: ReadWrite, which is everything that the owner of the database can do, or ReadOnly, which is reading every
	// table and view, and in PostgreSQL every sequence.
	//
	// +kubebuilder:validation:Enum=ReadWrite;ReadOnly
	// +kubebuilder:example=ReadWrite
	Access string `json:"access"`

	// PasswordSecretRef is the key of a Secret of this namespace with the password.
	PasswordSecretRef SecretKeyReference `json:"passwordSecretRef"`
}

// Values of Login.Access.
const (
	AccessReadWrite = "ReadWrite"
	AccessReadOnly  = "ReadOnly"
)

// AccessStatus is the observed state of the server.
type AccessStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	// AtProvider is the observed state of the server.
	//
	// +optional
	AtProvider AccessObservation `json:"atProvider,omitempty"`
}

// AccessObservation is the observed state of the server.
type AccessObservation struct {
	// Databases that match the spec, except for missing extensions.
	//
	// +listType=map
	// +listMapKey=name
	// +optional
	Databases []ObservedDatabase `json:"databases,omitempty"`

	// Logins that match the spec; of two roles that take turns, the one in use.
	//
	// +listType=set
	// +optional
	Logins []string `json:"logins,omitempty"`

	// Alternating lists logins with two roles that take turns.
	//
	// +listType=map
	// +listMapKey=name
	// +optional
	Alternating []AlternatingLogin `json:"alternating,omitempty"`
}

// AlternatingLogin is a login with two roles that take turns.
type AlternatingLogin struct {
	// Name of the login.
	Name string `json:"name"`

	// Active is the role in use.
	Active string `json:"active"`

	// Accepted names the next password, with which the other role can log in.
	//
	// +optional
	Accepted string `json:"accepted,omitempty"`

	// Retiring is the replaced role while it can still log in.
	//
	// +optional
	Retiring string `json:"retiring,omitempty"`
}

// ObservedDatabase is a database that matches the spec.
type ObservedDatabase struct {
	// Name of the database.
	Name string `json:"name"`

	// Extensions of the spec that it has, sorted.
	//
	// +listType=atomic
	// +optional
	Extensions []string `json:"extensions,omitempty"`

	// Missing lists extensions of the spec that it does not have, sorted.
	//
	// +listType=atomic
	// +optional
	Missing []string `json:"missing,omitempty"`
}
