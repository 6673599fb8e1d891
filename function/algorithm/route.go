// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

// RouteGVK is the kind of a route.
var RouteGVK = gatewayv1.SchemeGroupVersion.WithKind("HTTPRoute")

// route sends what a Gateway receives to the live slot.
func route(s *state) error {
	r := s.spec.Route
	if r == nil {
		return nil
	}

	if s.Kinds[RouteGVK] != compose.Available && s.Observed[nameRoute] == nil {
		return nil
	}

	rule := gatewayv1.HTTPRouteRule{
		Matches: []gatewayv1.HTTPRouteMatch{{Path: &gatewayv1.HTTPPathMatch{
			Type: new(gatewayv1.PathMatchPathPrefix), Value: &r.Path,
		}}},
		BackendRefs: s.backends(),
		Filters:     s.mirror(),
	}

	if r.Timeout != nil {
		rule.Timeouts = &gatewayv1.HTTPRouteTimeouts{Request: new(gatewayDuration(r.Timeout.Duration))}
	}

	spec := gatewayv1.HTTPRouteSpec{
		CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{s.parent()}},
		Rules:           append(s.chosen(rule), rule),
	}

	if r.Host != "" {
		spec.Hostnames = []gatewayv1.Hostname{gatewayv1.Hostname(r.Host)}
	}

	metadata := s.metadata(s.name)
	if s.spec.Lifecycle != nil {
		metadata.WithAnnotations(map[string]string{annotationLedger: s.routeLedger()})
	}

	s.ask(nameRoute, compose.NewManifest(RouteGVK.GroupVersion().String(), RouteGVK.Kind, metadata, spec))

	return nil
}

// routeLedger is the ledger as of when the route changed last: each write of it has
// the Gateway and Crossplane look at it again, and the Service has the latest one.
func (s *state) routeLedger() string {
	text := annotated(s.Observed[nameRoute])
	if l, ok := written(text); ok && l.sends(s.decision.ledger) {
		return text
	}

	return s.decision.ledger.text()
}

// chosen callers reach the candidate by a header or cookie of theirs, as long as a
// share of all does.
func (s *state) chosen(rule gatewayv1.HTTPRouteRule) []gatewayv1.HTTPRouteRule {
	if s.weight() == 0 || len(s.assigned()) == 0 {
		return nil
	}

	var matches []gatewayv1.HTTPRouteMatch

	for _, m := range s.assigned() {
		h := gatewayv1.HTTPHeaderMatch{
			Type: new(gatewayv1.HeaderMatchExact), Name: gatewayv1.HTTPHeaderName(m.Header), Value: m.Value,
		}

		if m.Cookie != "" {
			h.Type, h.Name = new(gatewayv1.HeaderMatchRegularExpression), "Cookie"
			h.Value = "^(.*; *)?" + regexp.QuoteMeta(m.Cookie) + "=" + regexp.QuoteMeta(m.Value) + "(;.*)?$"
		}

		matches = append(matches, gatewayv1.HTTPRouteMatch{Path: rule.Matches[0].Path, Headers: []gatewayv1.HTTPHeaderMatch{h}})
	}

	own := *rule.DeepCopy()
	own.Matches = matches
	own.BackendRefs = []gatewayv1.HTTPBackendRef{s.backend(s.decision.beside.slot, 100)}

	return []gatewayv1.HTTPRouteRule{own}
}

// gatewayDuration has no fractions:
// https://gateway-api.sigs.k8s.io/geps/gep-2257/.
func gatewayDuration(d time.Duration) gatewayv1.Duration {
	var text strings.Builder

	for _, u := range []struct {
		unit time.Duration
		name string
	}{{time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}, {time.Millisecond, "ms"}} {
		if n := d / u.unit; n > 0 {
			text.WriteString(strconv.Itoa(int(n)) + u.name)
		}

		d %= u.unit
	}

	return gatewayv1.Duration(text.String())
}

