// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// Phase of an Algorithm in one word, for people and portals. Conditions tell
// more.
type Phase string

// Phases of an Algorithm.
const (
	// PhasePending: composed objects are being made, nothing runs yet.
	PhasePending Phase = "Pending"
	// PhaseProgressing: pods start, or are replaced after an edit.
	PhaseProgressing Phase = "Progressing"
	// PhaseReady: every asked replica serves the current spec.
	PhaseReady Phase = "Ready"
	// PhaseDegraded: fewer replicas serve than asked for and something hinders
	// the rest; the condition PodsHealthy says what.
	PhaseDegraded Phase = "Degraded"
	// PhaseStopped: zero replicas were asked for.
	PhaseStopped Phase = "Stopped"
)

// AlgorithmStatus is what was seen.
type AlgorithmStatus struct {
	xpv2.ConditionedStatus `json:",inline"`

	// Phase in one word: Pending, Progressing, Ready, Degraded or Stopped.
	//
	// +optional
	Phase Phase `json:"phase,omitempty"`

	// Endpoint is the URL that callers inside the cluster use.
	//
	// +optional
	Endpoint string `json:"endpoint,omitempty"`

	// Host and path that callers outside the cluster use, once the Gateway of
	// spec.route has accepted the route: host/path, without the scheme and port,
	// which are the Gateway's.
	//
	// +optional
	Route string `json:"route,omitempty"`

	// Revision tells which revisions there are.
	//
	// +optional
	Revision *RevisionStatus `json:"revision,omitempty"`

	// Rollout tells where the rollout of spec.lifecycle stands and why.
	//
	// +optional
	Rollout *RolloutStatus `json:"rollout,omitempty"`

	// Experiment tells where spec.experiment stands, or what came of the last one.
	//
	// +optional
	Experiment *ExperimentStatus `json:"experiment,omitempty"`

	// SLO tells what is left of the error budget of spec.slo.
	//
	// +optional
	SLO *SLOStatus `json:"slo,omitempty"`

	// Model that was resolved, when it is not part of the image.
	//
	// +optional
	Model *ModelStatus `json:"model,omitempty"`

	// Scaling tells what the number of replicas follows.
	//
	// +optional
	Scaling *ScalingStatus `json:"scaling,omitempty"`

	// Metrics as the Analysis last told them, of the live revision.
	//
	// +listType=map
	// +listMapKey=name
	// +optional
	Metrics []MetricStatus `json:"metrics,omitempty"`

	// Replicas is the number of pods there are, ready or not.
	//
	// +optional
	Replicas int32 `json:"replicas"`

	// ReadyReplicas is the number of pods that serve.
	//
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`

	// Selector of the pods, in the form of a label query; the scale subresource
	// reads it.
	//
	// +optional
	Selector string `json:"selector,omitempty"`

	// Withheld lists composed objects that the API server refused and that are
	// left out until the given time, so that one refusal does not hold up the
	// rest.
	//
	// +listType=map
	// +listMapKey=resource
	// +optional
	Withheld []Withheld `json:"withheld,omitempty"`
}

// Withheld is a composed object that was refused.
type Withheld struct {
	// Resource is the name of the object within the composition.
	Resource string `json:"resource"`

	// Message is the API server's refusal.
	Message string `json:"message"`

	// Until is when it is asked for again.
	Until metav1.Time `json:"until"`
}

// RevisionStatus tells which revisions there are. A revision is everything that
// reaches the pods: image, model, config, resources and the rest.
type RevisionStatus struct {
	// Live is the revision that callers reach.
	//
	// +optional
	Live string `json:"live,omitempty"`

	// Slot that the live revision runs in, a or b.
	//
	// +optional
	Slot string `json:"slot,omitempty"`

	// Candidate is the revision that the spec asks for while it is not live.
	//
	// +optional
	Candidate string `json:"candidate,omitempty"`

	// Draining is the revision that callers reached before, while its replicas
	// finish their requests.
	//
	// +optional
	Draining string `json:"draining,omitempty"`

	// History names the revisions that are kept, the latest first.
	//
	// +listType=atomic
	// +optional
	History []string `json:"history,omitempty"`
}

// ModelStatus is the model that was resolved.
type ModelStatus struct {
	// Name of the model in the registry.
	//
	// +optional
	Name string `json:"name,omitempty"`

	// ProviderConfig that says where the registry is: its kind and name.
	//
	// +optional
	ProviderConfig string `json:"providerConfig,omitempty"`

	// Alias whose version was resolved, when one was asked for.
	//
	// +optional
	Alias string `json:"alias,omitempty"`

	// Version in the registry that was resolved.
	//
	// +optional
	Version string `json:"version,omitempty"`

	// Digest of its files, if the registry tells it.
	//
	// +optional
	Digest string `json:"digest,omitempty"`

	// Source is where its files come from.
	//
	// +optional
	Source string `json:"source,omitempty"`
}

// ScalingStatus tells what the number of replicas follows.
type ScalingStatus struct {
	// Signal of the load: InFlight, RequestRate, Query or CPU.
	Signal string `json:"signal"`

	// PerReplica is the load that one replica is to bear: requests in flight,
	// requests per second, the value of the query, or percent of the requested CPU.
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
