// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// Phase of an Algorithm in one word, for people and portals. Conditions have the details.
type Phase string

// Phases of an Algorithm.
const (
	// PhasePending: Capstan creates the composed objects, nothing runs yet.
	PhasePending Phase = "Pending"
	// PhaseProgressing: pods start, or an edit replaces them.
	PhaseProgressing Phase = "Progressing"
	// PhaseReady: every desired replica is ready and runs the current spec.
	PhaseReady Phase = "Ready"
	// PhaseDegraded: fewer replicas than desired are ready, because something blocks the others. The condition
	// PodsHealthy names the cause.
	PhaseDegraded Phase = "Degraded"
	// PhaseStopped: the desired number of replicas is zero.
	PhaseStopped Phase = "Stopped"
	// PhaseAsleep: the Algorithm is idle and no replica runs. The first request starts one.
	PhaseAsleep Phase = "Asleep"
)

// AlgorithmStatus is the observed state of an Algorithm.
type AlgorithmStatus struct {
	xpv2.ConditionedStatus `json:",inline"`

	// Phase in one word: Pending, Progressing, Ready, Degraded, Stopped or Asleep.
	//
	// +optional
	Phase Phase `json:"phase,omitempty"`

	// Endpoint is the address for clients inside the cluster: a URL, or host and port with protocol GRPC.
	//
	// +optional
	Endpoint string `json:"endpoint,omitempty"`

	// Route is host and path for clients outside the cluster, once the Gateway of spec.route has accepted the route:
	// host/path, without scheme and port, which depend on the Gateway.
	//
	// +optional
	Route string `json:"route,omitempty"`

	// Revision lists the revisions of this Algorithm.
	//
	// +optional
	Revision *RevisionStatus `json:"revision,omitempty"`

	// Signals from outside that are in force.
	//
	// +listType=map
	// +listMapKey=name
	// +optional
	Signals []SignalStatus `json:"signals,omitempty"`

	// Rollout is the state of the rollout of spec.lifecycle.
	//
	// +optional
	Rollout *RolloutStatus `json:"rollout,omitempty"`

	// Experiment is the state of the Experiment that spec.experiment names, or the result of the latest experiment.
	//
	// +optional
	Experiment *AlgorithmExperiment `json:"experiment,omitempty"`

	// SLO is the state of the error budget of spec.slo.
	//
	// +optional
	SLO *SLOStatus `json:"slo,omitempty"`

	// Model that the spec resolves to, when it is not part of the image.
	//
	// +optional
	Model *ModelStatus `json:"model,omitempty"`

	// Scaling is what the number of replicas follows.
	//
	// +optional
	Scaling *ScalingStatus `json:"scaling,omitempty"`

	// Metrics of the live revision, from the latest report of the Analysis.
	//
	// +listType=map
	// +listMapKey=name
	// +optional
	Metrics []MetricStatus `json:"metrics,omitempty"`

	// Replicas is the number of existing pods, ready or not.
	//
	// +optional
	Replicas int32 `json:"replicas"`

	// ReadyReplicas is the number of ready pods.
	//
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`

	// Selector of the pods, in the form of a label query, for the scale subresource.
	//
	// +optional
	Selector string `json:"selector,omitempty"`

	// Withheld lists composed objects that the API server has rejected. Capstan does not send them again until the
	// given time, so that one rejection does not block the others.
	//
	// +listType=map
	// +listMapKey=resource
	// +optional
	Withheld []Withheld `json:"withheld,omitempty"`
}

// Withheld is a composed object that the API server has rejected.
type Withheld struct {
	// Resource is the name of the object within the composition.
	Resource string `json:"resource"`

	// Message of the API server.
	Message string `json:"message"`

	// Until is when Capstan sends it again.
	Until metav1.Time `json:"until"`
}

// RevisionStatus lists the revisions of an Algorithm. A revision is everything that reaches the pods: image, model,
// config, resources and the rest.
type RevisionStatus struct {
	// Live is the revision that gets the traffic.
	//
	// +optional
	Live string `json:"live,omitempty"`

	// Slot of the live revision, a or b.
	//
	// +optional
	Slot string `json:"slot,omitempty"`

	// Candidate is the revision that the spec describes while it is not live.
	//
	// +optional
	Candidate string `json:"candidate,omitempty"`

	// Draining is the previous revision while its replicas finish their requests.
	//
	// +optional
	Draining string `json:"draining,omitempty"`

	// History lists the revisions that are kept, the latest first.
	//
	// +listType=atomic
	// +optional
	History []string `json:"history,omitempty"`
}

// ModelStatus is the resolved model.
type ModelStatus struct {
	// Name of the model in the registry.
	//
	// +optional
	Name string `json:"name,omitempty"`

	// ProviderConfig with the address of the registry: its kind and name.
	//
	// +optional
	ProviderConfig string `json:"providerConfig,omitempty"`

	// Alias that was resolved, if the spec has one.
	//
	// +optional
	Alias string `json:"alias,omitempty"`

	// Version in the registry.
	//
	// +optional
	Version string `json:"version,omitempty"`

	// Digest of its files, if the registry has one.
	//
	// +optional
	Digest string `json:"digest,omitempty"`

	// Source is where its files come from.
	//
	// +optional
	Source string `json:"source,omitempty"`
}

// ScalingStatus is what the number of replicas follows.
type ScalingStatus struct {
	// Signal is the load: InFlight, RequestRate, Query or CPU.
	Signal string `json:"signal"`

	// PerReplica is the load for one replica: requests in flight, requests per second, the value of the query, or
	// percent of the CPU request.
	//
	// +optional
	PerReplica *float64 `json:"perReplica,omitempty"`
}

// MetricStatus is one metric of the live revision.
type MetricStatus struct {
	// Name of the check.
	Name string `json:"name"`

	// Verdict: Pass, Fail, Insufficient, NoData or Error.
	Verdict string `json:"verdict"`

	// Value in the unit of the check.
	//
	// +optional
	Value *float64 `json:"value,omitempty"`
}
