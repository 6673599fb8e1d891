// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TrainingCheckpoint is where checkpoints are.
//
// +kubebuilder:validation:XValidation:rule="has(self.claimName) != has(self.claim)",message="set exactly one of claimName, for a claim that exists, and claim, for one of this Training"
type TrainingCheckpoint struct {
	// ClaimName is a PersistentVolumeClaim of this namespace, which outlives the Training. With workers on several nodes it needs the
	// access mode ReadWriteMany.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of an object: lower case letters, digits, '-' and '.', with a letter or digit at both ends"
	// +kubebuilder:example="fraud-checkpoints"
	// +optional
	// +capstan:form:title="Volume for checkpoints",order=70,group=basic
	ClaimName string `json:"claimName,omitempty"`

	// Claim is one that this Training makes. It stays from run to run, also when it is removed from the spec, and is deleted with the
	// Training.
	//
	// +optional
	Claim *ModelCache `json:"claim,omitempty"`

	// Path is the folder of the ranks where the volume appears. Default: /checkpoints.
	//
	// +kubebuilder:default="/checkpoints"
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^/[^:]+$') && self != '/dev/shm'",message="must be an absolute path without ':', other than / and /dev/shm"
	// +kubebuilder:example="/checkpoints"
	// +optional
	Path string `json:"path,omitempty"`

	// SubPath is the folder of the volume that appears. Default: the whole volume.
	//
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !self.matches('(^|/)[.][.](/|$)')",message="must be a relative path without the segment .."
	// +kubebuilder:example="fraud"
	// +optional
	SubPath string `json:"subPath,omitempty"`

	// Complete is a pattern for a file, relative to the folder, that only a complete checkpoint has. The first folder of a match is the
	// checkpoint, and the last number in its name is the step. Default: only checkpoints count that a rank reports in the file of
	// $CAPSTAN_PROGRESS.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !self.matches('(^|/)[.][.](/|$)')",message="must be a relative path without the segment .."
	// +kubebuilder:example="step-*/DONE"
	// +optional
	Complete string `json:"complete,omitempty"`

	// Every is how often the program should write a checkpoint, in whole seconds, from 1s to 24h. Each rank has it as a number of seconds in
	// $CAPSTAN_CHECKPOINT_EVERY. When ranks make steps for three times as long and no checkpoint becomes complete, the condition
	// CheckpointsHealthy is False. Default: the program decides, and no checkpoint is overdue.
	//
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}(s|m|h)){1,3}$') && duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="must be a time from 1s to 24h, for instance 10m"
	// +kubebuilder:example="10m"
	// +optional
	Every *metav1.Duration `json:"every,omitempty"`

	// Keep is the number of complete checkpoints that stay, from 2 to 50. Older ones are removed from the folder while the ranks run, but
	// only ones of this Training: those that a rank reported, or that became complete while its ranks ran. The checkpoint that the ranks
	// began with always stays, and the one before it as long as they may have to go back to it. Default: all stay.
	//
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=50
	// +kubebuilder:example=5
	// +optional
	Keep *int32 `json:"keep,omitempty"`
}

// AccessMode of the volume, which has its default.
func (c *TrainingCheckpoint) AccessMode() corev1.PersistentVolumeAccessMode {
	if c.Claim != nil && len(c.Claim.AccessModes) > 0 {
		return c.Claim.AccessModes[0]
	}
	return corev1.ReadWriteMany
}

// NonFinite is what follows a loss that is not a number.
//
// +kubebuilder:validation:Enum=Restart;Notify
type NonFinite string

// What follows a loss that is not a number, or infinite.
const (
	// NonFiniteRestart starts all ranks again, one checkpoint further back each time.
	NonFiniteRestart NonFinite = "Restart"
	// NonFiniteNotify only reports it.
	NonFiniteNotify NonFinite = "Notify"
)

