// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

// Conditions of an Algorithm and a Database and an Experiment, beside the conditions of Crossplane (Synced, Ready,
// Responsive).
const (
	// TypeAccepted: True when the spec is valid and in effect. While it is False, everything that runs stays unchanged.
	TypeAccepted xpv2.ConditionType = "Accepted"
)

// Conditions of an Algorithm and a Database.
const (
	// TypeComposed: True when every desired object exists.
	TypeComposed xpv2.ConditionType = "Composed"

	// TypeUpdated: True when the observed state matches the spec. Otherwise the message names what it waits for. Until
	// then requests to an Algorithm go to the previous revision, and members of a Database that wait for their turn
	// work as before. It is not called UpToDate, because Crossplane reserves that type.
	TypeUpdated xpv2.ConditionType = "Updated"
)

// Conditions of an Algorithm.
const (
	// TypePodsHealthy: True when pods are ready and nothing blocks the missing ones. Otherwise the message has cause
	// and remedy. It is not called Healthy, because Crossplane reserves that type and drops it from the response of a
	// function.
	TypePodsHealthy xpv2.ConditionType = "PodsHealthy"

	// TypeImagePinned: True when the name of the image makes every replica run the same image.
	TypeImagePinned xpv2.ConditionType = "ImagePinned"

	// TypeModelResolved: True when the model registry has resolved spec.model to a version. It exists only for a model
	// from the registry.
	TypeModelResolved xpv2.ConditionType = "ModelResolved"

	// TypeRouteAccepted: True when a Gateway serves spec.route. It exists only with a route.
	TypeRouteAccepted xpv2.ConditionType = "RouteAccepted"

	// TypeMetricsAvailable: True when every metric that the spec needs has a value. It exists only when the spec needs
	// metrics.
	TypeMetricsAvailable xpv2.ConditionType = "MetricsAvailable"

	// TypeAsleep: True while the Algorithm is idle and no replica runs. The first request starts one, and is held until it
	// is ready. It exists only with spec.scaling.minReplicas 0.
	TypeAsleep xpv2.ConditionType = "Asleep"

	// TypeWithinTargets: True when the live revision meets the targets of spec.metrics and
	// spec.scaling.targetLatencyMs. It is Unknown while there is too little data, and exists only with a target.
	TypeWithinTargets xpv2.ConditionType = "WithinTargets"
)

// Reasons of the condition Accepted.
const (
	// ReasonValid: the spec is valid and in effect. Nothing to do.
	ReasonValid xpv2.ConditionReason = "Valid"
	// ReasonInvalidSpec: a field of the spec is invalid. Correct the field that the message names.
	ReasonInvalidSpec xpv2.ConditionReason = "InvalidSpec"
	// ReasonInvalidSettings: the platform's settings are invalid, or gone. The platform team must correct them, or apply them again.
	ReasonInvalidSettings xpv2.ConditionReason = "InvalidSettings"
	// ReasonKubernetesTooOld: Kubernetes is older than Capstan needs. The platform team must upgrade it. It is checked
	// until a spec is accepted for the first time.
	ReasonKubernetesTooOld xpv2.ConditionReason = "KubernetesTooOld"
	// ReasonCrossplaneTooOld: Crossplane is older than Capstan needs. The platform team must upgrade it. It is checked
	// until a spec is accepted for the first time.
	ReasonCrossplaneTooOld xpv2.ConditionReason = "CrossplaneTooOld"
)

// Reasons of the condition Accepted of an Algorithm.
const (
	// ReasonConfigTooLarge: spec.config exceeds the maximum size of a ConfigMap. Move large files into the image or a
	// volume.
	ReasonConfigTooLarge xpv2.ConditionReason = "ConfigTooLarge"
)

// Reasons of the condition Composed.
const (
	// ReasonComposed: every object exists. Nothing to do.
	ReasonComposed xpv2.ConditionReason = "Composed"
	// ReasonComposing: Crossplane creates objects. Wait.
	ReasonComposing xpv2.ConditionReason = "Composing"
	// ReasonNotAllowedToCompose: Crossplane has no permission to create an object of this kind. The platform team must
	// apply package/platform.yaml.
	ReasonNotAllowedToCompose xpv2.ConditionReason = "NotAllowedToCompose"
	// ReasonRefused: the API server rejected an object for another reason, for instance an admission policy or an
	// existing object with the same name. The message has its error.
	ReasonRefused xpv2.ConditionReason = "Refused"
)

