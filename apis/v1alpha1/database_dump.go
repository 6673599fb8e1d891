// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// DatabaseSourceDump is what pg_dump wrote, in a bucket.
type DatabaseSourceDump struct {
	// ConnectionSecretRef names the connection Secret of a Bucket of this namespace. A Bucket with the management
	// policy Observe is sufficient, because the bucket is only read.
	ConnectionSecretRef LocalReference `json:"connectionSecretRef"`

	// Databases to fill, each from a dump of one database.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	Databases []DumpedDatabase `json:"databases"`
}

// DumpFormat is how pg_dump wrote a dump.
//
// +kubebuilder:validation:Enum=Custom;Directory;Tar;Plain
type DumpFormat string

// Formats of dumps.
const (
	DumpCustom    DumpFormat = "Custom"
	DumpDirectory DumpFormat = "Directory"
	DumpTar       DumpFormat = "Tar"
	DumpPlain     DumpFormat = "Plain"
)

// DumpedDatabase is a database to fill from a dump.
type DumpedDatabase struct {
	// Name in spec.databases.
	//
	// +kubebuilder:validation:MaxLength=57
	// +kubebuilder:example="orders_db"
	Name string `json:"name"`

	// Path of the dump in the bucket: the key of its file, or for the format Directory what the keys of all its files
	// begin with, before /toc.dat.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=900
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-A-Za-z0-9!_.*()&$@=;:+ ]+(/[-A-Za-z0-9!_.*()&$@=;:+ ]+)*$') && !self.matches('(^|/)[.][.]?(/|$)')",message="must be the key of an object, without '/' at its ends: letters, digits, spaces, '/' and -!_.*()&$@=;:+, and no part that is '.' or '..'"
	// +kubebuilder:example="dumps/orders.dump"
	Path string `json:"path"`

	// Format that the dump has to have: Custom (pg_dump -Fc), Directory (-Fd), Tar (-Ft) or Plain (-Fp, SQL, which may be
	// compressed by gzip). Default: what the dump itself says.
	//
	// +kubebuilder:example=Custom
	// +optional
	Format DumpFormat `json:"format,omitempty"`
}
