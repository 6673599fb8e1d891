// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// RolloutRequests are what a person asks of the rollout of spec.lifecycle. Each names the revision that it is about, as
// status.rollout reports it, so that one that is left in the spec has no effect on the next revision. Only pause is about
// any revision.
type RolloutRequests struct {
	// Pause holds the rollout at its present share of traffic, and no other rollout or experiment begins. It continues
	// when pause is removed, and its step or its bake then lasts as long again. A rollback is always possible, and promote
	// is carried out in spite of it. Default: false.
	//
	// +kubebuilder:example=true
	// +optional
	Pause bool `json:"pause,omitempty"`

	// Approve lists approved revisions: REVISION approves every step, REVISION:WEIGHT approves shares up to this
	// percentage, and 100 is promotion. Entries for other revisions have no effect, so an old entry never approves a
	// new revision.
	//
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=32
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[0-9a-f]{10}(:([1-9]|[1-9][0-9]|100))?$')",message="must be a revision of status.rollout, or one with a weight, for instance 1a2b3c4d5e:50"
	// +listType=set
	// +kubebuilder:example={"1a2b3c4d5e:100"}
	// +optional
	Approve []string `json:"approve,omitempty"`

	// Promote is a revision that gets all traffic without evidence or approval, even in a freeze window or without
	// error budget. It still waits until its replicas are ready and the Gateway has the route, and it bakes.
	//
	// +kubebuilder:validation:MaxLength=10
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9a-f]{10}$')",message="must be a revision of status.rollout, for instance 1a2b3c4d5e"
	// +kubebuilder:example="1a2b3c4d5e"
	// +optional
	Promote string `json:"promote,omitempty"`

	// Abort is a revision to roll back at once.
	//
	// +kubebuilder:validation:MaxLength=10
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9a-f]{10}$')",message="must be a revision of status.rollout, for instance 1a2b3c4d5e"
	// +kubebuilder:example="1a2b3c4d5e"
	// +optional
	Abort string `json:"abort,omitempty"`

	// Retry starts another attempt of a revision that was rolled back: REVISION#ATTEMPT, where 2 is the second attempt.
	// The attempt starts after a cooldown of 10 minutes, which doubles with each attempt up to 6 hours.
	//
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9a-f]{10}#([2-9]|[1-9][0-9]{1,3})$')",message="must be a revision of status.rollout.failed and the number of the attempt, for instance 1a2b3c4d5e#2"
	// +kubebuilder:example="1a2b3c4d5e#2"
	// +optional
	Retry string `json:"retry,omitempty"`
}
