// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// PoolerMode says for how long a client has a connection to the leader to itself.
//
// +kubebuilder:validation:Enum=Transaction;Session
type PoolerMode string

// For how long a client has a connection to the leader to itself.
const (
	// PoolTransaction: for one transaction. Few connections serve many clients.
	PoolTransaction PoolerMode = "Transaction"
	// PoolSession: for as long as it is connected.
	PoolSession PoolerMode = "Session"
)

// DatabasePooler asks for poolers before the leader.
type DatabasePooler struct {
	// Mode: Transaction or Session. With Transaction a client has a connection to
	// the leader for one transaction, so that few of them serve many clients, and
	// clients wait while the leader changes in good order. What lasts longer than a
	// transaction does not work then: SET, LISTEN, WITH HOLD CURSOR, temporary
	// tables, advisory locks of a session, and PREPARE as a statement; those that
	// drivers prepare do. With Session all of that works, and clients that are
	// connected lose their session with the leader.
	//
	// +kubebuilder:default=Transaction
	// +kubebuilder:example=Transaction
	// +optional
	Mode PoolerMode `json:"mode,omitempty"`

	// Replicas is the number of pods, 1 to 9. With one, clients have none while it
	// is moved.
	//
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9
	// +kubebuilder:example=2
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// PoolSize is the number of connections to the leader that each pod has at most
	// for each consumer, 1 to 500. All of them together, replicas × consumers ×
	// poolSize, must not be more than four fifths of the connections of a member.
	// Default: 20, or fewer where these would be more than that. A change needs no
	// restart.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=500
	// +kubebuilder:example=20
	// +optional
	PoolSize *int32 `json:"poolSize,omitempty"`

	// MaxClients is the number of clients that each pod takes, 10 to 10000. A change
	// needs no restart.
	//
	// +kubebuilder:default=1000
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=10000
	// +kubebuilder:example=1000
	// +optional
	MaxClients *int32 `json:"maxClients,omitempty"`

	// Resources of each pod.
	//
	// +optional
	Resources *PoolerResources `json:"resources,omitempty"`
}

// PoolerResources of each pod.
type PoolerResources struct {
	// CPU that is requested. There is no limit. A pooler uses one processor at most.
	// Default: 100m.
	//
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('10m')) >= 0",message="must be a quantity of at least 10m, for instance 100m"
	// +kubebuilder:example="100m"
	// +optional
	CPU *resource.Quantity `json:"cpu,omitempty"`

	// Memory that is requested and that is the limit. Default: 128Mi, and 64Ki more
	// for each of maxClients beyond 1000.
	//
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('64Mi')) >= 0",message="must be a quantity of at least 64Mi, for instance 128Mi"
	// +kubebuilder:example="128Mi"
	// +optional
	Memory *resource.Quantity `json:"memory,omitempty"`
}

// TypePooled tells whether poolers take clients. It is told only with spec.pooler.
const TypePooled xpv2.ConditionType = "Pooled"

// Reasons of the condition Pooled.
const (
	// ReasonPooling: every pooler takes clients.
	ReasonPooling xpv2.ConditionReason = "Pooling"
	// ReasonPoolersMissing: some poolers take clients, and others are missing.
	ReasonPoolersMissing xpv2.ConditionReason = "PoolersMissing"
	// ReasonPoolersPending: no pooler takes clients yet, or any more.
	ReasonPoolersPending xpv2.ConditionReason = "PoolersPending"
)
