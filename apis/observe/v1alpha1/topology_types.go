// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/members"
)

// Labels and annotations of the members of a Database.
const (
	// LabelDatabase names the Database that a pod, volume, Secret or ConfigMap
	// belongs to.
	LabelDatabase = members.LabelDatabase

	// LabelMember names the member that a pod or volume belongs to.
	LabelMember = members.LabelMember

	// LabelIdentity holds the identity of the Database that a volume belongs to.
	LabelIdentity = "capstan.dev/identity"

	// LabelRole is RoleLabelLeader or RoleLabelReplica on the pod of a member that
	// serves. Members write it themselves: the one that begins to lead takes
	// RoleLabelLeader from all others first.
	LabelRole = members.LabelRole

	// LabelScope is how Patroni finds its own objects: it holds the scope.
	LabelScope = "cluster-name"

	// AnnotationMember is what a member tells of itself, as the JSON of a
	// MemberReport.
	AnnotationMember = members.AnnotationReport

	// AnnotationRelease allows to delete the data volume or Secret that carries it
	// when its value is the object's own name.
	AnnotationRelease = "capstan.dev/release"
)

// Values of LabelRole.
const (
	RoleLabelLeader  = members.RoleLeader
	RoleLabelReplica = members.RoleReplica
)

// MemberReport is what a member tells of itself in AnnotationMember.
type MemberReport = members.Report

// A Topology is the quiet observer of a Database: it tells who leads, where
// members are and how they are, from the objects that members keep in the API
// server. Its status changes only when a fact changes. When it is deleted it
// waits until no member is left, and then removes what members leave behind, but
// never a volume or a Secret that opens one. The Database's composition makes one
// for each Database.
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

	// Spec is what the provider is to observe.
	Spec TopologySpec `json:"spec"`

	// Status is what was seen.
	//
	// +optional
	Status TopologyStatus `json:"status,omitempty"`
}

// TopologyList holds many Topologies.
//
// +kubebuilder:object:root=true
type TopologyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Topology `json:"items"`
}

// TopologySpec says what is observed.
type TopologySpec struct {
	// ManagementPolicies: a Topology observes, and cleans up when it is deleted. For
	// a switchover it takes all four.
	//
	// +kubebuilder:default={"Observe","Delete"}
	// +kubebuilder:validation:XValidation:rule="self.all(p, p != '*' && p != 'LateInitialize')",message="must be Observe, Delete, and Create and Update for a switchover"
	// +kubebuilder:example={"Observe","Delete"}
	// +optional
	ManagementPolicies xpv2.ManagementPolicies `json:"managementPolicies,omitempty"`

	// ForProvider is what the provider is to observe.
	ForProvider TopologyParameters `json:"forProvider"`
}

// TopologyParameters say what is looked at.
//
// +kubebuilder:validation:XValidation:rule="!has(self.removeSecrets) || self.removeSecrets.all(s, s.startsWith(self.database.split('.')[0] + '-'))",fieldPath=".removeSecrets",message="must begin with the name of the database, up to a dot in it, and '-'"
type TopologyParameters struct {
	// Database whose members are looked at: pods of this namespace with the label
	// capstan.dev/database of this value: the name of the Database, and for a later
	// generation of it a dot and the generation, for instance orders-db.g2.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:example="orders-db"
	Database string `json:"database"`

	// Scope that Patroni keeps its objects under: ConfigMaps of the names
	// <scope>-leader, <scope>-config, <scope>-sync and <scope>-failover. Until the
	// Database has an identity there is none.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$')",message="must be lower case letters, digits, '-' and '.'"
	// +kubebuilder:example="orders-db-3f2a9c1b"
	// +optional
	Scope string `json:"scope,omitempty"`

	// Members that there should be.
	//
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	// +kubebuilder:example={"orders-db-a","orders-db-b","orders-db-c"}
	// +optional
	Members []string `json:"members,omitempty"`

	// Hibernated tells that members are stopped on purpose: nobody looks why they
	// are not there.
	//
	// +kubebuilder:example=false
	// +optional
	Hibernated bool `json:"hibernated,omitempty"`

	// Switchover asks the leader to hand over, once for each id. It takes the
	// management policies Create and Update.
	//
	// +optional
	Switchover *TopologySwitchover `json:"switchover,omitempty"`

	// RemoveSecrets names Secrets of certificates that are removed with the
	// Topology, once no member is left. They can be made again. Each name begins
	// with that of the Database and a dash, and only what cert-manager made and
	// nothing else owns is removed.
	//
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	// +kubebuilder:example={"orders-db-members"}
	// +optional
	RemoveSecrets []string `json:"removeSecrets,omitempty"`
}

