// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Scaling lets the number of replicas follow the load. Without any of
// targetLatencyMs, signal and perReplica it keeps the average CPU use of the
// replicas near 70 % of what they request.
//
// With targetLatencyMs it keeps that latency: by the load at which a replica still
// holds it, which is learned and told in status.scaling, with the latency itself
// as a guard. When metrics are lost, the number of replicas stays as it is.
//
// +kubebuilder:validation:XValidation:rule="self.minReplicas <= self.maxReplicas",fieldPath=".minReplicas",message="minReplicas must not be above maxReplicas: lower minReplicas or raise maxReplicas"
// +kubebuilder:validation:XValidation:rule="!has(self.signal) || !(self.signal in ['InFlight', 'RequestRate']) || has(self.perReplica) || has(self.targetLatencyMs)",fieldPath=".signal",message="signal InFlight or RequestRate needs targetLatencyMs, to learn how much of it a replica bears, or perReplica, which says it"
// +kubebuilder:validation:XValidation:rule="(has(self.signal) && self.signal == 'Query') == has(self.query)",fieldPath=".query",message="query is the load of signal Query: set both or neither"
// +kubebuilder:validation:XValidation:rule="!has(self.query) || has(self.perReplica)",fieldPath=".perReplica",message="a query needs perReplica: the part of its value that one replica is to bear"
// +kubebuilder:validation:XValidation:rule="!has(self.perReplica) || (has(self.signal) && self.signal in ['InFlight', 'RequestRate', 'Query'])",fieldPath=".perReplica",message="perReplica needs signal InFlight, RequestRate or Query, which give it its unit"
type Scaling struct {
	// MinReplicas is the least number of replicas.
	//
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +kubebuilder:example=1
	// +optional
	MinReplicas int32 `json:"minReplicas,omitempty"`

	// MaxReplicas is the greatest number of replicas.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +kubebuilder:example=10
	MaxReplicas int32 `json:"maxReplicas"`

	// ScaleDownAfterSeconds is how long fewer replicas must have been enough before
	// some are taken away, at most a tenth of them or one a minute. Starting a replica
	// costs far more than keeping one for a while.
	//
	// +kubebuilder:default=300
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	// +kubebuilder:example=300
	// +optional
	ScaleDownAfterSeconds *int32 `json:"scaleDownAfterSeconds,omitempty"`

	// TargetLatencyMs is the latency to keep, in milliseconds.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600000
	// +kubebuilder:example=50
	// +optional
	TargetLatencyMs *int32 `json:"targetLatencyMs,omitempty"`

	// Percentile of the requests that are to be answered within targetLatencyMs:
	// 50, 90, 95 or 99.
	//
	// +kubebuilder:default=95
	// +kubebuilder:validation:Enum=50;90;95;99
	// +kubebuilder:example=95
	// +optional
	Percentile int32 `json:"percentile,omitempty"`

	// Signal of the load that the number of replicas follows: InFlight (requests
	// being worked on), RequestRate (requests per second), CPU, Query (the value of
	// query), or Auto, which is the first of InFlight, RequestRate and CPU that the
	// pods tell. Default: Auto with targetLatencyMs, else CPU.
	//
	// +kubebuilder:validation:Enum=Auto;InFlight;RequestRate;CPU;Query
	// +kubebuilder:example=Auto
	// +optional
	Signal string `json:"signal,omitempty"`

	// PerReplica is the load that one replica is to bear, in the unit of signal.
	// Default: learned from targetLatencyMs.
	//
	// +kubebuilder:validation:XValidation:rule="self >= 0.001",message="must be at least 0.001"
	// +kubebuilder:example=6
	// +optional
	PerReplica *float64 `json:"perReplica,omitempty"`

	// Query of signal Query: a PromQL expression whose value is the load of all
	// replicas together, for instance sum(queue_length). It sees only series of
	// this Algorithm's pods. It needs the Prometheus Operator, which records it.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:example="sum(queue_length)"
	// +optional
	Query string `json:"query,omitempty"`
}
