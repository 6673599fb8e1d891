// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Lifecycle defines how traffic shifts to a new revision. Without it all traffic shifts at once, as soon as the new
// replicas are ready. With it a share of the traffic goes to the candidate first, and measurements from Prometheus
// decide: promote or roll back. Only measurements decide: too little data, or none, holds the rollout.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.canaryWeight) && has(self.steps))",fieldPath=".steps",message="steps replace canaryWeight: set only one of them"
// +kubebuilder:validation:XValidation:rule="!has(self.capacity) || self.capacity == 'Surge' || !has(self.mirrorPercent)",fieldPath=".mirrorPercent",message="needs capacity: Surge, because copies of requests need replicas beside those that serve: remove mirrorPercent, or set capacity to Surge"
// +kubebuilder:validation:XValidation:rule="!has(self.capacity) || self.capacity == 'Surge' || !has(self.standbyReplicas)",fieldPath=".standbyReplicas",message="needs capacity: Surge, because with Borrow and Recreate the previous revision keeps no replicas: remove standbyReplicas, or set capacity to Surge"
type Lifecycle struct {
	// CanaryWeight is the percentage of traffic that goes to a candidate before it gets all traffic. 100 shifts all
	// traffic at once; then only spec.lifecycle.bake is left for an automatic rollback. Without spec.route the number
	// of replicas sets the percentage, and one pod is the least: beside a single replica, all traffic shifts at once.
	// Default: 20, unless steps are set.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:example=20
	// +optional
	// +capstan:form:title="First share of traffic, in %",order=100,group=basic
	CanaryWeight *int32 `json:"canaryWeight,omitempty"`

	// Steps are the percentages of traffic that a candidate gets one after the other, in rising order, for instance 5,
	// 20, 50. They replace canaryWeight.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:Minimum=1
	// +kubebuilder:validation:items:Maximum=99
	// +kubebuilder:validation:XValidation:rule="self.isSorted() && self.all(w, self.exists_one(o, o == w))",message="must rise, for instance 5, 20, 50"
	// +listType=atomic
	// +kubebuilder:example={5,20,50}
	// +optional
	Steps []int32 `json:"steps,omitempty"`

	// MirrorPercent is the percentage of requests that are copied to a candidate before it gets any traffic, for at least
	// soak, as in any step. The checks judge its responses, and clients never receive them. Requests with side effects have
	// them twice. It needs spec.route and a Gateway with the feature HTTPRouteRequestMirror for 100, or
	// HTTPRouteRequestPercentageMirror for less. Default: no request is copied.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:example=100
	// +optional
	MirrorPercent *int32 `json:"mirrorPercent,omitempty"`

	// Soak is the minimum duration of each step, at most 168h. Default: 2m.
	//
	// +kubebuilder:default="2m"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,3})?(ms|s|m|h)){1,4}$') && duration(self) >= duration('0s') && duration(self) <= duration('168h')",message="must be a time of at most 168h, for instance 2m"
	// +kubebuilder:example="2m"
	// +optional
	Soak *metav1.Duration `json:"soak,omitempty"`

	// Deadline is the maximum duration of a step, and the maximum time without metrics, before onNoData applies. From
	// 1m to 168h, and not less than soak. Default: 1h.
	//
	// +kubebuilder:default="1h"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,3})?(ms|s|m|h)){1,4}$') && duration(self) >= duration('1m') && duration(self) <= duration('168h')",message="must be a time from 1m to 168h, for instance 1h"
	// +kubebuilder:example="1h"
	// +optional
	Deadline *metav1.Duration `json:"deadline,omitempty"`

	// Bake is how long the previous revision stays after promotion, at most 168h. If the new revision fails in this
	// time, all traffic shifts back at once. An edit that makes another revision ends it. Default: 30m.
	//
	// +kubebuilder:default="30m"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,3})?(ms|s|m|h)){1,4}$') && duration(self) >= duration('0s') && duration(self) <= duration('168h')",message="must be a time of at most 168h, for instance 30m"
	// +kubebuilder:example="30m"
	// +optional
	Bake *metav1.Duration `json:"bake,omitempty"`

	// Capacity is where the replicas of a candidate find room: Surge, Borrow or Recreate. Surge starts them beside those
	// that serve. Borrow exchanges replicas one after the other, and both revisions together have at most spec.replicas;
	// at most availability.maxUnavailable of them are missing. Recreate stops the live revision before the candidate
	// starts: until the candidate is ready, clients are refused. Borrow and Recreate need spec.replicas, and no
	// spec.scaling. An experiment always uses Surge. A change takes effect once no traffic reaches the candidate, except
	// that Surge starts a stopped live revision again at once. Default: Surge.
	//
	// +kubebuilder:default=Surge
	// +kubebuilder:example=Borrow
	// +optional
	Capacity Capacity `json:"capacity,omitempty"`

	// StandbyReplicas is the number of replicas that the previous revision keeps while the new one bakes. A small
	// number saves capacity, but before a rollback the other replicas must start. Default: as many as it had.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +kubebuilder:example=1
	// +optional
	StandbyReplicas *int32 `json:"standbyReplicas,omitempty"`

	// SuccessThreshold is the minimum share of requests to the candidate that must succeed, from 0 to less than 1, where
	// it differs from the objective. With 0 only the comparison with the live revision counts. A server that counts no
	// failed requests needs 0, and another check. Default: objectives.successRatio, or 0.99 without one.
	//
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:ExclusiveMaximum=true
	// +kubebuilder:validation:Maximum=1
	// +kubebuilder:example=0.99
	// +optional
	// +capstan:form:title="Requests that must succeed",order=105,group=advanced
	SuccessThreshold *float64 `json:"successThreshold,omitempty"`

	// MaxFailureIncreasePercent is by how much more of its requests can fail in the candidate than in the live revision,
	// as a percentage of the share that successThreshold lets fail. With 25 and a threshold of 0.99, a quarter of a
	// percentage point. When it is set, a rollout also waits until candidate and live revision get comparable requests.
	// Default: 25, and successThreshold alone decides where their requests are not comparable.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +kubebuilder:example=25
	// +optional
	MaxFailureIncreasePercent *int32 `json:"maxFailureIncreasePercent,omitempty"`

	// MaxLatencyIncreasePercent is the percentage by which the latency of the candidate can exceed the latency of the
	// live revision, at objectives.latencyPercentile. Default: only objectives.latencyMs counts.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +kubebuilder:example=10
	// +optional
	MaxLatencyIncreasePercent *int32 `json:"maxLatencyIncreasePercent,omitempty"`

	// MinSamples is the minimum number of requests to the candidate before a check of a step can pass. A strict
	// threshold needs more to be certain: 0.99 needs 268 requests without a failure. Default: 100.
	//
	// +kubebuilder:default=100
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	// +kubebuilder:example=100
	// +optional
	MinSamples *int32 `json:"minSamples,omitempty"`

	// RollbackOnDrift rolls a candidate back when the distribution of its outputs differs from the one of the live
	// revision, which gets the same kind of requests. True without drift uses the defaults of drift. False beside drift
	// only reports the distance. Default: true where drift is set.
	//
	// +kubebuilder:example=true
	// +optional
	RollbackOnDrift *bool `json:"rollbackOnDrift,omitempty"`

	// Drift defines how distributions of outputs are compared. A candidate that has drifted is rolled back, unless
	// rollbackOnDrift is false. The distributions are in the query outputs of spec.metrics.queries, or else in the histogram
	// algorithm_prediction_score, or one that is known of the server, such as the number of generated tokens of vLLM.
	// Without any, drift is not checked, and the condition MetricsAvailable reports DriftNotMeasured. Default: its
	// defaults, with rollbackOnDrift.
	//
	// +optional
	Drift *Drift `json:"drift,omitempty"`

	// OnNoData is what happens when a step reaches its deadline with too little data: Hold, Rollback or Continue. Hold
	// keeps the share of traffic while something is known of the candidate, and returns it to 0 % when nothing is.
	// Default: Hold.
	//
	// +kubebuilder:default=Hold
	// +kubebuilder:example=Hold
	// +optional
	OnNoData OnNoData `json:"onNoData,omitempty"`

	// Approval is where a rollout waits for an approval in spec.rollout.approve: None, BeforePromotion, or EveryStep,
	// which is before each share of traffic after the first. Default: None.
	//
	// +kubebuilder:default=None
	// +kubebuilder:example=BeforePromotion
	// +optional
	Approval Approval `json:"approval,omitempty"`

	// Freeze lists time windows in which no rollout starts or advances. A rollback is always possible.
	//
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	// +optional
	Freeze []FreezeWindow `json:"freeze,omitempty"`

	// Match sends requests with one of these headers or cookies to the candidate while it gets a share of the traffic:
	// header NAME=VALUE, or cookie NAME=VALUE. It needs spec.route.
	//
	// +kubebuilder:validation:MaxItems=4
	// +listType=atomic
	// +kubebuilder:example={"header X-User-Group=beta","cookie early-access=beta"}
	// +optional
	Match []RequestMatch `json:"match,omitempty"`

	// Hooks are HTTP requests and Jobs at points of a rollout: tests, gates, clean-up and notifications. A rollback never
	// waits for them, and spec.rollout.promote does not. They do not run for experiments.
	//
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=name
	// +optional
	Hooks []RolloutHook `json:"hooks,omitempty"`
}

