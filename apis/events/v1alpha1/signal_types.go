// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// KeptFor is how long a Signal stays after its end, so that people see what it did.
const KeptFor = "1h"

// A Signal is a request from outside to an Algorithm or a Database of its namespace that ends by itself: hold, abort a rollout, keep at
// least so many replicas, take a backup, run a hook. Receivers make them of alerts and events, and anyone with the right to create one can.
// The spec of the Algorithm or Database stays as it is. An hour after its end the Signal is deleted.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,managed,capstan}
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=`.spec.forProvider.target.kind`
// +kubebuilder:printcolumn:name="Name",type=string,JSONPath=`.spec.forProvider.target.name`
// +kubebuilder:printcolumn:name="Do",type=string,JSONPath=`.spec.forProvider.do`
// +kubebuilder:printcolumn:name="Until",type=string,JSONPath=`.spec.forProvider.expiresAt`
// +kubebuilder:printcolumn:name="Source",type=string,JSONPath=`.spec.forProvider.source`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.spec.forProvider.reason`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Signal struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what to do, and until when.
	Spec SignalSpec `json:"spec"`

	// Status is the observed state.
	//
	// +optional
	Status SignalStatus `json:"status,omitempty"`
}

// SignalList is a list of Signals.
//
// +kubebuilder:object:root=true
type SignalList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Signal `json:"items"`
}

// SignalSpec is what to do, and until when.
type SignalSpec struct {
	// ManagementPolicies: a Signal is only observed. Default: ["Observe"].
	//
	// +kubebuilder:default={"Observe"}
	// +kubebuilder:validation:XValidation:rule="self.all(p, p == 'Observe')",message="must be Observe or nothing: a Signal has nothing outside"
	// +kubebuilder:example={"Observe"}
	// +optional
	ManagementPolicies xpv2.ManagementPolicies `json:"managementPolicies,omitempty"`

	// ForProvider is what to do, and until when.
	ForProvider SignalParameters `json:"forProvider"`
}

// SignalParameters are what to do, and until when.
//
// +kubebuilder:validation:XValidation:rule="self.do in ['Abort', 'MinReplicas'] ? self.target.kind == 'Algorithm' : true",fieldPath=".do",message="Abort and MinReplicas are for Algorithms: choose Hold, Backup or Hook for a Database"
// +kubebuilder:validation:XValidation:rule="self.do == 'Backup' ? self.target.kind == 'Database' : true",fieldPath=".do",message="Backup is for Databases: choose Hold, Abort, MinReplicas or Hook for an Algorithm"
// +kubebuilder:validation:XValidation:rule="(self.do == 'MinReplicas') == has(self.replicas)",fieldPath=".replicas",message="must be set for MinReplicas, and for nothing else"
// +kubebuilder:validation:XValidation:rule="(self.do == 'Hook') == has(self.hook)",fieldPath=".hook",message="must be set for Hook, and for nothing else"
// +kubebuilder:validation:XValidation:rule="(self.do == 'Abort') == has(self.revision)",fieldPath=".revision",message="must be set for Abort, and for nothing else"
// +kubebuilder:validation:XValidation:rule="self.target == oldSelf.target && self.do == oldSelf.do && (!has(self.hook) || !has(oldSelf.hook) || self.hook == oldSelf.hook)",message="target, do and hook cannot change: create another Signal"
type SignalParameters struct {
	// Target is the object of this namespace that the Signal is for.
	Target SignalTarget `json:"target"`

	// Do is what happens.
	//
	// +kubebuilder:example="MinReplicas"
	Do Act `json:"do"`

	// Replicas is the least number for MinReplicas. It is bounded by the Algorithm's scaling.maxReplicas.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +kubebuilder:example=6
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// Revision that Abort is about, as status.rollout.candidate has it. Receivers set the one that was under test when the event came.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:example="b55f458aac"
	// +optional
	Revision string `json:"revision,omitempty"`

	// Hook is the name of the hook that Hook runs. The object of the target declares it for Signals: an Algorithm in spec.lifecycle.hooks
	// with at: Signal, a Database in spec.maintenance.hooks.onSignal.
	//
	// +kubebuilder:validation:MaxLength=30
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be lower case letters, digits and '-', with a letter or digit at both ends"
	// +kubebuilder:example="flush-cache"
	// +optional
	Hook string `json:"hook,omitempty"`

	// ExpiresAt is when the Signal ends, at most a week after it was created. From then on it does nothing.
	//
	// +kubebuilder:example="2026-11-26T16:00:00Z"
	ExpiresAt metav1.Time `json:"expiresAt"`

	// Source is where the Signal comes from, for people.
	//
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:example="alertmanager"
	// +optional
	Source string `json:"source,omitempty"`

	// Reason of the Signal, for people.
	//
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:example="CheckoutErrors: 7 % of requests fail"
	// +optional
	Reason string `json:"reason,omitempty"`
}

// SignalTarget is an object that a Signal is for.
type SignalTarget struct {
	// Kind of the object.
	//
	// +kubebuilder:example="Algorithm"
	Kind TargetKind `json:"kind"`

	// Name of the object.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:example="reco"
	Name string `json:"name"`
}

// TargetKind is a kind of object that a Signal can be for.
//
// +kubebuilder:validation:Enum=Algorithm;Database
type TargetKind string

// Kinds that Signals are for.
const (
	TargetAlgorithm TargetKind = "Algorithm"
	TargetDatabase  TargetKind = "Database"
)

// Act is what a Signal does.
//
// +kubebuilder:validation:Enum=Hold;Abort;MinReplicas;Backup;Hook
type Act string

// What Signals do.
const (
	// ActHold: until the end no rollout of the Algorithm begins or advances, and no change of the Database starts. A rollback and a
	// failover are always possible.
	ActHold Act = "Hold"
	// ActAbort: the revision under test is rolled back.
	ActAbort Act = "Abort"
	// ActMinReplicas: until the end the autoscaler keeps at least so many replicas.
	ActMinReplicas Act = "MinReplicas"
	// ActBackup: a backup is taken, once for each Signal.
	ActBackup Act = "Backup"
	// ActHook: a hook runs that the object declares for Signals, once for each Signal.
	ActHook Act = "Hook"
)

// IsTask reports whether an act is work that is done once for each Signal. The others are in force for a time.
func (a Act) IsTask() bool { return a == ActBackup || a == ActHook }

// SignalStatus is the observed state.
type SignalStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`
}