func (s *state) parent() gatewayv1.ParentReference {
	g := s.gateway()

	p := gatewayv1.ParentReference{
		Group:     new(gatewayv1.Group(gatewayv1.GroupName)),
		Kind:      new(gatewayv1.Kind("Gateway")),
		Name:      gatewayv1.ObjectName(g.Name),
		Namespace: new(gatewayv1.Namespace(g.Namespace)),
	}

	if g.SectionName != "" {
		p.SectionName = new(gatewayv1.SectionName(g.SectionName))
	}

	return p
}

// backends are always both slots, so that the Gateway knows the idle one long
// before callers go there.
func (s *state) backends() []gatewayv1.HTTPBackendRef {
	w := s.drawn(s.decision.ledger, s.weight())
	weights := map[string]int32{s.decision.live.slot: 100 - w, s.decision.beside.slot: w}

	return []gatewayv1.HTTPBackendRef{s.backend(slotA, weights[slotA]), s.backend(slotB, weights[slotB])}
}

func (s *state) backend(slot string, weight int32) gatewayv1.HTTPBackendRef {
	return gatewayv1.HTTPBackendRef{BackendRef: gatewayv1.BackendRef{
		BackendObjectReference: gatewayv1.BackendObjectReference{
			Group: new(gatewayv1.Group("")),
			Kind:  new(gatewayv1.Kind("Service")),
			Name:  gatewayv1.ObjectName(s.slotServiceName(slot)),
			Port:  new(gatewayv1.PortNumber(80)),
		},
		Weight: &weight,
	}}
}

// observedRoute is what the planner looks at in the observed HTTPRoute.
type observedRoute struct {
	exists bool

	// weights by the name of the Service, and those that some callers are sent to by a
	// header or cookie of theirs.
	weights map[string]int64
	chosen  map[string]bool

	// mirror is the name of the Service that gets copies of requests.
	mirror string

	// known tells whether any Gateway controller has ever said something about it.
	known bool

	// current tells whether what is said speaks of the latest spec.
	current bool

	// served tells whether the Gateway has accepted it.
	served bool

	// refusal is why it is not served, as reason and message, or empty.
	reason, message string
}

func (s *state) observedRoute() observedRoute {
	o := s.Observed[nameRoute]
	if o == nil {
		return observedRoute{}
	}

	m := o.Map()
	r := observedRoute{exists: true, weights: map[string]int64{}, chosen: map[string]bool{}, current: true}

	// The last rule is for all callers. Those before it are for some.
	rules := compose.List(m, "spec", "rules")
	for i, v := range rules {
		rm, _ := v.(map[string]any)
		for _, f := range compose.List(rm, "filters") {
			fm, _ := f.(map[string]any)
			r.mirror = compose.Text(fm, "requestMirror", "backendRef", "name")
		}

		for _, b := range compose.List(rm, "backendRefs") {
			bm, _ := b.(map[string]any)
			name, weight := compose.Text(bm, "name"), compose.Number(bm, 1, "weight")

			if i == len(rules)-1 {
				r.weights[name] = weight
			} else if weight > 0 {
				r.chosen[name] = true
			}
		}
	}

	generation := compose.Number(m, 0, "metadata", "generation")

	for _, p := range compose.List(m, "status", "parents") {
		pm, _ := p.(map[string]any)
		// What a Gateway has said that the route was for before lingers.
		if !parentOf(m, compose.Map(pm, "parentRef")) {
			continue
		}

		r.known = true

		for _, c := range compose.List(pm, "conditions") {
			cm, _ := c.(map[string]any)
			t := compose.Text(cm, "type")

			if t != string(gatewayv1.RouteConditionAccepted) && t != string(gatewayv1.RouteConditionResolvedRefs) {
				continue
			}

			r.current = r.current && compose.Number(cm, 0, "observedGeneration") >= generation

			r.served = r.served || t == string(gatewayv1.RouteConditionAccepted) && compose.Text(cm, "status") == string(corev1.ConditionTrue)

			if compose.Text(cm, "status") != string(corev1.ConditionTrue) && r.reason == "" {
				r.reason, r.message = compose.Text(cm, "reason"), compose.Text(cm, "message")
			}
		}
	}

	return r
}

