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

	// SuffixPrevious ends the key of the value that was replaced last.
	SuffixPrevious = ".previous"

	// SuffixNext ends the key of the value that is to come, while whatever it opens
	// is yet to accept it.
	SuffixNext = ".next"
)

// What a Credential has to remember it remembers in annotations of its Secret,
// which outlives it. They are written together with the values they tell about,
// in one update, so that a crash leaves both or neither.
const (
	// AnnotationIdentity is an identity made once, for what outlives the
	// Credential, too. No rotation changes it.
	AnnotationIdentity = "credentials.capstan.dev/identity"

	// AnnotationRemembered is what whoever made the Credential has it remember.
	AnnotationRemembered = "credentials.capstan.dev/remembered"

	// AnnotationRotatedAt is when the values were made: with the Secret, by the
	// last rotation, or, when the Secret is older than that, when it was taken
	// over. The schedule counts from here.
	AnnotationRotatedAt = "credentials.capstan.dev/rotated-at"

	// AnnotationRotationID is the rotation id that the values were made for.
	AnnotationRotationID = "credentials.capstan.dev/rotation-id"

	// AnnotationGeneration counts the values that there have been, where two
	// usernames take turns. The odd ones are of the first.
	AnnotationGeneration = "credentials.capstan.dev/generation"

	// AnnotationStaged names the values that are to come, and
	// AnnotationStagedRotationID the rotation id that they were made for.
	AnnotationStaged           = "credentials.capstan.dev/staged"
	AnnotationStagedRotationID = "credentials.capstan.dev/staged-rotation-id"

	// AnnotationOverlapUntil is until when the username before is good, too. It goes
	// when that time has come.
	AnnotationOverlapUntil = "credentials.capstan.dev/overlap-until"

	// AnnotationGenerated lists the keys that hold generated values. They are
	// never generated again, and never taken away.
	AnnotationGenerated = "credentials.capstan.dev/generated"

	// AnnotationRendered lists the keys that can be made again from the others.
	// They go when nothing asks for them any more.
	AnnotationRendered = "credentials.capstan.dev/rendered"
)

// A Credential is one or several generated passwords, kept in a Secret of the
// same namespace, and, with a connection, all else that a client needs to connect.
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
// +kubebuilder:printcolumn:name="Rotated",type=date,JSONPath=`.status.atProvider.lastRotation`
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
//
// +kubebuilder:validation:XValidation:rule="!has(self.keys) || self.keys.all(k, (has(k.alphabet) ? k.alphabet : self.alphabet) != 'Hexadecimal' || (has(k.length) ? k.length : self.length) >= 24)",message="keys: alphabet Hexadecimal needs a length of at least 24, because its characters are 4 bits each: raise length, or choose alphabet Alphanumeric"
// +kubebuilder:validation:XValidation:rule="!has(self.keys) || self.keys.all(k, !has(k.derive) || (has(k.length) ? k.length : self.length) <= 72 || k.derive.all(d, d.format != 'Bcrypt'))",message="keys: format Bcrypt needs a length of at most 72, because it reads no further: lower length, or derive SCRAM-SHA-256"
// +kubebuilder:validation:XValidation:rule="!has(self.connection) || !has(self.keys) || self.keys.exists(k, k.name == 'password')",message="connection: needs a key of the name password: add it to keys"
type CredentialParameters struct {
	// Length of the values in characters, for keys that do not say otherwise. A
	// value that exists keeps its length until the next rotation.
	//
	// +kubebuilder:default=32
	// +kubebuilder:validation:Minimum=16
	// +kubebuilder:validation:Maximum=128
	// +kubebuilder:example=32
	// +optional
	Length *int32 `json:"length,omitempty"`

	// Alphabet of the values, for keys that do not say otherwise. Alphanumeric
	// has letters and digits. Hexadecimal has 0 to 9 and a to f, and needs a
	// length of at least 24. Printable has letters, digits and - . _ ~, starts
	// with a letter or digit, and holds at least one lower case letter, one upper
	// case letter, one digit and one of - . _ ~, for services that insist on
	// such; like the others it needs no quoting in a URL or a shell. Each has at
	// least 95 bits at the shortest length. A value that exists stays as it is
	// until the next rotation.
	//
	// +kubebuilder:default=Alphanumeric
	// +kubebuilder:example="Printable"
	// +optional
	Alphabet Alphabet `json:"alphabet,omitempty"`

	// Keys of the Secret with a generated value each, 1 to 16. A key that is
	// added gets a value; a key that is taken out of this list keeps its value in
	// the Secret, is rotated no more, and is found again when it comes back.
	//
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:default={{name:password}}
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, !has(k.derive) || k.derive.all(d, !self.exists(o, o.name == d.key)))",message="keys: a derived key must not have the name of a generated one: choose another derive key"
	// +kubebuilder:validation:XValidation:rule="self.all(a, !has(a.derive) || self.all(b, a.name == b.name || !has(b.derive) || a.derive.all(x, b.derive.all(y, x.key != y.key))))",message="keys: two keys must not derive into the same key: choose another derive key"
	// +kubebuilder:example={{name:password}}
	// +optional
	Keys []Key `json:"keys,omitempty"`

	// Rotation replaces the values from time to time or on demand. Without it they
	// never change.
	//
	// +optional
	Rotation *Rotation `json:"rotation,omitempty"`

	// Connection is what else a client needs to connect. With it the Secret is one
	// of the Service Binding Specification for Kubernetes 1.1: it has the keys
	// type, provider, host, port, database, username, uri, multi-host-uri,
	// jdbc-url and ca.crt, as far as there is something to put into them, beside
	// password. A change renders them again and leaves the password as it is.
	//
	// +optional
	Connection *Connection `json:"connection,omitempty"`

	// Remember is a text that the Secret keeps in an annotation, and that
	// status.atProvider.remembered tells, also when the Credential was deleted and made
	// again. Left out, what was remembered stays. It is no secret.
	//
	// +kubebuilder:validation:MaxLength=16384
	// +kubebuilder:example="{\"active\":2}"
	// +optional
	Remember string `json:"remember,omitempty"`
}

