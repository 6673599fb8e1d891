// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"
)

// RolloutHook is an HTTP request or a Job at a point of a rollout, or for a Signal. Hooks of one point run one after the other, each once
// per attempt of a revision and share of traffic, or for each Signal. After a crash it can run again, with the same key.
//
// +kubebuilder:validation:XValidation:rule="has(self.job) ? !has(self.url) && !has(self.secretName) : has(self.url) || has(self.secretName)",message="set either job, or url, secretName or both of these"
// +kubebuilder:validation:XValidation:rule="self.at != 'Transition' || !has(self.job)",fieldPath=".job",message="at Transition only HTTP requests are sent: set url, or another at"
// +kubebuilder:validation:XValidation:rule="!has(self.onFailure) || self.at in ['BeforeTraffic', 'DuringStep', 'BeforePromotion']",fieldPath=".onFailure",message="needs at BeforeTraffic, DuringStep or BeforePromotion: the failure of a later hook is only reported: remove onFailure"
type RolloutHook struct {
	// Name of the hook, which status and messages use.
	//
	// +kubebuilder:validation:MaxLength=30
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be lower case letters, digits and '-', with a letter or digit at both ends"
	// +kubebuilder:example="smoke"
	Name string `json:"name"`

	// At is when the hook runs. BeforeTraffic: before the candidate gets requests or copies of requests. DuringStep: at
	// the start of each share of traffic; the next share waits until it has passed. BeforePromotion: before all traffic.
	// AfterPromotion, AfterRollback: when all traffic has shifted to the candidate, or back; they block nothing.
	// Transition: a notification when a rollout starts, holds, promotes, rolls back or ends.
	// Signal: when a Signal of events.capstan.dev names the hook. No rollout waits for it.
	//
	// +kubebuilder:example=BeforeTraffic
	At HookPoint `json:"at"`

	// URL that gets a POST request with JSON: a status from 200 to 299 passes. After 408, 425, 429, 5xx or no response
	// the request is repeated until timeout, and any other status fails at once. Redirects are not followed. The
	// provider refuses addresses of nodes, of metadata services and of the API server. Default: key url of secretName.
	//
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="isURL(self) && self.matches('^https?://[^/?#@]+([/?#].*)?$')",message="must be an http or https URL without a user, for instance http://smoke.shop.svc/reco"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^https?://(localhost|.*[.]localhost|127[.][0-9.]+|0[.]0[.]0[.]0|169[.]254[.][0-9.]+|[[]::1?[]]|[[]fe[89ab].*|kubernetes([.]default([.]svc([.].*)?)?)?)([:/?#].*)?$')",message="must not be an address of a node, of a metadata service or of the API server: use the address of the hook"
	// +kubebuilder:example="http://smoke.shop.svc/reco"
	// +optional
	URL string `json:"url,omitempty"`

	// SecretName is a Secret of this namespace, for HTTP requests. Its optional keys are url, token (sent as a bearer
	// token), signingKey (for the header Capstan-Signature) and ca.crt (authorities of the certificate). Default: none.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="must be the name of a Secret"
	// +kubebuilder:example="smoke-hook"
	// +optional
	SecretName string `json:"secretName,omitempty"`

	// Job is the container of a Job, in the form of core/v1, which passes when the container ends with 0. It runs under
	// the ServiceAccount of the Algorithm, within the Pod Security Standard "restricted", and without volumes.
	// The variables CAPSTAN_HOOK_… have what an HTTP request has.
	//
	// +optional
	Job *HookContainer `json:"job,omitempty"`

	// Timeout after which the hook has failed, from 1s to 24h. Default: 5m.
	//
	// +kubebuilder:default="5m"
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,6}s)?$') && self != '' && duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="must be from 1s to 24h, for instance 5m"
	// +kubebuilder:example="5m"
	// +optional
	Timeout metav1.Duration `json:"timeout,omitempty"`

	// OnFailure of a hook before promotion: Rollback, Hold, which keeps the share of traffic until
	// spec.rollout.promote or abort names the revision, or Continue, which only reports it. Default: Rollback.
	//
	// +kubebuilder:example=Rollback
	// +optional
	OnFailure RolloutHookFailure `json:"onFailure,omitempty"`
}

