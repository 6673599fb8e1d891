// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "k8s.io/apimachinery/pkg/api/resource"

// PoolerMode is how long a client keeps a connection to the leader.
//
// +kubebuilder:validation:Enum=Transaction;Session
type PoolerMode string

// How long a client keeps a connection to the leader.
const (
	// PoolTransaction: for one transaction. Few connections serve many clients.
	PoolTransaction PoolerMode = "Transaction"
	// PoolSession: for its whole session.
	PoolSession PoolerMode = "Session"
)

// DatabasePooler defines connection poolers in front of the leader, and of the standbys if requested.
type DatabasePooler struct {
	// Mode: Transaction or Session. With Transaction a client keeps a connection to the leader for one transaction. Few
	// connections serve many clients, and clients wait through a clean change of the leader. Features beyond one
	// transaction do not work: SET, LISTEN, WITH HOLD CURSOR, temporary tables, session advisory locks, and PREPARE as
	// a statement; prepared statements of drivers do. With Session all of them work, and connected clients lose their
	// session when the leader changes. Default: Transaction.
	//
	// +kubebuilder:default=Transaction
	// +kubebuilder:example=Transaction
	// +optional
	// +capstan:form:title="Pooler mode",order=100,group=advanced
	Mode PoolerMode `json:"mode,omitempty"`

	// Replicas is the number of pods, 1 to 9. With one, clients have no pooler while its pod moves. Default: 2.
	//
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9
	// +kubebuilder:example=2
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// PoolSize is the maximum number of connections to the server that each pod has for each consumer, 1 to 500. The
	// total, replicas × consumers × poolSize, must not exceed four fifths of the connections of a member; with readOnly
	// it counts twice, because a promoted standby has both for a moment. A change needs no restart. Default: 20, or
	// fewer if the total would be too high.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=500
	// +kubebuilder:example=20
	// +optional
	PoolSize *int32 `json:"poolSize,omitempty"`

	// MaxClients is the maximum number of clients of each pod, 10 to 10000. A change needs no restart. Default: 1000.
	//
	// +kubebuilder:default=1000
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=10000
	// +kubebuilder:example=1000
	// +optional
	MaxClients *int32 `json:"maxClients,omitempty"`

	// ReadOnly adds as many poolers of the same sizes in front of the standbys, behind the Service DATABASE-pooler-ro. The
	// Secrets of ReadOnly consumers point to them. While there is no standby, their clients wait for a minute, then get
	// an error: they never go to the leader. It needs two or more replicas. Default: false.
	//
	// +kubebuilder:example=true
	// +optional
	ReadOnly bool `json:"readOnly,omitempty"`

	// Resources of each pod.
	//
	// +optional
	Resources *PoolerResources `json:"resources,omitempty"`
}

// PoolerResources of each pod.
type PoolerResources struct {
	// CPU request. There is no limit. A pooler uses at most one processor. Default: 100m.
	//
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('10m')) >= 0",message="must be a quantity of at least 10m, for instance 100m"
	// +kubebuilder:example="100m"
	// +optional
	CPU *resource.Quantity `json:"cpu,omitempty"`

	// Memory request and limit. Default: 128Mi, plus 64Ki for each of maxClients above 1000.
	//
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('64Mi')) >= 0",message="must be a quantity of at least 64Mi, for instance 128Mi"
	// +kubebuilder:example="128Mi"
	// +optional
	Memory *resource.Quantity `json:"memory,omitempty"`
}