// DriftMethod is how two distributions are compared.
//
// +kubebuilder:validation:Enum=PSI;KS
type DriftMethod string

// How two distributions are compared.
const (
	// DriftPSI is the population stability index: usually 0.1 is a moderate change and 0.2 a change to act on.
	DriftPSI DriftMethod = "PSI"
	// DriftKS is the Kolmogorov-Smirnov statistic: the maximum distance of the two cumulative distributions, from 0 to
	// 1.
	DriftKS DriftMethod = "KS"
)

// Drift defines how distributions of outputs are compared, which are in the query outputs of spec.metrics.queries, or else in the
// histogram algorithm_prediction_score, or in one that is known of the server, such as the number of generated tokens of
// vLLM. Without any, drift is not checked, and the condition MetricsAvailable reports DriftNotMeasured.
type Drift struct {
	// Method of comparison: PSI (population stability index) or KS (Kolmogorov-Smirnov statistic). Default: PSI.
	//
	// +kubebuilder:default=PSI
	// +kubebuilder:example=PSI
	// +optional
	Method DriftMethod `json:"method,omitempty"`

	// Max is the highest distance that passes, above 0 and at most 10. Default: 0.2.
	//
	// +kubebuilder:default=0.2
	// +kubebuilder:validation:XValidation:rule="self > 0.0 && self <= 10.0",message="must be above 0 and at most 10"
	// +kubebuilder:example=0.2
	// +optional
	Max *float64 `json:"max,omitempty"`

	// Reference compares the live revision with itself this long ago, from 1m to 720h, to detect drift of the input
	// data. Such drift appears in every revision, so the condition DataDrift reports it and nothing is rolled back.
	// Default: no comparison.
	//
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,3})?(ms|s|m|h)){1,4}$') && duration(self) >= duration('1m') && duration(self) <= duration('720h')",message="must be a time from 1m to 720h, for instance 24h"
	// +kubebuilder:example="24h"
	// +optional
	Reference *metav1.Duration `json:"reference,omitempty"`
}

