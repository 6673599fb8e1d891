// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/members"
)

// Labels and annotations of the members of a Database.
const (
	// LabelDatabase is the Database of a pod, volume, Secret or ConfigMap.
	LabelDatabase = members.LabelDatabase

	// LabelMember is the member of a pod or volume.
	LabelMember = members.LabelMember

	// LabelIdentity is the identity of the Database of a volume.
	LabelIdentity = "capstan.dev/identity"

	// LabelVolume is VolumeWAL on a volume of the write-ahead log. Volumes of data do not have it.
	LabelVolume = "capstan.dev/volume"

	// VolumeWAL is the value of LabelVolume.
	VolumeWAL = "wal"

	// LabelRole is RoleLabelLeader or RoleLabelReplica on the pod of a running member. Members set it themselves: a new
	// leader first removes RoleLabelLeader from all others.
	LabelRole = members.LabelRole

	// LabelScope is the scope, by which members find their objects.
	LabelScope = members.LabelScope

	// AnnotationMember is the report of a member about itself, a MemberReport in JSON.
	AnnotationMember = members.AnnotationReport

	// AnnotationRelease allows the deletion of a data volume or Secret when its value is the name of the object.
	AnnotationRelease = "capstan.dev/release"
)

// Values of LabelRole.
const (
	RoleLabelLeader  = members.RoleLeader
	RoleLabelReplica = members.RoleReplica
)

// MemberReport is the report of a member about itself, in AnnotationMember.
type MemberReport = members.Report

// MemberFenceReport is what became of the last request to stop a member.
type MemberFenceReport = members.MemberFenceReport

// ReinitializeReport is what became of the last request to copy a member again.
type ReinitializeReport = members.ReinitializeReport

// QueriesReport says how the queries of a member do.
type QueriesReport = members.QueriesReport

// QueryFailure is why a query fails.
type QueryFailure = members.QueryFailure

// A Topology is the quiet observer of a Database. It reports the leader and the state and place of the members, from
// the objects that members keep in the API server. Its status changes only when a fact changes. Its deletion waits
// until no member is left. Then it removes the objects that members leave behind, but never a volume or a Secret that
// gives access to one. Each Database composes one.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,managed,capstan}
// +kubebuilder:printcolumn:name="Synced",type=string,JSONPath=`.status.conditions[?(@.type=="Synced")].status`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Leader",type=string,JSONPath=`.status.atProvider.leader`
// +kubebuilder:printcolumn:name="Timeline",type=integer,JSONPath=`.status.atProvider.timeline`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.atProvider.phase`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Topology struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what to observe.
	Spec TopologySpec `json:"spec"`

	// Status is the observed state.
	//
	// +optional
	Status TopologyStatus `json:"status,omitempty"`
}

// TopologyList is a list of Topologies.
//
// +kubebuilder:object:root=true
type TopologyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Topology `json:"items"`
}

// TopologySpec is what to observe.
type TopologySpec struct {
	// ManagementPolicies: a Topology observes, and cleans up when it is deleted. A switchover also needs Create and
	// Update. Default: ["Observe", "Delete"].
	//
	// +kubebuilder:default={"Observe","Delete"}
	// +kubebuilder:validation:XValidation:rule="self.all(p, p != '*' && p != 'LateInitialize')",message="must be Observe, Delete, and Create and Update for a switchover"
	// +kubebuilder:example={"Observe","Delete"}
	// +optional
	ManagementPolicies xpv2.ManagementPolicies `json:"managementPolicies,omitempty"`

	// ForProvider is what to observe.
	ForProvider TopologyParameters `json:"forProvider"`
}

// NodeTerm is a condition on the labels of a node.
type NodeTerm struct {
	// MatchExpressions that the labels of a node must all meet.
	//
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	MatchExpressions []NodeRequirement `json:"matchExpressions"`
}

// NodeRequirement is an expression about one label of a node.
type NodeRequirement struct {
	// Key of the label.
	//
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:example="example.org/disk"
	Key string `json:"key"`

	// Operator between the label and the values, as in a NodeSelectorRequirement of core/v1.
	//
	// +kubebuilder:validation:Enum=In;NotIn;Exists;DoesNotExist;Gt;Lt
	// +kubebuilder:example=In
	Operator corev1.NodeSelectorOperator `json:"operator"`

	// Values of the label. Exists and DoesNotExist take none, Gt and Lt a whole number.
	//
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=atomic
	// +kubebuilder:example={"nvme"}
	// +optional
	Values []string `json:"values,omitempty"`
}

