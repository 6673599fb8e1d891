// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// An Autoscaler keeps a HorizontalPodAutoscaler of its own name, and reports only what matters of it: whether it scales,
// why not, and on request how many replicas the load asks for. A HorizontalPodAutoscaler itself reports new numbers every 15 seconds, and each change of a composed
// object makes Crossplane apply all of them. The HorizontalPodAutoscaler belongs to its Autoscaler and is deleted with
// it, also while the provider is stopped. Each Algorithm with spec.scaling composes one.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,managed,capstan}
// +kubebuilder:printcolumn:name="Synced",type=string,JSONPath=`.status.conditions[?(@.type=="Synced")].status`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Min",type=integer,JSONPath=`.spec.forProvider.autoscaler.minReplicas`
// +kubebuilder:printcolumn:name="Max",type=integer,JSONPath=`.spec.forProvider.autoscaler.maxReplicas`
// +kubebuilder:printcolumn:name="Failure",type=string,JSONPath=`.status.atProvider.failure.reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Autoscaler struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired HorizontalPodAutoscaler.
	Spec AutoscalerSpec `json:"spec"`

	// Status is the observed HorizontalPodAutoscaler.
	//
	// +optional
	Status AutoscalerStatus `json:"status,omitempty"`
}

// AutoscalerList is a list of Autoscalers.
//
// +kubebuilder:object:root=true
type AutoscalerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Autoscaler `json:"items"`
}

// AutoscalerSpec is the desired HorizontalPodAutoscaler.
type AutoscalerSpec struct {
	// ManagementPolicies: an Autoscaler observes its HorizontalPodAutoscaler, and creates or changes it (Update).
	// Kubernetes deletes it, because it has an owner. Default: ["Observe", "Update"].
	//
	// +kubebuilder:default={"Observe","Update"}
	// +kubebuilder:validation:XValidation:rule="self.all(p, p == 'Observe' || p == 'Update')",message="must be Observe, Update or nothing: Kubernetes deletes the HorizontalPodAutoscaler with its owner"
	// +kubebuilder:example={"Observe","Update"}
	// +optional
	ManagementPolicies xpv2.ManagementPolicies `json:"managementPolicies,omitempty"`

	// ForProvider is the desired HorizontalPodAutoscaler.
	ForProvider AutoscalerParameters `json:"forProvider"`
}

// AutoscalerParameters are the desired HorizontalPodAutoscaler.
type AutoscalerParameters struct {
	// Autoscaler is the spec of a HorizontalPodAutoscaler of autoscaling/v2. Both objects have the same name. The API
	// server checks it when it is applied, and the condition Synced has its message.
	//
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	// +kubebuilder:example={scaleTargetRef: {apiVersion: "apps/v1", kind: Deployment, name: "reco-a"}, minReplicas: 2, maxReplicas: 10}
	Autoscaler runtime.RawExtension `json:"autoscaler"`

	// ReportNeeds has the status show how many replicas the load asks for (needs). An Algorithm sets it while a
	// rollout sends requests to two revisions: what takes all of them then has replicas for the load of both. Default:
	// false, the load is not reported and the status stays as it is.
	//
	// +kubebuilder:example=true
	// +optional
	ReportNeeds *bool `json:"reportNeeds,omitempty"`
}

// AutoscalerStatus is the observed HorizontalPodAutoscaler.
type AutoscalerStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	// AtProvider is the observed HorizontalPodAutoscaler.
	//
	// +optional
	AtProvider AutoscalerObservation `json:"atProvider,omitempty"`
}

// AutoscalerObservation is the observed HorizontalPodAutoscaler.
type AutoscalerObservation struct {
	// Failure is why it leaves the number of replicas as it is. It is absent while it scales.
	//
	// +optional
	Failure *AutoscalerFailure `json:"failure,omitempty"`

	// Needs is the number of replicas that the load asks for, rounded up to tenths, without minReplicas and maxReplicas.
	// It changes when the load asks for more, or for less than nine tenths of it and at least one replica less. While the
	// load is unknown it stays as it is.
	// It is absent without reportNeeds, and before any load is known. Metrics with a fixed value, such as a
	// latency, do not count. CPU counts while the autoscaler changes nothing.
	//
	// +optional
	Needs *float64 `json:"needs,omitempty"`
}

// AutoscalerFailure is why a HorizontalPodAutoscaler does not scale.
type AutoscalerFailure struct {
	// Reason in one word, as its condition ScalingActive has it.
	Reason string `json:"reason"`

	// Message of the same condition, without the names of pods, which are others at each try.
	Message string `json:"message"`

	// Since is when it began.
	Since metav1.Time `json:"since"`
}
