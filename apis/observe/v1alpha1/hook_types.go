// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// A Hook sends POST requests with JSON to a URL, one after the other, each until it is done. It is quiet: its status
// changes only when a request is done, or when another cause keeps one from being done. Each Algorithm composes one for each
// HTTP hook of spec.lifecycle.hooks that has something to send.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,managed,capstan}
// +kubebuilder:printcolumn:name="Synced",type=string,JSONPath=`.status.conditions[?(@.type=="Synced")].status`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Result",type=string,JSONPath=`.status.atProvider.results[-1].result`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Hook struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what to send, and where to.
	Spec HookSpec `json:"spec"`

	// Status is what has been sent.
	//
	// +optional
	Status HookStatus `json:"status,omitempty"`
}

// HookList is a list of Hooks.
//
// +kubebuilder:object:root=true
type HookList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Hook `json:"items"`
}

// HookSpec is what to send, and where to.
type HookSpec struct {
	// ManagementPolicies: a Hook sends requests (Update) and reports what became of them (Observe). Default: ["Observe", "Update"].
	//
	// +kubebuilder:default={"Observe","Update"}
	// +kubebuilder:validation:XValidation:rule="self.all(p, p == 'Observe' || p == 'Update')",message="must be Observe, Update or nothing: a Hook has nothing outside"
	// +kubebuilder:example={"Observe","Update"}
	// +optional
	ManagementPolicies xpv2.ManagementPolicies `json:"managementPolicies,omitempty"`

	// ForProvider is what to send, and where to.
	ForProvider HookParameters `json:"forProvider"`
}

// HookParameters are what to send, and where to.
//
// +kubebuilder:validation:XValidation:rule="has(self.url) || has(self.secretName)",message="set url or secretName"
type HookParameters struct {
	// URL that gets the requests. Redirects are not followed, and addresses of nodes, of metadata services and of the API
	// server are refused. Default: key url of the Secret.
	//
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="isURL(self) && self.matches('^https?://[^/?#@]+([/?#].*)?$')",message="must be an http or https URL without a user"
	// +kubebuilder:example="http://smoke.shop.svc/reco"
	// +optional
	URL string `json:"url,omitempty"`

	// SecretName is a Secret of the same namespace with the optional keys url, token (sent as a bearer token), signingKey
	// (for the header Capstan-Signature) and ca.crt (authorities of the certificate). Default: none.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="must be the name of a Secret"
	// +kubebuilder:example="smoke-hook"
	// +optional
	SecretName string `json:"secretName,omitempty"`

	// Requests to send, in this order.
	//
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=key
	// +optional
	Requests []HookRequest `json:"requests,omitempty"`
}

// HookRequest is a request to send.
type HookRequest struct {
	// Key of the request, which the header Idempotency-Key has. A request that has a result is not sent again.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-a-zA-Z0-9._]+$')",message="must be letters, digits and any of - . _"
	// +kubebuilder:example="1a2b3c4d5e-7-0-smoke"
	Key string `json:"key"`

	// Body to send, as JSON.
	//
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:example="{\"revision\":\"1a2b3c4d5e\"}"
	Body string `json:"body"`

	// Until is the time after which it is not repeated.
	//
	// +kubebuilder:example="2026-01-01T00:05:00Z"
	Until metav1.Time `json:"until"`
}

// HookStatus is what has been sent.
type HookStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	// AtProvider is what has been sent.
	//
	// +optional
	AtProvider HookObservation `json:"atProvider,omitempty"`
}

// HookObservation is what has been sent.
type HookObservation struct {
	// Results of requests that are done.
	//
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=key
	// +optional
	Results []HookRequestResult `json:"results,omitempty"`
}

// HookRequestResult is what became of a request.
type HookRequestResult struct {
	// Key of the request.
	Key string `json:"key"`

	// Result: Passed, Failed, or Unreachable when nothing answered.
	Result HookOutcome `json:"result"`

	// Message says why it did not pass. It never contains what the URL responded beside the status.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// At is when it was done.
	At metav1.Time `json:"at"`
}

// HookOutcome is what became of a request.
//
// +kubebuilder:validation:Enum=Passed;Failed;Unreachable
type HookOutcome string

// What becomes of a request.
const (
	// HookPassed: the response had a status from 200 to 299.
	HookPassed HookOutcome = "Passed"
	// HookRefused: it had another one.
	HookRefused HookOutcome = "Failed"
	// HookUnreachable: there was no response in time.
	HookUnreachable HookOutcome = "Unreachable"
)

// Keys of the Secret of a hook.
const (
	HookKeyURL     = "url"
	HookKeyToken   = "token"
	HookKeySigning = "signingKey"
	HookKeyCA      = "ca.crt"
)