// Alphabet that values are made of.
//
// +kubebuilder:validation:Enum=Alphanumeric;Hexadecimal;Printable
type Alphabet string

// The alphabets.
const (
	AlphabetAlphanumeric Alphabet = "Alphanumeric"
	AlphabetHexadecimal  Alphabet = "Hexadecimal"
	AlphabetPrintable    Alphabet = "Printable"
)

// A Key of the Secret with a generated value.
type Key struct {
	// Name of the key in the Secret. It must not end in .previous, where the
	// replaced value is kept, and not be one of the keys of a connection.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z0-9]([-._a-zA-Z0-9]*[a-zA-Z0-9])?$') && !self.endsWith('.previous') && !(self in ['type', 'provider', 'host', 'port', 'database', 'username', 'uri', 'multi-host-uri', 'jdbc-url', 'ca.crt'])",message="must be letters, digits, -, _ and . with a letter or digit at both ends, not end in .previous, and be none of type, provider, host, port, database, username, uri, multi-host-uri, jdbc-url, ca.crt"
	// +kubebuilder:example="password"
	Name string `json:"name"`

	// Length of this value in characters. Default: the length beside keys.
	//
	// +kubebuilder:validation:Minimum=16
	// +kubebuilder:validation:Maximum=128
	// +kubebuilder:example=64
	// +optional
	Length *int32 `json:"length,omitempty"`

	// Alphabet of this value. Default: the alphabet beside keys.
	//
	// +kubebuilder:example="Hexadecimal"
	// +optional
	Alphabet Alphabet `json:"alphabet,omitempty"`

	// Derive makes from the value what a server can check it with, so that the
	// server need not be given the value itself. What was derived is made again
	// only when it no longer fits.
	//
	// +listType=map
	// +listMapKey=key
	// +kubebuilder:validation:MaxItems=2
	// +optional
	Derive []Derivation `json:"derive,omitempty"`
}

// Format of what is derived.
//
// +kubebuilder:validation:Enum=SCRAM-SHA-256;Bcrypt
type Format string

// The formats.
const (
	FormatSCRAM  Format = "SCRAM-SHA-256"
	FormatBcrypt Format = "Bcrypt"
)

// A Derivation of a value.
//
// +kubebuilder:validation:XValidation:rule="!has(self.iterations) || self.format == 'SCRAM-SHA-256'",fieldPath=".iterations",message="iterations are of format SCRAM-SHA-256: leave them out, or set cost"
// +kubebuilder:validation:XValidation:rule="!has(self.cost) || self.format == 'Bcrypt'",fieldPath=".cost",message="cost is of format Bcrypt: leave it out, or set iterations"
type Derivation struct {
	// Format of what is derived. SCRAM-SHA-256 is a verifier as PostgreSQL stores
	// it and takes it in place of a password. Bcrypt is a hash as htpasswd makes
	// it; it needs a length of at most 72.
	//
	// +kubebuilder:example="SCRAM-SHA-256"
	Format Format `json:"format"`

	// Key of the Secret that it is kept in.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z0-9]([-._a-zA-Z0-9]*[a-zA-Z0-9])?$') && !self.endsWith('.previous') && !(self in ['type', 'provider', 'host', 'port', 'database', 'username', 'uri', 'multi-host-uri', 'jdbc-url', 'ca.crt'])",message="must be letters, digits, -, _ and . with a letter or digit at both ends, not end in .previous, and be none of type, provider, host, port, database, username, uri, multi-host-uri, jdbc-url, ca.crt"
	// +kubebuilder:example="verifier"
	Key string `json:"key"`

	// Iterations of SCRAM-SHA-256. Default: 4096, as in PostgreSQL.
	//
	// +kubebuilder:validation:Minimum=4096
	// +kubebuilder:validation:Maximum=600000
	// +kubebuilder:example=4096
	// +optional
	Iterations *int32 `json:"iterations,omitempty"`

	// Cost of Bcrypt, a power of two. Default: 10.
	//
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=13
	// +kubebuilder:example=12
	// +optional
	Cost *int32 `json:"cost,omitempty"`
}

