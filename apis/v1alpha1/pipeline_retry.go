// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PipelineRetry defines which failures are tried again. The program starts again in its pod. When the pod is lost, another one follows,
// which does not count.
type PipelineRetry struct {
	// Attempts is how often the program may fail in a row, over all failures without a rule that has attempts of its own. Default: 3.
	//
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	// +kubebuilder:example=5
	// +optional
	Attempts *int32 `json:"attempts,omitempty"`

	// Backoff is the time between two attempts. Default: from 10s to 10m.
	//
	// +optional
	Backoff *PipelineBackoff `json:"backoff,omitempty"`

	// ResetAfter is how long the program has to run until failures before count no more, from 1s to 168h. Default: 1h.
	//
	// +kubebuilder:default="1h"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,3})?(ms|s|m|h)){1,4}$') && duration(self) >= duration('1s') && duration(self) <= duration('168h')",message="must be a time from 1s to 168h, for instance 1h"
	// +kubebuilder:example="1h"
	// +optional
	ResetAfter *metav1.Duration `json:"resetAfter,omitempty"`

	// Rules for failures, in order: the first that matches counts. Without one, failures are tried again as often as attempts allows.
	//
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +kubebuilder:example={{"when":{"exitCodes":{3}},"do":"Fail"},{"when":{"class":"OutOfMemory"},"do":"RetryWithMemory","factor":1.5,"max":"64Gi"}}
	// +optional
	Rules []PipelineRetryRule `json:"rules,omitempty"`
}

// PipelineBackoff is the time between two attempts: from, then factor times the last one, at most to.
type PipelineBackoff struct {
	// From is the time before the second attempt, from 0s to 24h. Default: 10s.
	//
	// +kubebuilder:default="10s"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=48
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,3})?(ms|s|m|h)){1,4}$') && duration(self) >= duration('0s') && duration(self) <= duration('24h')",message="must be a time from 0s to 24h, for instance 10s"
	// +kubebuilder:example="10s"
	// +optional
	From *metav1.Duration `json:"from,omitempty"`

	// To is the longest time, from 0s to 24h. Default: 10m.
	//
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=48
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,3})?(ms|s|m|h)){1,4}$') && duration(self) >= duration('0s') && duration(self) <= duration('24h')",message="must be a time from 0s to 24h, for instance 10m"
	// +kubebuilder:example="10m"
	// +optional
	To *metav1.Duration `json:"to,omitempty"`

	// Factor between one time and the next. Default: 2.
	//
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	// +kubebuilder:example=2
	// +optional
	Factor *float64 `json:"factor,omitempty"`

	// JitterPercent is the share of the time by which it is longer or shorter at random, so that many programs do not start at once.
	// Default: 20.
	//
	// +kubebuilder:default=20
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:example=20
	// +optional
	JitterPercent *int32 `json:"jitterPercent,omitempty"`
}

// PipelineFailureClass is why the program failed.
//
// +kubebuilder:validation:Enum=User;OutOfMemory;Infrastructure
type PipelineFailureClass string

// PipelineRetryAction is what follows a failure.
//
// +kubebuilder:validation:Enum=Retry;Fail;RetryWithMemory
type PipelineRetryAction string

// What follows a failure.
const (
	// PipelineDoRetry starts the program again.
	PipelineDoRetry PipelineRetryAction = "Retry"
	// PipelineDoFail ends the run.
	PipelineDoFail PipelineRetryAction = "Fail"
	// PipelineDoRetryWithMemory begins the run again in another pod with more memory.
	PipelineDoRetryWithMemory PipelineRetryAction = "RetryWithMemory"
)

// PipelineRetryRule is what follows certain failures.
//
// +kubebuilder:validation:XValidation:rule="self.do == 'RetryWithMemory' || !has(self.factor) && !has(self.max)",message="factor and max need do: RetryWithMemory"
// +kubebuilder:validation:XValidation:rule="self.do != 'Fail' || !has(self.attempts) && !has(self.backoff)",message="attempts and backoff have no effect with do: Fail: remove them"
// +kubebuilder:validation:XValidation:rule="self.do != 'RetryWithMemory' || !has(self.backoff)",fieldPath=".backoff",message="has no effect with do: RetryWithMemory, which begins at once: remove it"
type PipelineRetryRule struct {
	// When is which failures the rule is for.
	When PipelineFailure `json:"when"`

	// Do is what follows: Retry starts the program again, Fail ends the run, and RetryWithMemory begins the run again in another pod
	// with more memory.
	//
	// +kubebuilder:example=Fail
	Do PipelineRetryAction `json:"do"`

	// Attempts is how often in a row the program may fail by this rule. It is counted beside retry.attempts. For RetryWithMemory it is
	// how often a run gets more memory. Default: retry.attempts, counted together; 2 for RetryWithMemory.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	// +kubebuilder:example=100
	// +optional
	Attempts *int32 `json:"attempts,omitempty"`

	// Backoff is the time between two attempts. Default: retry.backoff.
	//
	// +optional
	Backoff *PipelineBackoff `json:"backoff,omitempty"`

	// Factor by which the memory grows. Default: 1.5.
	//
	// +kubebuilder:validation:Minimum=1.1
	// +kubebuilder:validation:Maximum=10
	// +kubebuilder:example=1.5
	// +optional
	Factor *float64 `json:"factor,omitempty"`

	// Max is the most memory that a run gets, more than resources.memory. Default: no bound but attempts.
	//
	// +kubebuilder:example="64Gi"
	// +optional
	Max *resource.Quantity `json:"max,omitempty"`
}

// PipelineFailure are failures of the program: those for which all fields that are set hold.
//
// +kubebuilder:validation:XValidation:rule="has(self.exitCodes) || has(self.pattern) || has(self.class)",message="set exitCodes, pattern or class"
type PipelineFailure struct {
	// ExitCodes of the program.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:Minimum=1
	// +kubebuilder:validation:items:Maximum=255
	// +listType=set
	// +kubebuilder:example={3}
	// +optional
	ExitCodes []int32 `json:"exitCodes,omitempty"`

	// Pattern is a regular expression in the syntax of RE2 that a line of the output matches. The first line that any rule matches
	// counts, because it is nearest to the cause.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:example="Table or view not found"
	// +optional
	Pattern string `json:"pattern,omitempty"`

	// Class: OutOfMemory for a program that was killed for its memory or says so, Infrastructure for one that lost its node, its
	// network or its disk, and User for every other failure.
	//
	// +kubebuilder:example=OutOfMemory
	// +optional
	Class PipelineFailureClass `json:"class,omitempty"`
}
