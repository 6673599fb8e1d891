// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Database is a PostgreSQL or MySQL cluster of several members with automatic failover. One member is the leader and takes
// writes, the others are standbys; a standby is promoted as soon as the leader fails. Failover works without Capstan
// and Crossplane. A Database also creates databases, logins and the Secrets to connect with. Its conditions report what
// blocks it and what to do.
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
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$')",fieldPath=".metadata.name",message="must be at most 40 lower case letters, digits and '-', start with a letter and end with a letter or digit, because the names of its members, Services and Secrets begin with it"
type Database struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state.
	Spec DatabaseSpec `json:"spec"`

	// Status is the observed state.
	//
	// +optional
	Status DatabaseStatus `json:"status,omitempty"`
}

// DatabaseList is a list of Databases.
//
// +kubebuilder:object:root=true
type DatabaseList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Database `json:"items"`
}

// Engine of a Database.
//
// +kubebuilder:validation:Enum=postgres;mysql
type Engine string

// Engines of a Database.
const (
	// EnginePostgres is PostgreSQL.
	EnginePostgres Engine = "postgres"
	// EngineMySQL is MySQL with Group Replication.
	EngineMySQL Engine = "mysql"
)

// DatabaseSpec is the desired state of a Database.
//
// +kubebuilder:validation:XValidation:rule="self.engine == 'mysql' || self.version.matches('^[1-9][0-9]{0,2}$')",fieldPath=".version",message="must be a major version, for instance \"17\""
// +kubebuilder:validation:XValidation:rule="self.engine != 'mysql' || self.version.matches('^[1-9][0-9]?[.][0-9]{1,2}$')",fieldPath=".version",message="must be a series of MySQL in quotes, for instance \"9.7\""
// +kubebuilder:validation:XValidation:rule="self.engine != 'mysql' || !has(self.databases) || self.databases.all(d, !(d.name in ['mysql', 'sys', 'information_schema', 'performance_schema']))",fieldPath=".databases",message="must not have mysql, sys, information_schema or performance_schema, which the server itself uses: choose another name"
// +kubebuilder:validation:XValidation:rule="self.engine != 'mysql' || !has(self.consumers) || self.consumers.all(c, !(c.name in ['mysql', 'root', 'capstan-backup', 'capstan-import', 'capstan-member', 'capstan-replication']))",fieldPath=".consumers",message="must not have mysql, root, capstan-backup, capstan-import, capstan-member or capstan-replication, which the members use: choose another name"
// +kubebuilder:validation:XValidation:rule="self.engine != 'mysql' || self.replicas <= 9",fieldPath=".replicas",message="must be at most 9: a group of MySQL has no more members"
// +kubebuilder:validation:XValidation:rule="!(has(self.plan) && has(self.resources))",message="set plan or resources, not both: a plan defines the resources"
// +kubebuilder:validation:XValidation:rule="!has(self.consumers) || self.consumers.all(c, !has(c.database) || (has(self.databases) && self.databases.exists(d, d.name == c.database)))",fieldPath=".consumers",message="database must be one of spec.databases: add it there, or remove it for the first"
// +kubebuilder:validation:XValidation:rule="!has(self.replication) || !has(self.replication.slots) || self.replication.slots.all(c, !has(c.database) || (has(self.databases) && self.databases.exists(d, d.name == c.database)))",fieldPath=".replication.slots",message="database must be one of spec.databases: add it there, or remove it for the first"
// +kubebuilder:validation:XValidation:rule="!has(self.replication) || !has(self.replication.publications) || self.replication.publications.all(c, !has(c.database) || (has(self.databases) && self.databases.exists(d, d.name == c.database)))",fieldPath=".replication.publications",message="database must be one of spec.databases: add it there, or remove it for the first"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.config) || !('wal_level' in oldSelf.config) || oldSelf.config['wal_level'].lowerAscii() != 'logical' || (has(self.config) && 'wal_level' in self.config && self.config['wal_level'].lowerAscii() == 'logical')",fieldPath=".config",message="wal_level cannot change from logical to another value, because a server with replication slots does not start then: keep it; logical only writes a little more"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.walStorage) || has(self.walStorage)",fieldPath=".walStorage",message="cannot be removed: the write-ahead log stays on its volume; make another Database without walStorage and move the data, for instance with spec.from.database"
// +kubebuilder:validation:XValidation:rule="has(self.from) == has(oldSelf.from) && (!has(self.from) || self.from == oldSelf.from)",fieldPath=".from",message="from cannot be changed, added or removed: it is used only when a Database is created; make another Database"
type DatabaseSpec struct {
	// Engine: postgres, or mysql for MySQL with Group Replication. MySQL does not have every field yet: one that it lacks is
	// refused with an alternative (the documentation has a table). It cannot change.
	//
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot be changed: make another Database and move the data"
	// +kubebuilder:example=postgres
	// +capstan:form:title="Engine",order=10,group=basic
	Engine Engine `json:"engine"`

	// Version is the major version of PostgreSQL, such as "17", or the series of MySQL, such as "9.7", in quotes: one of
	// the platform's settings, which also choose the minor version. A higher version requests an upgrade of the data
	// (see upgrade). To cancel the upgrade, set the previous version again before clients are switched.
	//
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:example="17"
	// +capstan:form:title="Version",order=20,group=basic
	Version string `json:"version"`

	// Replicas is the number of members including the leader, from 1 to 10, with MySQL to 9. With 2 or more the Database
	// survives the loss of one member, and every commit is on two members, unless spec.availability changes that. With
	// MySQL every commit is on a majority, so that 3 or 4 members survive the loss of one, 5 or 6 of two, and 2 of none.
	// A change adds or removes members and restarts no other member; volumes of removed members stay.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	// +kubebuilder:example=3
	// +capstan:form:title="Members",order=30,group=basic
	Replicas int32 `json:"replicas"`

	// Storage is the size of each member's volume. You can raise it at any time, even when volumes are full: they grow
	// online if their StorageClass supports it. It cannot shrink.
	//
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('1Gi')) >= 0",message="must be a quantity of at least 1Gi, for instance 50Gi"
	// +kubebuilder:validation:XValidation:rule="!isQuantity(string(self)) || !isQuantity(string(oldSelf)) || quantity(string(self)).compareTo(quantity(string(oldSelf))) >= 0",message="cannot shrink: make another Database of the size you want and move the data"
	// +kubebuilder:example="50Gi"
	// +capstan:form:title="Storage of each member",order=40,group=basic
	Storage resource.Quantity `json:"storage"`

	// StorageGrowth lets volumes grow automatically when data fills them. Default: they grow only when spec.storage is
	// raised.
	//
	// +optional
	StorageGrowth *StorageGrowth `json:"storageGrowth,omitempty"`

	// WALStorage is the size of a second volume of each member, for the write-ahead log alone: the log cannot fill the volume
	// of the data, nor data the volume of the log, and each can have disks of its own. You can raise it at any time. It cannot
	// shrink or be removed. Adding it to a running Database restarts the members one by one, and each moves its log. Default:
	// the log is on the volume of the data.
	//
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('1Gi')) >= 0",message="must be a quantity of at least 1Gi, for instance 20Gi"
	// +kubebuilder:validation:XValidation:rule="!isQuantity(string(self)) || !isQuantity(string(oldSelf)) || quantity(string(self)).compareTo(quantity(string(oldSelf))) >= 0",message="cannot shrink: make another Database of the size you want and move the data"
	// +kubebuilder:example="20Gi"
	// +optional
	WALStorage *resource.Quantity `json:"walStorage,omitempty"`

	// Plan is a size from the platform's settings: CPU, memory, storage class and number of connections. A change
	// restarts the members one by one. Default: the plan default of the settings.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be the name of a plan: lower case letters, digits and '-'"
	// +kubebuilder:example="small"
	// +optional
	Plan string `json:"plan,omitempty"`

	// Resources of each member, instead of a plan. A change restarts the members one by one.
	//
	// +optional
	// +capstan:form:title="Resources of a member",order=50
	Resources *DatabaseResources `json:"resources,omitempty"`

	// Availability defines how members are spread, how fast a failover is, and what a commit waits for.
	//
	// +optional
	// +capstan:form:title="Availability",order=90
	Availability *DatabaseAvailability `json:"availability,omitempty"`

	// Pod restricts the nodes that the Database's pods can run on: members, poolers, the host of a backup volume
	// and Jobs. A change restarts the members one by one. A member whose volume is bound to a node or zone can run only
	// there. A member leaves a lost node after 30 seconds also with a longer toleration. Default: every node without
	// taints.
	//
	// +kubebuilder:example={"nodeSelector":{"example.org/pool":"databases"},"tolerations":{{"key":"dedicated","value":"databases","effect":"NoSchedule"}}}
	// +optional
	Pod *DatabasePod `json:"pod,omitempty"`

	// PodMetadata are labels and annotations of the members' pods, for instance for a service mesh or cost reports. A change
	// restarts the members one by one. Default: only those that Capstan sets.
	//
	// +kubebuilder:validation:XValidation:rule="!has(self.labels) || !('app.kubernetes.io/instance' in self.labels)",message="labels must not have app.kubernetes.io/instance: Capstan selects members by it"
	// +kubebuilder:validation:XValidation:rule="!has(self.annotations) || self.annotations.all(k, !k.startsWith('container.apparmor.security.beta.kubernetes.io/'))",message="annotations must not begin with container.apparmor.security.beta.kubernetes.io/: they lift a restriction"
	// +kubebuilder:example={"labels":{"example.org/team":"orders"}}
	// +optional
	// +capstan:form:hidden
	PodMetadata *PodMetadata `json:"podMetadata,omitempty"`

	// Databases in the server. A database that is removed from the list is not dropped. Default: one with the name of
	// this Database, with _ instead of -.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	Databases []LogicalDatabase `json:"databases,omitempty"`

	// Consumers are the clients of the Database. Each has its own login and a Secret DATABASE-CONSUMER with everything
	// to connect, in the form of the Service Binding Specification. A consumer that is removed from the list can no
	// longer log in; its data stays. Default: one consumer app with access ReadWrite.
	//
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	Consumers []Consumer `json:"consumers,omitempty"`

	// Replication lets consumers read changes of data in the order of commits (change data capture). A change restarts
	// nothing. Default: no slots and no publications.
	//
	// +kubebuilder:example={"publications":{{"name":"orders_changes","allTables":true}}}
	// +optional
	Replication *DatabaseReplication `json:"replication,omitempty"`

	// Credentials define how the logins of consumers are rotated. Default: no rotation.
	//
	// +kubebuilder:example={"rotateEvery":"30d"}
	// +optional
	Credentials *DatabaseCredentials `json:"credentials,omitempty"`

	// Config holds parameters of the server; the documentation lists the supported ones of each engine. Most take effect at once; the
	// others restart the members one by one.
	//
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 63 && k.matches('^[a-z][a-z0-9_.]*$'))",message="names must be names of parameters, for instance work_mem"
	// +kubebuilder:example={"work_mem":"64MB"}
	// +optional
	Config map[string]ParameterValue `json:"config,omitempty"`

	// Extensions to create in each of spec.databases; the platform's settings define which exist. One that needs a
	// library at server start restarts the members one by one. An extension that is removed from the list is not
	// dropped.
	//
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.all(e, e.matches('^[a-z][-a-z0-9_]*$'))",message="must be names of extensions, for instance pg_trgm"
	// +listType=set
	// +kubebuilder:example={"pg_stat_statements"}
	// +optional
	Extensions []string `json:"extensions,omitempty"`

	// Backup defines how the Database is backed up. Default: no backups.
	//
	// +kubebuilder:example={"enabled":true,"schedule":"0 */6 * * *","retention":"30d"}
	// +optional
	// +capstan:form:title="Backups",order=60
	Backup *DatabaseBackup `json:"backup,omitempty"`

	// WorkloadIdentity lets members and Jobs of backups open buckets as a role of the cloud, and not with keys in a Secret: with
	// PostgreSQL only. It counts for every bucket whose connection Secret has no keys, in backup and in from. A change restarts
	// the members one by one. Default: the keys of the connection Secret.
	//
	// +optional
	// +capstan:form:hidden
	WorkloadIdentity *DatabaseWorkloadIdentity `json:"workloadIdentity,omitempty"`

	// From is the initial data of a new Database: the backups of another one, up to the latest or an earlier moment, a
	// running server, or a dump in a bucket. It is used once, when the first member is created, and cannot change.
	// Default: the Database starts empty.
	//
	// +kubebuilder:example={"database":{"name":"orders-db","at":"2026-11-21T08:59:00Z"}}
	// +optional
	From *DatabaseSource `json:"from,omitempty"`

	// Promote ends that a Database with spec.from.backup.follow is a standby: it replays what is archived, begins a
	// timeline of its own and takes writes. It waits as long as the primary archives, so stop the primary first.
	// It cannot be undone.
	//
	// +optional
	// +capstan:form:title="Promote",group=acts
	Promote *DatabasePromotion `json:"promote,omitempty"`

	// CutOver ends the import of a Database with spec.from.server: the last changes of the source are applied, and
	// consumers can log in here. Stop the clients of the source first. It cannot be undone.
	//
	// +optional
	// +capstan:form:title="Cut over",group=acts
	CutOver *DatabaseCutOver `json:"cutOver,omitempty"`

	// Restore restores the data of an earlier moment in place, once for each ID, or undoes that.
	//
	// +optional
	// +capstan:form:title="Restore",group=acts
	Restore *DatabaseRestore `json:"restore,omitempty"`

	// Upgrade holds options of the upgrade that a higher version requests.
	//
	// +optional
	// +capstan:form:hidden
	Upgrade *DatabaseUpgrade `json:"upgrade,omitempty"`

	// Network defines which clients can connect. A change restarts nothing. Default: every pod of this namespace.
	//
	// +optional
	Network *DatabaseNetwork `json:"network,omitempty"`

	// TLS defines which issuer signs the certificate that clients see. Connections are always encrypted.
	//
	// +optional
	// +capstan:form:hidden
	TLS *DatabaseTLS `json:"tls,omitempty"`

	// Pooler adds connection poolers (PgBouncer) in front of the leader. They accept more clients than the server, and
	// clients wait in them while the leader changes. Consumers log in there as they do in the server, and their Secrets
	// get the keys pooler-host and pooler-uri. Default: no pooler.
	//
	// +optional
	// +capstan:form:title="Pooler",order=100
	Pooler *DatabasePooler `json:"pooler,omitempty"`

	// Expose makes the Database reachable from outside the cluster through a load balancer: the poolers if there are
	// any, otherwise the leader. Default: not reachable from outside.
	//
	// +optional
	Expose *DatabaseExpose `json:"expose,omitempty"`

	// Monitoring defines what is measured.
	//
	// +optional
	// +capstan:form:hidden
	Monitoring *DatabaseMonitoring `json:"monitoring,omitempty"`

	// Logs defines what the logs of members and poolers look like.
	//
	// +optional
	// +capstan:form:hidden
	Logs *DatabaseLogs `json:"logs,omitempty"`

	// Maintenance defines when healthy members can be restarted. Default: at any time, one after the other.
	//
	// +optional
	Maintenance *DatabaseMaintenance `json:"maintenance,omitempty"`

	// Switchover promotes another member to leader, once for each ID.
	//
	// +optional
	// +capstan:form:title="Switchover",group=acts
	Switchover *DatabaseSwitchover `json:"switchover,omitempty"`

	// Reinitialize copies a standby again from the leader, or with MySQL from any member of the group, once for each ID,
	// when its data is in doubt. Its own data is removed first, so that one copy less exists meanwhile.
	//
	// +optional
	// +capstan:form:title="Copy a standby again",group=acts
	Reinitialize *DatabaseReinitialize `json:"reinitialize,omitempty"`

	// Fence keeps a standby stopped for as long as this field is there: its server ends, its volume stays as it is, and its
	// pod runs, for a look at its data. The others continue, and the member is not promoted. Without the field it starts
	// again and follows.
	//
	// +optional
	Fence *DatabaseFence `json:"fence,omitempty"`

	// Hibernated stops all members, the leader last, and keeps all data, Secrets and Services. Set back to false, the
	// last leader starts first and the others follow. Default: false.
	//
	// +kubebuilder:default=false
	// +kubebuilder:example=false
	// +optional
	// +capstan:form:title="Hibernate",group=acts
	Hibernated bool `json:"hibernated,omitempty"`

	// DeletionProtection makes the API server reject the deletion of the Database and of its namespace. Volumes stay
	// after a deletion in any case. Default: true.
	//
	// +kubebuilder:default=true
	// +kubebuilder:example=true
	// +optional
	// +capstan:form:title="Protect from deletion",order=120,group=advanced
	DeletionProtection *bool `json:"deletionProtection,omitempty"`

	// ImagePullSecrets are Secrets of this namespace with credentials for a private registry. A change restarts the
	// members one by one.
	//
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=name
	// +optional
	ImagePullSecrets []LocalReference `json:"imagePullSecrets,omitempty"`
}

