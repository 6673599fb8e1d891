// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Scaling lets the number of replicas follow the load. Without targetLatencyMs, signal and perReplica it keeps the
// average CPU use of the replicas near 70 % of their request. The CPU says little about a GPU: replicas with one are
// scaled by it only with signal CPU, and else keep their number until the load is known.
//
// With targetLatencyMs it keeps that latency. It learns the load at which one replica still reaches the target, and
// reports it in status.scaling; the measured latency is an additional guard. Without metrics the number of replicas
// stays as it is.
//
// +kubebuilder:validation:XValidation:rule="self.minReplicas <= self.maxReplicas",fieldPath=".minReplicas",message="minReplicas must not be above maxReplicas: lower minReplicas or raise maxReplicas"
// +kubebuilder:validation:XValidation:rule="!has(self.idleAfterSeconds) || self.minReplicas == 0",fieldPath=".idleAfterSeconds",message="idleAfterSeconds needs an Algorithm that may sleep: set minReplicas to 0, or remove idleAfterSeconds"
// +kubebuilder:validation:XValidation:rule="!has(self.signal) || !(self.signal in ['InFlight', 'RequestRate']) || has(self.perReplica) || has(self.targetLatencyMs)",fieldPath=".signal",message="signal InFlight or RequestRate needs the load for one replica: set perReplica, or targetLatencyMs to learn it"
// +kubebuilder:validation:XValidation:rule="!has(self.signal) || self.signal != 'Query' || has(self.perReplica)",fieldPath=".perReplica",message="signal Query needs perReplica: set it to the load for one replica, in the unit of the query"
// +kubebuilder:validation:XValidation:rule="!has(self.perReplica) || (has(self.signal) && self.signal in ['InFlight', 'RequestRate', 'Query'])",fieldPath=".perReplica",message="perReplica needs a unit: set signal to InFlight, RequestRate or Query"
type Scaling struct {
	// MinReplicas is the minimum number of replicas. With 0 the Algorithm sleeps while it is idle (idleAfterSeconds): no
	// replica runs, and an activator holds the first request until one is ready. While it is awake there is at least one,
	// and requests reach replicas directly. It needs metrics of the requests. Default: 1.
	//
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +kubebuilder:example=1
	// +optional
	// +capstan:form:title="Scale down to",order=65
	MinReplicas int32 `json:"minReplicas"`

	// IdleAfterSeconds is how long, in seconds, no request must come until an Algorithm with minReplicas 0 sleeps. Before
	// that its requests go through the activator for a while, so that none can come unnoticed. Default: 600.
	//
	// +kubebuilder:validation:Minimum=60
	// +kubebuilder:validation:Maximum=86400
	// +kubebuilder:example=600
	// +optional
	IdleAfterSeconds *int32 `json:"idleAfterSeconds,omitempty"`

	// MaxReplicas is the maximum number of replicas.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +kubebuilder:example=10
	// +capstan:form:title="Scale up to",order=60,group=basic
	MaxReplicas int32 `json:"maxReplicas"`

	// ScaleDownAfterSeconds is how long, in seconds, fewer replicas must be sufficient before some are removed. It then
	// removes a tenth of them or one per minute. To start a replica costs far more than to keep it for a while.
	// Default: 300.
	//
	// +kubebuilder:default=300
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	// +kubebuilder:example=300
	// +optional
	ScaleDownAfterSeconds *int32 `json:"scaleDownAfterSeconds,omitempty"`

	// TargetLatencyMs is the latency that the number of replicas keeps, in milliseconds, at objectives.latencyPercentile.
	// Without objectives.latencyMs it is the objective as well, which a candidate must reach. Default: replicas do not
	// follow the latency.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600000
	// +kubebuilder:example=50
	// +optional
	// +capstan:form:title="Latency to keep, in ms",order=70,group=basic
	TargetLatencyMs *int32 `json:"targetLatencyMs,omitempty"`

	// Signal is the load that the number of replicas follows: InFlight (requests in progress), RequestRate (requests
	// per second), CPU, Query (the query load in spec.metrics.queries), or Auto. Auto is the first of InFlight, RequestRate and CPU for
	// which the pods have metrics, without CPU for replicas with a GPU. Default: Auto with targetLatencyMs, otherwise
	// CPU, or none with a GPU.
	//
	// +kubebuilder:validation:Enum=Auto;InFlight;RequestRate;CPU;Query
	// +kubebuilder:example=Auto
	// +optional
	Signal string `json:"signal,omitempty"`

	// PerReplica is the load for one replica, in the unit of signal. Default: learned from targetLatencyMs.
	//
	// +kubebuilder:validation:XValidation:rule="self >= 0.001",message="must be at least 0.001"
	// +kubebuilder:example=6
	// +optional
	PerReplica *float64 `json:"perReplica,omitempty"`
}
