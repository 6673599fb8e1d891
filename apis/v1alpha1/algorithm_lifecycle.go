// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Lifecycle says how callers go over to a new revision. Without it all of them do
// at once, as soon as its replicas serve. With it a part of them tries the revision
// first, and what Prometheus tells of it decides whether the rest follows or all go
// back. Only what was measured decides: too little of it, or none, holds.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.canaryWeight) && has(self.steps))",fieldPath=".steps",message="steps: take the place of canaryWeight: set one of them"
// +kubebuilder:validation:XValidation:rule="!has(self.drift) || has(self.rollbackOnDrift) && self.rollbackOnDrift || has(self.drift.reference)",fieldPath=".drift",message="drift: needs rollbackOnDrift, or a reference to compare the past with, or nothing comes of it"
// +kubebuilder:validation:XValidation:rule="!has(self.rollbackOnDrift) || !self.rollbackOnDrift || has(self.drift)",fieldPath=".rollbackOnDrift",message="rollbackOnDrift: needs drift: name the histogram whose distribution is compared"
type Lifecycle struct {
	// CanaryWeight is the share of callers, in percent, that try a new revision
	// before all go over to it. 100 sends all of them at once, and only the time to
	// bake remains to go back by itself. Default: 20, unless steps are set.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:example=20
	// +optional
	CanaryWeight *int32 `json:"canaryWeight,omitempty"`

	// Steps are the shares of callers, in percent and rising, that try a new revision
	// one after the other.
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

	// Mirror sends copies of requests to a new revision before the first share of
	// callers: it is found out how it does, and nobody gets its answers. Requests that
	// change something elsewhere do so twice. It needs spec.route, and a Gateway that
	// offers it. Default: no request is copied.
	//
	// +optional
	Mirror *Mirror `json:"mirror,omitempty"`

	// Soak is the least time that each step lasts.
	//
	// +kubebuilder:default="2m"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,3})?(ms|s|m|h)){1,4}$') && duration(self) >= duration('0s') && duration(self) <= duration('168h')",message="must be a time of at most 168h, for instance 2m"
	// +kubebuilder:example="2m"
	// +optional
	Soak *metav1.Duration `json:"soak,omitempty"`

	// Deadline is how long a step may last, and metrics may be unavailable, before
	// onNoData says what happens.
	//
	// +kubebuilder:default="1h"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,3})?(ms|s|m|h)){1,4}$') && duration(self) >= duration('1m') && duration(self) <= duration('168h')",message="must be a time from 1m to 168h, for instance 1h"
	// +kubebuilder:example="1h"
	// +optional
	Deadline *metav1.Duration `json:"deadline,omitempty"`

	// Bake is how long the revision before stays, after all callers went over, to
	// take them back at once if the new one fails after all. An edit to another
	// revision ends it.
	//
	// +kubebuilder:default="30m"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,3})?(ms|s|m|h)){1,4}$') && duration(self) >= duration('0s') && duration(self) <= duration('168h')",message="must be a time of at most 168h, for instance 30m"
	// +kubebuilder:example="30m"
	// +optional
	Bake *metav1.Duration `json:"bake,omitempty"`

	// StandbyReplicas of the revision before while the new one bakes. Fewer than it had
	// save capacity, and take callers back before all of them run again. Default: as
	// many as it had.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +kubebuilder:example=1
	// +optional
	StandbyReplicas *int32 `json:"standbyReplicas,omitempty"`

	// SuccessThreshold is the least share of requests to the new revision that must
	// succeed. 0 leaves only the comparison with the revision before.
	//
	// +kubebuilder:default=0.99
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:ExclusiveMaximum=true
	// +kubebuilder:validation:Maximum=1
	// +kubebuilder:example=0.99
	// +optional
	SuccessThreshold *float64 `json:"successThreshold,omitempty"`

	// MinSamples is how many requests to the new revision a step needs at least. Some
	// targets need more to be sure: 268 without a failure for a threshold of 0.99.
	//
	// +kubebuilder:default=100
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	// +kubebuilder:example=100
	// +optional
	MinSamples *int32 `json:"minSamples,omitempty"`

	// Latency that is asked of the new revision.
	//
	// +optional
	Latency *LatencyTarget `json:"latency,omitempty"`

	// Metrics of one's own that are asked of the new revision.
	//
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=name
	// +optional
	Metrics []LifecycleMetric `json:"metrics,omitempty"`

	// RollbackOnDrift rolls a new revision back when the distribution of what it tells
	// leaves that of the revision before, which meets the same requests.
	//
	// +kubebuilder:example=true
	// +optional
	RollbackOnDrift bool `json:"rollbackOnDrift,omitempty"`

	// Drift says which distribution is compared, and how.
	//
	// +optional
	Drift *Drift `json:"drift,omitempty"`

	// OnNoData says what happens when a step has lasted for the deadline and too
	// little is known of the revision to go on: Hold, Rollback or Continue.
	//
	// +kubebuilder:default=Hold
	// +kubebuilder:example=Hold
	// +optional
	OnNoData OnNoData `json:"onNoData,omitempty"`

	// Approval says where somebody has to agree: None, BeforePromotion, or EveryStep
	// before each share of callers that is greater than the first.
	//
	// +kubebuilder:default=None
	// +kubebuilder:example=BeforePromotion
	// +optional
	Approval Approval `json:"approval,omitempty"`

	// Approve names revisions that may go on: REVISION for every step, or
	// REVISION:WEIGHT for shares up to this one, where 100 is promotion. Entries about
	// other revisions mean nothing, so that one that is left behind approves nothing.
	//
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=32
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[0-9a-f]{10}(:([1-9]|[1-9][0-9]|100))?$')",message="must be a revision of status.rollout, or one with a weight, for instance 1a2b3c4d5e:50"
	// +listType=set
	// +kubebuilder:example={"1a2b3c4d5e:100"}
	// +optional
	Approve []string `json:"approve,omitempty"`

	// Promote names a revision that all callers go to at once, without evidence.
	//
	// +kubebuilder:validation:MaxLength=10
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9a-f]{10}$')",message="must be a revision of status.rollout, for instance 1a2b3c4d5e"
	// +kubebuilder:example="1a2b3c4d5e"
	// +optional
	Promote string `json:"promote,omitempty"`

	// Abort names a revision that is rolled back at once.
	//
	// +kubebuilder:validation:MaxLength=10
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9a-f]{10}$')",message="must be a revision of status.rollout, for instance 1a2b3c4d5e"
	// +kubebuilder:example="1a2b3c4d5e"
	// +optional
	Abort string `json:"abort,omitempty"`

	// Retry tries a revision again that was rolled back: REVISION#ATTEMPT with the
	// number of the attempt, 2 for the second. It begins once the time to cool down is
	// over, which doubles with each attempt from 10 minutes up to 6 hours.
	//
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9a-f]{10}#([2-9]|[1-9][0-9]{1,3})$')",message="must be a revision of status.rollout.failed and the number of the attempt, for instance 1a2b3c4d5e#2"
	// +kubebuilder:example="1a2b3c4d5e#2"
	// +optional
	Retry string `json:"retry,omitempty"`

	// Freeze holds rollouts while one of these times lasts. To go back is always
	// possible.
	//
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	// +optional
	Freeze []FreezeWindow `json:"freeze,omitempty"`

	// Match sends callers with one of these headers or cookies to the new revision as
	// long as a part of all callers tries it. It needs spec.route.
	//
	// +kubebuilder:validation:MaxItems=4
	// +listType=atomic
	// +optional
	Match []CallerMatch `json:"match,omitempty"`
}

