// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Database is a PostgreSQL server of several members that fails over by itself:
// one member leads and takes writes, the others follow it, and one of them leads
// as soon as the first cannot. Failover needs nothing of Capstan or Crossplane. A
// Database makes databases in it, logins and the Secrets to connect with, and
// tells in its conditions what hinders it and what to do.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=db,categories={capstan,composite}
// +kubebuilder:printcolumn:name="Engine",type=string,JSONPath=`.spec.engine`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version`
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.spec.replicas`
// +kubebuilder:printcolumn:name="Ready members",type=integer,JSONPath=`.status.readyReplicas`
// +kubebuilder:printcolumn:name="Leader",type=string,JSONPath=`.status.leader`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Available")].reason`
// +kubebuilder:printcolumn:name="Last backup",type=date,JSONPath=`.status.backup.last.at`
// +kubebuilder:printcolumn:name="Endpoint",type=string,JSONPath=`.status.endpoints.readWrite`,priority=1
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$')",fieldPath=".metadata.name",message="must be at most 40 lower case letters, digits and '-', start with a letter and end with a letter or digit, because its members, Services and Secrets carry the name"
type Database struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what an application team asks for.
	Spec DatabaseSpec `json:"spec"`

	// Status is what was seen.
	//
	// +optional
	Status DatabaseStatus `json:"status,omitempty"`
}

// DatabaseList holds many Databases.
//
// +kubebuilder:object:root=true
type DatabaseList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Database `json:"items"`
}

// Engine of a Database.
//
// +kubebuilder:validation:Enum=postgres
type Engine string

// EnginePostgres is PostgreSQL.
const EnginePostgres Engine = "postgres"

