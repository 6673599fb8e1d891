// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm/sleep"
	"github.com/capstan-dev/capstan/function/check"
	"github.com/capstan-dev/capstan/function/compose"
)

// conditions of the Algorithm. What the spec does not ask for has none; while the spec cannot be carried out, those about it stay
// as they are.
func conditions(d *compose.Draft, p *pass) []xpv2.Condition {
	cs := []xpv2.Condition{check.Accepted(p.problems), d.Composed(p.accepted()), p.podsHealthy(), p.updated()}
	if !p.accepted() {
		return append(cs, compose.Unchanged(p.Composite.Map(), v1alpha1.TypeImagePinned, v1alpha1.TypeModelResolved,
			v1alpha1.TypeRouteAccepted, v1alpha1.TypeMetricsAvailable, v1alpha1.TypeWithinTargets, v1alpha1.TypeDataDrift,
			v1alpha1.TypeWithinSLO, v1alpha1.TypeExperimentDecided, v1alpha1.TypeAsleep, v1alpha1.TypeHooksPassed)...)
	}
	cs = append(cs, p.imagePinned())
	if p.registered() != nil {
		_, c := p.modelResolved(p.target)
		cs = append(cs, c)
	}
	for _, c := range []*xpv2.Condition{
		p.routeAccepted(), p.metricsAvailable(), p.withinTargets(), p.dataDrift(), p.withinSLO(), p.decision.ExperimentDecided(p.rollout),
		p.asleep(), p.hooksPassed(),
	} {
		if c != nil {
			cs = append(cs, *c)
		}
	}
	return cs
}

func (p *pass) podsHealthy() xpv2.Condition {
	healthy := compose.True(v1alpha1.TypePodsHealthy, v1alpha1.ReasonServing, "pods serve, and nothing blocks them")
	starting := func(message string) xpv2.Condition {
		return compose.False(v1alpha1.TypePodsHealthy, v1alpha1.ReasonStarting, message)
	}
	switch {
	case !p.live.Exists && !p.accepted():
		return starting("nothing runs, because the spec is not accepted: see the condition Accepted")
	case !p.live.Exists && p.target.missing != nil:
		return starting("nothing runs yet: see the condition Updated")
	case !p.live.Exists:
		return starting("the Deployment does not exist yet: see the condition Composed")
	case p.stopped():
		return compose.True(v1alpha1.TypePodsHealthy, v1alpha1.ReasonStopped, "zero replicas are desired: raise spec.replicas to serve")
	case p.sleep.State == sleep.Asleep && p.well():
		return compose.True(v1alpha1.TypePodsHealthy, v1alpha1.ReasonAsleep, asleepMessage)
	case p.sleep.State == sleep.Waking && p.well():
		return starting("pods are starting, and requests wait until one is ready")
	case p.live.Trouble != "":
		return compose.False(v1alpha1.TypePodsHealthy, p.live.Trouble, p.live.TroubleMessage)
	case p.rolledOut() && p.serving(), p.unblocked() && compose.IsTrue(p.Composite.Map(), v1alpha1.TypePodsHealthy):
		return healthy
	case p.live.Stalled:
		return starting(fmt.Sprintf("pods did not become ready in time, and no cause was found: read their logs with kubectl logs -n %s -l %s",
			p.Namespace, labelQuery(p.SlotPods(p.rollout.Ledger.Slot))))
	case p.serving():
		return starting("new pods are starting, and earlier pods serve until then")
	default:
		return starting("pods are starting")
	}
}

// updated reports whether requests reach the revision that the spec asks for.
func (p *pass) updated() xpv2.Condition {
	dec, target, live := p.decision, p.target.revision, p.rollout.Ledger
	slot := live.Slot
	if dec.Coming {
		slot = dec.Beside.Slot
	}
	// For every state of the new revision, this is what people want to know first.
	serves := ""
	if live.Revision != "" {
		serves = "; until then clients reach revision " + live.Revision
	}
	not := func(reason xpv2.ConditionReason, message string) xpv2.Condition {
		return compose.False(v1alpha1.TypeUpdated, reason, message+serves)
	}
	s := p.rollout.Slots[slot]
	switch rolling := dec.Updated(p.rollout, serves); {
	case !p.accepted():
		return compose.False(v1alpha1.TypeUpdated, v1alpha1.ReasonNotAccepted, "the spec is not carried out: see the condition Accepted")
	case p.target.missing != nil:
		return not(p.target.missing.reason, p.target.missing.message)
	case dec.Ledger.Revision == target:
		return compose.True(v1alpha1.TypeUpdated, v1alpha1.ReasonLive, "clients reach revision "+target)
	case rolling != nil:
		return *rolling
	case dec.Waits == v1alpha1.ReasonAwaitingDrain:
		return not(dec.Waits, fmt.Sprintf("revision %s starts once the revision before the live one has finished its requests", target))
	case dec.Waits == v1alpha1.ReasonAwaitingRoute:
		return not(dec.Waits, fmt.Sprintf(
			"revision %s waits for the Gateway to apply the latest change of the route: see the condition RouteAccepted, or remove spec.route", target))
	case s.Trouble != "":
		return not(s.Trouble, fmt.Sprintf("revision %s: %s", target, s.TroubleMessage))
	case s.Stalled && s.Revision == target:
		return not(v1alpha1.ReasonPreparing, fmt.Sprintf(
			"revision %s did not become ready in time, and no cause was found: read the logs of its pods with kubectl logs -n %s -l %s",
			target, p.Namespace, labelQuery(p.SlotPods(slot))))
	default:
		return not(v1alpha1.ReasonPreparing, fmt.Sprintf("pods of revision %s are starting", target))
	}
}

