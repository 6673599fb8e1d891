// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RolloutPhase is the phase of a rollout.
//
// +kubebuilder:validation:Enum=Bootstrapping;Stable;Preparing;Mirroring;Stepping;Holding;Promoting;Baking;Draining;RollingBack;RolledBack
type RolloutPhase string

// Phases of a rollout.
const (
	// RolloutBootstrapping: no replica has been ready yet, so there is no live revision to compare with.
	RolloutBootstrapping RolloutPhase = "Bootstrapping"
	// RolloutStable: all traffic goes to the revision that the spec describes.
	RolloutStable RolloutPhase = "Stable"
	// RolloutPreparing: replicas of the candidate start. It gets no traffic.
	RolloutPreparing RolloutPhase = "Preparing"
	// RolloutMirroring: the candidate gets copies of requests. Clients do not receive its responses.
	RolloutMirroring RolloutPhase = "Mirroring"
	// RolloutStepping: the candidate gets a share of the traffic.
	RolloutStepping RolloutPhase = "Stepping"
	// RolloutHolding: the share of traffic stays as it is, for the reason in the status.
	RolloutHolding RolloutPhase = "Holding"
	// RolloutPromoting: all traffic shifts to the candidate.
	RolloutPromoting RolloutPhase = "Promoting"
	// RolloutBaking: the candidate has all traffic, and the previous revision stays ready for a rollback.
	RolloutBaking RolloutPhase = "Baking"
	// RolloutDraining: the previous revision finishes its requests and stops.
	RolloutDraining RolloutPhase = "Draining"
	// RolloutRollingBack: traffic shifts back, and the candidate finishes its requests.
	RolloutRollingBack RolloutPhase = "RollingBack"
	// RolloutRolledBack: the spec still describes a revision that was rolled back.
	RolloutRolledBack RolloutPhase = "RolledBack"
)

// RolloutStatus is the state of a rollout and the reason for it. It exists when spec.lifecycle is set.
type RolloutStatus struct {
	// Phase of the rollout.
	Phase RolloutPhase `json:"phase"`

	// Reason of the phase in one word, for instance what the rollout waits for.
	//
	// +optional
	Reason string `json:"reason,omitempty"`

	// Message explains what happens and, when the rollout holds, what to do.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// Held is the phase that continues when the reason to hold is gone.
	//
	// +optional
	Held RolloutPhase `json:"held,omitempty"`

	// Epoch counts the transitions between phases.
	Epoch int64 `json:"epoch"`

	// Weight is the percentage of traffic that the candidate can get.
	Weight int32 `json:"weight"`

	// Share is the percentage of traffic that the candidate gets by its number of replicas, where no Gateway splits
	// traffic by weight.
	//
	// +optional
	Share *float64 `json:"share,omitempty"`

	// Stable is the revision that a rollback returns to.
	//
	// +optional
	Stable string `json:"stable,omitempty"`

	// Candidate is the revision under test: one that gets a share of traffic, bakes, or was rolled back.
	//
	// +optional
	Candidate string `json:"candidate,omitempty"`

	// PreviewURL is the address of the candidate inside the cluster, from the start of its replicas until all traffic shifts to
	// it. Pods that reach the Algorithm's Service reach this address as well. Empty: there is no candidate.
	//
	// +optional
	PreviewURL string `json:"previewURL,omitempty"`

	// Since is when the phase began.
	//
	// +optional
	Since *metav1.Time `json:"since,omitempty"`

	// Until is when time alone changes something: the end of a soak, of a bake or of a freeze window, or the deadline
	// of a step.
	//
	// +optional
	Until *metav1.Time `json:"until,omitempty"`

	// Measured is which requests the evidence is about.
	//
	// +optional
	Measured string `json:"measured,omitempty"`

	// Evidence about the candidate since the last change of its share of traffic. Values and their bounds change all
	// the time, and are in status.atProvider.canary of the Analysis of the same name.
	//
	// +listType=map
	// +listMapKey=name
	// +optional
	Evidence []EvidenceStatus `json:"evidence,omitempty"`

	// Hooks are the latest runs of hooks.
	//
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	Hooks []RolloutHookStatus `json:"hooks,omitempty"`

	// LastDecision is the latest transition.
	//
	// +optional
	LastDecision *RolloutDecision `json:"lastDecision,omitempty"`

	// Failed lists revisions that were rolled back, the latest first.
	//
	// +kubebuilder:validation:MaxItems=10
	// +listType=map
	// +listMapKey=revision
	// +optional
	Failed []FailedRevision `json:"failed,omitempty"`

	// Ledger is a backup copy of the rollout's state, for the case that the object which holds it is lost. It is only
	// for Capstan itself.
	//
	// +optional
	Ledger string `json:"ledger,omitempty"`
}

// EvidenceStatus is the result of one check of a candidate.
type EvidenceStatus struct {
	// Name of the check.
	Name string `json:"name"`

	// Verdicts of the latest measurements, at most five and the latest last: P pass, F fail, I insufficient, N no data, E error. Three
	// passes in a row pass the check, two failures in a row fail it.
	//
	// +optional
	Verdicts string `json:"verdicts,omitempty"`

	// Samples is the number of requests behind the verdicts, rounded down to a power of ten.
	//
	// +optional
	Samples *int64 `json:"samples,omitempty"`

	// Asked is the threshold in words.
	//
	// +optional
	Asked string `json:"asked,omitempty"`

	// Message is why the check cannot decide, and what to do. It is empty while more requests are all that it needs.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// RolloutDecision is a transition between two phases.
type RolloutDecision struct {
	// Epoch that began with it.
	Epoch int64 `json:"epoch"`

	// From is the phase that ended.
	From RolloutPhase `json:"from"`

	// To is the phase that began.
	To RolloutPhase `json:"to"`

	// Reason of the transition in one word.
	Reason string `json:"reason"`

	// Message has the numbers behind the decision.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// At is the time of the decision.
	At metav1.Time `json:"at"`
}

// FailedRevision is a revision that was rolled back.
type FailedRevision struct {
	// Revision that failed.
	Revision string `json:"revision"`

	// Reason of the rollback in one word.
	Reason string `json:"reason"`

	// Message has the numbers behind the rollback.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// At is the time of the rollback.
	At metav1.Time `json:"at"`

	// Attempts is the number of attempts so far.
	Attempts int32 `json:"attempts"`

	// RetryAfter is when spec.rollout.retry can start the next attempt.
	RetryAfter metav1.Time `json:"retryAfter"`
}