// ParameterValue is the value of a parameter as in the server's configuration file, without quotes.
//
// +kubebuilder:validation:MaxLength=1024
// +kubebuilder:validation:XValidation:rule="!self.matches('[[:cntrl:]]')",message="must not have control characters"
type ParameterValue string

// DatabaseResources of each member.
type DatabaseResources struct {
	// CPU request. There is no limit, because a throttled member would look like a lost one. Default: the request of the plan
	// default.
	//
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('10m')) >= 0",message="must be a quantity of at least 10m, for instance 500m"
	// +kubebuilder:example="2"
	// +optional
	// +capstan:form:title="CPU",order=50,group=advanced
	CPU *resource.Quantity `json:"cpu,omitempty"`

	// Memory request and limit; the sizes of the server's buffers follow from it. MySQL needs at least 768Mi. Default: the
	// memory of the plan default.
	//
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('256Mi')) >= 0",message="must be a quantity of at least 256Mi, for instance 4Gi"
	// +kubebuilder:example="4Gi"
	// +optional
	// +capstan:form:title="Memory",order=55,group=advanced
	Memory *resource.Quantity `json:"memory,omitempty"`

	// HugePages that hold what the processes of the server share, in addition to the memory. Nodes must have them. With
	// PostgreSQL only. A change restarts the members one by one. Default: ordinary pages, a part of the memory.
	//
	// +kubebuilder:example={"size":"2Mi","amount":"8Gi"}
	// +optional
	// +capstan:form:hidden
	HugePages *DatabaseHugePages `json:"hugePages,omitempty"`
}