// Rotation replaces the values of all keys at once. The replaced ones, and what
// was derived from them, stay beside the new ones for a while, under their keys
// with .previous at the end, so that both can be accepted until every client has
// the new one.
//
// +kubebuilder:validation:XValidation:rule="has(self.every) || has(self.id)",message="rotation: set every, id, or both"
type Rotation struct {
	// Every is how long values are used before they are replaced, in h, m and s,
	// at least 1h. Default: no schedule. It counts from when the values were
	// made, or, for a Secret that was taken over, from then. A rotation that was
	// missed happens once.
	//
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:XValidation:rule="self != '' && self.matches('^([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,6}s)?$') && duration(self) >= duration('1h')",message="must be a duration of at least 1h in h, m and s, for instance 720h for 30 days"
	// +kubebuilder:example="720h"
	// +optional
	Every string `json:"every,omitempty"`

	// ID of the values that are wanted. Another id than the last one replaces them
	// at once. The id that a Credential is made with, or takes its Secret over
	// with, replaces nothing. Default: none.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z0-9]([-_.:a-zA-Z0-9]*[a-zA-Z0-9])?$')",message="must be letters, digits, -, _, . and : with a letter or digit at both ends, for instance 2026-11"
	// +kubebuilder:example="2026-11"
	// +optional
	ID string `json:"id,omitempty"`

	// KeepPrevious is how long the replaced values stay after a rotation, in h, m
	// and s, at most 8760h; the next rotation ends it, too. 0s keeps none, for
	// values that have leaked. Where two usernames take turns, it is how long the
	// one before is good, too.
	//
	// +kubebuilder:default="24h"
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:XValidation:rule="self != '' && self.matches('^([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,6}s)?$') && duration(self) <= duration('8760h')",message="must be a duration of at most 8760h in h, m and s, for instance 24h"
	// +kubebuilder:example="24h"
	// +optional
	KeepPrevious string `json:"keepPrevious,omitempty"`

	// Accepted names the values to come that whatever they open accepts: those that
	// the status tells as staged. Where two usernames take turns, nothing is replaced
	// before that. The composition of a Database sets it. Default: none.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:example="8-3f2a9c1b"
	// +optional
	Accepted string `json:"accepted,omitempty"`
}

// CredentialStatus is what was seen.
type CredentialStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	// AtProvider is what was seen.
	//
	// +optional
	AtProvider CredentialObservation `json:"atProvider,omitempty"`

	// Binding names the Secret once it has a connection. It makes the Credential a
	// Provisioned Service of the Service Binding Specification for Kubernetes.
	//
	// +optional
	Binding *Binding `json:"binding,omitempty"`
}

// Binding names a Secret for the Service Binding Specification.
type Binding struct {
	// Name of the Secret.
	Name string `json:"name"`
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

	// Identity is 32 hexadecimal digits, made once and kept in the Secret: a
	// Credential that is made again and finds its Secret has the same one. No
	// rotation changes it. It tells what belongs to these values from a stranger
	// of the same name, and is no secret.
	//
	// +optional
	Identity string `json:"identity,omitempty"`

	// Remembered is what the Secret has of remember, which outlives the Credential.
	//
	// +optional
	Remembered string `json:"remembered,omitempty"`

	// RotationID is the id that the values were made for.
	//
	// +optional
	RotationID string `json:"rotationID,omitempty"`

	// Generation counts the values that there have been, where two usernames take
	// turns.
	//
	// +optional
	Generation int64 `json:"generation,omitempty"`

	// Username of the connection, as the Secret has it.
	//
	// +optional
	Username string `json:"username,omitempty"`

	// Staged names the values that are to come, which wait in the Secret, under keys
	// that end in .next, until rotation.accepted names them.
	//
	// +optional
	Staged string `json:"staged,omitempty"`

	// LastRotation is when the values were made: with the Secret, by the last
	// rotation, or, when the Secret is older than that, when it was taken over.
	//
	// +optional
	LastRotation *metav1.Time `json:"lastRotation,omitempty"`

	// NextRotation is when the schedule replaces the values.
	//
	// +optional
	NextRotation *metav1.Time `json:"nextRotation,omitempty"`

	// PreviousUntil is when the replaced values go, and the username before with
	// them.
	//
	// +optional
	PreviousUntil *metav1.Time `json:"previousUntil,omitempty"`
}
