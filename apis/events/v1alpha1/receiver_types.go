// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// A Receiver takes alerts or events from outside, and makes Signals of the ones that its rules name. It does nothing else. Senders use the
// path of its status at the address that the platform exposes.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,managed,capstan}
// +kubebuilder:printcolumn:name="Synced",type=string,JSONPath=`.status.conditions[?(@.type=="Synced")].status`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Path",type=string,JSONPath=`.status.atProvider.path`
// +kubebuilder:printcolumn:name="Last",type=string,JSONPath=`.status.atProvider.lastSignal.name`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="metadata.name must be at most 63 characters, because a label of its Signals has it"
type Receiver struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is received, and what it does.
	Spec ReceiverSpec `json:"spec"`

	// Status is the observed state.
	//
	// +optional
	Status ReceiverStatus `json:"status,omitempty"`
}

// ReceiverList is a list of Receivers.
//
// +kubebuilder:object:root=true
type ReceiverList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Receiver `json:"items"`
}

// ReceiverSpec is what is received, and what it does.
type ReceiverSpec struct {
	// ManagementPolicies: a Receiver is only observed. Default: ["Observe"].
	//
	// +kubebuilder:default={"Observe"}
	// +kubebuilder:validation:XValidation:rule="self.all(p, p == 'Observe')",message="must be Observe or nothing: a Receiver has nothing outside"
	// +kubebuilder:example={"Observe"}
	// +optional
	ManagementPolicies xpv2.ManagementPolicies `json:"managementPolicies,omitempty"`

	// ForProvider is what is received, and what it does.
	ForProvider ReceiverParameters `json:"forProvider"`
}

// ReceiverParameters are what is received, and what it does.
type ReceiverParameters struct {
	// Format of what senders send. Alertmanager is the webhook of Prometheus Alertmanager, which Grafana sends, too. CloudEvents is one
	// event of CloudEvents 1.0, in binary or structured mode.
	//
	// +kubebuilder:example="Alertmanager"
	Format Format `json:"format"`

	// SecretName is a Secret of this namespace with one or both of the keys token and signingKey, each of at least 16 characters. A
	// request needs the token as a bearer token, or a signature with the key, as the guide describes.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:example="alertmanager-events"
	SecretName string `json:"secretName"`

	// Rules say what does what. Each rule that matches makes a Signal.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	Rules []ReceiverRule `json:"rules"`
}

// Format of what senders send.
//
// +kubebuilder:validation:Enum=Alertmanager;CloudEvents
type Format string

// Formats.
const (
	FormatAlertmanager Format = "Alertmanager"
	FormatCloudEvents  Format = "CloudEvents"
)

// ReceiverRule says what an alert or event does.
//
// +kubebuilder:validation:XValidation:rule="self.do in ['Abort', 'MinReplicas'] ? self.target.kind == 'Algorithm' : true",fieldPath=".do",message="Abort and MinReplicas are for Algorithms: choose Hold, Backup or Hook for a Database"
// +kubebuilder:validation:XValidation:rule="self.do == 'Backup' ? self.target.kind == 'Database' : true",fieldPath=".do",message="Backup is for Databases: choose Hold, Abort, MinReplicas or Hook for an Algorithm"
// +kubebuilder:validation:XValidation:rule="(self.do == 'MinReplicas') == has(self.replicas)",fieldPath=".replicas",message="must be set for MinReplicas, and for nothing else"
// +kubebuilder:validation:XValidation:rule="(self.do == 'Hook') == has(self.hook)",fieldPath=".hook",message="must be set for Hook, and for nothing else"
type ReceiverRule struct {
	// Name of the rule. Names of its Signals begin with it.
	//
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="must be lower case letters, digits and '-', start with a letter and end with a letter or digit"
	// +kubebuilder:example="checkout-errors"
	Name string `json:"name"`

	// Match has values that an alert's labels, or an event's attributes such as type, source and subject, must all be equal to.
	//
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=8
	// +kubebuilder:example={"alertname":"CheckoutErrors","severity":"critical"}
	Match map[string]string `json:"match"`

	// Target is the object of this namespace that the Signal is for.
	Target SignalTarget `json:"target"`

	// Do is what happens.
	//
	// +kubebuilder:example="Hold"
	Do Act `json:"do"`

	// Replicas is the least number for MinReplicas.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +kubebuilder:example=6
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// Hook is the name of the hook that Hook runs. The object of the target declares it for Signals: an Algorithm in spec.lifecycle.hooks
	// with at: Signal, a Database in spec.maintenance.hooks.onSignal.
	//
	// +kubebuilder:validation:MaxLength=30
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be lower case letters, digits and '-', with a letter or digit at both ends"
	// +kubebuilder:example="flush-cache"
	// +optional
	Hook string `json:"hook,omitempty"`

	// For is how long a Signal lasts at most after the last event, from 1m to 168h. An alert that is resolved ends Hold and MinReplicas
	// earlier. Alertmanager repeats alerts that fire: choose more than its repeat_interval. Default: 5h, because the usual interval is
	// 4h.
	//
	// +kubebuilder:default="5h"
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,6}s)?$') && self != '' && duration(self) >= duration('1m') && duration(self) <= duration('168h')",message="must be a time from 1m to 168h, for instance 30m"
	// +kubebuilder:example="30m"
	// +optional
	For *metav1.Duration `json:"for,omitempty"`
}

// ReceiverStatus is the observed state.
type ReceiverStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	// AtProvider is the observed state.
	//
	// +optional
	AtProvider ReceiverObservation `json:"atProvider,omitempty"`
}

// ReceiverObservation is the observed state.
type ReceiverObservation struct {
	// Path that senders use, for instance /v1/shop/alertmanager.
	//
	// +optional
	Path string `json:"path,omitempty"`

	// LastSignal is the newest Signal of this Receiver that still exists.
	//
	// +optional
	LastSignal *ReceivedSignal `json:"lastSignal,omitempty"`
}

// ReceivedSignal is a Signal that was made of something received.
type ReceivedSignal struct {
	// Name of the Signal.
	Name string `json:"name"`

	// At is when it was created.
	At metav1.Time `json:"at"`
}

// Keys of the Secret of a Receiver.
const (
	KeyToken   = "token"
	KeySigning = "signingKey"
)

// Labels of Signals that Receivers make.
const (
	LabelReceiver = "capstan.dev/receiver"
	LabelRule     = "capstan.dev/rule"
)