// DatabaseHugePages of each member.
//
// +kubebuilder:validation:XValidation:rule="!isQuantity(string(self.amount)) || !quantity(string(self.amount)).isInteger() || quantity(string(self.amount)).asInteger() % quantity(self.size).asInteger() == 0",fieldPath=".amount",message="must be a whole number of pages: a multiple of size"
type DatabaseHugePages struct {
	// Size of a page: 2Mi or 1Gi. Default: 2Mi.
	//
	// +kubebuilder:validation:Enum="2Mi";"1Gi"
	// +kubebuilder:default="2Mi"
	// +kubebuilder:example="2Mi"
	// +optional
	Size string `json:"size,omitempty"`

	// Amount for each member, as request and limit. The buffers of the server get what its other shared memory leaves, unless
	// spec.config.shared_buffers is set; too little for them is refused.
	//
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('256Mi')) >= 0",message="must be a quantity of at least 256Mi, for instance 8Gi"
	// +kubebuilder:example="8Gi"
	Amount resource.Quantity `json:"amount"`
}

// DatabasePod is a part of the PodSpec of core/v1.
type DatabasePod struct {
	Scheduling `json:",inline"`

	// Affinity to nodes and to other pods of this namespace, beside the spread of members, which it never weakens.
	//
	// +optional
	// +capstan:form:hidden
	Affinity *DatabaseAffinity `json:"affinity,omitempty"`
}

