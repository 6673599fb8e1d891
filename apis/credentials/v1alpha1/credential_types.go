// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

const (
	// LabelCredential marks a Secret as the external resource of the Credential that it names. A Secret without it is
	// never adopted, changed or deleted.
	LabelCredential = "credentials.capstan.dev/credential"

	// KeyPassword is the key of the generated password in the Secret.
	KeyPassword = "password"

	// SuffixPrevious is the suffix of the key of the value that was replaced last.
	SuffixPrevious = ".previous"

	// SuffixNext is the suffix of the key of the next value, while the server does not accept it yet.
	SuffixNext = ".next"
)

// Annotations of the Secret hold the memory of a Credential, because the Secret outlives it. They are written together
// with their values in one update, so that a crash leaves both or neither.
const (
	// AnnotationIdentity is an identity that is created once, also for objects that outlive the Credential. No rotation
	// changes it.
	AnnotationIdentity = "credentials.capstan.dev/identity"

	// AnnotationRemembered is the text of spec.forProvider.remember.
	AnnotationRemembered = "credentials.capstan.dev/remembered"

	// AnnotationRotatedAt is when the values were created: with the Secret or by the latest rotation. For a Secret that
	// is older, it is when it was adopted. The schedule counts from here.
	AnnotationRotatedAt = "credentials.capstan.dev/rotated-at"

	// AnnotationRotationID is the rotation ID that the values were created for.
	AnnotationRotationID = "credentials.capstan.dev/rotation-id"

	// AnnotationGeneration counts the values so far, where two usernames take turns. Odd numbers belong to the first
	// username.
	AnnotationGeneration = "credentials.capstan.dev/generation"

	// AnnotationStaged names the next values, and AnnotationStagedRotationID the rotation ID that they were created
	// for.
	AnnotationStaged           = "credentials.capstan.dev/staged"
	AnnotationStagedRotationID = "credentials.capstan.dev/staged-rotation-id"

	// AnnotationOverlapUntil is when the previous username stops being valid. It is removed at that time.
	AnnotationOverlapUntil = "credentials.capstan.dev/overlap-until"

	// AnnotationGenerated lists the keys with generated values. They are never generated again, and never removed.
	AnnotationGenerated = "credentials.capstan.dev/generated"

	// AnnotationRendered lists the keys that can be computed from others. They are removed when the spec no longer
	// needs them.
	AnnotationRendered = "credentials.capstan.dev/rendered"
)

// A Credential is one or several generated passwords in a Secret of the same namespace. With a connection, the Secret
// also has everything else that a client needs to connect.
//
// The Secret is the external resource of the Credential. Its name is the external name, by default the name of the
// Credential. It has no owner. It stays when the Credential is deleted, unless managementPolicies include Delete. When
// the Credential is created again, it adopts the Secret and keeps the values.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,managed,capstan}
// +kubebuilder:printcolumn:name="Synced",type=string,JSONPath=`.status.conditions[?(@.type=="Synced")].status`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Secret",type=string,JSONPath=`.status.atProvider.secretName`
// +kubebuilder:printcolumn:name="Rotated",type=date,JSONPath=`.status.atProvider.lastRotation`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="metadata.name: must have at most 63 characters, because it is a label of the Secret"
type Credential struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state of the Secret.
	Spec CredentialSpec `json:"spec"`

	// Status is the observed state of the Secret.
	//
	// +optional
	Status CredentialStatus `json:"status,omitempty"`
}

// CredentialList is a list of Credentials.
//
// +kubebuilder:object:root=true
type CredentialList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Credential `json:"items"`
}

// CredentialSpec is the desired state of the Secret.
type CredentialSpec struct {
	// ManagementPolicies are what the provider can do with the Secret. Default: everything except Delete, so that the
	// Secret stays when the Credential is deleted.
	//
	// +kubebuilder:default={"Observe","Create","Update","LateInitialize"}
	// +kubebuilder:example={"Observe","Create","Update","LateInitialize"}
	// +optional
	ManagementPolicies xpv2.ManagementPolicies `json:"managementPolicies,omitempty"`

	// ForProvider is the desired state of the Secret.
	//
	// +kubebuilder:default={}
	// +optional
	ForProvider CredentialParameters `json:"forProvider,omitempty"`
}

