// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// A Run is the quiet observer of a run of a Training: one Job and its pods. It asks the companion of index 0 how the run is going, and
// reports what blocks the pods. Its status changes at once when a fact changes. For progress and new checkpoints it changes after ten
// minutes, or after a minute and a fifth of all steps. Each Training composes one.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,managed,capstan}
// +kubebuilder:printcolumn:name="Synced",type=string,JSONPath=`.status.conditions[?(@.type=="Synced")].status`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Job",type=string,JSONPath=`.spec.forProvider.job`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.atProvider.phase`
// +kubebuilder:printcolumn:name="Attempt",type=integer,JSONPath=`.status.atProvider.attempt`
// +kubebuilder:printcolumn:name="Step",type=integer,JSONPath=`.status.atProvider.progress.step`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Run struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what to observe.
	Spec RunSpec `json:"spec"`

	// Status is the observed state.
	//
	// +optional
	Status RunStatus `json:"status,omitempty"`
}

// RunList is a list of Runs.
//
// +kubebuilder:object:root=true
type RunList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Run `json:"items"`
}

// RunSpec is what to observe.
type RunSpec struct {
	// ManagementPolicies: a Run only observes. Default: ["Observe"].
	//
	// +kubebuilder:default={"Observe"}
	// +kubebuilder:validation:XValidation:rule="self.all(p, p == 'Observe')",message="must be Observe or nothing: a Run changes nothing"
	// +kubebuilder:example={"Observe"}
	// +optional
	ManagementPolicies xpv2.ManagementPolicies `json:"managementPolicies,omitempty"`

	// ForProvider is what to observe.
	ForProvider RunParameters `json:"forProvider"`
}

// RunParameters are what to observe.
type RunParameters struct {
	// Job of this namespace that is observed, with its pods. What is observed of another Job is forgotten.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be the name of a Job: lower case letters, digits and '-'"
	// +kubebuilder:example="fraud-r1"
	Job string `json:"job"`

	// Number of the run that the Job is. Answers for another run are ignored.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:example=1
	Number int32 `json:"number"`
}

// RunStatus is the observed state.
type RunStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	// AtProvider is the observed state.
	//
	// +optional
	AtProvider RunObservation `json:"atProvider,omitempty"`
}

// RunObservation is the observed state of a run.
type RunObservation struct {
	// Job that all other fields are about.
	//
	// +optional
	Job string `json:"job,omitempty"`

	// Number of the run that all other fields are about.
	//
	// +optional
	Number int32 `json:"number,omitempty"`

	// Phase as the coordinator reports it: Gathering, Running, Recovering, Succeeded or Failed. Empty until it has answered.
	//
	// +optional
	Phase string `json:"phase,omitempty"`

	// Attempt is the number of the present or last attempt, from 0.
	//
	// +optional
	Attempt *int32 `json:"attempt,omitempty"`

	// Missing members of the crew, at most 100. While the coordinator itself is missing, it is the only one that is known.
	//
	// +listType=map
	// +listMapKey=index
	// +optional
	Missing []RunMember `json:"missing,omitempty"`

	// Progress of the ranks.
	//
	// +optional
	Progress *RunProgress `json:"progress,omitempty"`

	// Checkpoint is the newest complete one, as of progress.at.
	//
	// +optional
	Checkpoint *RunCheckpoint `json:"checkpoint,omitempty"`

	// OverdueSince is since when no checkpoint became complete, once the ranks have made steps for three times checkpoint.every meanwhile.
	// Absent while none is overdue.
	//
	// +optional
	OverdueSince *metav1.Time `json:"overdueSince,omitempty"`

	// Unremoved is why old checkpoints stay that checkpoint.keep does not count. Absent while none does.
	//
	// +optional
	Unremoved string `json:"unremoved,omitempty"`

	// Restarts counts the attempts after the first.
	//
	// +optional
	Restarts int32 `json:"restarts,omitempty"`

	// PodRestarts counts the pods that were replaced after they failed.
	//
	// +optional
	PodRestarts int32 `json:"podRestarts,omitempty"`

	// WithoutProgress counts the attempts in a row that ended without progress.
	//
	// +optional
	WithoutProgress int32 `json:"withoutProgress,omitempty"`

	// LastFault is why the last attempt ended that did not succeed.
	//
	// +optional
	LastFault *RunFault `json:"lastFault,omitempty"`

	// GoodputPercent is the share of the time since the first attempt that was spent on steps that were kept.
	//
	// +optional
	GoodputPercent *int32 `json:"goodputPercent,omitempty"`

	// Message says why the run failed, with its last lines.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// Silent is why the coordinator does not answer while its pod runs, after three requests. Absent while it does.
	//
	// +optional
	Silent string `json:"silent,omitempty"`

	// Pods says what blocks pods, the most common problem first, in the reasons and words of an Analysis. Absent while nothing does.
	//
	// +optional
	Pods *RunPods `json:"pods,omitempty"`

	// Remains are what is left of a run whose pods should all be gone: a node does not answer. Absent while no pod outlasts its grace period.
	//
	// +optional
	Remains *RunRemains `json:"remains,omitempty"`
}

// RunRemains are pods that are being deleted, and are still there after their grace period.
type RunRemains struct {
	// Members is the number of members that may still run: a pod of theirs has neither ended nor gone.
	Members int32 `json:"members"`
	// Index of the first one whose grace period is over.
	Index int32 `json:"index"`
	// Node that its pod is on.
	//
	// +optional
	Node string `json:"node,omitempty"`
}

// RunMember is a member that is missing.
type RunMember struct {
	// Index of the pod.
	Index int32 `json:"index"`
	// Since when it is missing.
	Since metav1.Time `json:"since"`
}

// RunProgress is how far the ranks are.
type RunProgress struct {
	// Step that was completed.
	Step int64 `json:"step"`
	// Of is the number of steps in all, if it is known.
	//
	// +optional
	Of int64 `json:"of,omitempty"`
	// Loss as it was printed.
	//
	// +optional
	Loss string `json:"loss,omitempty"`
	// StepsPerMinute over the last minutes.
	//
	// +optional
	StepsPerMinute float64 `json:"stepsPerMinute,omitempty"`
	// At is when it was read.
	//
	// +optional
	At *metav1.Time `json:"at,omitempty"`
}

// RunCheckpoint is a complete checkpoint.
type RunCheckpoint struct {
	// Step that it was taken after.
	Step int64 `json:"step"`
	// URI or path.
	URI string `json:"uri"`
	// At is when it became known.
	At metav1.Time `json:"at"`
}

// RunFault ended an attempt.
type RunFault struct {
	// Attempt that it ended.
	Attempt int32 `json:"attempt"`
	// Class: Infrastructure, Stalled, NonFinite, OutOfMemory or User.
	Class string `json:"class"`
	// Index of the pod that was first, -1 when unknown.
	Index int32 `json:"index"`
	// Rank that was first, -1 when the whole pod was lost.
	Rank int32 `json:"rank"`
	// Node of the pod.
	//
	// +optional
	Node string `json:"node,omitempty"`
	// At is when it became known.
	At metav1.Time `json:"at"`
	// Message for people.
	Message string `json:"message"`
}

// RunPods says what blocks the pods of a run.
type RunPods struct {
	// Reason, for instance Unschedulable, ImagePullFailed or OutOfMemory.
	Reason string `json:"reason"`
	// Message for people, with the remedy.
	Message string `json:"message"`
}