// DatabaseSpec is what an application team asks for.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.plan) && has(self.resources))",message="set plan or resources, not both: a plan says what a member gets"
// +kubebuilder:validation:XValidation:rule="!has(self.consumers) || self.consumers.all(c, !has(c.database) || (has(self.databases) && self.databases.exists(d, d.name == c.database)))",fieldPath=".consumers",message="database must be one of spec.databases: add it there, or leave it out for the first"
// +kubebuilder:validation:XValidation:rule="has(self.from) == has(oldSelf.from) && (!has(self.from) || self.from == oldSelf.from)",fieldPath=".from",message="cannot be changed, added or removed: a Database begins once; make another Database"
type DatabaseSpec struct {
	// Engine: postgres. It cannot be changed.
	//
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot be changed: make another Database and move the data"
	// +kubebuilder:example=postgres
	Engine Engine `json:"engine"`

	// Version is the major version. Which there are the platform's settings say; the
	// minor version is the newest of theirs. A higher one asks for an upgrade of the
	// data (see upgrade); setting it back before clients are led over ends that.
	//
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:XValidation:rule="self.matches('^[1-9][0-9]{0,2}$')",message="must be a major version, for instance \"17\""
	// +kubebuilder:example="17"
	Version string `json:"version"`

	// Replicas is the number of members, 1 to 9, the leader counted in. From 2 on
	// the Database survives the loss of one, and from 2 on a commit is on two of
	// them, unless spec.availability says otherwise.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9
	// +kubebuilder:example=3
	Replicas int32 `json:"replicas"`

	// Storage of each member. It can be raised at any time, also when volumes are
	// full: they grow while they are used, where their StorageClass lets them. It
	// cannot shrink.
	//
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('1Gi')) >= 0",message="must be a quantity of at least 1Gi, for instance 50Gi"
	// +kubebuilder:validation:XValidation:rule="!isQuantity(string(self)) || !isQuantity(string(oldSelf)) || quantity(string(self)).compareTo(quantity(string(oldSelf))) >= 0",message="cannot shrink: make another Database of the size you want and move the data"
	// +kubebuilder:example="50Gi"
	Storage resource.Quantity `json:"storage"`

	// StorageGrowth lets volumes grow by themselves when data fills them. Default:
	// they grow only when spec.storage is raised.
	//
	// +optional
	StorageGrowth *StorageGrowth `json:"storageGrowth,omitempty"`

	// Plan is a size of the platform's settings: CPU, memory, class of storage and
	// number of connections. Default: the plan default of the settings.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be the name of a plan: lower case letters, digits and '-'"
	// +kubebuilder:example="small"
	// +optional
	Plan string `json:"plan,omitempty"`

	// Resources of each member, instead of those of a plan.
	//
	// +optional
	Resources *DatabaseResources `json:"resources,omitempty"`

	// Availability says how members are spread, how soon another one leads, and
	// what a commit waits for.
	//
	// +optional
	Availability *DatabaseAvailability `json:"availability,omitempty"`

	// Databases in the server. Default: one with the name of this Database, with _
	// for -. One that is taken out of the list stays.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	Databases []LogicalDatabase `json:"databases,omitempty"`

	// Consumers connect to it. Each has a login of its own, and a Secret of the name
	// <this Database>-<consumer> with all that it takes to connect, in the form of
	// the Service Binding Specification. Default: one of the name app that reads
	// and writes. One that is taken out of the list cannot log in any more; what it
	// made stays.
	//
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	Consumers []Consumer `json:"consumers,omitempty"`

	// Credentials say how the logins of consumers are rotated. Default: they are not.
	//
	// +kubebuilder:example={"rotateEvery":"30d"}
	// +optional
	Credentials *DatabaseCredentials `json:"credentials,omitempty"`

	// Config holds parameters of PostgreSQL, of those that the documentation lists.
	//
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 63 && k.matches('^[a-z][a-z0-9_.]*$'))",message="names must be those of parameters, for instance work_mem"
	// +kubebuilder:example={"work_mem":"64MB"}
	// +optional
	Config map[string]ParameterValue `json:"config,omitempty"`

	// Extensions that are made in each of spec.databases. Which there are the
	// platform's settings say. One that is taken out of the list stays.
	//
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.all(e, e.matches('^[a-z][-a-z0-9_]*$'))",message="must be names of extensions, for instance pg_trgm"
	// +listType=set
	// +kubebuilder:example={"pg_stat_statements"}
	// +optional
	Extensions []string `json:"extensions,omitempty"`

	// Backup says how the Database is backed up. Without it there are no backups.
	//
	// +kubebuilder:example={"enabled":true,"schedule":"0 */6 * * *","retention":"30d"}
	// +optional
	Backup *DatabaseBackup `json:"backup,omitempty"`

	// From is what a new Database begins with, instead of nothing: the backups of
	// another one, to the latest or to a moment. It is looked at once, when the first
	// member is made, and cannot be changed.
	//
	// +kubebuilder:example={"database":{"name":"orders-db","at":"2026-11-21T08:59:00Z"}}
	// +optional
	From *DatabaseSource `json:"from,omitempty"`

	// Restore brings the data of a moment back in place, once for each id, or takes
	// that back.
	//
	// +optional
	Restore *DatabaseRestore `json:"restore,omitempty"`

	// Upgrade is about the upgrade that a higher version asks for.
	//
	// +optional
	Upgrade *DatabaseUpgrade `json:"upgrade,omitempty"`

	// Network says who may connect. By default every pod of this namespace may.
	//
	// +optional
	Network *DatabaseNetwork `json:"network,omitempty"`

	// TLS says who signs the certificate that clients see. Connections are always
	// encrypted.
	//
	// +optional
	TLS *DatabaseTLS `json:"tls,omitempty"`

	// Pooler asks for poolers (PgBouncer) before the leader: more clients than the
	// server takes, and clients that wait while the leader changes. Consumers log in
	// there as they do in the server, and their Secrets have pooler-host and
	// pooler-uri, too. Default: there are none.
	//
	// +optional
	Pooler *DatabasePooler `json:"pooler,omitempty"`

	// Expose lets clients outside the cluster in, by way of a load balancer: to the
	// poolers if there are any, or else to the leader. Default: nobody outside.
	//
	// +optional
	Expose *DatabaseExpose `json:"expose,omitempty"`

	// Monitoring says what is measured.
	//
	// +optional
	Monitoring *DatabaseMonitoring `json:"monitoring,omitempty"`

	// Maintenance says when members that serve may be restarted. By default at any
	// time, one after the other.
	//
	// +optional
	Maintenance *DatabaseMaintenance `json:"maintenance,omitempty"`

	// Switchover moves the lead to another member, once.
	//
	// +optional
	Switchover *DatabaseSwitchover `json:"switchover,omitempty"`

	// Hibernated stops all members, the leader last, and keeps everything. Set back
	// to false, the member that led last begins, and the others follow it.
	//
	// +kubebuilder:default=false
	// +kubebuilder:example=false
	// +optional
	Hibernated bool `json:"hibernated,omitempty"`

	// DeletionProtection refuses to delete the Database, and its namespace stays
	// until it is off. With or without it the volumes stay.
	//
	// +kubebuilder:default=true
	// +kubebuilder:example=true
	// +optional
	DeletionProtection *bool `json:"deletionProtection,omitempty"`

	// ImagePullSecrets name Secrets of this namespace that open a private
	// registry.
	//
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=name
	// +optional
	ImagePullSecrets []LocalReference `json:"imagePullSecrets,omitempty"`
}