// Mirror says which requests are copied to a new revision, and for how long.
type Mirror struct {
	// Percent of requests that are copied. Less than 100 needs a Gateway that offers
	// HTTPRouteRequestPercentageMirror, and 100 one that offers HTTPRouteRequestMirror.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:example=100
	Percent int32 `json:"percent"`

	// For is the least time that requests are copied. Evidence is needed as of any step.
	//
	// +kubebuilder:default="5m"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,3})?(ms|s|m|h)){1,4}$') && duration(self) >= duration('0s') && duration(self) <= duration('168h')",message="must be a time of at most 168h, for instance 5m"
	// +kubebuilder:example="5m"
	// +optional
	For *metav1.Duration `json:"for,omitempty"`
}

// LatencyTarget is the latency that is asked of a new revision.
//
// +kubebuilder:validation:XValidation:rule="has(self.maxMs) || has(self.maxRegressionPercent)",message="maxMs, maxRegressionPercent: at least one is needed, or nothing is asked"
type LatencyTarget struct {
	// MaxMs is the greatest latency in milliseconds.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600000
	// +kubebuilder:example=50
	// +optional
	MaxMs *int32 `json:"maxMs,omitempty"`

	// MaxRegressionPercent is by how many percent the latency may exceed that of the
	// revision before.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +kubebuilder:example=10
	// +optional
	MaxRegressionPercent *int32 `json:"maxRegressionPercent,omitempty"`

	// Percentile of the latency: 50, 90, 95 or 99.
	//
	// +kubebuilder:default=95
	// +kubebuilder:validation:Enum=50;90;95;99
	// +kubebuilder:example=95
	// +optional
	Percentile int32 `json:"percentile,omitempty"`
}

