// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// Role names of a database in the server.
const (
	// SuffixOwner ends the role that owns a database and all in it. It cannot log
	// in.
	SuffixOwner = "_owner"

	// SuffixReader ends the role that reads all in a database. It cannot log in.
	SuffixReader = "_reader"
)

// An Access holds databases, their owners, logins, grants and trusted extensions
// in a PostgreSQL server as they are asked for. It connects over TLS as a role that
// is no superuser. What it no longer names it takes the login from and never
// drops; when it is deleted itself it changes nothing. The composition of a
// Database makes one for each Database.
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

	// Spec is what is asked for.
	Spec AccessSpec `json:"spec"`

	// Status is what was seen.
	//
	// +optional
	Status AccessStatus `json:"status,omitempty"`
}

// AccessList holds many Accesses.
//
// +kubebuilder:object:root=true
type AccessList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Access `json:"items"`
}

// AccessSpec says what is asked for.
type AccessSpec struct {
	// ManagementPolicies: without Delete, because deleting an Access changes
	// nothing in the server.
	//
	// +kubebuilder:default={"Observe","Create","Update"}
	// +kubebuilder:example={"Observe","Create","Update"}
	// +kubebuilder:validation:XValidation:rule="self.all(p, p != 'Delete' && p != '*')",message="must be without Delete and *: an Access drops nothing"
	// +optional
	ManagementPolicies xpv2.ManagementPolicies `json:"managementPolicies,omitempty"`

	// ForProvider is what is asked for.
	ForProvider AccessParameters `json:"forProvider"`
}

// AccessParameters say what is asked for.
//
// +kubebuilder:validation:XValidation:rule="!has(self.logins) || self.logins.all(l, has(self.databases) && self.databases.exists(d, d.name == l.database))",fieldPath=".logins",message="must each name one of databases"
// +kubebuilder:validation:XValidation:rule="!has(self.logins) || self.logins.all(l, !has(l.alternate) || self.logins.all(o, o.name != l.alternate && (o.name == l.name || !has(o.alternate) || o.alternate != l.alternate)))",fieldPath=".logins",message="an alternate must be no other login, and no alternate of one: choose another name"
type AccessParameters struct {
	// Server to connect to.
	Server Server `json:"server"`

	// Suspended leaves the server alone, for instance because it is stopped on
	// purpose. What was seen last stays told.
	//
	// +kubebuilder:example=false
	// +optional
	Suspended bool `json:"suspended,omitempty"`

	// Databases that there should be.
	//
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	Databases []AccessDatabase `json:"databases,omitempty"`

	// Logins that there should be.
	//
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	Logins []Login `json:"logins,omitempty"`

	// Extensions that there should be in each of the databases. Those that only a
	// superuser may make are left to the member that leads, which makes them itself.
	//
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	// +kubebuilder:example={"pg_trgm"}
	// +optional
	Extensions []string `json:"extensions,omitempty"`
}

// Server is a PostgreSQL server to connect to.
type Server struct {
	// Host is the DNS name that leads to the member that takes writes, as
	// <Service>.<namespace>.svc with the namespace of the Access: the provider
	// connects with no other. The server's certificate must be for this name.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?[.][a-z0-9]([-a-z0-9]*[a-z0-9])?[.]svc$')",message="must be <Service>.<namespace>.svc, with the namespace of the Access"
	// +kubebuilder:example="orders-db-rw.production.svc"
	Host string `json:"host"`

	// Port of the host.
	//
	// +kubebuilder:default=5432
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +kubebuilder:example=5432
	// +optional
	Port *int32 `json:"port,omitempty"`

	// Username to log in with, of a role that may make roles and databases.
	//
	// +kubebuilder:default=capstan
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:example="capstan"
	// +optional
	Username string `json:"username,omitempty"`

	// PasswordSecretRef is the key of a Secret of this namespace that holds the
	// password.
	PasswordSecretRef SecretKeyReference `json:"passwordSecretRef"`

	// CASecretRef is the key of a Secret of this namespace that holds the
	// certificates that the server's is checked with.
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
	// Name of the database. The role <name>_owner owns it and all in it.
	//
	// +kubebuilder:validation:MaxLength=48
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z][a-z0-9_]*$')",message="must be lower case letters, digits and _, and start with a letter"
	// +kubebuilder:example="orders"
	Name string `json:"name"`
}