// TopologyParameters are what to observe.
//
// +kubebuilder:validation:XValidation:rule="!has(self.removeSecrets) || self.removeSecrets.all(s, s.startsWith(self.database.split('.')[0] + '-'))",fieldPath=".removeSecrets",message="removeSecrets must begin with the name of the database (up to its first dot) and '-'"
type TopologyParameters struct {
	// Database whose members are observed: pods of this namespace whose label capstan.dev/database has this value. It
	// is the name of the Database; a later generation adds a dot and its number, for instance orders-db.g2.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:example="orders-db"
	Database string `json:"database"`

	// Scope of the members' objects: the ConfigMaps <scope>-leader, <scope>-config and <scope>-failover, and <scope>-sync
	// for PostgreSQL. It is empty until the Database has an identity.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$')",message="must be lower case letters, digits, '-' and '.'"
	// +kubebuilder:example="orders-db-3f2a9c1b"
	// +optional
	Scope string `json:"scope,omitempty"`

	// Members that should exist.
	//
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	// +kubebuilder:example={"orders-db-a","orders-db-b","orders-db-c"}
	// +optional
	Members []string `json:"members,omitempty"`

	// NodeSelector of the members' pods. Nodes without these labels do not count for zones and nodes of the status.
	// Default: every node counts.
	//
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 317 && self[k].size() <= 63)",message="must be labels of nodes"
	// +kubebuilder:example={"example.org/pool":"databases"}
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// NodeTerms are conditions of nodes for the members' pods. Nodes that meet none of them do not count for zones and nodes
	// of the status. Default: every node counts.
	//
	// +kubebuilder:validation:MaxItems=4
	// +listType=atomic
	// +optional
	NodeTerms []NodeTerm `json:"nodeTerms,omitempty"`

	// Tolerations of the members' pods. Nodes with a taint NoSchedule or NoExecute that none of them tolerates do not
	// count for zones and nodes of the status. Default: none.
	//
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +kubebuilder:example={{"key":"dedicated","operator":"Equal","value":"databases","effect":"NoExecute","tolerationSeconds":300}}
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// Hibernated reports whether members are stopped on request, so that missing pods are not a problem. Default:
	// false.
	//
	// +kubebuilder:example=false
	// +optional
	Hibernated bool `json:"hibernated,omitempty"`

	// Switchover promotes another member to leader, once for each ID. It needs the management policies Create and
	// Update.
	//
	// +optional
	Switchover *TopologySwitchover `json:"switchover,omitempty"`

	// RemoveSecrets names Secrets of certificates to remove with the Topology, once no member is left. They can be
	// created again. Each name begins with the name of the Database and a dash. Only Secrets from cert-manager without
	// another owner are removed.
	//
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	// +kubebuilder:example={"orders-db-members"}
	// +optional
	RemoveSecrets []string `json:"removeSecrets,omitempty"`
}

// TopologySwitchover promotes another member to leader.
type TopologySwitchover struct {
	// ID of the request. IDs are recorded in the ConfigMap <scope>-config before the members get the request, so that
	// none is carried out twice, even after a restart.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",message="must be letters, digits, '-', '_' and '.', with a letter or digit at both ends"
	// +kubebuilder:example="2026-11-22-1"
	ID string `json:"id"`

	// From is the leader at the time of the request. If there is another leader already, nothing happens.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be the name of a member"
	// +kubebuilder:example="orders-db-a"
	From string `json:"from"`

	// To is the next leader.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be the name of a member"
	// +kubebuilder:example="orders-db-b"
	To string `json:"to"`
}

// TopologyStatus is the observed state.
type TopologyStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	// AtProvider is the observed state.
	//
	// +optional
	AtProvider TopologyObservation `json:"atProvider,omitempty"`
}

// Phases of a Topology.
const (
	// TopologyEmpty: there is no member.
	TopologyEmpty = "Empty"
	// TopologyBootstrapping: there has never been a leader.
	TopologyBootstrapping = "Bootstrapping"
	// TopologyRunning: there is a leader, and all expected members are standbys.
	TopologyRunning = "Running"
	// TopologyDegraded: there is a leader, and a member is missing.
	TopologyDegraded = "Degraded"
	// TopologyNoLeader: there is no leader, and there was one.
	TopologyNoLeader = "NoLeader"
)