// Baseline is what a metric of a new revision is compared with.
//
// +kubebuilder:validation:Enum=Baseline
type Baseline string

// RelativeToBaseline compares with the revision before, over the same time.
const RelativeToBaseline Baseline = "Baseline"

// LifecycleMetric is a PromQL expression that is asked of a new revision.
//
// +kubebuilder:validation:XValidation:rule="has(self.min) || has(self.max)",message="min, max: at least one bound is needed, or nothing is asked"
// +kubebuilder:validation:XValidation:rule="!has(self.min) || !has(self.max) || self.min <= self.max",fieldPath=".min",message="min: must not be above max"
type LifecycleMetric struct {
	// Name of the metric.
	//
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="must be lower case letters, digits and '-', start with a letter and end with a letter or digit"
	// +kubebuilder:validation:XValidation:rule="!(self in ['success', 'success-against-baseline', 'latency', 'latency-against-baseline', 'drift'])",message="success, latency, drift and what is told against the baseline are the names of the built-in checks: choose another"
	// +kubebuilder:example="revenue"
	Name string `json:"name"`

	// Query is a PromQL expression with one value. In it $window stands for the window,
	// and it sees only series of the revision's pods.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:example="sum(increase(revenue_total[$window])) / sum(increase(http_requests_total[$window]))"
	Query string `json:"query"`

	// Min is the least value that passes.
	//
	// +kubebuilder:example=0.98
	// +optional
	Min *float64 `json:"min,omitempty"`

	// Max is the greatest value that passes.
	//
	// +kubebuilder:example=1.1
	// +optional
	Max *float64 `json:"max,omitempty"`

	// RelativeTo Baseline compares the value divided by that of the revision before.
	// Default: the value itself.
	//
	// +kubebuilder:example=Baseline
	// +optional
	RelativeTo Baseline `json:"relativeTo,omitempty"`
}

// DriftMethod says how two distributions are compared.
//
// +kubebuilder:validation:Enum=PSI;KS
type DriftMethod string

// How two distributions are compared.
const (
	// DriftPSI is the population stability index: usually 0.1 is a moderate change and
	// 0.2 one to act on.
	DriftPSI DriftMethod = "PSI"
	// DriftKS is the statistic of Kolmogorov and Smirnov: the greatest distance of the
	// two cumulative distributions, from 0 to 1.
	DriftKS DriftMethod = "KS"
)