// movingTag is a tag that usually names another image tomorrow: a word for what is newest, or the name of a branch. Tags with a
// number in them are taken for versions.
var movingTag = regexp.MustCompile(`^(latest|stable|edge|nightly|current|main|master|develop|dev|trunk|head|release|prod|production|staging|test)$`)

// imagePinned reports whether every replica runs the same bytes.
func (p *pass) imagePinned() xpv2.Condition {
	image := p.spec.Image
	_, tag, tagged := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	switch {
	case strings.Contains(image, "@"):
		return compose.True(v1alpha1.TypeImagePinned, v1alpha1.ReasonByDigest, "every replica runs the same image")
	case tagged && !movingTag.MatchString(strings.ToLower(tag)):
		return compose.True(v1alpha1.TypeImagePinned, v1alpha1.ReasonByTag, "every replica runs the same image, unless its tag is moved to another image")
	default:
		return compose.False(v1alpha1.TypeImagePinned, v1alpha1.ReasonMutableTag, fmt.Sprintf(
			"spec.image: %q: this name may refer to another image later, and replicas that start then would run it beside the others, "+
				"without a new revision: use the digest, or a tag that never moves", image))
	}
}

// routeAccepted reports whether a Gateway serves the route, or is nil without one.
func (p *pass) routeAccepted() *xpv2.Condition {
	if p.spec.Route == nil {
		return nil
	}
	g, r := p.rollout.Gateway, p.rollout.Route
	not := func(reason xpv2.ConditionReason, message string) *xpv2.Condition {
		return new(compose.False(v1alpha1.TypeRouteAccepted, reason, message))
	}
	switch {
	case !r.Exists && p.spec.Protocol == v1alpha1.ProtocolGRPC && p.Kinds[GRPCRouteGVK] == compose.Unavailable:
		return not(v1alpha1.ReasonGatewayAPIMissing,
			"the cluster does not serve GRPCRoutes of the Gateway API: install its CRDs of version 1.1 or later and a controller that serves them, "+
				"or remove spec.route; clients inside the cluster need no route")
	case !r.Exists && p.Kinds[p.routeKind().gvk] == compose.Unavailable:
		return not(v1alpha1.ReasonGatewayAPIMissing,
			"the cluster does not serve the Gateway API: install its CRDs and a controller, or remove spec.route; clients inside the cluster need no route")
	case !r.Exists || !r.Known:
		return not(v1alpha1.ReasonRoutePending, fmt.Sprintf(
			"no controller has accepted the route: check that Gateway %q of namespace %q exists and that its controller runs", g.Name, g.Namespace))
	case r.Reason != "":
		return not(v1alpha1.ReasonRouteRefused, fmt.Sprintf(
			"Gateway %q of namespace %q does not serve the route: %s: %s. Correct spec.route, or what the Gateway allows", g.Name, g.Namespace, r.Reason, r.Message))
	case !r.Current && (!compose.IsTrue(p.Composite.Map(), v1alpha1.TypeRouteAccepted) || !p.routeFresh()):
		return not(v1alpha1.ReasonRoutePending, fmt.Sprintf(
			"Gateway %q of namespace %q has not applied the latest change of the route yet: check that its controller runs", g.Name, g.Namespace))
	}
	message := "the Gateway serves the route"
	// A Gateway that ignores it reports nothing.
	if p.spec.Route.Timeout != nil {
		message += "; spec.route.timeout has an effect only if status.supportedFeatures of its GatewayClass has HTTPRouteRequestTimeout"
	}
	return new(compose.True(v1alpha1.TypeRouteAccepted, v1alpha1.ReasonRouteAccepted, message))
}

// routeTakes is how long a Gateway may take for a change of the route while the condition stays as it is: a change of the weights
// is no reason to report that the route is not served.
const routeTakes = 2 * time.Minute

// routeFresh reports whether the route has changed a moment ago, as far as that is known.
func (p *pass) routeFresh() bool {
	at := p.rollout.Route.ChangedAt
	return at.IsZero() || p.Now.Before(at.Add(routeTakes))
}

// labelQuery is a selector in the form of a label query.
func labelQuery(selector map[string]string) string {
	words := make([]string, 0, len(selector))
	for _, k := range compose.SortedKeys(selector) {
		words = append(words, k+"="+selector[k])
	}
	return strings.Join(words, ",")
}

// rolledOut reports whether the pods that requests reach are those that should be there, and no others. While a spec cannot be
// carried out, those are the ones there are.
func (p *pass) rolledOut() bool {
	if !p.accepted() {
		return p.live.Current()
	}
	return p.live.Runs(p.decision.Live.Revision)
}

// upToDate reports whether requests reach what the spec asks for, and nothing else runs.
func (p *pass) upToDate() bool {
	target := p.target.revision
	return p.accepted() && target != "" && p.rollout.Ledger.Revision == target && p.decision.Beside.Revision == "" && p.rolledOut()
}

// routePath that the status shows once the Gateway serves the route.
func (p *pass) routePath() string {
	if c := p.routeAccepted(); c == nil || c.Status != corev1.ConditionTrue {
		return ""
	}
	return cmp.Or(p.spec.Route.Host, "*") + p.spec.Route.Path
}