// Reasons of the condition PodsHealthy. They are the union of the reasons of a Deployment and of the Analysis of an
// Algorithm.
const (
	// ReasonServing: pods are ready, and nothing blocks those that start. Nothing to do.
	ReasonServing xpv2.ConditionReason = "Serving"
	// ReasonStarting: pods start, without a problem so far. Wait.
	ReasonStarting xpv2.ConditionReason = "Starting"
	// ReasonStopped: spec.replicas is zero.
	ReasonStopped xpv2.ConditionReason = "Stopped"
	// ReasonImagePullFailed: the image cannot be pulled. Check its name, spec.pod.imagePullSecrets and the registry.
	ReasonImagePullFailed xpv2.ConditionReason = "ImagePullFailed"
	// ReasonInsufficientGPU: no node has enough free GPUs of the requested resource. Add nodes or free GPUs.
	ReasonInsufficientGPU xpv2.ConditionReason = "InsufficientGPU"
	// ReasonUnschedulable: no node fits the pod for another reason. Check memory, CPU, node selector and tolerations.
	ReasonUnschedulable xpv2.ConditionReason = "Unschedulable"
	// ReasonCrashLooping: the container starts and exits repeatedly. The message has its exit code and last output.
	ReasonCrashLooping xpv2.ConditionReason = "CrashLooping"
	// ReasonConfigError: the container cannot be created, for instance because a Secret or ConfigMap is missing. Create
	// it, or correct its name in the spec.
	ReasonConfigError xpv2.ConditionReason = "ConfigError"
	// ReasonRunsAsRoot: the user of the image is root or only a name. Set spec.pod.securityContext.runAsUser to a number.
	ReasonRunsAsRoot xpv2.ConditionReason = "RunsAsRoot"
	// ReasonNotListening: the container runs and accepts no connections on its port. Check spec.port.
	ReasonNotListening xpv2.ConditionReason = "NotListening"
	// ReasonQuotaExceeded: the namespace's quota has no room for the pods. Raise the quota or lower the resources.
	ReasonQuotaExceeded xpv2.ConditionReason = "QuotaExceeded"
	// ReasonPodsRefused: the API server rejects pods for another reason, for instance an admission policy or a missing
	// ServiceAccount. The message has its error.
	ReasonPodsRefused xpv2.ConditionReason = "PodsRefused"
)

// Reasons of the condition Asleep. The first is a reason of PodsHealthy, too.
const (
	// ReasonAsleep: the Algorithm is idle, and no replica runs. Nothing to do.
	ReasonAsleep xpv2.ConditionReason = "Asleep"
	// ReasonAwake: replicas run, because requests came in the last spec.scaling.idleAfterSeconds, or something changes.
	ReasonAwake xpv2.ConditionReason = "Awake"
	// ReasonStartingUp: a replica starts, and requests wait until it is ready.
	ReasonStartingUp xpv2.ConditionReason = "StartingUp"
	// ReasonScaleToZeroUnavailable: something that sleeping needs is missing, so that replicas keep running. The message
	// has what and the remedy.
	ReasonScaleToZeroUnavailable xpv2.ConditionReason = "ScaleToZeroUnavailable"
)

// Reasons of the condition PodsHealthy about the model and the warm-up.
const (
	// ReasonNotWarm: warm-up requests do not get a successful response. Check spec.probes.warmUp and the log of the
	// container.
	ReasonNotWarm xpv2.ConditionReason = "NotWarm"
	// ReasonModelFetching: the model is being downloaded. Wait.
	ReasonModelFetching xpv2.ConditionReason = "ModelFetching"
	// ReasonModelNotFound: the model does not exist at its source. Correct spec.model.
	ReasonModelNotFound xpv2.ConditionReason = "ModelNotFound"
	// ReasonModelForbidden: the credentials do not give access to the model. Check spec.model.credentials.
	ReasonModelForbidden xpv2.ConditionReason = "ModelForbidden"
	// ReasonModelUnreachable: the source of the model does not respond. Check its endpoint and the network.
	ReasonModelUnreachable xpv2.ConditionReason = "ModelUnreachable"
	// ReasonModelDigestMismatch: the model does not have the digest of the spec or the registry. Find out which of them
	// is wrong.
	ReasonModelDigestMismatch xpv2.ConditionReason = "ModelDigestMismatch"
	// ReasonModelSizeMismatch: the model does not have the size of the spec. Find out which of them is wrong.
	ReasonModelSizeMismatch xpv2.ConditionReason = "ModelSizeMismatch"
	// ReasonModelNoSpace: the model does not fit on the disk of the node or on the cache. Raise spec.model.cache.resources.requests.storage,
	// or use a larger disk.
	ReasonModelNoSpace xpv2.ConditionReason = "ModelNoSpace"
	// ReasonModelInvalid: the source holds no model that can be downloaded. The message has the cause.
	ReasonModelInvalid xpv2.ConditionReason = "ModelInvalid"
)

// Reasons of the condition Updated of an Algorithm. While a revision cannot become ready, the reason is the same as
// the reason of PodsHealthy for its pods.
const (
	// ReasonLive: all traffic goes to the revision that the spec describes. Nothing to do.
	ReasonLive xpv2.ConditionReason = "Live"
	// ReasonPreparing: the pods of the new revision start. Wait.
	ReasonPreparing xpv2.ConditionReason = "Preparing"
	// ReasonAwaitingModel: the version of the model is not resolved. See the condition ModelResolved.
	ReasonAwaitingModel xpv2.ConditionReason = "AwaitingModel"
	// ReasonAwaitingSecret: a Secret with rotate: Rolling does not exist, or is not read yet. Create it.
	ReasonAwaitingSecret xpv2.ConditionReason = "AwaitingSecret"
	// ReasonAwaitingRoute: the Gateway has not accepted the backends of the new revision. See the condition
	// RouteAccepted.
	ReasonAwaitingRoute xpv2.ConditionReason = "AwaitingRoute"
	// ReasonAwaitingDrain: the new revision needs the slot of an older one, which still finishes its requests. Wait.
	ReasonAwaitingDrain xpv2.ConditionReason = "AwaitingDrain"
)