// CredentialParameters are the desired state of the Secret.
//
// +kubebuilder:validation:XValidation:rule="!has(self.keys) || self.keys.all(k, (has(k.alphabet) ? k.alphabet : self.alphabet) != 'Hexadecimal' || (has(k.length) ? k.length : self.length) >= 24)",message="keys: alphabet Hexadecimal needs a length of at least 24, because its characters are 4 bits each: raise length, or choose alphabet Alphanumeric"
// +kubebuilder:validation:XValidation:rule="!has(self.keys) || self.keys.all(k, !has(k.derive) || (has(k.length) ? k.length : self.length) <= 72 || k.derive.all(d, d.format != 'Bcrypt'))",message="keys: format Bcrypt needs a length of at most 72, because it reads no further: lower length, or derive SCRAM-SHA-256"
// +kubebuilder:validation:XValidation:rule="!has(self.connection) || !has(self.keys) || self.keys.exists(k, k.name == 'password')",message="connection: needs a key with the name password: add it to keys"
type CredentialParameters struct {
	// Length of the values in characters, for keys without their own length. An existing value keeps its length until
	// the next rotation. Default: 32.
	//
	// +kubebuilder:default=32
	// +kubebuilder:validation:Minimum=16
	// +kubebuilder:validation:Maximum=128
	// +kubebuilder:example=32
	// +optional
	Length *int32 `json:"length,omitempty"`

	// Alphabet of the values, for keys without their own alphabet. An existing value keeps its alphabet until the next
	// rotation. Default: Alphanumeric.
	//
	// Alphanumeric has letters and digits. Hexadecimal has 0 to 9 and a to f, and needs a length of at least 24.
	// Printable has letters, digits and - . _ ~ and starts with a letter or digit. It has at least one lower case
	// letter, one upper case letter, one digit and one of - . _ ~, for services that require them. No alphabet needs
	// quotes in a URL or a shell. Each has at least 95 bits at its minimum length.
	//
	// +kubebuilder:default=Alphanumeric
	// +kubebuilder:example="Printable"
	// +optional
	Alphabet Alphabet `json:"alphabet,omitempty"`

	// Keys of the Secret with one generated value each, 1 to 16. An added key gets a value. A key that is removed from
	// this list keeps its value in the Secret, is no longer rotated, and is used again if it returns. Default:
	// password.
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

	// Rotation replaces the values on a schedule or on request. Default: they never change.
	//
	// +optional
	Rotation *Rotation `json:"rotation,omitempty"`

	// Connection is everything else that a client needs to connect. With it the Secret follows the Service Binding
	// Specification for Kubernetes 1.1: beside password it has the keys type, provider, host, port, database, username,
	// uri, multi-host-uri, jdbc-url and ca.crt, as far as they have a value. A change rewrites them and keeps the
	// password.
	//
	// +optional
	Connection *Connection `json:"connection,omitempty"`

	// Remember is a text that is kept in an annotation of the Secret and reported in status.atProvider.remembered, even
	// after the Credential was deleted and created again. It is not secret. Default: the existing text stays.
	//
	// +kubebuilder:validation:MaxLength=16384
	// +kubebuilder:example="{\"active\":2}"
	// +optional
	Remember string `json:"remember,omitempty"`
}

// Alphabet of generated values.
//
// +kubebuilder:validation:Enum=Alphanumeric;Hexadecimal;Printable
type Alphabet string

// Alphabets of generated values.
const (
	AlphabetAlphanumeric Alphabet = "Alphanumeric"
	AlphabetHexadecimal  Alphabet = "Hexadecimal"
	AlphabetPrintable    Alphabet = "Printable"
)

// A Key of the Secret with a generated value.
type Key struct {
	// Name of the key in the Secret. It must not end in .previous, which is for the replaced value, and not be a key of
	// a connection.
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

	// Derive computes verifiers from the value, so that a server can check a password without knowing it. A verifier is
	// computed again only when it no longer matches the value.
	//
	// +listType=map
	// +listMapKey=key
	// +kubebuilder:validation:MaxItems=2
	// +optional
	Derive []Derivation `json:"derive,omitempty"`
}

// Format of a derived value.
//
// +kubebuilder:validation:Enum=SCRAM-SHA-256;CachingSHA2;Bcrypt
type Format string

// Formats of derived values.
const (
	FormatSCRAM       Format = "SCRAM-SHA-256"
	FormatCachingSHA2 Format = "CachingSHA2"
	FormatBcrypt      Format = "Bcrypt"
)

// A Derivation of a value.
//
// +kubebuilder:validation:XValidation:rule="!has(self.iterations) || self.format == 'SCRAM-SHA-256'",fieldPath=".iterations",message="iterations are only for format SCRAM-SHA-256: remove them, or set cost"
// +kubebuilder:validation:XValidation:rule="!has(self.cost) || self.format == 'Bcrypt'",fieldPath=".cost",message="cost is only for format Bcrypt: remove it, or set iterations"
type Derivation struct {
	// Format of the derived value. SCRAM-SHA-256 is a verifier that PostgreSQL stores and accepts in place of a
	// password. CachingSHA2 is one of MySQL's caching_sha2_password. Bcrypt is a hash as in htpasswd files; it needs a
	// length of at most 72.
	//
	// +kubebuilder:example="SCRAM-SHA-256"
	Format Format `json:"format"`

	// Key of the Secret for the derived value.
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

	// Cost of Bcrypt, an exponent of two. Default: 10.
	//
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=13
	// +kubebuilder:example=12
	// +optional
	Cost *int32 `json:"cost,omitempty"`
}

