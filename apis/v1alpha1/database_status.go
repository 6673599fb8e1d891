// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// DatabaseStatus is what was seen.
type DatabaseStatus struct {
	xpv2.ConditionedStatus `json:",inline"`

	// Phase in one word: Pending, Creating, Running, Degraded, Down, Updating or
	// Hibernated.
	//
	// +optional
	Phase DatabasePhase `json:"phase,omitempty"`

	// Version that the leader runs, for instance 17.6.
	//
	// +optional
	Version string `json:"version,omitempty"`

	// Replicas is the number of members there are.
	//
	// +optional
	Replicas int32 `json:"replicas"`

	// ReadyReplicas is the number of members that lead or follow.
	//
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`

	// Leader is the member that takes writes.
	//
	// +optional
	Leader string `json:"leader,omitempty"`

	// Identity that volumes, Secrets and members have in common. A Database that is
	// applied again and finds its Secrets has the one it had.
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

	// Members and what they do.
	//
	// +listType=map
	// +listMapKey=name
	// +optional
	Members []MemberStatus `json:"members,omitempty"`

	// Resilience tells what the loss of one thing would do.
	//
	// +optional
	Resilience *Resilience `json:"resilience,omitempty"`

	// Storage tells how large and how full volumes are.
	//
	// +optional
	Storage *StorageStatus `json:"storage,omitempty"`

	// LastFailover is the last change of the leader.
	//
	// +optional
	LastFailover *FailoverStatus `json:"lastFailover,omitempty"`

	// Change is what is still to be done until what runs is what is asked for. There
	// is none when nothing is to be done.
	//
	// +optional
	Change *DatabaseChange `json:"change,omitempty"`

	// Hooks of the change that is under way, in the order they are run. There are none
	// when none is.
	//
	// +listType=atomic
	// +optional
	Hooks []HookStatus `json:"hooks,omitempty"`

	// Switchover is what became of spec.switchover.
	//
	// +optional
	Switchover *SwitchoverStatus `json:"switchover,omitempty"`

	// Generation of the data that clients are led to, once there was a
	// restore or an upgrade.
	//
	// +optional
	Generation *GenerationStatus `json:"generation,omitempty"`

	// Upgrade is what became of the last upgrade to a later major version.
	//
	// +optional
	Upgrade *UpgradeStatus `json:"upgrade,omitempty"`

	// Restore is what became of spec.restore.
	//
	// +optional
	Restore *RestoreStatus `json:"restore,omitempty"`

	// Backup tells what backups there are.
	//
	// +optional
	Backup *BackupStatus `json:"backup,omitempty"`

	// Withheld lists composed objects that the API server refused and that are
	// left out until the given time, so that one refusal does not hold up the
	// rest.
	//
	// +listType=map
	// +listMapKey=resource
	// +optional
	Withheld []Withheld `json:"withheld,omitempty"`
}

// DatabasePhase is the state of a Database in one word, for people and portals.
// Conditions tell more.
type DatabasePhase string

// Phases of a Database.
const (
	// DatabasePending: nothing runs yet.
	DatabasePending DatabasePhase = "Pending"
	// DatabaseCreating: members start for the first time.
	DatabaseCreating DatabasePhase = "Creating"
	// DatabaseRunning: one member leads and all others follow.
	DatabaseRunning DatabasePhase = "Running"
	// DatabaseUpdating: one member leads, and a change is under way.
	DatabaseUpdating DatabasePhase = "Updating"
	// DatabaseDegraded: one member leads, and others are missing.
	DatabaseDegraded DatabasePhase = "Degraded"
	// DatabaseDown: no member leads.
	DatabaseDown DatabasePhase = "Down"
	// DatabaseHibernated: all members are stopped, as the spec asks.
	DatabaseHibernated DatabasePhase = "Hibernated"
)

// DatabaseEndpoints to connect to, host and port.
type DatabaseEndpoints struct {
	// ReadWrite leads to the leader.
	//
	// +optional
	ReadWrite string `json:"readWrite,omitempty"`

	// ReadOnly leads to members that follow.
	//
	// +optional
	ReadOnly string `json:"readOnly,omitempty"`

	// Pooler leads to the poolers, which lead to the leader.
	//
	// +optional
	Pooler string `json:"pooler,omitempty"`

	// External leads here from outside the cluster.
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

	// Ready tells whether the Secret is there and its login can connect.
	Ready bool `json:"ready"`

	// Generation counts the logins that the Secret has had, once they are rotated.
	//
	// +optional
	Generation int64 `json:"generation,omitempty"`

	// Login that is in the Secret, once logins are rotated.
	//
	// +optional
	Login string `json:"login,omitempty"`

	// RotatesAt is when the schedule replaces it.
	//
	// +optional
	RotatesAt *metav1.Time `json:"rotatesAt,omitempty"`

	// Retiring is the login before, as long as it is good, and RetiresAt when that
	// ends at the latest.
	//
	// +optional
	Retiring string `json:"retiring,omitempty"`

	// RetiresAt is when the login before is shut out at the latest.
	//
	// +optional
	RetiresAt *metav1.Time `json:"retiresAt,omitempty"`
}

// MemberStatus is one member.
type MemberStatus struct {
	// Name of the member.
	Name string `json:"name"`

	// Role: Leader, SyncStandby, Replica, or none while it is neither.
	//
	// +optional
	Role string `json:"role,omitempty"`

	// State: Running, Streaming, Starting, Stopped, Failed or Unknown.
	//
	// +optional
	State string `json:"state,omitempty"`

	// Node it runs on.
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

	// PendingRestart tells that a parameter waits for a restart.
	//
	// +optional
	PendingRestart bool `json:"pendingRestart,omitempty"`

	// Updated tells whether it runs what the spec asks for.
	//
	// +optional
	Updated bool `json:"updated"`
}

// Resilience tells what the loss of one thing would do.
type Resilience struct {
	// Survives names what may be lost while writes go on or come back by
	// themselves: member, node, zone.
	//
	// +listType=atomic
	// +optional
	Survives []string `json:"survives,omitempty"`

	// Risks are single losses that would end writes, or take all backups, each as a
	// sentence.
	//
	// +listType=atomic
	// +optional
	Risks []string `json:"risks,omitempty"`
}

// FailoverStatus is a change of the leader.
type FailoverStatus struct {
	// At is when the new leader was seen first.
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