// TopologySwitchover asks the leader to hand over.
type TopologySwitchover struct {
	// ID of the wish. Which ids were carried out is written down at Patroni's
	// ConfigMap <scope>-config before Patroni is asked, so that none is carried out
	// twice, whatever is stopped or made anew.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",message="must be letters, digits, '-', '_' and '.', with a letter or digit at both ends"
	// +kubebuilder:example="2026-11-22-1"
	ID string `json:"id"`

	// From is the member that leads when it is asked for. When another one does
	// already, there is nothing to be done.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be the name of a member"
	// +kubebuilder:example="orders-db-a"
	From string `json:"from"`

	// To is the member that is to lead.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be the name of a member"
	// +kubebuilder:example="orders-db-b"
	To string `json:"to"`
}

// TopologyStatus is what was seen.
type TopologyStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	// AtProvider is what was seen.
	//
	// +optional
	AtProvider TopologyObservation `json:"atProvider,omitempty"`
}

// Phases of a Topology.
const (
	// TopologyEmpty: there is no member.
	TopologyEmpty = "Empty"
	// TopologyBootstrapping: no member ever led.
	TopologyBootstrapping = "Bootstrapping"
	// TopologyRunning: one leads and all expected members follow.
	TopologyRunning = "Running"
	// TopologyDegraded: one leads and a member is missing.
	TopologyDegraded = "Degraded"
	// TopologyNoLeader: none leads, and one did.
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
	// MemberRunning leads.
	MemberRunning = "Running"
	// MemberStreaming follows the leader.
	MemberStreaming = "Streaming"
	// MemberStarting starts, is copied, or recovers.
	MemberStarting = "Starting"
	// MemberStopped has no server running.
	MemberStopped = "Stopped"
	// MemberFailed cannot start.
	MemberFailed = "Failed"
	// MemberUnknown has not been heard of.
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
	// LagUnknown: it is not known.
	LagUnknown = "Unknown"
)

// TopologyObservation is what was seen.
type TopologyObservation struct {
	// Phase: Empty, Bootstrapping, Running, Degraded or NoLeader.
	//
	// +optional
	Phase string `json:"phase,omitempty"`

	// Leader is the member that leads.
	//
	// +optional
	Leader string `json:"leader,omitempty"`

	// Timeline of the leader; every failover begins another.
	//
	// +optional
	Timeline int64 `json:"timeline,omitempty"`

	// SystemIdentifier that PostgreSQL made with the data.
	//
	// +optional
	SystemIdentifier string `json:"systemIdentifier,omitempty"`

	// Paused tells that automatic failover is off.
	//
	// +optional
	Paused bool `json:"paused,omitempty"`

	// Zones of the cluster's nodes that take pods, sorted; none where nodes have no
	// zone.
	//
	// +listType=atomic
	// +optional
	Zones []string `json:"zones,omitempty"`

	// Nodes is the number of nodes that take pods, 9 for 9 and more.
	//
	// +optional
	Nodes int32 `json:"nodes,omitempty"`

	// Volumes are the members that have a data volume, expected or not, sorted.
	//
	// +listType=set
	// +optional
	Volumes []string `json:"volumes,omitempty"`

	// Members by name, those that are expected and those that are still there.
	//
	// +listType=map
	// +listMapKey=name
	// +optional
	Members []TopologyMember `json:"members,omitempty"`

	// LastFailover is the last change of the leader.
	//
	// +optional
	LastFailover *Failover `json:"lastFailover,omitempty"`

	// Backup tells how archive and backups are, where there are backups.
	//
	// +optional
	Backup *BackupReport `json:"backup,omitempty"`

	// Upgrade tells how far the member is that fills this generation of a Database with
	// the data of one of an earlier major version, or did.
	//
	// +optional
	Upgrade *UpgradeReport `json:"upgrade,omitempty"`

	// RestorePoints that can be restored, the last ones, oldest first.
	//
	// +listType=map
	// +listMapKey=name
	// +optional
	RestorePoints []RestorePoint `json:"restorePoints,omitempty"`

	// Switchovers that were asked for, the last ones, oldest first.
	//
	// +listType=map
	// +listMapKey=id
	// +optional
	Switchovers []SwitchoverOutcome `json:"switchovers,omitempty"`
}

