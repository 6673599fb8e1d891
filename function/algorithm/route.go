// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/algorithm/rollout"
	"github.com/capstan-dev/capstan/function/compose"
)

// route sends what a Gateway receives to the live slot.
func route(d *compose.Draft, p *pass) {
	r := p.spec.Route
	kind := p.routeKind()
	if r == nil || !p.available(kind.gvk, kind.resource) {
		return
	}
	rule := gatewayv1.HTTPRouteRule{
		Matches:     []gatewayv1.HTTPRouteMatch{{Path: &gatewayv1.HTTPPathMatch{Type: new(gatewayv1.PathMatchPathPrefix), Value: &r.Path}}},
		BackendRefs: p.backends(),
	}
	if p.decision.Mirror {
		m := &gatewayv1.HTTPRequestMirrorFilter{BackendRef: p.backend(p.decision.Beside.Slot, 0).BackendObjectReference}
		if percent := *p.spec.Lifecycle.MirrorPercent; percent < 100 {
			m.Percent = &percent
		}
		rule.Filters = []gatewayv1.HTTPRouteFilter{{Type: gatewayv1.HTTPRouteFilterRequestMirror, RequestMirror: m}}
	}
	if r.Timeout != nil {
		rule.Timeouts = &gatewayv1.HTTPRouteTimeouts{Request: new(gatewayDuration(r.Timeout.Duration))}
	}
	spec := gatewayv1.HTTPRouteSpec{
		CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{p.parent()}},
		Rules:           append(p.assigned(rule), rule),
	}
	if r.Host != "" {
		spec.Hostnames = []gatewayv1.Hostname{gatewayv1.Hostname(r.Host)}
	}
	metadata := p.Metadata(p.Name)
	if p.spec.Lifecycle != nil {
		metadata.WithAnnotations(map[string]string{names.AnnotationLedger: p.routeLedger()})
	}
	apiVersion, name := kind.gvk.ToAPIVersionAndKind()
	if kind.gvk == GRPCRouteGVK {
		d.Require(kind.resource, compose.NewManifest(apiVersion, name, metadata, grpcRoute(spec)))
		return
	}
	d.Require(kind.resource, compose.NewManifest(apiVersion, name, metadata, spec))
}

// grpcRoute sends requests as an HTTPRoute does. It has no paths, and every rule without a match is for all requests.
func grpcRoute(of gatewayv1.HTTPRouteSpec) gatewayv1.GRPCRouteSpec {
	spec := gatewayv1.GRPCRouteSpec{CommonRouteSpec: of.CommonRouteSpec, Hostnames: of.Hostnames}
	for _, rule := range of.Rules {
		out := gatewayv1.GRPCRouteRule{}
		for _, b := range rule.BackendRefs {
			out.BackendRefs = append(out.BackendRefs, gatewayv1.GRPCBackendRef{BackendRef: b.BackendRef})
		}
		for _, m := range rule.Matches {
			match := gatewayv1.GRPCRouteMatch{}
			for _, h := range m.Headers {
				match.Headers = append(match.Headers, gatewayv1.GRPCHeaderMatch{
					Type: new(gatewayv1.GRPCHeaderMatchType(*h.Type)), Name: gatewayv1.GRPCHeaderName(h.Name), Value: h.Value,
				})
			}
			if len(match.Headers) > 0 {
				out.Matches = append(out.Matches, match)
			}
		}
		spec.Rules = append(spec.Rules, out)
	}
	return spec
}

// routeLedger is the ledger as of when the route changed last: each write of it makes the Gateway and Crossplane reconcile it,
// and the Service has the latest one.
func (p *pass) routeLedger() string {
	text := ledgerText(p.Observed[p.routeKind().resource])
	if l, ok := rollout.ParseLedger(text); ok && l.SendsLike(p.decision.Ledger) {
		return text
	}
	return p.decision.Ledger.Text()
}

// assigned requests reach the candidate by a header or cookie, as long as a share of all does.
func (p *pass) assigned(rule gatewayv1.HTTPRouteRule) []gatewayv1.HTTPRouteRule {
	if len(p.decision.Assigned) == 0 {
		return nil
	}
	own := *rule.DeepCopy()
	own.Matches = nil
	own.BackendRefs = []gatewayv1.HTTPBackendRef{p.backend(p.decision.Beside.Slot, 100)}
	for _, m := range p.decision.Assigned {
		cookie, name, value := m.Parts()
		h := gatewayv1.HTTPHeaderMatch{Type: new(gatewayv1.HeaderMatchExact), Name: gatewayv1.HTTPHeaderName(name), Value: value}
		if cookie {
			h.Type, h.Name = new(gatewayv1.HeaderMatchRegularExpression), "Cookie"
			h.Value = "^(.*; *)?" + regexp.QuoteMeta(name) + "=" + regexp.QuoteMeta(value) + "(;.*)?$"
		}
		own.Matches = append(own.Matches, gatewayv1.HTTPRouteMatch{Path: rule.Matches[0].Path, Headers: []gatewayv1.HTTPHeaderMatch{h}})
	}
	return []gatewayv1.HTTPRouteRule{own}
}

// gatewayDuration has no fractions: https://gateway-api.sigs.k8s.io/geps/gep-2257/.
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

func (p *pass) parent() gatewayv1.ParentReference {
	g := p.rollout.Gateway
	ref := gatewayv1.ParentReference{
		Group:     new(gatewayv1.Group(gatewayv1.GroupName)),
		Kind:      new(gatewayv1.Kind("Gateway")),
		Name:      gatewayv1.ObjectName(g.Name),
		Namespace: new(gatewayv1.Namespace(g.Namespace)),
	}
	if g.SectionName != "" {
		ref.SectionName = new(gatewayv1.SectionName(g.SectionName))
	}
	return ref
}

// backends are always both slots, so that the Gateway knows the idle one long before traffic shifts there. For the same reason the
// Service of the Algorithm is one where it may sleep: then it selects the activator.
func (p *pass) backends() []gatewayv1.HTTPBackendRef {
	w := p.decision.Drawn
	weights := map[string]int32{p.decision.Live.Slot: 100 - w, p.decision.Beside.Slot: w}
	whole := int32(0)
	if p.sleep.Activated() {
		weights, whole = map[string]int32{}, 100
	}
	bs := []gatewayv1.HTTPBackendRef{p.backend(names.SlotA, weights[names.SlotA]), p.backend(names.SlotB, weights[names.SlotB])}
	if p.activated() {
		bs = append(bs, backend(p.Name, whole))
	}
	return bs
}

func (p *pass) backend(slot string, weight int32) gatewayv1.HTTPBackendRef {
	return backend(p.ServiceOf(slot), weight)
}

func backend(service string, weight int32) gatewayv1.HTTPBackendRef {
	return gatewayv1.HTTPBackendRef{BackendRef: gatewayv1.BackendRef{
		BackendObjectReference: gatewayv1.BackendObjectReference{
			Group: new(gatewayv1.Group("")),
			Kind:  new(gatewayv1.Kind("Service")),
			Name:  gatewayv1.ObjectName(service),
			Port:  new(gatewayv1.PortNumber(80)),
		},
		Weight: &weight,
	}}
}
