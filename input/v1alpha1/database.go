// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"

	apisv1alpha1 "github.com/capstan-dev/capstan/apis/v1alpha1"
)

// DatabaseSettings are the choices of a platform team for every Database.
type DatabaseSettings struct {
	// Image of the members of Databases with engine postgres, with the versions and extensions of this version of Capstan. Without a tag it has the tag
	// of the function's version, and the public image its digest, too; running members keep their image until another change restarts them. A change of the
	// tag or digest restarts the members of every Database, one by one. Default: ghcr.io/capstan-dev/postgres.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:example="registry.example.org/capstan-dev/postgres"
	// +optional
	Image string `json:"image,omitempty"`

	// MySQLImage is the image of the members of Databases with engine mysql, as image is for engine postgres.
	// Default: ghcr.io/capstan-dev/mysql.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:example="registry.example.org/capstan-dev/mysql"
	// +optional
	MySQLImage string `json:"mysqlImage,omitempty"`

	// Images to use instead, for platforms with their own images. The first image with the requested version is used. A
	// change restarts the members that use the image, one by one. Default, for an engine that no image has: image or
	// mysqlImage, with its content.
	//
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	Images []DatabaseImage `json:"images,omitempty"`

	// Plans that a Database can name. The plan default is for Databases that name none. A change of a plan restarts the
	// members that use it, one by one. Default: default (500m, 1Gi), small, medium and large.
	//
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=name
	// +optional
	Plans []DatabasePlan `json:"plans,omitempty"`

	// IssuerRef names the issuer of cert-manager for the certificates that clients see. Default: an own authority of
	// each Database.
	//
	// +kubebuilder:example={"kind": "ClusterIssuer", "name": "platform"}
	// +optional
	IssuerRef *apisv1alpha1.IssuerReference `json:"issuerRef,omitempty"`

	// MetricsNamespaces are the namespaces whose pods can scrape members, or * for every namespace. Default:
	// monitoring.
	//
	// +kubebuilder:validation:MaxItems=16
	// +listType=set
	// +kubebuilder:example={"monitoring"}
	// +optional
	MetricsNamespaces []string `json:"metricsNamespaces,omitempty"`

	// CrossplaneNamespace is the namespace of provider-capstan, which connects to every Database to create logins.
	// Default: crossplane-system.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:example="crossplane-system"
	// +optional
	CrossplaneNamespace string `json:"crossplaneNamespace,omitempty"`

	// Backup is where backups go for Databases without spec.backup.to.
	//
	// +optional
	Backup DatabaseBackupSettings `json:"backup,omitzero"`

	// Allowed limits what specs can name beyond their namespace. Default: no limits.
	//
	// +optional
	Allowed AllowedToDatabases `json:"allowed,omitzero"`
}

// DatabaseBackupSettings are where backups go for Databases without spec.backup.to.
type DatabaseBackupSettings struct {
	// To is Bucket, for platforms with object storage, or Volume. A change affects only new Databases. Default: Bucket.
	//
	// +kubebuilder:example="Bucket"
	// +optional
	To BackupDestination `json:"to,omitempty"`

	// StorageClassName of the volumes for backups. Default: the storage class of the members' volumes.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:example="standard"
	// +optional
	StorageClassName string `json:"storageClassName,omitempty"`

	// LeastRate is the rate, in bytes per second, that the slowest backup of a whole member reaches on this platform. A
	// backup may take as long as the data of a Database takes at this rate, but at least 6 hours, and a verification twice
	// as long. A change restarts nothing. Default: 20Mi.
	//
	// +kubebuilder:example="20Mi"
	// +optional
	LeastRate *resource.Quantity `json:"leastRate,omitempty"`
}

// BackupDestination is a kind of destination for backups.
//
// +kubebuilder:validation:Enum=Bucket;Volume
type BackupDestination string

// Kinds of destinations for backups.
const (
	BackupToBucket BackupDestination = "Bucket"
	BackupToVolume BackupDestination = "Volume"
)

// DatabaseImage is an image with one or several versions of an engine.
type DatabaseImage struct {
	// Image of the members. Without a tag it has the tag of the function's version; see image beside images.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:example="registry.example.org/capstan-dev/postgres:v0.1.0"
	Image string `json:"image"`

	// Engine in the image: postgres or mysql. Default: postgres.
	//
	// +kubebuilder:default=postgres
	// +kubebuilder:example=postgres
	// +optional
	Engine apisv1alpha1.Engine `json:"engine,omitempty"`

	// Versions in the image.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=version
	Versions []DatabaseVersion `json:"versions"`
}

// DatabaseVersion is one version in an image.
type DatabaseVersion struct {
	// Version that a Database requests.
	//
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:example="17"
	Version string `json:"version"`

	// Minor is the complete version, for people.
	//
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:example="17.6"
	// +optional
	Minor string `json:"minor,omitempty"`

	// Extensions that the image has for the version, including those that are part of PostgreSQL. MySQL has none.
	//
	// +kubebuilder:validation:MaxItems=128
	// +listType=set
	// +kubebuilder:example={"pg_stat_statements","pg_trgm"}
	// +optional
	Extensions []string `json:"extensions,omitempty"`

	// Preload lists extensions whose library PostgreSQL loads when it starts.
	//
	// +kubebuilder:validation:MaxItems=32
	// +listType=set
	// +kubebuilder:example={"pg_stat_statements"}
	// +optional
	Preload []string `json:"preload,omitempty"`
}

// DatabasePlan is a size of members.
type DatabasePlan struct {
	// Name of the plan.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:example="small"
	Name string `json:"name"`

	// CPU request of each member.
	//
	// +kubebuilder:example="1"
	CPU resource.Quantity `json:"cpu"`

	// Memory request and limit of each member.
	//
	// +kubebuilder:example="2Gi"
	Memory resource.Quantity `json:"memory"`

	// MaxConnections of each member. Default: 100.
	//
	// +kubebuilder:validation:Minimum=20
	// +kubebuilder:validation:Maximum=10000
	// +kubebuilder:example=200
	// +optional
	MaxConnections int32 `json:"maxConnections,omitempty"`

	// StorageClassName of the volumes. Default: the cluster's default class.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:example="fast"
	// +optional
	StorageClassName string `json:"storageClassName,omitempty"`

	// WALStorageClassName is the class of volumes for the write-ahead log (spec.walStorage). Default: StorageClassName. Volumes
	// that exist stay in their class.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:example="fastest"
	// +optional
	WALStorageClassName string `json:"walStorageClassName,omitempty"`
}
