// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

// Conditions of an Algorithm and a Database, beside those that Crossplane keeps
// (Synced, Ready, Responsive).
const (
	// TypeAccepted tells whether the spec can be carried out. While it is
	// False, everything that runs keeps running unchanged.
	TypeAccepted xpv2.ConditionType = "Accepted"

	// TypeComposed tells whether every object that was asked for is there.
	TypeComposed xpv2.ConditionType = "Composed"

	// TypeUpdated tells whether what runs is what the spec asks for, and if not,
	// what it waits for. Callers of an Algorithm reach the revision before until then,
	// and members of a Database that wait for their turn go on as they are. It is not
	// called UpToDate, because Crossplane keeps that type for itself.
	TypeUpdated xpv2.ConditionType = "Updated"
)

// Conditions of an Algorithm.
const (
	// TypePodsHealthy tells whether pods serve and nothing hinders those that are
	// still missing, and if not, why and what to do. It is not called Healthy
	// because Crossplane keeps that type for itself and drops it from what a
	// function tells.
	TypePodsHealthy xpv2.ConditionType = "PodsHealthy"

	// TypeImagePinned tells whether the image is named so that every replica runs
	// the same bytes.
	TypeImagePinned xpv2.ConditionType = "ImagePinned"

	// TypeModelResolved tells whether the model registry has said which version
	// spec.model means. It is told only for a model from the registry.
	TypeModelResolved xpv2.ConditionType = "ModelResolved"

	// TypeRouteAccepted tells whether a Gateway serves spec.route. It is told only
	// with a route.
	TypeRouteAccepted xpv2.ConditionType = "RouteAccepted"

	// TypeMetricsAvailable tells whether what spec.metrics and spec.scaling need is
	// known, and if not, why. It is told only when one of them needs metrics.
	TypeMetricsAvailable xpv2.ConditionType = "MetricsAvailable"

	// TypeWithinTargets tells whether the live revision keeps what spec.metrics and
	// spec.scaling.targetLatencyMs ask of it. It is Unknown while too little is
	// known to say so, and told only when something is asked.
	TypeWithinTargets xpv2.ConditionType = "WithinTargets"
)

// Reasons of the condition Accepted.
const (
	// ReasonValid: the spec is being carried out.
	ReasonValid xpv2.ConditionReason = "Valid"
	// ReasonInvalidSpec: a field of the spec cannot be carried out.
	ReasonInvalidSpec xpv2.ConditionReason = "InvalidSpec"
	// ReasonInvalidSettings: the platform's settings cannot be used.
	ReasonInvalidSettings xpv2.ConditionReason = "InvalidSettings"
	// ReasonKubernetesTooOld: the cluster lacks what Capstan needs of Kubernetes. It is
	// checked until a spec is accepted for the first time.
	ReasonKubernetesTooOld xpv2.ConditionReason = "KubernetesTooOld"
	// ReasonCrossplaneTooOld: Crossplane lacks what Capstan needs of it. It is checked
	// until a spec is accepted for the first time.
	ReasonCrossplaneTooOld xpv2.ConditionReason = "CrossplaneTooOld"
)

// Reasons of the condition Accepted of an Algorithm.
const (
	// ReasonConfigTooLarge: spec.config is larger than a ConfigMap may be.
	ReasonConfigTooLarge xpv2.ConditionReason = "ConfigTooLarge"
)

// Reasons of the condition Composed.
const (
	// ReasonComposed: every object is there.
	ReasonComposed xpv2.ConditionReason = "Composed"
	// ReasonComposing: objects are being made.
	ReasonComposing xpv2.ConditionReason = "Composing"
	// ReasonNotAllowedToCompose: Crossplane may not make an object of this kind.
	ReasonNotAllowedToCompose xpv2.ConditionReason = "NotAllowedToCompose"
	// ReasonRefused: the API server refused an object for another reason, for
	// instance an admission policy or an object of the same name.
	ReasonRefused xpv2.ConditionReason = "Refused"
)

