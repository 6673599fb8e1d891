// SPDX-License-Identifier: Apache-2.0

package observed

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/capstan-dev/capstan/function/compose"
)

// An HTTPRoute is what planners use of one. The zero value is one that does not exist.
type HTTPRoute struct {
	Exists bool

	// Weights by the name of the Service, and the Services that some requests go to by a header or cookie.
	Weights map[string]int64
	Chosen  map[string]bool

	// Mirror is the name of the Service that gets copies of requests.
	Mirror string

	// Known reports whether any Gateway controller has ever reported about it, Current whether the report is about the latest
	// spec, and Served whether the Gateway has accepted it.
	Known, Current, Served bool

	// ChangedAt is when a writer of the spec changed it last, or zero where that is not recorded.
	ChangedAt time.Time

	// Reason and Message why it is not served, or empty.
	Reason, Message string
}

// NewHTTPRoute is the view of an observed HTTPRoute, which may be nil.
func NewHTTPRoute(o compose.Object) HTTPRoute {
	if o == nil {
		return HTTPRoute{}
	}
	m := o.Map()
	r := HTTPRoute{Exists: true, Weights: map[string]int64{}, Chosen: map[string]bool{}, Current: true}
	// The last rule is for all requests. The others are for some.
	rules := compose.List(m, "spec", "rules")
	for i, v := range rules {
		rule, _ := v.(map[string]any)
		for _, v := range compose.List(rule, "filters") {
			filter, _ := v.(map[string]any)
			r.Mirror = compose.Text(filter, "requestMirror", "backendRef", "name")
		}
		for _, v := range compose.List(rule, "backendRefs") {
			backend, _ := v.(map[string]any)
			name, weight := compose.Text(backend, "name"), compose.Number(backend, 1, "weight")
			if i == len(rules)-1 {
				r.Weights[name] = weight
			} else if weight > 0 {
				r.Chosen[name] = true
			}
		}
	}
	for _, v := range compose.List(m, "status", "parents") {
		parent, _ := v.(map[string]any)
		// What a Gateway reported that was a parent before stays in the status.
		if hasParent(m, compose.Map(parent, "parentRef")) {
			r.Known = true
			r.add(compose.List(parent, "conditions"), compose.Number(m, 0, "metadata", "generation"))
		}
	}
	for _, entry := range o.Managed() {
		at, err := time.Parse(time.RFC3339, compose.TextOf(entry, "time"))
		if err == nil && compose.TextOf(entry, "subresource") == "" && at.After(r.ChangedAt) {
			r.ChangedAt = at
		}
	}
	return r
}

// add the conditions that a Gateway reports about a generation of the spec.
func (r *HTTPRoute) add(conditions []any, generation int64) {
	for _, v := range conditions {
		c, _ := v.(map[string]any)
		accepted := compose.Text(c, "type") == string(gatewayv1.RouteConditionAccepted)
		if !accepted && compose.Text(c, "type") != string(gatewayv1.RouteConditionResolvedRefs) {
			continue
		}
		holds := compose.Text(c, "status") == string(corev1.ConditionTrue)
		r.Current = r.Current && compose.Number(c, 0, "observedGeneration") >= generation
		r.Served = r.Served || accepted && holds
		if !holds && r.Reason == "" {
			r.Reason, r.Message = compose.Text(c, "reason"), compose.Text(c, "message")
		}
	}
}

// hasParent reports whether a route names the Gateway of a report.
func hasParent(route, reported map[string]any) bool {
	if reported == nil {
		return true
	}
	own := compose.Text(route, "metadata", "namespace")
	for _, v := range compose.List(route, "spec", "parentRefs") {
		ref, _ := v.(map[string]any)
		if compose.Text(ref, "name") == compose.Text(reported, "name") &&
			cmp.Or(compose.Text(ref, "namespace"), own) == cmp.Or(compose.Text(reported, "namespace"), own) &&
			compose.Text(ref, "sectionName") == compose.Text(reported, "sectionName") {
			return true
		}
	}
	return false
}
