// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"

	apisv1alpha1 "github.com/capstan-dev/capstan/apis/v1alpha1"
)

// DatabaseSettings are what a platform team decides for every Database.
type DatabaseSettings struct {
	// Image of the members, with the versions and extensions that come with this
	// version of Capstan. Without a tag it is that of the function's version, which
	// members that run stay away from until something else changes them; another
	// tag or digest is rolled out to all of them. Default:
	// ghcr.io/capstan-dev/postgres.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:example="registry.example.org/capstan-dev/postgres"
	// +optional
	Image string `json:"image,omitempty"`

	// Images that can run instead, for platforms with images of their own. The first
	// one that has the version is taken. Default: image, with what it holds.
	//
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	Images []DatabaseImage `json:"images,omitempty"`

	// Plans that a Database may name. The plan default is for those that name none.
	// Default: default (500m, 1Gi), small, medium and large.
	//
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=name
	// +optional
	Plans []DatabasePlan `json:"plans,omitempty"`

	// IssuerRef names the issuer of cert-manager that signs what clients see.
	// Default: an authority of each Database's own.
	//
	// +kubebuilder:example={"kind": "ClusterIssuer", "name": "platform"}
	// +optional
	IssuerRef *apisv1alpha1.IssuerReference `json:"issuerRef,omitempty"`

	// MetricsNamespaces are those whose pods may scrape members, or * for
	// everybody. Default: monitoring.
	//
	// +kubebuilder:validation:MaxItems=16
	// +listType=set
	// +kubebuilder:example={"monitoring"}
	// +optional
	MetricsNamespaces []string `json:"metricsNamespaces,omitempty"`

	// CrossplaneNamespace is where provider-capstan runs, which connects to every
	// Database to make logins. Default: crossplane-system.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:example="crossplane-system"
	// +optional
	CrossplaneNamespace string `json:"crossplaneNamespace,omitempty"`

	// Backup says where backups go of Databases that do not say.
	//
	// +optional
	Backup DatabaseBackupSettings `json:"backup,omitzero"`
}

// DatabaseBackupSettings are where backups go of Databases that do not say.
type DatabaseBackupSettings struct {
	// To is Bucket where there is object storage, or Volume. A Database keeps what it
	// has been given when this changes. Default: Bucket.
	//
	// +kubebuilder:example="Bucket"
	// +optional
	To BackupDestination `json:"to,omitempty"`

	// StorageClassName of the volumes of backups. Default: that of the members'
	// volumes.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:example="standard"
	// +optional
	StorageClassName string `json:"storageClassName,omitempty"`
}

// BackupDestination is a kind of place that backups go to.
//
// +kubebuilder:validation:Enum=Bucket;Volume
type BackupDestination string

// Kinds of places that backups go to.
const (
	BackupToBucket BackupDestination = "Bucket"
	BackupToVolume BackupDestination = "Volume"
)

// DatabaseImage is an image with one or several versions of an engine.
type DatabaseImage struct {
	// Image of the members. Without a tag it is that of the function's version; see
	// image beside images.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:example="registry.example.org/capstan-dev/postgres:v0.1.0"
	Image string `json:"image"`

	// Engine in the image.
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
	// Version that a Database asks for.
	//
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:example="17"
	Version string `json:"version"`

	// Minor is the whole version, for people.
	//
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:example="17.6"
	// +optional
	Minor string `json:"minor,omitempty"`

	// Extensions that the image has for the version. What PostgreSQL itself comes
	// with has to be named, too.
	//
	// +kubebuilder:validation:MaxItems=128
	// +listType=set
	// +kubebuilder:example={"pg_stat_statements","pg_trgm"}
	// +optional
	Extensions []string `json:"extensions,omitempty"`

	// Preload names extensions whose library PostgreSQL loads at its start.
	//
	// +kubebuilder:validation:MaxItems=32
	// +listType=set
	// +kubebuilder:example={"pg_stat_statements"}
	// +optional
	Preload []string `json:"preload,omitempty"`
}

// DatabasePlan is a size.
type DatabasePlan struct {
	// Name of the plan.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:example="small"
	Name string `json:"name"`

	// CPU that each member requests.
	//
	// +kubebuilder:example="1"
	CPU resource.Quantity `json:"cpu"`

	// Memory that each member requests and that is its limit.
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

	// StorageClassName of the volumes. Default: that of the cluster.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:example="fast"
	// +optional
	StorageClassName string `json:"storageClassName,omitempty"`
}