// ParameterValue is the value of a parameter as one writes it in postgresql.conf,
// without quotes.
//
// +kubebuilder:validation:MaxLength=1024
// +kubebuilder:validation:XValidation:rule="!self.matches('[[:cntrl:]]')",message="must not have control characters"
type ParameterValue string

// DatabaseResources of each member.
type DatabaseResources struct {
	// CPU that is requested. There is no limit: a throttled member would look like
	// a lost one. Default: that of the plan default.
	//
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('10m')) >= 0",message="must be a quantity of at least 10m, for instance 500m"
	// +kubebuilder:example="2"
	// +optional
	CPU *resource.Quantity `json:"cpu,omitempty"`

	// Memory that is requested and that is the limit; PostgreSQL's buffers follow
	// it. Default: that of the plan default.
	//
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('256Mi')) >= 0",message="must be a quantity of at least 256Mi, for instance 4Gi"
	// +kubebuilder:example="4Gi"
	// +optional
	Memory *resource.Quantity `json:"memory,omitempty"`
}

// MemberSpread says what members are spread over.
//
// +kubebuilder:validation:Enum=Zones;Nodes;None
type MemberSpread string

// What members are spread over.
const (
	// SpreadOverZones: evenly over the zones of the cluster, and over nodes.
	SpreadOverZones MemberSpread = "Zones"
	// SpreadOverNodes: evenly over the nodes of the cluster.
	SpreadOverNodes MemberSpread = "Nodes"
	// SpreadAnywhere: the scheduler chooses.
	SpreadAnywhere MemberSpread = "None"
)

// FailoverProfile says how soon silence counts as a loss.
//
// +kubebuilder:validation:Enum=Fast;Balanced;Patient
type FailoverProfile string

// How soon silence counts as a loss.
const (
	// FailoverFast: about 20 s after a node is lost another member leads. It wants
	// an API server that answers within 5 s.
	FailoverFast FailoverProfile = "Fast"
	// FailoverBalanced: about 30 s.
	FailoverBalanced FailoverProfile = "Balanced"
	// FailoverPatient: about 90 s, for control planes that are slow or shared.
	FailoverPatient FailoverProfile = "Patient"
)

// Durability says what a commit waits for.
//
// +kubebuilder:validation:Enum=Synchronous;Strict;Asynchronous
type Durability string

// What a commit waits for.
const (
	// DurabilitySynchronous: the leader and one other member have it. While there
	// is no other member, the leader alone.
	DurabilitySynchronous Durability = "Synchronous"
	// DurabilityStrict: the leader and one other member have it. While there is no
	// other member, no commit ends.
	DurabilityStrict Durability = "Strict"
	// DurabilityAsynchronous: the leader has it. A failover may lose the last.
	DurabilityAsynchronous Durability = "Asynchronous"
)

// DatabaseAvailability says how members are spread, how soon another one leads,
// and what a commit waits for.
type DatabaseAvailability struct {
	// Spread of members: Zones, Nodes or None. Zones and Nodes are never
	// unbalanced: of three members no two share a zone where there are three, and a
	// member waits rather than break that. On nodes without a zone Zones means
	// Nodes. A member that has its volume keeps the place it has.
	//
	// +kubebuilder:default=Zones
	// +kubebuilder:example=Zones
	// +optional
	Spread MemberSpread `json:"spread,omitempty"`

	// Profile says how soon another member leads after the leader fell silent: Fast
	// about 20 s, Balanced about 30 s, Patient about 90 s. A leader that ends in
	// good order is followed within 3 s in each of them.
	//
	// +kubebuilder:default=Balanced
	// +kubebuilder:example=Fast
	// +optional
	Profile FailoverProfile `json:"profile,omitempty"`

	// Durability says what a commit waits for: Synchronous, Strict or Asynchronous.
	// With one member it says nothing.
	//
	// +kubebuilder:default=Synchronous
	// +kubebuilder:example=Synchronous
	// +optional
	Durability Durability `json:"durability,omitempty"`
}