// Reasons of the condition PodsHealthy. They are the union of what a Deployment and
// the Analysis of an Algorithm tell.
const (
	// ReasonServing: pods serve, and nothing hinders those that are on their way.
	ReasonServing xpv2.ConditionReason = "Serving"
	// ReasonStarting: pods start and nothing is wrong so far.
	ReasonStarting xpv2.ConditionReason = "Starting"
	// ReasonStopped: zero replicas were asked for.
	ReasonStopped xpv2.ConditionReason = "Stopped"
	// ReasonImagePullFailed: the image cannot be pulled.
	ReasonImagePullFailed xpv2.ConditionReason = "ImagePullFailed"
	// ReasonInsufficientGPU: no node has the GPUs asked for.
	ReasonInsufficientGPU xpv2.ConditionReason = "InsufficientGPU"
	// ReasonUnschedulable: no node can take the pod for another reason.
	ReasonUnschedulable xpv2.ConditionReason = "Unschedulable"
	// ReasonCrashLooping: the container starts and ends again.
	ReasonCrashLooping xpv2.ConditionReason = "CrashLooping"
	// ReasonConfigError: the container cannot be made, for instance because a
	// Secret is missing.
	ReasonConfigError xpv2.ConditionReason = "ConfigError"
	// ReasonRunsAsRoot: the image runs as root or as a user known by name only.
	ReasonRunsAsRoot xpv2.ConditionReason = "RunsAsRoot"
	// ReasonNotListening: the container runs and does not answer on its port.
	ReasonNotListening xpv2.ConditionReason = "NotListening"
	// ReasonQuotaExceeded: the namespace's quota has no room for the pods.
	ReasonQuotaExceeded xpv2.ConditionReason = "QuotaExceeded"
	// ReasonPodsRefused: pods are refused for another reason, for instance an
	// admission policy or a missing ServiceAccount.
	ReasonPodsRefused xpv2.ConditionReason = "PodsRefused"
)

// Reasons of the condition PodsHealthy about the model and the warm-up.
const (
	// ReasonNotWarm: requests that warm a replica up are not answered with success.
	ReasonNotWarm xpv2.ConditionReason = "NotWarm"
	// ReasonModelFetching: the model is being downloaded.
	ReasonModelFetching xpv2.ConditionReason = "ModelFetching"
	// ReasonModelNotFound: there is no such model where it should come from.
	ReasonModelNotFound xpv2.ConditionReason = "ModelNotFound"
	// ReasonModelForbidden: the credentials do not open the model.
	ReasonModelForbidden xpv2.ConditionReason = "ModelForbidden"
	// ReasonModelUnreachable: where the model should come from does not answer.
	ReasonModelUnreachable xpv2.ConditionReason = "ModelUnreachable"
	// ReasonModelDigestMismatch: the model is another than the digest says.
	ReasonModelDigestMismatch xpv2.ConditionReason = "ModelDigestMismatch"
	// ReasonModelSizeMismatch: the model has another size than was said.
	ReasonModelSizeMismatch xpv2.ConditionReason = "ModelSizeMismatch"
	// ReasonModelNoSpace: the model does not fit where it is downloaded to.
	ReasonModelNoSpace xpv2.ConditionReason = "ModelNoSpace"
	// ReasonModelInvalid: what is there is no model that can be downloaded.
	ReasonModelInvalid xpv2.ConditionReason = "ModelInvalid"
)

// Reasons of the condition Updated of an Algorithm. While a revision cannot become ready, the
// reason is the one that PodsHealthy would have for its pods.
const (
	// ReasonLive: callers reach the revision that the spec asks for.
	ReasonLive xpv2.ConditionReason = "Live"
	// ReasonPreparing: the pods of the revision start.
	ReasonPreparing xpv2.ConditionReason = "Preparing"
	// ReasonAwaitingModel: the version of the model is not resolved.
	ReasonAwaitingModel xpv2.ConditionReason = "AwaitingModel"
	// ReasonAwaitingSecret: a Secret whose changes make revisions is not there, or
	// was not looked at yet.
	ReasonAwaitingSecret xpv2.ConditionReason = "AwaitingSecret"
	// ReasonAwaitingRoute: the Gateway has not taken the backends of the revision.
	ReasonAwaitingRoute xpv2.ConditionReason = "AwaitingRoute"
	// ReasonAwaitingDrain: the revision before the live one is still finishing, and
	// the new one needs its place.
	ReasonAwaitingDrain xpv2.ConditionReason = "AwaitingDrain"
)