// Login is a role that can log in, or two that take turns.
//
// +kubebuilder:validation:XValidation:rule="!has(self.alternate) || self.alternate != self.name",fieldPath=".alternate",message="takes turns with name: choose another name"
// +kubebuilder:validation:XValidation:rule="!has(self.retireWhenIdle) || has(self.alternate)",fieldPath=".retireWhenIdle",message="is of a login with an alternate: set alternate, or leave this out"
type Login struct {
	// Name of the role.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z][a-z0-9_]*$') && !self.startsWith('pg_')",message="must be lower case letters, digits and _, and start with a letter, and not with pg_"
	// +kubebuilder:example="api"
	Name string `json:"name"`

	// Alternate is a second role that takes turns with name. Which of the two is in
	// use says the key username of the Secret of passwordSecretRef, which is that of
	// a Credential with an alternateUsername: the other one gets the password that is
	// to come, is let go on for as long as they overlap, or is shut out. Default: one
	// role.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z][-a-z0-9_]*$') && !self.startsWith('pg_')",message="must be lower case letters, digits, - and _, and start with a letter, and not with pg_"
	// +kubebuilder:example="api-b"
	// +optional
	Alternate string `json:"alternate,omitempty"`

	// RetireWhenIdle shuts out the role that was replaced as soon as no session of it
	// was seen for ten minutes, and not only when the overlap ends. Leave it out where
	// there are sessions that this server does not know of: on servers that follow it,
	// or in poolers.
	//
	// +kubebuilder:example=true
	// +optional
	RetireWhenIdle bool `json:"retireWhenIdle,omitempty"`

	// Database that the login may connect to, one of databases.
	//
	// +kubebuilder:validation:MaxLength=48
	// +kubebuilder:example="orders"
	Database string `json:"database"`

	// Access: ReadWrite, whatever the owner of the database may, or ReadOnly, every
	// table, view and sequence of it.
	//
	// +kubebuilder:validation:Enum=ReadWrite;ReadOnly
	// +kubebuilder:example=ReadWrite
	Access string `json:"access"`

	// PasswordSecretRef is the key of a Secret of this namespace that holds the
	// password.
	PasswordSecretRef SecretKeyReference `json:"passwordSecretRef"`
}

// Values of Login.Access.
const (
	AccessReadWrite = "ReadWrite"
	AccessReadOnly  = "ReadOnly"
)

// AccessStatus is what was seen.
type AccessStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	// AtProvider is what was seen.
	//
	// +optional
	AtProvider AccessObservation `json:"atProvider,omitempty"`
}

// AccessObservation is what was seen.
type AccessObservation struct {
	// Databases that are as asked, but for extensions that are missing.
	//
	// +listType=map
	// +listMapKey=name
	// +optional
	Databases []ObservedDatabase `json:"databases,omitempty"`

	// Logins that are as asked: of two roles that take turns the one in use.
	//
	// +listType=set
	// +optional
	Logins []string `json:"logins,omitempty"`

	// Alternating are logins of two roles that take turns.
	//
	// +listType=map
	// +listMapKey=name
	// +optional
	Alternating []AlternatingLogin `json:"alternating,omitempty"`
}

// AlternatingLogin is a login of two roles that take turns.
type AlternatingLogin struct {
	// Name of the login.
	Name string `json:"name"`

	// Active is the role that is in use.
	Active string `json:"active"`

	// Accepted names the password to come that the other role can log in with.
	//
	// +optional
	Accepted string `json:"accepted,omitempty"`

	// Retiring is the role that was replaced and can still log in.
	//
	// +optional
	Retiring string `json:"retiring,omitempty"`
}

// ObservedDatabase is a database that is as asked.
type ObservedDatabase struct {
	// Name of the database.
	Name string `json:"name"`

	// Extensions that it has, of those that were asked for, sorted.
	//
	// +listType=atomic
	// +optional
	Extensions []string `json:"extensions,omitempty"`

	// Missing are extensions that were asked for and are not there, sorted.
	//
	// +listType=atomic
	// +optional
	Missing []string `json:"missing,omitempty"`
}