// LogicalDatabase is one database in the server.
type LogicalDatabase struct {
	// Name of the database. A role of the name <name>_owner owns it and all in it.
	//
	// +kubebuilder:validation:MaxLength=48
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z][a-z0-9_]*$') && !(self in ['postgres', 'template0', 'template1', 'capstan']) && !self.startsWith('pg_')",message="must be lower case letters, digits and _, start with a letter, and be none of postgres, template0, template1, capstan and what starts with pg_"
	// +kubebuilder:example="orders"
	Name string `json:"name"`
}

// ConsumerAccess says what a consumer may do in its database.
//
// +kubebuilder:validation:Enum=ReadWrite;ReadOnly
type ConsumerAccess string

// What a consumer may do in its database.
const (
	// ConsumerReadWrite: whatever the owner of the database may.
	ConsumerReadWrite ConsumerAccess = "ReadWrite"
	// ConsumerReadOnly: read every table, view and sequence, those to come, too.
	ConsumerReadOnly ConsumerAccess = "ReadOnly"
)

// Consumer connects to the Database.
type Consumer struct {
	// Name of the consumer. Its login has this name, with _ for -; one that is rotated
	// has a second login that ends in -b, which takes turns with the first.
	//
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="must be lower case letters, digits and '-', start with a letter and end with a letter or digit"
	// +kubebuilder:validation:XValidation:rule="!(self in ['access', 'ca', 'capstan', 'config', 'exporter', 'external', 'members', 'pods', 'pooler', 'pooler-server', 'postgres', 'public', 'replication', 'rewind', 'ro', 'rw', 'server', 'standby'])",message="is one of the names that Capstan uses itself (access, ca, capstan, config, exporter, external, members, pods, pooler, pooler-server, postgres, public, replication, rewind, ro, rw, server, standby): choose another"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[a-i]$') && !self.startsWith('pg-') && !self.endsWith('-owner') && !self.endsWith('-reader')",message="must be none of a to i, which are members, start with no pg-, and end in neither -owner nor -reader: choose another"
	// +kubebuilder:example="api"
	Name string `json:"name"`

	// Database that it connects to, one of spec.databases. Default: the first.
	//
	// +kubebuilder:validation:MaxLength=48
	// +kubebuilder:example="orders"
	// +optional
	Database string `json:"database,omitempty"`

	// Access: ReadWrite or ReadOnly. The Secret of one that only reads leads to a
	// member that follows, when there is one.
	//
	// +kubebuilder:default=ReadWrite
	// +kubebuilder:example=ReadWrite
	// +optional
	Access ConsumerAccess `json:"access,omitempty"`

	// Credentials of this consumer: what is set here stands instead of the same field
	// of spec.credentials.
	//
	// +kubebuilder:example={"id":"leak-1","overlap":"0s"}
	// +optional
	Credentials *DatabaseCredentials `json:"credentials,omitempty"`
}

// DatabaseNetwork says who may connect.
type DatabaseNetwork struct {
	// From are those who may. An empty list lets nobody in but Capstan.
	//
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +kubebuilder:example={{"namespace":"bi"}}
	From []DatabaseClient `json:"from"`
}

// DatabaseClient is who may connect: pods, or a range of addresses.
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

	// PodLabels that the pods carry. Default: every pod of the namespace.
	//
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 317 && k.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$'))",message="keys must be those of labels, for instance app.kubernetes.io/name"
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

// DatabaseTLS says who signs the certificate that clients see.
type DatabaseTLS struct {
	// IssuerRef names an issuer of cert-manager. Default: that of the platform's
	// settings, or else an authority of this Database's own, whose certificate is
	// in the Secrets of consumers.
	//
	// +optional
	IssuerRef *IssuerReference `json:"issuerRef,omitempty"`
}

// IssuerReference names an issuer of cert-manager.
type IssuerReference struct {
	// Kind: Issuer, of this namespace, or ClusterIssuer.
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

// DatabaseMonitoring says what is measured.
type DatabaseMonitoring struct {
	// Enabled runs an exporter beside each member, and, where the cluster has the
	// Prometheus Operator, lets Prometheus scrape it and alert.
	//
	// +kubebuilder:default=true
	// +kubebuilder:example=true
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
}
