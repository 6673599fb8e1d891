// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
)

// Labels and annotations of the pods of an Algorithm.
const (
	// LabelAlgorithm is the Algorithm of a pod.
	LabelAlgorithm = "capstan.dev/algorithm"

	// LabelSlot is the slot of a pod.
	LabelSlot = "capstan.dev/slot"

	// AnnotationRevision is the revision of a pod.
	AnnotationRevision = "capstan.dev/revision"
)

// An Analysis is the quiet observer of an Algorithm. It reports what blocks pods that are not ready, queries Prometheus
// for their metrics, learns how much load one replica can take, and detects changes of their Secrets. Its status
// changes only when a fact changes, and at most once per interval, so that it causes few writes. Each Algorithm
// composes one.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories={crossplane,managed,capstan}
// +kubebuilder:printcolumn:name="Synced",type=string,JSONPath=`.status.conditions[?(@.type=="Synced")].status`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Connected",type=string,JSONPath=`.status.conditions[?(@.type=="Connected")].reason`
// +kubebuilder:printcolumn:name="Finding",type=string,JSONPath=`.status.atProvider.findings[0].reason`
// +kubebuilder:printcolumn:name="Verdicts",type=string,JSONPath=`.status.atProvider.metrics[*].verdict`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Analysis struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what to observe.
	Spec AnalysisSpec `json:"spec"`

	// Status is the observed state.
	//
	// +optional
	Status AnalysisStatus `json:"status,omitempty"`
}

// AnalysisList is a list of Analyses.
//
// +kubebuilder:object:root=true
type AnalysisList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Analysis `json:"items"`
}

// AnalysisSpec is what to observe.
type AnalysisSpec struct {
	// ManagementPolicies: an Analysis only observes. Default: ["Observe"].
	//
	// +kubebuilder:default={"Observe"}
	// +kubebuilder:validation:XValidation:rule="self.all(p, p == 'Observe')",message="must be Observe or nothing: an Analysis only observes"
	// +kubebuilder:example={"Observe"}
	// +optional
	ManagementPolicies xpv2.ManagementPolicies `json:"managementPolicies,omitempty"`

	// ProviderConfigReference names the ProviderConfig of this namespace, or the ClusterProviderConfig, with the
	// address of Prometheus. It is used only when forProvider.metrics is set. Default: the ClusterProviderConfig
	// prometheus.
	//
	// +kubebuilder:default={"kind": "ClusterProviderConfig", "name": "prometheus"}
	// +kubebuilder:example={"kind": "ClusterProviderConfig", "name": "prometheus"}
	// +kubebuilder:validation:XValidation:rule="self.kind in ['ProviderConfig', 'ClusterProviderConfig']",messageExpression="'providerConfigRef.kind: ' + self.kind + ' is neither ProviderConfig nor ClusterProviderConfig'"
	// +kubebuilder:validation:XValidation:rule="size(self.name) <= 63 && self.name.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",messageExpression="'providerConfigRef.name: ' + self.name + ' is not the name of a config: at most 63 lower case letters, digits, - and .'"
	// +optional
	ProviderConfigReference *xpv2.ProviderConfigReference `json:"providerConfigRef,omitempty"`

	// ForProvider is what to observe.
	ForProvider AnalysisParameters `json:"forProvider"`
}

