// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RolloutPhase is where a rollout stands.
//
// +kubebuilder:validation:Enum=Bootstrapping;Stable;Preparing;Mirroring;Stepping;Holding;Promoting;Baking;Draining;RollingBack;RolledBack
type RolloutPhase string

// Where a rollout stands.
const (
	// RolloutBootstrapping: nothing has served yet, so that there is nothing to
	// compare with and nothing to lose.
	RolloutBootstrapping RolloutPhase = "Bootstrapping"
	// RolloutStable: callers reach what the spec asks for.
	RolloutStable RolloutPhase = "Stable"
	// RolloutPreparing: replicas of the candidate start. No caller reaches it.
	RolloutPreparing RolloutPhase = "Preparing"
	// RolloutMirroring: copies of requests reach the candidate. No caller gets its answers.
	RolloutMirroring RolloutPhase = "Mirroring"
	// RolloutStepping: a share of callers reaches the candidate.
	RolloutStepping RolloutPhase = "Stepping"
	// RolloutHolding: the share of callers stays as it is, for a reason.
	RolloutHolding RolloutPhase = "Holding"
	// RolloutPromoting: all callers are sent to the candidate.
	RolloutPromoting RolloutPhase = "Promoting"
	// RolloutBaking: all callers reach it, and the revision before stays to take them
	// back.
	RolloutBaking RolloutPhase = "Baking"
	// RolloutDraining: the revision before ends.
	RolloutDraining RolloutPhase = "Draining"
	// RolloutRollingBack: callers are sent back, and the candidate finishes its
	// requests.
	RolloutRollingBack RolloutPhase = "RollingBack"
	// RolloutRolledBack: the spec still asks for a revision that was rolled back.
	RolloutRolledBack RolloutPhase = "RolledBack"
)

// RolloutStatus tells where a rollout stands and why. It is told when spec.lifecycle
// is set.
type RolloutStatus struct {
	// Phase of the rollout.
	Phase RolloutPhase `json:"phase"`

	// Reason in one word, for instance what is being waited for.
	//
	// +optional
	Reason string `json:"reason,omitempty"`

	// Message tells what is going on and, when it holds, what to do.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// Held is the phase that goes on when the reason to hold is gone.
	//
	// +optional
	Held RolloutPhase `json:"held,omitempty"`

	// Epoch counts the transitions between phases.
	Epoch int64 `json:"epoch"`

	// Weight is the share of callers, in percent, that may reach the candidate.
	Weight int32 `json:"weight"`

	// Share of callers, in percent, that reach the candidate by the number of
	// replicas, where no Gateway sends them by weight.
	//
	// +optional
	Share *float64 `json:"share,omitempty"`

	// Stable is the revision that callers go back to.
	//
	// +optional
	Stable string `json:"stable,omitempty"`

	// Candidate is the revision that is tried, that bakes, or that was rolled back.
	//
	// +optional
	Candidate string `json:"candidate,omitempty"`

	// Since tells when the phase began.
	//
	// +optional
	Since *metav1.Time `json:"since,omitempty"`

	// Until tells when time alone changes something: the end of a soak, of a bake, of
	// a freeze, or the deadline of a step.
	//
	// +optional
	Until *metav1.Time `json:"until,omitempty"`

	// Evidence that was gathered about the candidate since the share of callers
	// changed last.
	//
	// +listType=map
	// +listMapKey=name
	// +optional
	Evidence []EvidenceStatus `json:"evidence,omitempty"`

	// LastDecision is the transition that was made last.
	//
	// +optional
	LastDecision *RolloutDecision `json:"lastDecision,omitempty"`

	// Failed are revisions that were rolled back, the latest first.
	//
	// +kubebuilder:validation:MaxItems=10
	// +listType=map
	// +listMapKey=revision
	// +optional
	Failed []FailedRevision `json:"failed,omitempty"`

	// Ledger is the memory of the rollout, for the case that what holds it is lost.
	// It means nothing to people.
	//
	// +optional
	Ledger string `json:"ledger,omitempty"`
}

// EvidenceStatus is one metric of a candidate.
type EvidenceStatus struct {
	// Name of the check.
	Name string `json:"name"`

	// Verdicts of the latest looks, the last one last: P pass, F fail, I insufficient,
	// N no data, E error. Three passes in a row are enough, and two failures.
	//
	// +optional
	Verdicts string `json:"verdicts,omitempty"`

	// Value in the unit of the check.
	//
	// +optional
	Value *float64 `json:"value,omitempty"`

	// Lower bound of the value at a confidence of 95 %.
	//
	// +optional
	Lower *float64 `json:"lower,omitempty"`

	// Upper bound of the value at a confidence of 95 %.
	//
	// +optional
	Upper *float64 `json:"upper,omitempty"`

	// Baseline is the value of the revision before.
	//
	// +optional
	Baseline *float64 `json:"baseline,omitempty"`

	// Samples is the number of requests that the value is made of.
	//
	// +optional
	Samples *int64 `json:"samples,omitempty"`

	// Asked tells the threshold in words.
	//
	// +optional
	Asked string `json:"asked,omitempty"`
}

// RolloutDecision is a transition between two phases.
type RolloutDecision struct {
	// Epoch that began with it.
	Epoch int64 `json:"epoch"`

	// From phase.
	From RolloutPhase `json:"from"`

	// To phase.
	To RolloutPhase `json:"to"`

	// Reason in one word.
	Reason string `json:"reason"`

	// Message tells the numbers that it was decided by.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// At tells when.
	At metav1.Time `json:"at"`
}

// FailedRevision is a revision that was rolled back.
type FailedRevision struct {
	// Revision that failed.
	Revision string `json:"revision"`

	// Reason in one word.
	Reason string `json:"reason"`

	// Message tells the numbers.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// At tells when.
	At metav1.Time `json:"at"`

	// Attempts is how often it was tried.
	Attempts int32 `json:"attempts"`

	// RetryAfter is when spec.lifecycle.retry may try it again.
	RetryAfter metav1.Time `json:"retryAfter"`
}
