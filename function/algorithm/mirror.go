// SPDX-License-Identifier: Apache-2.0

package algorithm

import (
	"fmt"
	"slices"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/gateway-api/pkg/features"

	"github.com/capstan-dev/capstan/function/compose"
)

// Names of what is required to find out what a Gateway offers.
const (
	requiredGateway      = "gateway"
	requiredGatewayClass = "gatewayclass"
)

// mirror is why no request can be copied as the spec asks, or empty, and the objects that say so. An HTTPRoute with a filter that
// a Gateway does not know is not served at all, so that nothing is tried. It is required only where requests are copied.
func (f *facts) mirror() (map[string]compose.Requirement, string) {
	if f.spec.Lifecycle == nil || f.spec.Lifecycle.MirrorPercent == nil {
		return nil, ""
	}
	if f.rollout.ByReplicas {
		return nil, "without the Gateway API no request is copied: remove spec.lifecycle.mirrorPercent"
	}
	requires, offered := f.gatewayFeatures()
	all, share := string(features.SupportHTTPRouteRequestMirror), string(features.SupportHTTPRouteRequestPercentageMirror)
	needed, g := all, f.rollout.Gateway
	if *f.spec.Lifecycle.MirrorPercent < 100 {
		needed = share
	}
	switch {
	case slices.Contains(offered, needed):
		return requires, ""
	case needed == share && slices.Contains(offered, all):
		return requires, fmt.Sprintf("Gateway %q of namespace %q copies all requests or none: set spec.lifecycle.mirrorPercent to 100", g.Name, g.Namespace)
	default:
		return requires, fmt.Sprintf("status.supportedFeatures of the class of Gateway %q of namespace %q does not name %s: remove spec.lifecycle.mirrorPercent, "+
			"or name another Gateway in spec.route", g.Name, g.Namespace, needed)
	}
}

// gatewayFeatures are the optional features that the Gateway of the route has, by way of its class, and the objects that say so.
func (f *facts) gatewayFeatures() (map[string]compose.Requirement, []string) {
	g := f.rollout.Gateway
	requires := map[string]compose.Requirement{
		requiredGateway: {Kind: gatewayv1.SchemeGroupVersion.WithKind("Gateway"), Namespace: g.Namespace, Name: g.Name},
	}
	gateway := f.Required[requiredGateway]
	if gateway == nil {
		return requires, nil
	}
	requires[requiredGatewayClass] = compose.Requirement{
		Kind: gatewayv1.SchemeGroupVersion.WithKind("GatewayClass"), Name: compose.Text(gateway.Map(), "spec", "gatewayClassName"),
	}
	class := f.Required[requiredGatewayClass]
	if class == nil {
		return requires, nil
	}
	var offered []string
	for _, v := range compose.List(class.Map(), "status", "supportedFeatures") {
		// Before version 1.3 of the Gateway API they were texts.
		name, _ := v.(string)
		if m, ok := v.(map[string]any); ok {
			name = compose.Text(m, "name")
		}
		offered = append(offered, name)
	}
	return requires, offered
}