// AnalysisParameters are what to observe.
type AnalysisParameters struct {
	// Algorithm whose pods are observed: pods of this namespace whose label capstan.dev/algorithm has this value.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:example="recommendation-engine"
	Algorithm string `json:"algorithm"`

	// Container in those pods. Default: algorithm.
	//
	// +kubebuilder:default=algorithm
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:example="algorithm"
	// +optional
	Container string `json:"container,omitempty"`

	// Secrets of this namespace to observe. status.atProvider.secrets has a fingerprint of each, which changes with its
	// content. Pods that wait for a missing Secret are reported as findings.
	//
	// +kubebuilder:validation:MaxItems=17
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.all(n, n.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$'))",message="must be names of Secrets: lower case letters, digits, '-' and '.', with a letter or digit at both ends"
	// +listType=set
	// +kubebuilder:example={"reco-license"}
	// +optional
	Secrets []string `json:"secrets,omitempty"`

	// Metrics to query from Prometheus. Default: none.
	//
	// +optional
	Metrics *MetricsParameters `json:"metrics,omitempty"`
}

// AnalysisStatus is the observed state.
type AnalysisStatus struct {
	xpv2.ManagedResourceStatus `json:",inline"`

	// AtProvider is the observed state.
	//
	// +optional
	AtProvider AnalysisObservation `json:"atProvider,omitempty"`
}

// AnalysisObservation is the observed state.
type AnalysisObservation struct {
	// Findings are what blocks pods that are not ready, the most frequent first. Empty when nothing does.
	//
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	// +optional
	Findings []Finding `json:"findings,omitempty"`

	// Signals to the Algorithm that are in force, sorted by name.
	//
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	Signals []ActiveSignal `json:"signals,omitempty"`

	// Secrets that are observed and exist, sorted by name.
	//
	// +listType=map
	// +listMapKey=name
	// +optional
	Secrets []SecretObservation `json:"secrets,omitempty"`

	// Server whose metric names the pods use, for instance vLLM, or Custom when the spec replaces every query. Empty
	// until one is recognised.
	//
	// +optional
	Server string `json:"server,omitempty"`

	// UncountedFailures is why failed requests are not counted, and what to do. Empty while they are, or while no server
	// is recognised.
	//
	// +optional
	UncountedFailures string `json:"uncountedFailures,omitempty"`

	// Distribution is the histogram of the live pods' outputs by which drift is measured when a check names no query,
	// for instance algorithm_prediction_score_bucket. Empty when the pods expose none that is known.
	//
	// +optional
	Distribution string `json:"distribution,omitempty"`

	// Trial has the results of the checks that are tried.
	//
	// +kubebuilder:validation:MaxItems=24
	// +listType=map
	// +listMapKey=name
	// +optional
	Trial []TrialObservation `json:"trial,omitempty"`

	// Metrics by slot and name.
	//
	// +kubebuilder:validation:MaxItems=48
	// +listType=map
	// +listMapKey=slot
	// +listMapKey=name
	// +optional
	Metrics []MetricObservation `json:"metrics,omitempty"`

	// Scaling is what was learned about the load for one replica.
	//
	// +optional
	Scaling *ScalingObservation `json:"scaling,omitempty"`

	// Latency has the expressions of queries.latency that recordLatency asks for, one of each slot. It is empty for a query
	// that cannot be narrowed to the pods of a slot; the checks of the latency say why.
	//
	// +listType=map
	// +listMapKey=slot
	// +listMapKey=series
	// +optional
	Latency []SlotExpression `json:"latency,omitempty"`

	// Canary is the evidence about a candidate.
	//
	// +optional
	Canary *CanaryObservation `json:"canary,omitempty"`

	// IdleSince is since when no request has come to the first slot, once that is idleAfterSeconds ago. It is absent
	// while requests come, and while the number of requests is unknown.
	//
	// +optional
	IdleSince *metav1.Time `json:"idleSince,omitempty"`

	// Requested is another text each time an activator has a request for an Algorithm that is asleep or falls asleep. The
	// activator writes it, and nothing else of an Analysis.
	//
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Requested string `json:"requested,omitempty"`

	// SLO is the state of the error budget.
	//
	// +optional
	SLO *SLOObservation `json:"slo,omitempty"`
}

// SecretObservation is the observed state of a Secret.
type SecretObservation struct {
	// Name of the Secret.
	Name string `json:"name"`

	// Fingerprint of its content. It reveals nothing about the content, because it is keyed with the UID of the Secret.
	Fingerprint string `json:"fingerprint"`
}

// FindingCause is where the cause of a finding lies.
//
// +kubebuilder:validation:Enum=Revision;Outside
type FindingCause string

// Causes of findings.
const (
	// FindingOfRevision: what the revision requires is wrong or missing.
	FindingOfRevision FindingCause = "Revision"
	// FindingOutside: something that the revision needs does not do its part.
	FindingOutside FindingCause = "Outside"
)

// FindingExtent is how many pods of a slot have the reason of a finding.
//
// +kubebuilder:validation:Enum=Node;Few
type FindingExtent string

// Extents of findings.
const (
	// FindingOnNode: only pods on one node, while pods on other nodes are ready.
	FindingOnNode FindingExtent = "Node"
	// FindingOfFew: a small part of the pods.
	FindingOfFew FindingExtent = "Few"
)

// A Finding is one cause that blocks pods from becoming ready.
type Finding struct {
	// Reason in one word. The Algorithm's condition PodsHealthy has the same reasons: ImagePullFailed, InsufficientGPU,
	// Unschedulable, CrashLooping, ConfigError, RunsAsRoot, NotListening, NotWarm, and those about the model:
	// ModelNotFound, ModelForbidden, ModelUnreachable, ModelDigestMismatch, ModelSizeMismatch, ModelNoSpace,
	// ModelInvalid, ModelFetching.
	Reason string `json:"reason"`

	// Message has cause and remedy. It has no pod name, time or count that would change without an event.
	Message string `json:"message"`

	// Cause is where the cause lies, as far as it is known. Revision: what the revision requires is wrong or missing, and
	// waiting does not help. Outside: a registry, an object storage or a node does not do its part, and waiting may help.
	// Empty: the replicas may only need more time.
	//
	// +optional
	Cause FindingCause `json:"cause,omitempty"`

	// Extent is how many pods of the slot have the reason of the finding. Node: only pods on one node, while pods on other
	// nodes are ready. Few: fewer than a quarter of several pods, or fewer than two. Empty: more.
	//
	// +optional
	Extent FindingExtent `json:"extent,omitempty"`

	// Since is when the youngest of these pods was created. A pod that takes the place of an evicted one has its own time to
	// start.
	//
	// +optional
	Since *metav1.Time `json:"since,omitempty"`

	// Slot of the blocked pods: the label capstan.dev/slot.
	//
	// +optional
	Slot string `json:"slot,omitempty"`

	// Revision of these pods: the annotation capstan.dev/revision. Empty for older pods without one.
	//
	// +optional
	Revision string `json:"revision,omitempty"`
}