// Roles of a member.
const (
	RoleLeader      = "Leader"
	RoleSyncStandby = "SyncStandby"
	RoleReplica     = "Replica"
)

// States of a member.
const (
	// MemberRunning: it is the leader.
	MemberRunning = "Running"
	// MemberStreaming: it replicates from the leader.
	MemberStreaming = "Streaming"
	// MemberStarting: it starts, is copied, or recovers.
	MemberStarting = "Starting"
	// MemberStopped: its server does not run.
	MemberStopped = "Stopped"
	// MemberFailed: it cannot start.
	MemberFailed = "Failed"
	// MemberUnknown: it has not reported.
	MemberUnknown = "Unknown"
)

// Classes of lag.
const (
	// LagInSync: less than 1 MiB behind.
	LagInSync = "InSync"
	// LagBehind: less than 64 MiB behind.
	LagBehind = "Behind"
	// LagFarBehind: more.
	LagFarBehind = "FarBehind"
	// LagUnknown: unknown.
	LagUnknown = "Unknown"
)

// TopologyObservation is the observed state.
type TopologyObservation struct {
	// Phase: Empty, Bootstrapping, Running, Degraded or NoLeader.
	//
	// +optional
	Phase string `json:"phase,omitempty"`

	// Leader is the member that takes writes.
	//
	// +optional
	Leader string `json:"leader,omitempty"`

	// Timeline of the leader, which counts its changes; every failover begins another.
	//
	// +optional
	Timeline int64 `json:"timeline,omitempty"`

	// SystemIdentifier of the data, created with them: PostgreSQL's own, or the name of the group of a MySQL.
	//
	// +optional
	SystemIdentifier string `json:"systemIdentifier,omitempty"`

	// Paused reports whether automatic failover is off.
	//
	// +optional
	Paused bool `json:"paused,omitempty"`

	// Zones of the nodes that accept members, sorted; empty if nodes have no zone.
	//
	// +listType=atomic
	// +optional
	Zones []string `json:"zones,omitempty"`

	// Nodes is the number of nodes that accept members, 9 for 9 and more.
	//
	// +optional
	Nodes int32 `json:"nodes,omitempty"`

	// Volumes lists the members with a data volume, expected or not, sorted.
	//
	// +listType=set
	// +optional
	Volumes []string `json:"volumes,omitempty"`

	// Signals to the Database that are in force, sorted by name.
	//
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	Signals []ActiveSignal `json:"signals,omitempty"`

	// Members by name: expected ones, and others that still exist.
	//
	// +listType=map
	// +listMapKey=name
	// +optional
	Members []TopologyMember `json:"members,omitempty"`

	// LastFailover is the latest change of the leader.
	//
	// +optional
	LastFailover *Failover `json:"lastFailover,omitempty"`

	// Backup is the state of archive and backups, if there are backups.
	//
	// +optional
	Backup *BackupReport `json:"backup,omitempty"`

	// Upgrade is the progress of the member that upgrades the data of an earlier major version for this generation.
	//
	// +optional
	Upgrade *UpgradeReport `json:"upgrade,omitempty"`

	// Following is what the leader reports of the archive that the Database follows, if it does.
	//
	// +optional
	Following *FollowReport `json:"following,omitempty"`

	// Import is what the leader reports of the import from another server, if there is one.
	//
	// +optional
	Import *ImportReport `json:"import,omitempty"`

	// RestorePoints are the latest restore points, oldest first.
	//
	// +listType=map
	// +listMapKey=name
	// +optional
	RestorePoints []RestorePoint `json:"restorePoints,omitempty"`

	// Switchovers are the latest requests, oldest first.
	//
	// +listType=map
	// +listMapKey=id
	// +optional
	Switchovers []SwitchoverOutcome `json:"switchovers,omitempty"`
}

// States of a switchover.
const (
	// SwitchoverAsked: the members have the request, and there is no result yet.
	SwitchoverAsked = "Asked"
	// SwitchoverDone: another member is the leader.
	SwitchoverDone = "Done"
	// SwitchoverFailed: the leader did not change.
	SwitchoverFailed = "Failed"
)