// Reasons of the condition Updated.
const (
	// ReasonNotAccepted: the spec is not carried out; see the condition Accepted.
	ReasonNotAccepted xpv2.ConditionReason = "NotAccepted"
)

// Reasons of the condition ImagePinned.
const (
	// ReasonByDigest: the image is named by its digest.
	ReasonByDigest xpv2.ConditionReason = "ByDigest"
	// ReasonByTag: the image is named by a tag that usually never moves.
	ReasonByTag xpv2.ConditionReason = "ByTag"
	// ReasonMutableTag: the image is named by a tag that usually moves, or by none.
	ReasonMutableTag xpv2.ConditionReason = "MutableTag"
)

// Reasons of the condition ModelResolved.
const (
	// ReasonResolved: the version is known.
	ReasonResolved xpv2.ConditionReason = "Resolved"
	// ReasonResolving: the registry is being asked.
	ReasonResolving xpv2.ConditionReason = "Resolving"
	// ReasonRegistryFailed: the registry could not be asked, or has no such model.
	ReasonRegistryFailed xpv2.ConditionReason = "RegistryFailed"
	// ReasonVersionNotReady: the version is not ready in the registry.
	ReasonVersionNotReady xpv2.ConditionReason = "VersionNotReady"
	// ReasonProviderMissing: provider-capstan, which asks the registry, is not
	// installed.
	ReasonProviderMissing xpv2.ConditionReason = "ProviderMissing"
)

// Reasons of the condition RouteAccepted.
const (
	// ReasonRouteAccepted: a Gateway serves the route.
	ReasonRouteAccepted xpv2.ConditionReason = "RouteAccepted"
	// ReasonRoutePending: no Gateway controller has said anything about the route.
	ReasonRoutePending xpv2.ConditionReason = "RoutePending"
	// ReasonRouteRefused: the Gateway does not serve the route.
	ReasonRouteRefused xpv2.ConditionReason = "RouteRefused"
	// ReasonGatewayAPIMissing: the cluster does not serve the Gateway API.
	ReasonGatewayAPIMissing xpv2.ConditionReason = "GatewayAPIMissing"
)

// Reasons of the condition MetricsAvailable.
const (
	// ReasonMeasured: every metric that is needed is known.
	ReasonMeasured xpv2.ConditionReason = "Measured"
	// ReasonMeasuring: Prometheus was not asked yet.
	ReasonMeasuring xpv2.ConditionReason = "Measuring"
	// ReasonNoData: a metric that is needed has no series, or no number.
	ReasonNoData xpv2.ConditionReason = "NoData"
	// ReasonQueryFailed: Prometheus could not be asked, or refused a query.
	ReasonQueryFailed xpv2.ConditionReason = "QueryFailed"
	// ReasonNotScaling: the autoscaler gets no metric, and leaves the number of
	// replicas as it is.
	ReasonNotScaling xpv2.ConditionReason = "NotScaling"
	// ReasonOperatorMissing: what was asked needs the Prometheus Operator.
	ReasonOperatorMissing xpv2.ConditionReason = "OperatorMissing"
)

// Reasons of the condition WithinTargets.
const (
	// ReasonTargetsMet: every target is met.
	ReasonTargetsMet xpv2.ConditionReason = "TargetsMet"
	// ReasonTargetMissed: a target is missed.
	ReasonTargetMissed xpv2.ConditionReason = "TargetMissed"
	// ReasonTooLittleData: too little is known to say so.
	ReasonTooLittleData xpv2.ConditionReason = "TooLittleData"
)