// MemberSpread is what members are spread over.
//
// +kubebuilder:validation:Enum=Zones;Nodes;None
type MemberSpread string

// What members are spread over.
const (
	// SpreadOverZones: evenly over the zones of the cluster, and over nodes within them.
	SpreadOverZones MemberSpread = "Zones"
	// SpreadOverNodes: evenly over the nodes of the cluster.
	SpreadOverNodes MemberSpread = "Nodes"
	// SpreadAnywhere: the scheduler chooses.
	SpreadAnywhere MemberSpread = "None"
)

// FailoverProfile is how fast a failover is.
//
// +kubebuilder:validation:Enum=Fast;Balanced;Patient
type FailoverProfile string

// How fast a failover is.
const (
	// FailoverFast: a standby is promoted about 20 s after the node of the leader is lost. It needs an API server that
	// responds within 5 s.
	FailoverFast FailoverProfile = "Fast"
	// FailoverBalanced: about 30 s.
	FailoverBalanced FailoverProfile = "Balanced"
	// FailoverPatient: about 90 s, for slow or shared control planes.
	FailoverPatient FailoverProfile = "Patient"
)

// Durability is what a commit waits for.
//
// +kubebuilder:validation:Enum=Synchronous;Strict;Asynchronous
type Durability string

// What a commit waits for.
const (
	// DurabilitySynchronous: the leader and one standby have the commit. While there is no standby, the leader alone.
	DurabilitySynchronous Durability = "Synchronous"
	// DurabilityStrict: the leader and one standby have the commit. While there is no standby, commits wait.
	DurabilityStrict Durability = "Strict"
	// DurabilityAsynchronous: only the leader has the commit. A failover can lose the latest commits.
	DurabilityAsynchronous Durability = "Asynchronous"
)

