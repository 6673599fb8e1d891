// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Signal is the load of replicas.
//
// +kubebuilder:validation:Enum=Auto;InFlight;RequestRate;CPU;Query
type Signal string

// Signals of the load of replicas.
const (
	// SignalAuto is the first of InFlight and RequestRate that the pods export, otherwise CPU.
	SignalAuto Signal = "Auto"
	// SignalInFlight is the number of requests in progress.
	SignalInFlight Signal = "InFlight"
	// SignalRequestRate is the number of requests per second.
	SignalRequestRate Signal = "RequestRate"
	// SignalCPU is the use of CPU.
	SignalCPU Signal = "CPU"
	// SignalQuery is the value of the query in the spec.
	SignalQuery Signal = "Query"
)

// ScalingParameters define what to learn about the load for one replica.
//
// +kubebuilder:validation:XValidation:rule="(self.signal == 'Query') == has(self.query)",fieldPath=".query",message="query is required for signal Query, and only for it"
type ScalingParameters struct {
	// Slot whose replicas are measured: the live one.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:example="a"
	Slot string `json:"slot"`

	// Signal is the load. Default: Auto.
	//
	// +kubebuilder:default=Auto
	// +kubebuilder:example=Auto
	// +optional
	Signal Signal `json:"signal,omitempty"`

	// Query of signal Query: a PromQL expression whose value is the load of all replicas of a slot together. It is
	// restricted like any other query; status.atProvider.scaling.expressions has the result.
	//
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:example="sum(queue_length)"
	// +optional
	Query string `json:"query,omitempty"`

	// PerReplica is the load for one replica. Default: learned.
	//
	// +kubebuilder:validation:XValidation:rule="self >= 0.001",message="must be at least 0.001"
	// +kubebuilder:example=6
	// +optional
	PerReplica *float64 `json:"perReplica,omitempty"`

	// TargetLatencyMs is the latency to keep, in milliseconds. Default: nothing is learned.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600000
	// +kubebuilder:example=50
	// +optional
	TargetLatencyMs *int32 `json:"targetLatencyMs,omitempty"`

	// Percentile of the latency: 50, 90, 95 or 99. Default: 95.
	//
	// +kubebuilder:default=95
	// +kubebuilder:validation:Enum=50;90;95;99
	// +kubebuilder:example=95
	// +optional
	Percentile int32 `json:"percentile,omitempty"`
}

// ScalingObservation is what was learned about the load for one replica.
type ScalingObservation struct {
	// Signal of the load that the pods export: InFlight, RequestRate, Query or CPU.
	//
	// +optional
	Signal Signal `json:"signal,omitempty"`

	// PerReplica is the load of one replica at which the latency stays at its target, to two significant digits: from
	// the spec, or learned. It changes by at most 20 % at a time.
	//
	// +optional
	PerReplica *float64 `json:"perReplica,omitempty"`

	// LoadIndependent reports whether the latency is above its target although replicas have little load, so that more
	// replicas would not lower it.
	//
	// +optional
	LoadIndependent bool `json:"loadIndependent,omitempty"`

	// Held is the greatest load of a replica at which the latency was seen to be within its target, to two significant
	// digits. With the fields below it lets another process of the provider continue to learn.
	//
	// +optional
	Held *float64 `json:"held,omitempty"`

	// HeldInFlight is the greatest number of requests in progress in a replica at which it was.
	//
	// +optional
	HeldInFlight *float64 `json:"heldInFlight,omitempty"`

	// Broke is the least load of a replica at which the latency was seen to be above its target.
	//
	// +optional
	Broke *float64 `json:"broke,omitempty"`

	// BrokeAt is when that was seen last, to ten minutes. It is forgotten after 6h.
	//
	// +optional
	BrokeAt *metav1.Time `json:"brokeAt,omitempty"`

	// Expressions of the queries of the spec, by slot and by the series to record for the autoscaler.
	//
	// +listType=map
	// +listMapKey=slot
	// +listMapKey=series
	// +optional
	Expressions []SlotExpression `json:"expressions,omitempty"`

	// Message explains what blocks learning, and what to do.
	//
	// +optional
	Message string `json:"message,omitempty"`
}

// SlotExpression is a PromQL expression for the pods of one slot.
type SlotExpression struct {
	// Slot of the pods.
	Slot string `json:"slot"`

	// Series to record it as: capstan:custom for the query of signal Query, and capstan:own_inflight,
	// capstan:own_requests_per_second and capstan:own_latency_ms for queries that replace built-in ones.
	Series string `json:"series"`

	// Expression, restricted to the pods of the slot.
	Expression string `json:"expression"`
}

// Series that an Algorithm records of a slot, of queries of its own: see SlotExpression.
const (
	SeriesCustom         = "capstan:custom"
	SeriesOwnInFlight    = "capstan:own_inflight"
	SeriesOwnRequestRate = "capstan:own_requests_per_second"
	SeriesOwnLatency     = "capstan:own_latency_ms"
)
