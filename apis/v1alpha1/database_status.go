// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// DatabaseStatus is the observed state of a Database.
type DatabaseStatus struct {
	xpv2.ConditionedStatus `json:",inline"`

	// Phase in one word: Pending, Creating, Running, Degraded, Down, Updating or Hibernated.
	//
	// +optional
	Phase DatabasePhase `json:"phase,omitempty"`

	// Version that the leader runs, for instance 17.6.
	//
	// +optional
	Version string `json:"version,omitempty"`

	// Replicas is the number of existing members.
	//
	// +optional
	Replicas int32 `json:"replicas"`

	// ReadyReplicas is the number of ready members: the leader and its standbys.
	//
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`

	// Leader is the member that takes writes.
	//
	// +optional
	Leader string `json:"leader,omitempty"`

	// Identity that volumes, Secrets and members have in common. A Database that is deleted and applied again gets its
	// previous identity from its Secrets.
	//
	// +optional
	Identity string `json:"identity,omitempty"`

	// Endpoints to connect to.
	//
	// +optional
	Endpoints *DatabaseEndpoints `json:"endpoints,omitempty"`

	// ConnectionSecrets of the consumers.
	//
	// +listType=map
	// +listMapKey=consumer
	// +optional
	ConnectionSecrets []ConnectionSecret `json:"connectionSecrets,omitempty"`

	// Members and their state.
	//
	// +listType=map
	// +listMapKey=name
	// +optional
	Members []MemberStatus `json:"members,omitempty"`

	// Resilience is what the loss of one thing would do.
	//
	// +optional
	Resilience *Resilience `json:"resilience,omitempty"`

	// Storage is how large and how full the volumes are.
	//
	// +optional
	Storage *StorageStatus `json:"storage,omitempty"`

	// LastFailover is the latest change of the leader.
	//
	// +optional
	LastFailover *FailoverStatus `json:"lastFailover,omitempty"`

	// Change is what Capstan still has to change until the observed state matches the desired state. It is absent if
	// nothing is left to do.
	//
	// +optional
	Change *DatabaseChange `json:"change,omitempty"`

	// Hooks of the current change, in the order in which they run. It is absent without a change.
	//
	// +listType=atomic
	// +optional
	Hooks []HookStatus `json:"hooks,omitempty"`

	// Fence is the result of spec.fence.
	//
	// +optional
	Fence *FenceStatus `json:"fence,omitempty"`

	// Reinitialize is the result of spec.reinitialize.
	//
	// +optional
	Reinitialize *ReinitializeStatus `json:"reinitialize,omitempty"`

	// Switchover is the result of spec.switchover.
	//
	// +optional
	Switchover *SwitchoverStatus `json:"switchover,omitempty"`

	// Generation of the data that clients use, after the first restore or upgrade.
	//
	// +optional
	Generation *GenerationStatus `json:"generation,omitempty"`

	// Upgrade is the result of the latest upgrade to a later major version.
	//
	// +optional
	Upgrade *UpgradeStatus `json:"upgrade,omitempty"`

	// Restore is the result of spec.restore.
	//
	// +optional
	Restore *RestoreStatus `json:"restore,omitempty"`

	// Standby is how a Database with spec.from.backup.follow is.
	//
	// +optional
	Standby *StandbyStatus `json:"standby,omitempty"`

	// Import of a Database with spec.from.server or spec.from.dump.
	//
	// +optional
	Import *ImportStatus `json:"import,omitempty"`

	// Backup is the state of the backups.
	//
	// +optional
	Backup *BackupStatus `json:"backup,omitempty"`

	// Signals from outside that are in force.
	//
	// +listType=map
	// +listMapKey=name
	// +optional
	Signals []SignalStatus `json:"signals,omitempty"`

	// Withheld lists composed objects that the API server has rejected. Capstan does not send them again until the
	// given time, so that one rejection does not block the others.
	//
	// +listType=map
	// +listMapKey=resource
	// +optional
	Withheld []Withheld `json:"withheld,omitempty"`
}

// DatabasePhase is the state of a Database in one word, for people and portals. Conditions have the details.
type DatabasePhase string

// Phases of a Database.
const (
	// DatabasePending: nothing runs yet.
	DatabasePending DatabasePhase = "Pending"
	// DatabaseCreating: members start for the first time.
	DatabaseCreating DatabasePhase = "Creating"
	// DatabaseRunning: there is a leader, and all other members are standbys.
	DatabaseRunning DatabasePhase = "Running"
	// DatabaseUpdating: there is a leader, and a change is in progress.
	DatabaseUpdating DatabasePhase = "Updating"
	// DatabaseDegraded: there is a leader, and other members are missing.
	DatabaseDegraded DatabasePhase = "Degraded"
	// DatabaseDown: there is no leader.
	DatabaseDown DatabasePhase = "Down"
	// DatabaseHibernated: all members are stopped, as spec.hibernated requests.
	DatabaseHibernated DatabasePhase = "Hibernated"
)

// DatabaseEndpoints to connect to, as host and port.
type DatabaseEndpoints struct {
	// ReadWrite is the endpoint of the leader.
	//
	// +optional
	ReadWrite string `json:"readWrite,omitempty"`

	// ReadOnly is the endpoint of the standbys.
	//
	// +optional
	ReadOnly string `json:"readOnly,omitempty"`

	// Pooler is the endpoint of the poolers, which connect to the leader.
	//
	// +optional
	Pooler string `json:"pooler,omitempty"`

	// PoolerReadOnly is the endpoint of the poolers that connect to standbys.
	//
	// +optional
	PoolerReadOnly string `json:"poolerReadOnly,omitempty"`

	// External is the endpoint for clients outside the cluster.
	//
	// +optional
	External string `json:"external,omitempty"`
}

// ConnectionSecret is the Secret of one consumer.
type ConnectionSecret struct {
	// Consumer of spec.consumers.
	Consumer string `json:"consumer"`

	// Secret to connect with.
	Secret string `json:"secret"`

	// Ready reports whether the Secret exists and its login can connect.
	Ready bool `json:"ready"`

	// Generation counts the logins of the Secret, if logins are rotated.
	//
	// +optional
	Generation int64 `json:"generation,omitempty"`

	// Login in the Secret, if logins are rotated.
	//
	// +optional
	Login string `json:"login,omitempty"`

	// RotatesAt is when the schedule replaces the login.
	//
	// +optional
	RotatesAt *metav1.Time `json:"rotatesAt,omitempty"`

	// Retiring is the previous login while it is valid.
	//
	// +optional
	Retiring string `json:"retiring,omitempty"`

	// RetiresAt is when the previous login is disabled at the latest.
	//
	// +optional
	RetiresAt *metav1.Time `json:"retiresAt,omitempty"`
}

// MemberStatus is the state of one member.
type MemberStatus struct {
	// Name of the member.
	Name string `json:"name"`

	// Role: Leader, SyncStandby, Replica, or empty if it is none of them.
	//
	// +optional
	Role string `json:"role,omitempty"`

	// State: Running, Streaming, Starting, Stopped, Failed or Unknown.
	//
	// +optional
	State string `json:"state,omitempty"`

	// Node that it runs on.
	//
	// +optional
	Node string `json:"node,omitempty"`

	// Zone of the node.
	//
	// +optional
	Zone string `json:"zone,omitempty"`

	// Lag behind the leader: InSync, Behind, FarBehind or Unknown.
	//
	// +optional
	Lag string `json:"lag,omitempty"`

	// PendingRestart reports whether a parameter waits for a restart.
	//
	// +optional
	PendingRestart bool `json:"pendingRestart,omitempty"`

	// Updated reports whether it matches the spec.
	//
	// +optional
	Updated bool `json:"updated"`
}

// Resilience is what the loss of one thing would do.
type Resilience struct {
	// Survives lists what can be lost while writes continue or recover without help: member, node, zone.
	//
	// +listType=atomic
	// +optional
	Survives []string `json:"survives,omitempty"`

	// Risks are single losses that would end writes or destroy all backups, each as a sentence.
	//
	// +listType=atomic
	// +optional
	Risks []string `json:"risks,omitempty"`
}

// FailoverStatus is a change of the leader.
type FailoverStatus struct {
	// At is when the new leader was first observed.
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