// Reasons of the condition Updated.
const (
	// ReasonNotAccepted: the spec is not in effect. See the condition Accepted.
	ReasonNotAccepted xpv2.ConditionReason = "NotAccepted"
)

// Reasons of the condition ImagePinned.
const (
	// ReasonByDigest: the image is named by its digest. Nothing to do.
	ReasonByDigest xpv2.ConditionReason = "ByDigest"
	// ReasonByTag: the image is named by a tag that usually never moves. Nothing to do.
	ReasonByTag xpv2.ConditionReason = "ByTag"
	// ReasonMutableTag: the image is named by a tag that usually moves, or by none. Use a digest or a version tag.
	ReasonMutableTag xpv2.ConditionReason = "MutableTag"
)

// Reasons of the condition ModelResolved.
const (
	// ReasonResolved: the version is known. Nothing to do.
	ReasonResolved xpv2.ConditionReason = "Resolved"
	// ReasonResolving: the request to the registry is in progress. Wait.
	ReasonResolving xpv2.ConditionReason = "Resolving"
	// ReasonRegistryFailed: the registry is unreachable, or has no such model. The message has its error.
	ReasonRegistryFailed xpv2.ConditionReason = "RegistryFailed"
	// ReasonVersionNotReady: the version is not ready in the registry.
	ReasonVersionNotReady xpv2.ConditionReason = "VersionNotReady"
	// ReasonProviderMissing: provider-capstan, which connects to the registry, is not installed. The platform team must
	// install it.
	ReasonProviderMissing xpv2.ConditionReason = "ProviderMissing"
)

// Reasons of the condition RouteAccepted.
const (
	// ReasonRouteAccepted: a Gateway serves the route. Nothing to do.
	ReasonRouteAccepted xpv2.ConditionReason = "RouteAccepted"
	// ReasonRoutePending: no Gateway controller has reported on the route. Check that the Gateway exists and its
	// controller runs.
	ReasonRoutePending xpv2.ConditionReason = "RoutePending"
	// ReasonRouteRefused: the Gateway does not serve the route. The message has its reason.
	ReasonRouteRefused xpv2.ConditionReason = "RouteRefused"
	// ReasonGatewayAPIMissing: the cluster has no Gateway API. Install it, or remove spec.route.
	ReasonGatewayAPIMissing xpv2.ConditionReason = "GatewayAPIMissing"
)

// Reasons of the condition MetricsAvailable.
const (
	// ReasonMeasured: every required metric has a value. Nothing to do.
	ReasonMeasured xpv2.ConditionReason = "Measured"
	// ReasonMeasuring: Prometheus has not been queried yet. Wait.
	ReasonMeasuring xpv2.ConditionReason = "Measuring"
	// ReasonNoData: a required metric has no series, or its value is not a number. Check what the pods export and what
	// Prometheus scrapes.
	ReasonNoData xpv2.ConditionReason = "NoData"
	// ReasonQueryFailed: Prometheus is unreachable, or rejected a query. The message has its error.
	ReasonQueryFailed xpv2.ConditionReason = "QueryFailed"
	// ReasonNotScaling: the autoscaler gets no metric, and leaves the number of replicas as it is.
	ReasonNotScaling xpv2.ConditionReason = "NotScaling"
	// ReasonNoSignal: nothing says how much load replicas with a GPU have, so that their number stays. Set
	// spec.scaling.targetLatencyMs, or spec.scaling.signal with perReplica.
	ReasonNoSignal xpv2.ConditionReason = "NoSignal"
	// ReasonDriftNotMeasured: the pods expose no histogram of their outputs that is known, so that rollouts do not
	// check drift. Expose algorithm_prediction_score, or set the query outputs of spec.metrics.queries.
	ReasonDriftNotMeasured xpv2.ConditionReason = "DriftNotMeasured"
	// ReasonOperatorMissing: the spec needs the Prometheus Operator, which is not installed.
	ReasonOperatorMissing xpv2.ConditionReason = "OperatorMissing"
)

// Reasons of the condition WithinTargets.
const (
	// ReasonTargetsMet: every target is met. Nothing to do.
	ReasonTargetsMet xpv2.ConditionReason = "TargetsMet"
	// ReasonTargetMissed: a target is missed. The message has value and target.
	ReasonTargetMissed xpv2.ConditionReason = "TargetMissed"
	// ReasonTooLittleData: there is too little data for a result.
	ReasonTooLittleData xpv2.ConditionReason = "TooLittleData"
)
