// SPDX-License-Identifier: Apache-2.0

package members

// Where members keep what they know of each other, in the API server. These are the places and words of Patroni, which runs
// the members of PostgreSQL. Members of other engines write the same, so that one reader understands both. ConfigMaps are named
// by the scope and a suffix, and have the labels LabelDatabase and LabelScope.
const (
	// AnnotationStatus of a pod is a Status as JSON, written when it changes.
	AnnotationStatus = "status"

	// SuffixLeader: <scope>-leader names the leader.
	SuffixLeader = "leader"
	// AnnotationLeader is the name of the leader's pod, "" while there is none.
	AnnotationLeader = "leader"
	// AnnotationAcquired is when it became the leader, in RFC 3339.
	AnnotationAcquired = "acquireTime"
	// AnnotationTransitions counts the changes of the leader.
	AnnotationTransitions = "transitions"

	// SuffixConfig: <scope>-config is what all members follow. The function composes it, and owns AnnotationConfig.
	SuffixConfig = "config"
	// AnnotationConfig is the text that members follow at run time.
	AnnotationConfig = "config"
	// AnnotationInitialize identifies the data. With it no member begins without data again.
	AnnotationInitialize = "initialize"

	// SuffixFailover: <scope>-failover is a request for another leader: AnnotationLeader is the pod that is to hand over, AnnotationCandidate
	// the pod that is to take over. The leader removes both annotations when it has tried.
	SuffixFailover      = "failover"
	AnnotationCandidate = "member"
)

// Status of a member's server.
type Status struct {
	// State: StateStarting, StateRunning, StateStopping, StateStopped, StateStartFailed or StateCrashed.
	State string `json:"state,omitempty"`
	// Role: StatusPrimary or StatusReplica.
	Role string `json:"role,omitempty"`
	// Timeline counts the changes of the leader. Only the leader reports it.
	Timeline int64 `json:"timeline,omitempty"`
	// Replication is Streaming while a replica follows the leader.
	Replication string `json:"replication_state,omitempty"`
	// Synchronous reports that a commit waits until this replica has it, or until as many others have it as make it safe. Members of
	// PostgreSQL do not report it.
	Synchronous bool `json:"synchronous,omitempty"`
	// Lag of a replica in words: LagInSync, LagBehind or LagFarBehind. Members of PostgreSQL report a position instead.
	Lag string `json:"lag,omitempty"`
	// PendingRestart has the parameters that take effect at the next restart.
	PendingRestart map[string]any `json:"pending_restart_reason,omitempty"`
}

// Words of a Status.
const (
	StateStarting    = "starting"
	StateRunning     = "running"
	StateStopping    = "stopping"
	StateStopped     = "stopped"
	StateCrashed     = "crashed"
	StateStartFailed = "start failed"

	StatusPrimary = "primary"
	StatusReplica = "replica"

	Streaming = "streaming"

	LagInSync    = "InSync"
	LagBehind    = "Behind"
	LagFarBehind = "FarBehind"
)