// SwitchoverOutcome is the result of one switchover.
type SwitchoverOutcome struct {
	// ID of the request.
	ID string `json:"id"`

	// State: Asked, Done or Failed.
	State string `json:"state"`

	// From is the leader at the time of the request.
	//
	// +optional
	From string `json:"from,omitempty"`

	// To is the requested or the new leader.
	//
	// +optional
	To string `json:"to,omitempty"`

	// At is when the members got the request.
	At metav1.Time `json:"at"`

	// Message has details.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// TopologyMember is the state of one member.
type TopologyMember struct {
	// Name of the member, without the ordinal of its pod.
	Name string `json:"name"`

	// Role: Leader, SyncStandby or Replica; empty if it is none of them.
	//
	// +optional
	Role string `json:"role,omitempty"`

	// State: Running, Streaming, Starting, Stopped, Failed or Unknown.
	//
	// +optional
	State string `json:"state,omitempty"`

	// Ready reports whether its pod is ready.
	//
	// +optional
	Ready bool `json:"ready,omitempty"`

	// Node that it runs on.
	//
	// +optional
	Node string `json:"node,omitempty"`

	// Zone of the node.
	//
	// +optional
	Zone string `json:"zone,omitempty"`

	// Cordoned reports whether the node accepts no pods.
	//
	// +optional
	Cordoned bool `json:"cordoned,omitempty"`

	// Lag behind the leader: InSync, Behind, FarBehind or Unknown.
	//
	// +optional
	Lag string `json:"lag,omitempty"`

	// PendingRestart lists parameters that wait for a restart, sorted.
	//
	// +listType=atomic
	// +optional
	PendingRestart []string `json:"pendingRestart,omitempty"`

	// Revision of the StatefulSet that created the pod.
	//
	// +optional
	Revision string `json:"revision,omitempty"`

	// Version of the server.
	//
	// +optional
	Version string `json:"version,omitempty"`

	// Disk is how full the volume is: Ok, Low or Full.
	//
	// +optional
	Disk string `json:"disk,omitempty"`

	// VolumeSize is the capacity of the data volume.
	//
	// +optional
	VolumeSize string `json:"volumeSize,omitempty"`

	// Volume is how full the volume is, and of what.
	//
	// +optional
	Volume *VolumeReport `json:"volume,omitempty"`

	// WALDisk is how full the volume of the write-ahead log is, if the member has one: Ok, Low or Full.
	//
	// +optional
	WALDisk string `json:"walDisk,omitempty"`

	// WALVolume is how full that volume is, and of what.
	//
	// +optional
	WALVolume *VolumeReport `json:"walVolume,omitempty"`

	// Reinitialize is what became of the last request to copy the member again.
	//
	// +optional
	Reinitialize *ReinitializeReport `json:"reinitialize,omitempty"`

	// Fence is what became of the last request to stop the member.
	//
	// +optional
	Fence *MemberFenceReport `json:"fence,omitempty"`

	// Queries says how queries for metrics do. There is none as long as the member runs none.
	//
	// +optional
	Queries *QueriesReport `json:"queries,omitempty"`

	// Reason is what blocks the member in one word, for instance ImagePullFailed, Unschedulable, CrashLooping or
	// VolumeOfAnother.
	//
	// +optional
	Reason string `json:"reason,omitempty"`

	// Message explains the reason, and what to do.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// Causes of a change of the leader.
const (
	// CauseSwitchover: it was requested, or the leader stepped down cleanly and is healthy.
	CauseSwitchover = "Switchover"
	// CausePodDeleted: the pod of the leader was deleted, for instance to update it or to drain its node.
	CausePodDeleted = "PodDeleted"
	// CauseNodeLost: the node of the leader is not ready or gone.
	CauseNodeLost = "NodeLost"
	// CauseCrashed: the server of the leader crashed.
	CauseCrashed = "Crashed"
	// CauseUnknown: none of these was observed.
	CauseUnknown = "Unknown"
)

// Failover is a change of the leader.
type Failover struct {
	// At is when the new leader was promoted, or when it was first observed if it does not report that.
	At metav1.Time `json:"at"`

	// From is the previous leader.
	//
	// +optional
	From string `json:"from,omitempty"`

	// To is the new leader.
	To string `json:"to"`

	// Cause in one word: Switchover, PodDeleted, NodeLost, Crashed or Unknown.
	//
	// +optional
	Cause string `json:"cause,omitempty"`
}