// parentOf tells whether a route names a Gateway that something is said of.
func parentOf(route, said map[string]any) bool {
	if said == nil {
		return true
	}

	own := compose.Text(route, "metadata", "namespace")

	for _, ref := range compose.List(route, "spec", "parentRefs") {
		named, _ := ref.(map[string]any)
		if compose.Text(named, "name") == compose.Text(said, "name") &&
			cmp.Or(compose.Text(named, "namespace"), own) == cmp.Or(compose.Text(said, "namespace"), own) &&
			compose.Text(named, "sectionName") == compose.Text(said, "sectionName") {
			return true
		}
	}

	return false
}

// routeReaches tells whether the Gateway knows a slot, so that callers can go
// over to it. A route that no controller ever spoke of serves nobody, and neither
// does one that the Gateway refuses as it is now; nobody waits for them.
func (s *state) routeReaches(slot string) bool {
	r := s.observedRoute()
	if s.spec.Route == nil || !r.exists || !r.known || r.current && !r.served {
		return true
	}

	_, named := r.weights[s.slotServiceName(slot)]

	return named && r.current && r.reason == ""
}

// routeLeft tells whether the Gateway sends nothing to a slot.
func (s *state) routeLeft(slot string) bool {
	r := s.observedRoute()
	if !r.exists || !r.known {
		return true
	}

	return r.weights[s.slotServiceName(slot)] == 0 && !r.chosen[s.slotServiceName(slot)] && r.current
}

// routeAccepted tells whether a Gateway serves the route.
func (s *state) routeAccepted() (xpv2.Condition, bool) {
	if s.spec.Route == nil {
		return xpv2.Condition{}, false
	}

	c := xpv2.Condition{Type: v1alpha1.TypeRouteAccepted, Status: corev1.ConditionFalse}
	g := s.gateway()

	switch r := s.observedRoute(); {
	case !r.exists && s.Kinds[RouteGVK] == compose.Unavailable:
		c.Reason = v1alpha1.ReasonGatewayAPIMissing
		c.Message = "the cluster does not serve the Gateway API: install its CRDs and a controller, or remove spec.route; callers inside the cluster need none"
	case !r.exists || !r.known:
		c.Reason = v1alpha1.ReasonRoutePending
		c.Message = fmt.Sprintf("no controller has taken the route: check that Gateway %q of namespace %q exists and that its controller runs", g.Name, g.Namespace)
	case r.reason != "":
		c.Reason = v1alpha1.ReasonRouteRefused
		c.Message = fmt.Sprintf("Gateway %q of namespace %q does not serve the route: %s: %s. Correct spec.route, or what the Gateway allows",
			g.Name, g.Namespace, r.reason, r.message)
	case !r.current && !compose.IsTrue(s.Composite.Map(), v1alpha1.TypeRouteAccepted):
		c.Reason = v1alpha1.ReasonRoutePending
		c.Message = "the Gateway has not taken the latest change of the route yet"
	default:
		c.Status, c.Reason, c.Message = corev1.ConditionTrue, v1alpha1.ReasonRouteAccepted, "the Gateway serves the route"
		// A Gateway that ignores it says nothing.
		if s.spec.Route.Timeout != nil {
			c.Message += "; spec.route.timeout counts where status.supportedFeatures of its GatewayClass names HTTPRouteRequestTimeout"
		}
	}

	return c, true
}

// gateway that the route is for.
func (s *state) gateway() v1alpha1.GatewayReference {
	if s.spec.Route == nil || s.spec.Route.Gateway == nil {
		return v1alpha1.GatewayReference{}
	}

	g := *s.spec.Route.Gateway
	if g.Namespace == "" {
		g.Namespace = s.namespace
	}

	return g
}
