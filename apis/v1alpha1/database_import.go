// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// DatabaseSourceServer is a running server of the same engine, anywhere.
type DatabaseSourceServer struct {
	// Host of the server: a name or an address that members can reach.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?$') || isIP(self)",message="must be the name or the address of a server"
	// +kubebuilder:example="orders.legacy.example"
	Host string `json:"host"`

	// Port of the server. Default: the usual one of the engine, 5432 or 3306.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +kubebuilder:example=5433
	// +optional
	Port *int32 `json:"port,omitempty"`

	// CredentialsSecretRef names a Secret of this namespace with the keys host, username, password, and optionally ca.crt
	// for a private authority. Its host has to be this host, so that the password goes nowhere else. The server has
	// to log the user in by scram-sha-256 (postgres) or caching_sha2_password (mysql). The Secret is read again whenever members connect, so a password can change.
	CredentialsSecretRef LocalReference `json:"credentialsSecretRef"`

	// TLS of connections to the server. VerifyFull: encrypted, and certificate and name are checked. VerifyCA: the name
	// is not checked. Require: encrypted only. Disable: not encrypted, so that the network sees data and password. With
	// mysql only the first two, because a login shows its password to the server. Default: VerifyFull.
	//
	// +kubebuilder:validation:Enum=VerifyFull;VerifyCA;Require;Disable
	// +kubebuilder:default=VerifyFull
	// +kubebuilder:example=Require
	// +optional
	TLS ImportTLS `json:"tls,omitempty"`

	// Databases to import. Default: each of spec.databases, from a database of the same name.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:example={{"name":"orders_db","source":"orders"}}
	// +optional
	Databases []ImportedDatabase `json:"databases,omitempty"`

	// Skip lists what may be left behind: LargeObjects are not copied, UnloggedTables are copied without rows (postgres),
	// StoredObjects, which are views, triggers, routines and events, are not copied (mysql). Default: nothing is copied
	// while the server has them.
	//
	// +kubebuilder:validation:MaxItems=3
	// +listType=set
	// +kubebuilder:example={"LargeObjects"}
	// +optional
	Skip []ImportSkip `json:"skip,omitempty"`
}

// ImportTLS is how connections to a server that is imported are secured.
type ImportTLS string

// How connections are secured.
const (
	ImportVerifyFull ImportTLS = "VerifyFull"
	ImportVerifyCA   ImportTLS = "VerifyCA"
	ImportRequire    ImportTLS = "Require"
	ImportDisable    ImportTLS = "Disable"
)

// ImportSkip is what an import may leave behind.
//
// +kubebuilder:validation:Enum=LargeObjects;UnloggedTables;StoredObjects
type ImportSkip string

// What an import may leave behind.
const (
	ImportSkipLargeObjects   ImportSkip = "LargeObjects"
	ImportSkipUnloggedTables ImportSkip = "UnloggedTables"
	ImportSkipStoredObjects  ImportSkip = "StoredObjects"
)

// ImportedDatabase is a database to import.
type ImportedDatabase struct {
	// Name in spec.databases.
	//
	// +kubebuilder:validation:MaxLength=57
	// +kubebuilder:example="orders_db"
	Name string `json:"name"`

	// Source is the name on the server. Default: the same.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:example="orders"
	// +optional
	Source string `json:"source,omitempty"`
}

// DatabaseCutOver ends an import.
type DatabaseCutOver struct {
	// ID of the request. The ID that a Database is created with is not carried out, so that a copied manifest ends no
	// import; use another ID.
	//
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",message="must be letters, digits, '-', '_' and '.', with a letter or digit at both ends"
	// +kubebuilder:example="2026-11-26-a"
	ID string `json:"id"`

	// StopWrites makes the databases of the source read-only and ends the sessions of their clients, which needs the
	// rights for both. With mysql the whole source becomes read-only, and sessions stay. Without it, the cut-over waits until nothing writes to the source. Default: false.
	//
	// +kubebuilder:example=true
	// +optional
	StopWrites bool `json:"stopWrites,omitempty"`
}

// ImportStatus is the state of a Database with spec.from.server or spec.from.dump.
type ImportStatus struct {
	// Importing reports that the source has not been cut over yet, or that not every dump is restored.
	Importing bool `json:"importing"`

	// Findings are what stands in the way of the import, each with its remedy.
	//
	// +listType=atomic
	// +optional
	Findings []string `json:"findings,omitempty"`

	// CopiedPercent of the tables, or of the bytes of all dumps, in steps of 10.
	//
	// +optional
	CopiedPercent int32 `json:"copiedPercent,omitempty"`

	// LagBytes is how much of the log of the source is not applied, in steps: 0 or a power of 2 of at least 1 MiB.
	//
	// +optional
	LagBytes int64 `json:"lagBytes,omitempty"`

	// GapSeconds is for how long writes are expected to wait at the cut-over. After it, how long they did, without the
	// time until consumers log in.
	//
	// +optional
	GapSeconds int64 `json:"gapSeconds,omitempty"`

	// CutOver is the ID that ended the import.
	//
	// +optional
	CutOver string `json:"cutOver,omitempty"`

	// CutOverAt is when the import ended.
	//
	// +optional
	CutOverAt *metav1.Time `json:"cutOverAt,omitempty"`
}