// TrainingWatch defines how progress is recognised, and what is a fault beside the end of a process. Progress is a step number that grows.
type TrainingWatch struct {
	// Progress is a regular expression in the syntax of RE2 for lines of the output, with the named groups step, loss, of and checkpoint.
	// Only step is required. Lines of JSON in the file of $CAPSTAN_PROGRESS always count. Default: a number after the word step or
	// loss.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:example="step=(?P<step>\\d+) loss=(?P<loss>\\S+)"
	// +optional
	Progress string `json:"progress,omitempty"`

	// Phases are the longest times without progress. After that the run is stalled: the stacks of all ranks are written to the log, and
	// all start again.
	//
	// +optional
	Phases *TrainingPhases `json:"phases,omitempty"`

	// NonFinite is what follows a loss that is not a number or infinite: Restart starts all ranks again from a checkpoint, one further
	// back each time. Notify only reports it. Default: Restart.
	//
	// +kubebuilder:default=Restart
	// +kubebuilder:example=Notify
	// +optional
	NonFinite NonFinite `json:"nonFinite,omitempty"`

	// Faults are patterns of lines that mean a fault. The first that matches decides its class.
	//
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +kubebuilder:example={{"pattern":"CUDA error","class":"Infrastructure"}}
	// +optional
	Faults []TrainingFaultPattern `json:"faults,omitempty"`
}

// TrainingPhases are the longest times without progress, in whole seconds, from 1s to 24h.
type TrainingPhases struct {
	// Setup is the time from the start of the ranks to their first step. Default: 15m.
	//
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}(s|m|h)){1,3}$') && duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="must be a time from 1s to 24h, for instance 15m"
	// +kubebuilder:example="15m"
	// +optional
	Setup *metav1.Duration `json:"setup,omitempty"`

	// Step is the time between two steps. Default: learned, ten times what nearly all steps of the attempt took, from 1m to 30m.
	//
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}(s|m|h)){1,3}$') && duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="must be a time from 1s to 24h, for instance 2m"
	// +kubebuilder:example="2m"
	// +optional
	Step *metav1.Duration `json:"step,omitempty"`

	// Checkpoint is added to step after a line that reports a checkpoint. Default: 10m.
	//
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}(s|m|h)){1,3}$') && duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="must be a time from 1s to 24h, for instance 10m"
	// +kubebuilder:example="10m"
	// +optional
	Checkpoint *metav1.Duration `json:"checkpoint,omitempty"`

	// Finish is the time from the end of the first rank to the end of the last one. Default: 10m.
	//
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}(s|m|h)){1,3}$') && duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="must be a time from 1s to 24h, for instance 10m"
	// +kubebuilder:example="10m"
	// +optional
	Finish *metav1.Duration `json:"finish,omitempty"`
}

// TrainingFaultClass is why an attempt ended.
//
// +kubebuilder:validation:Enum=Infrastructure;Stalled;NonFinite;OutOfMemory;User
type TrainingFaultClass string

// TrainingFaultPattern is a pattern of lines that mean a fault.
type TrainingFaultPattern struct {
	// Pattern is a regular expression in the syntax of RE2.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:example="CUDA error|NCCL WARN.*unhandled"
	Pattern string `json:"pattern"`

	// Class of the fault: Infrastructure, Stalled, NonFinite, OutOfMemory or User. A fault of class User before there was progress ends
	// the Training.
	//
	// +kubebuilder:example=Infrastructure
	Class TrainingFaultClass `json:"class"`
}

// TrainingRetry limits what is tried after faults.
type TrainingRetry struct {
	// WithoutProgress is the number of attempts in a row that may end without progress: a step or a checkpoint beyond the best of the
	// attempts before. After that the Training has failed. Default: 3.
	//
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:example=3
	// +optional
	WithoutProgress *int32 `json:"withoutProgress,omitempty"`

	// Attempts is the number of attempts of a run in all. Those that end because a pod has to go, as when a queue takes it back, do not
	// count. Default: 50.
	//
	// +kubebuilder:default=50
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	// +kubebuilder:example=50
	// +optional
	Attempts *int32 `json:"attempts,omitempty"`

	// Runs is the number of runs in a row that may be lost without progress, because pods or their nodes were. After that the Training
	// has failed. A change takes effect at once and restarts nothing. Default: 2.
	//
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:example=2
	// +optional
	Runs *int32 `json:"runs,omitempty"`
}
