// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/gateway-api/pkg/features"

	"github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/compose"
)

// Names of what is required to find out what a Gateway offers.
const (
	requiredGateway      = "gateway"
	requiredGatewayClass = "gatewayclass"
)

// gatewayFeatures asks which optional features the Gateway of the route has, by way of
// its class. An HTTPRoute with a filter that a Gateway does not know is not served at all,
// so that nothing is tried. It is asked only where requests are to be copied.
func gatewayFeatures(s *state) error {
	if s.spec.Lifecycle == nil || s.spec.Lifecycle.Mirror == nil || s.byReplicas() {
		return nil
	}

	kind := func(kind string) schema.GroupVersionKind { return gatewayv1.SchemeGroupVersion.WithKind(kind) }
	g := s.gateway()
	s.plan.Requires = map[string]compose.Requirement{
		requiredGateway: {Kind: kind("Gateway"), Namespace: g.Namespace, Name: g.Name},
	}

	o := s.Required[requiredGateway]
	if o == nil {
		return nil
	}

	class := compose.Text(o.Map(), "spec", "gatewayClassName")
	s.plan.Requires[requiredGatewayClass] = compose.Requirement{Kind: kind("GatewayClass"), Name: class}

	c := s.Required[requiredGatewayClass]
	if c == nil {
		return nil
	}

	for _, v := range compose.List(c.Map(), "status", "supportedFeatures") {
		// Before version 1.3 of the Gateway API they were texts.
		name, _ := v.(string)
		if m, ok := v.(map[string]any); ok {
			name = compose.Text(m, "name")
		}

		s.features = append(s.features, name)
	}

	return nil
}

// mirrorsOffered tells why requests cannot be copied as the spec asks, if so.
func (s *state) mirrorsOffered() (message string, offered bool) {
	m := s.spec.Lifecycle.Mirror
	needed := string(features.SupportHTTPRouteRequestMirror)

	if m.Percent < 100 {
		needed = string(features.SupportHTTPRouteRequestPercentageMirror)
	}

	g := s.gateway()

	switch {
	case slices.Contains(s.features, needed):
		return "", true
	case s.byReplicas():
		return "without the Gateway API no request is copied: remove spec.lifecycle.mirror", false
	case m.Percent < 100 && slices.Contains(s.features, string(features.SupportHTTPRouteRequestMirror)):
		return fmt.Sprintf("Gateway %q of namespace %q copies all requests or none: set spec.lifecycle.mirror.percent to 100", g.Name, g.Namespace), false
	default:
		return fmt.Sprintf("status.supportedFeatures of the class of Gateway %q of namespace %q does not name %s: remove spec.lifecycle.mirror, "+
			"or name another Gateway in spec.route", g.Name, g.Namespace, needed), false
	}
}

// mirrorFirst tells whether copies of requests reach the candidate before callers do.
func (r *rollout) mirrorFirst() bool { return r.lc.Mirror != nil && r.ledger.Experiment == nil }

// mirrors: copies of requests reach the candidate, and evidence decides.
func (r *rollout) mirrors() {
	l := &r.ledger
	r.sizing = r.next()

	if r.lc.Mirror != nil {
		r.sizing = max(r.sizing, r.lc.Mirror.Percent)
	}

	switch {
	case r.givenUp(), r.replaced(), r.broken():
	case l.Next > 0:
		r.grows()
	case names(r.lc.Promote, l.Candidate):
		r.passes(100, v1alpha1.ReasonPromoted, "spec.lifecycle.promote names it")
	case r.lc.Mirror == nil:
		r.to(v1alpha1.RolloutPreparing, v1alpha1.ReasonEdited, "spec.lifecycle.mirror was removed")
		l.Evidence, l.Began = 0, l.Entered
	case !r.offered():
		message, _ := r.mirrorsOffered()
		r.leaves(v1alpha1.ReasonMirrorNotOffered, message)
	case l.Evidence == 0 && !r.mirrored():
		r.awaitsRoute(v1alpha1.RolloutMirroring)
	case l.Evidence == 0:
		r.to(v1alpha1.RolloutMirroring, v1alpha1.ReasonSoaking, r.copies())
		l.Evidence, l.Began = l.Epoch, l.Entered
	default:
		r.weighs()
	}
}

func (r *rollout) offered() bool {
	_, ok := r.mirrorsOffered()
	return ok
}

// copies tells what goes on.
func (r *rollout) copies() string {
	return fmt.Sprintf("copies of %d %% of requests reach revision %s, whose answers nobody gets, and evidence is being gathered", r.lc.Mirror.Percent, r.ledger.Candidate)
}

// mirrored tells whether the Gateway copies requests to the candidate.
func (r *rollout) mirrored() bool {
	return r.routeTaken() && r.observedRoute().mirror == r.slotServiceName(otherSlot(r.ledger.Slot))
}

// mirror is the filter that copies requests to the candidate, or none.
func (s *state) mirror() []gatewayv1.HTTPRouteFilter {
	l := s.decision.ledger
	if s.decision.rollout == nil || l.standing() != v1alpha1.RolloutMirroring || s.spec.Lifecycle.Mirror == nil ||
		s.slots[otherSlot(l.Slot)].revision != l.Candidate {
		return nil
	}

	if _, offered := s.mirrorsOffered(); !offered {
		return nil
	}

	m := &gatewayv1.HTTPRequestMirrorFilter{BackendRef: s.backend(otherSlot(l.Slot), 0).BackendObjectReference}
	if p := s.spec.Lifecycle.Mirror.Percent; p < 100 {
		m.Percent = &p
	}

	return []gatewayv1.HTTPRouteFilter{{Type: gatewayv1.HTTPRouteFilterRequestMirror, RequestMirror: m}}
}