// OnNoData is what happens when there is too little data about a revision.
//
// +kubebuilder:validation:Enum=Hold;Rollback;Continue
type OnNoData string

// What happens when there is too little data about a revision.
const (
	// NoDataHold keeps the share of traffic until there is enough data. When nothing is known of the revision, no
	// traffic reaches it until something can be.
	NoDataHold OnNoData = "Hold"
	// NoDataRollback rolls the revision back.
	NoDataRollback OnNoData = "Rollback"
	// NoDataContinue continues as if all checks had passed.
	NoDataContinue OnNoData = "Continue"
)

// Capacity is where the replicas of a candidate find room.
//
// +kubebuilder:validation:Enum=Surge;Borrow;Recreate
type Capacity string

// Where the replicas of a candidate find room.
const (
	// CapacitySurge starts them beside those that serve.
	CapacitySurge Capacity = "Surge"
	// CapacityBorrow exchanges replicas of the live revision for them, one after the other.
	CapacityBorrow Capacity = "Borrow"
	// CapacityRecreate stops the live revision before they start.
	CapacityRecreate Capacity = "Recreate"
)

// Approval is where a rollout waits for an approval.
//
// +kubebuilder:validation:Enum=None;BeforePromotion;EveryStep
type Approval string

// Where a rollout waits for an approval.
const (
	// ApprovalNone never waits.
	ApprovalNone Approval = "None"
	// ApprovalBeforePromotion waits before the candidate gets all traffic.
	ApprovalBeforePromotion Approval = "BeforePromotion"
	// ApprovalEveryStep waits before each share of traffic after the first.
	ApprovalEveryStep Approval = "EveryStep"
)

// FreezeWindow is a recurring time window.
type FreezeWindow struct {
	// Cron is when the window begins: minute, hour, day of the month, month and day of the week. "0 17 * * 5" is every
	// Friday at 17:00.
	//
	// +kubebuilder:validation:MinLength=9
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:example="0 17 * * 5"
	Cron string `json:"cron"`

	// For is the duration of the window, from 1m to 744h. It must end before the next window begins.
	//
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=48
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,3})?(ms|s|m|h)){1,4}$') && duration(self) >= duration('1m') && duration(self) <= duration('744h')",message="must be a time from 1m to 744h, for instance 62h"
	// +kubebuilder:example="62h"
	For metav1.Duration `json:"for"`

	// TimeZone of cron: a name of the IANA time zone database. Default: UTC.
	//
	// +kubebuilder:default="UTC"
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z][-A-Za-z0-9_+/]*$')",message="must be the name of a time zone, for instance Europe/Berlin"
	// +kubebuilder:example="Europe/Berlin"
	// +optional
	TimeZone string `json:"timeZone,omitempty"`
}

// RequestMatch is a header or a cookie of a request with its value: "header NAME=VALUE" or "cookie NAME=VALUE". Names are letters,
// digits, '-' and '_', values also '.' and '~'.
//
// +kubebuilder:validation:MaxLength=1280
// +kubebuilder:validation:XValidation:rule="self.matches('^(header|cookie) [A-Za-z0-9][-A-Za-z0-9_]*=[-A-Za-z0-9_.~]+$')",message="must be header or cookie, its name, = and its value, for instance header X-User-Group=beta: names are letters, digits, '-' and '_', values also '.' and '~'"
type RequestMatch string

// Parts of a match: whether it is about a cookie, its name and its value.
func (m RequestMatch) Parts() (cookie bool, name, value string) {
	kind, pair, _ := strings.Cut(string(m), " ")
	name, value, _ = strings.Cut(pair, "=")
	return kind == "cookie", name, value
}