// Rotation replaces the values of all keys at once. The replaced values and everything derived from them stay for a
// while, under their keys with the suffix .previous. Until every client has the new values, servers can accept both.
//
// +kubebuilder:validation:XValidation:rule="has(self.every) || has(self.id)",message="rotation: set every, id, or both"
type Rotation struct {
	// Every is how long values are used before they are replaced, in h, m and s, at least 1h. It counts from the
	// creation of the values, or from the adoption of the Secret. A missed rotation happens once. Default: no schedule.
	//
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:XValidation:rule="self != '' && self.matches('^([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,6}s)?$') && duration(self) >= duration('1h')",message="must be a duration of at least 1h in h, m and s, for instance 720h for 30 days"
	// +kubebuilder:example="720h"
	// +optional
	Every string `json:"every,omitempty"`

	// ID requests a rotation: another ID than before replaces the values at once. The ID that a Credential is created
	// with, or adopts its Secret with, replaces nothing. Default: none.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z0-9]([-_.:a-zA-Z0-9]*[a-zA-Z0-9])?$')",message="must be letters, digits, -, _, . and : with a letter or digit at both ends, for instance 2026-11"
	// +kubebuilder:example="2026-11"
	// +optional
	ID string `json:"id,omitempty"`

	// KeepPrevious is how long the replaced values stay after a rotation, in h, m and s, at most 8760h; the next
	// rotation ends it early. 0s keeps none, for leaked values. Where two usernames take turns, the previous one stays
	// valid for the same time. Default: 24h.
	//
	// +kubebuilder:default="24h"
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:XValidation:rule="self != '' && self.matches('^([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,6}s)?$') && duration(self) <= duration('8760h')",message="must be a duration of at most 8760h in h, m and s, for instance 24h"
	// +kubebuilder:example="24h"
	// +optional
	KeepPrevious string `json:"keepPrevious,omitempty"`

	// Accepted names the next values that the server already accepts, as status.atProvider.staged reports them. Where
	// two usernames take turns, nothing is replaced before that. The composition of a Database sets it. Default: none.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:example="8-3f2a9c1b"
	// +optional
	Accepted string `json:"accepted,omitempty"`
}

// CredentialStatus is the observed state of the Secret.
type CredentialStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	// AtProvider is the observed state of the Secret.
	//
	// +optional
	AtProvider CredentialObservation `json:"atProvider,omitempty"`

	// Binding names the Secret if it has a connection. It makes the Credential a Provisioned Service of the Service
	// Binding Specification for Kubernetes.
	//
	// +optional
	Binding *Binding `json:"binding,omitempty"`
}

// Binding names a Secret for the Service Binding Specification.
type Binding struct {
	// Name of the Secret.
	Name string `json:"name"`
}

// CredentialObservation is the observed state of the Secret.
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

	// Identity is 32 hexadecimal digits, created once and kept in the Secret. A Credential that is created again and
	// finds its Secret has the same identity, and no rotation changes it. It distinguishes objects of these values from
	// others with the same name, and is not secret.
	//
	// +optional
	Identity string `json:"identity,omitempty"`

	// Remembered is the text of remember in the Secret, which outlives the Credential.
	//
	// +optional
	Remembered string `json:"remembered,omitempty"`

	// RotationID is the ID that the values were created for.
	//
	// +optional
	RotationID string `json:"rotationID,omitempty"`

	// Generation counts the values so far, where two usernames take turns.
	//
	// +optional
	Generation int64 `json:"generation,omitempty"`

	// Username of the connection in the Secret.
	//
	// +optional
	Username string `json:"username,omitempty"`

	// Staged names the next values, which wait in the Secret under keys that end in .next until rotation.accepted names
	// them.
	//
	// +optional
	Staged string `json:"staged,omitempty"`

	// LastRotation is when the values were created: with the Secret or by the latest rotation. For a Secret that is
	// older, it is when it was adopted.
	//
	// +optional
	LastRotation *metav1.Time `json:"lastRotation,omitempty"`

	// NextRotation is when the schedule replaces the values.
	//
	// +optional
	NextRotation *metav1.Time `json:"nextRotation,omitempty"`

	// PreviousUntil is when the replaced values are removed and the previous username stops being valid.
	//
	// +optional
	PreviousUntil *metav1.Time `json:"previousUntil,omitempty"`
}