// DatabaseAvailability defines how members are spread, how fast a failover is, and what a commit waits for.
type DatabaseAvailability struct {
	// Spread of members: Zones, Nodes or None. Zones and Nodes are strict: of three members no two share a zone if
	// there are three zones, and a member stays pending rather than break the rule. Without zones Zones means Nodes. A
	// member with a volume stays where the volume is. A change restarts the members one by one. Default: Zones.
	//
	// +kubebuilder:default=Zones
	// +kubebuilder:example=Zones
	// +optional
	Spread MemberSpread `json:"spread,omitempty"`

	// Profile is how fast a standby is promoted after the leader stops responding: Fast about 20 s, Balanced about 30
	// s, Patient about 90 s; with MySQL about 7, 22 and 38 s. After a clean stop of the leader it takes at most 3 s in every profile. A change restarts
	// nothing. Default: Balanced.
	//
	// +kubebuilder:default=Balanced
	// +kubebuilder:example=Fast
	// +optional
	Profile FailoverProfile `json:"profile,omitempty"`

	// Durability is what a commit waits for: Synchronous, Strict or Asynchronous. It has no effect with one member. A
	// change restarts nothing. Default: Synchronous.
	//
	// +kubebuilder:default=Synchronous
	// +kubebuilder:example=Synchronous
	// +optional
	// +capstan:form:title="When a commit counts",order=90,group=advanced
	Durability Durability `json:"durability,omitempty"`
}