// States of a switchover.
const (
	// SwitchoverAsked: Patroni was asked, and nothing was seen yet.
	SwitchoverAsked = "Asked"
	// SwitchoverDone: another member leads.
	SwitchoverDone = "Done"
	// SwitchoverFailed: the lead did not move.
	SwitchoverFailed = "Failed"
)

// SwitchoverOutcome is what became of one switchover.
type SwitchoverOutcome struct {
	// ID of the wish.
	ID string `json:"id"`

	// State: Asked, Done or Failed.
	State string `json:"state"`

	// From is the member that led when it was asked for.
	//
	// +optional
	From string `json:"from,omitempty"`

	// To is the member that was to lead, or that leads since.
	//
	// +optional
	To string `json:"to,omitempty"`

	// At is when Patroni was asked.
	At metav1.Time `json:"at"`

	// Message says more.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// TopologyMember is one member.
type TopologyMember struct {
	// Name of the member, without the ordinal of its pod.
	Name string `json:"name"`

	// Role: Leader, SyncStandby or Replica; none while it is neither.
	//
	// +optional
	Role string `json:"role,omitempty"`

	// State: Running, Streaming, Starting, Stopped, Failed or Unknown.
	//
	// +optional
	State string `json:"state,omitempty"`

	// Ready tells whether its pod is ready.
	//
	// +optional
	Ready bool `json:"ready,omitempty"`

	// Node it runs on.
	//
	// +optional
	Node string `json:"node,omitempty"`

	// Zone of the node.
	//
	// +optional
	Zone string `json:"zone,omitempty"`

	// Cordoned tells that the node takes no pods.
	//
	// +optional
	Cordoned bool `json:"cordoned,omitempty"`

	// Lag behind the leader: InSync, Behind, FarBehind or Unknown.
	//
	// +optional
	Lag string `json:"lag,omitempty"`

	// PendingRestart names parameters that wait for a restart, sorted.
	//
	// +listType=atomic
	// +optional
	PendingRestart []string `json:"pendingRestart,omitempty"`

	// Revision of the StatefulSet that the pod was made from.
	//
	// +optional
	Revision string `json:"revision,omitempty"`

	// Version of the server.
	//
	// +optional
	Version string `json:"version,omitempty"`

	// Disk tells how full the volume is: Ok, Low or Full.
	//
	// +optional
	Disk string `json:"disk,omitempty"`

	// VolumeSize is the capacity of the data volume.
	//
	// +optional
	VolumeSize string `json:"volumeSize,omitempty"`

	// Volume tells how full the volume is, and by what.
	//
	// +optional
	Volume *VolumeReport `json:"volume,omitempty"`

	// Reason in one word what hinders the member, if anything does, for instance
	// ImagePullFailed, Unschedulable, CrashLooping or VolumeOfAnother.
	//
	// +optional
	Reason string `json:"reason,omitempty"`

	// Message says more about the reason, and what to do.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// Causes of a change of the leader.
const (
	// CauseSwitchover: somebody asked for it, or the member handed over by itself
	// and is well.
	CauseSwitchover = "Switchover"
	// CausePodDeleted: the pod of the member was deleted, for instance to update it
	// or to drain its node.
	CausePodDeleted = "PodDeleted"
	// CauseNodeLost: the node of the member is not ready or gone.
	CauseNodeLost = "NodeLost"
	// CauseCrashed: the server of the member ended by itself.
	CauseCrashed = "Crashed"
	// CauseUnknown: none of these was seen.
	CauseUnknown = "Unknown"
)

// Failover is a change of the leader.
type Failover struct {
	// At is when the new leader took the lead, or was seen first where it does not
	// say so.
	At metav1.Time `json:"at"`

	// From is the member that led before.
	//
	// +optional
	From string `json:"from,omitempty"`

	// To is the member that leads since.
	To string `json:"to"`

	// Cause in one word: Switchover, PodDeleted, NodeLost, Crashed or Unknown.
	//
	// +optional
	Cause string `json:"cause,omitempty"`
}