// Drift says which distribution is compared, and how.
type Drift struct {
	// Query gives the buckets of a histogram of what the revision tells, for instance
	// of its scores, with the label le. In it $window stands for the window.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:example="increase(prediction_score_bucket[$window])"
	Query string `json:"query"`

	// Method of comparison: PSI or KS.
	//
	// +kubebuilder:default=PSI
	// +kubebuilder:example=PSI
	// +optional
	Method DriftMethod `json:"method,omitempty"`

	// Max is the greatest distance that passes.
	//
	// +kubebuilder:default=0.2
	// +kubebuilder:validation:XValidation:rule="self > 0.0 && self <= 10.0",message="must be above 0 and at most 10"
	// +kubebuilder:example=0.2
	// +optional
	Max *float64 `json:"max,omitempty"`

	// Reference is how far back lies what the live revision is compared with, to find
	// drift of the data themselves: it shows in every revision, the condition DataDrift
	// tells of it, and nothing is rolled back for it. Default: not compared.
	//
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,3})?(ms|s|m|h)){1,4}$') && duration(self) >= duration('1m') && duration(self) <= duration('720h')",message="must be a time from 1m to 720h, for instance 24h"
	// +kubebuilder:example="24h"
	// +optional
	Reference *metav1.Duration `json:"reference,omitempty"`
}

// OnNoData says what happens when too little is known of a revision.
//
// +kubebuilder:validation:Enum=Hold;Rollback;Continue
type OnNoData string

// What happens when too little is known of a revision.
const (
	// NoDataHold keeps the share of callers as it is until enough is known.
	NoDataHold OnNoData = "Hold"
	// NoDataRollback rolls the revision back.
	NoDataRollback OnNoData = "Rollback"
	// NoDataContinue goes on as if it had passed.
	NoDataContinue OnNoData = "Continue"
)

// Approval says where somebody has to agree.
//
// +kubebuilder:validation:Enum=None;BeforePromotion;EveryStep
type Approval string

// Where somebody has to agree.
const (
	// ApprovalNone: nobody has to.
	ApprovalNone Approval = "None"
	// ApprovalBeforePromotion: before all callers go over.
	ApprovalBeforePromotion Approval = "BeforePromotion"
	// ApprovalEveryStep: before each share that is greater than the first.
	ApprovalEveryStep Approval = "EveryStep"
)

// FreezeWindow is a time that comes again.
type FreezeWindow struct {
	// Cron says when it begins: minute, hour, day of the month, the month and the day of
	// the week.
	//
	// +kubebuilder:validation:MinLength=9
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:example="0 17 * * 5"
	Cron string `json:"cron"`

	// For how long it lasts.
	//
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=48
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,3})?(ms|s|m|h)){1,4}$') && duration(self) >= duration('1m') && duration(self) <= duration('744h')",message="must be a time from 1m to 744h, for instance 62h"
	// +kubebuilder:example="62h"
	For metav1.Duration `json:"for"`

	// TimeZone of cron, by its name in the IANA database.
	//
	// +kubebuilder:default="UTC"
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z][-A-Za-z0-9_+/]*$')",message="must be the name of a time zone, for instance Europe/Berlin"
	// +kubebuilder:example="Europe/Berlin"
	// +optional
	TimeZone string `json:"timeZone,omitempty"`
}

// CallerMatch is a header or a cookie of a request.
//
// +kubebuilder:validation:XValidation:rule="has(self.header) != has(self.cookie)",message="set exactly one of header and cookie"
type CallerMatch struct {
	// Header of the request.
	//
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9][-A-Za-z0-9_]*$')",message="must be the name of a header: letters, digits, '-' and '_'"
	// +kubebuilder:example="X-User-Group"
	// +optional
	Header string `json:"header,omitempty"`

	// Cookie of the request.
	//
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9][-A-Za-z0-9_]*$')",message="must be the name of a cookie: letters, digits, '-' and '_'"
	// +kubebuilder:example="early-access"
	// +optional
	Cookie string `json:"cookie,omitempty"`

	// Value that it must have.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-A-Za-z0-9_.~]+$')",message="must be letters, digits, '-', '_', '.' and '~'"
	// +kubebuilder:example="beta"
	Value string `json:"value"`
}