// HookPoint is when a hook of a rollout runs.
//
// +kubebuilder:validation:Enum=BeforeTraffic;DuringStep;BeforePromotion;AfterPromotion;AfterRollback;Transition;Signal
type HookPoint string

// When a hook of a rollout runs.
const (
	// HookBeforeTraffic: before the candidate gets requests or copies of requests.
	HookBeforeTraffic HookPoint = "BeforeTraffic"
	// HookDuringStep: at the start of each share of traffic. The next one waits for it.
	HookDuringStep HookPoint = "DuringStep"
	// HookBeforePromotion: before all traffic.
	HookBeforePromotion HookPoint = "BeforePromotion"
	// HookAfterPromotion: when all traffic has shifted to the candidate.
	HookAfterPromotion HookPoint = "AfterPromotion"
	// HookAfterRollback: when traffic shifts back.
	HookAfterRollback HookPoint = "AfterRollback"
	// HookTransition: a notification.
	HookTransition HookPoint = "Transition"
	// HookSignal: when a Signal names it.
	HookSignal HookPoint = "Signal"
)

// RolloutHookFailure is what happens to a rollout when a hook fails.
//
// +kubebuilder:validation:Enum=Rollback;Hold;Continue
type RolloutHookFailure string

// What happens to a rollout when a hook fails.
const (
	// HookFailureRollback rolls the candidate back.
	HookFailureRollback RolloutHookFailure = "Rollback"
	// HookFailureHold keeps the share of traffic until a person decides.
	HookFailureHold RolloutHookFailure = "Hold"
	// HookFailureContinue reports it, and the rollout continues.
	HookFailureContinue RolloutHookFailure = "Continue"
)

// HookContainer is a container of core/v1. The schema names only what admission checks. It keeps all other fields, and the
// function checks them.
//
// +kubebuilder:pruning:PreserveUnknownFields
type HookContainer struct {
	// Image of the container. spec.pod.imagePullSecrets are also for it.
	//
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^[][a-zA-Z0-9._:/@+-]+$')",message="must be an image reference: letters, digits and any of . _ - / : @ +"
	// +kubebuilder:example="registry.example.org/platform/loadtest:1.2"
	Image string `json:"image"`

	// Core is the whole container, including the image.
	Core corev1.Container `json:"-"`
}

// UnmarshalJSON reads a container of core/v1.
func (c *HookContainer) UnmarshalJSON(raw []byte) error {
	core := corev1.Container{}
	if err := json.Unmarshal(raw, &core); err != nil {
		return err
	}
	*c = HookContainer{Image: core.Image, Core: core}
	return nil
}

// MarshalJSON writes a container of core/v1, without the fields that core/v1 always writes.
func (c HookContainer) MarshalJSON() ([]byte, error) {
	raw, err := json.Marshal(c.Core)
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, err
	}
	if c.Core.Name == "" {
		delete(fields, "name")
	}
	if resources, _ := fields["resources"].(map[string]any); len(resources) == 0 {
		delete(fields, "resources")
	}
	return json.Marshal(fields)
}

// RolloutHookStatus is the latest run of a hook.
type RolloutHookStatus struct {
	// Name of the hook.
	Name string `json:"name"`

	// At is when it runs.
	At HookPoint `json:"at"`

	// Revision that it is about.
	Revision string `json:"revision"`

	// Weight is the percentage of traffic that the revision had.
	Weight int32 `json:"weight"`

	// Result: Waiting, Running, Passed or Failed.
	Result HookResult `json:"result"`

	// Message says why it failed.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// Key of the run, which the request or the Job has as well.
	Key string `json:"key"`
}

// HookResult is how far a run of a hook is.
//
// +kubebuilder:validation:Enum=Waiting;Running;Passed;Failed
type HookResult string

// How far a run of a hook is.
const (
	HookResultWaiting HookResult = "Waiting"
	HookResultRunning HookResult = "Running"
	HookResultPassed  HookResult = "Passed"
	HookResultFailed  HookResult = "Failed"
)