// LogicalDatabase is one database in the server.
type LogicalDatabase struct {
	// Name of the database. In PostgreSQL the role NAME_owner owns it and everything in it.
	//
	// +kubebuilder:validation:MaxLength=48
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z][a-z0-9_]*$') && !(self in ['postgres', 'template0', 'template1', 'capstan']) && !self.startsWith('pg_')",message="must be lower case letters, digits and _, start with a letter but not with pg_, and not be postgres, template0, template1 or capstan"
	// +kubebuilder:example="orders"
	Name string `json:"name"`
}

// ConsumerAccess is what a consumer can do in its database.
//
// +kubebuilder:validation:Enum=ReadWrite;ReadOnly
type ConsumerAccess string

// What a consumer can do in its database.
const (
	// ConsumerReadWrite: everything that the owner of the database can do.
	ConsumerReadWrite ConsumerAccess = "ReadWrite"
	// ConsumerReadOnly: read every table, view and sequence, including future ones.
	ConsumerReadOnly ConsumerAccess = "ReadOnly"
)

// Consumer is a client of the Database with its own login.
type Consumer struct {
	// Name of the consumer. Its login has this name, with _ instead of -. A rotated consumer has a second login with
	// the suffix -b; the two take turns.
	//
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="must be lower case letters, digits and '-', start with a letter and end with a letter or digit"
	// +kubebuilder:validation:XValidation:rule="!(self in ['access', 'ca', 'capstan', 'config', 'exporter', 'external', 'members', 'pods', 'pooler', 'pooler-server', 'postgres', 'public', 'replication', 'rewind', 'ro', 'rw', 'server', 'standby'])",message="must not be a name that Capstan uses itself (access, ca, capstan, config, exporter, external, members, pods, pooler, pooler-server, postgres, public, replication, rewind, ro, rw, server, standby): choose another"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[a-j]$') && !self.startsWith('pg-') && !self.endsWith('-owner') && !self.endsWith('-reader')",message="must not be a letter from a to j (a member), start with pg-, or end in -owner or -reader: choose another"
	// +kubebuilder:example="api"
	Name string `json:"name"`

	// Database to connect to, one of spec.databases. Default: the first.
	//
	// +kubebuilder:validation:MaxLength=48
	// +kubebuilder:example="orders"
	// +optional
	Database string `json:"database,omitempty"`

	// Access: ReadWrite or ReadOnly. The Secret of a ReadOnly consumer points to a standby if there is one. Default:
	// ReadWrite.
	//
	// +kubebuilder:default=ReadWrite
	// +kubebuilder:example=ReadWrite
	// +optional
	Access ConsumerAccess `json:"access,omitempty"`

	// Replication lets the consumer read changes. Its Secret points to the leader, and it cannot use poolers. With
	// PostgreSQL it reads from replication slots, of every table that is published. It can also create slots and drop
	// them, also slots of other consumers. That needs version 17 or later and the parameter wal_level with the value
	// logical. With MySQL it reads the binary logs, with the changes of all databases and the statements that make
	// logins, whose passwords are hashed there. A change restarts nothing. Default: false.
	//
	// +kubebuilder:example=true
	// +optional
	Replication bool `json:"replication,omitempty"`

	// Credentials of this consumer: a field here overrides the same field of spec.credentials.
	//
	// +kubebuilder:example={"id":"leak-1","overlap":"0s"}
	// +optional
	Credentials *DatabaseCredentials `json:"credentials,omitempty"`
}
