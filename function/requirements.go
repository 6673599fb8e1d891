// SPDX-License-Identifier: Apache-2.0

package main

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	optionalkinds "github.com/capstan-dev/capstan/apis/optional"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/edge"
	"github.com/capstan-dev/capstan/function/planners"
	"github.com/capstan-dev/capstan/function/settings"
)

// Names of what the function requires. The Compositions bootstrap the same under the same names, so that Crossplane need not call
// twice.
const (
	requiredSettings = "settings"
	requiredKinds    = "kinds"
	requiredAnalysis = "analysis"
)

// kinds of composite resources that the function composes for.
func kinds() map[schema.GroupKind]planners.Planner { return planners.Of(released()) }

// requirements of every call, and the objects that a plan requires. Crossplane forgets those that are not repeated. It calls
// again with what it found until nothing new is required, so that an answer without them is never the one that counts.
func requirements(req *edge.Request, optional map[string]schema.GroupVersionKind, objects map[string]compose.Requirement) *fnv1.Requirements {
	rs := &fnv1.Requirements{Schemas: map[string]*fnv1.SchemaSelector{}, Resources: map[string]*fnv1.ResourceSelector{
		requiredSettings: environmentConfig(settings.Name),
		requiredKinds:    environmentConfig(optionalkinds.Config),
	}}
	served := reportedKinds(req)
	for name, gvk := range optional {
		if _, reported := served[optionalkinds.Key(gvk)]; reported {
			continue
		}
		apiVersion, k := gvk.ToAPIVersionAndKind()
		rs.Schemas[name] = &fnv1.SchemaSelector{ApiVersion: apiVersion, Kind: k}
	}
	if unproven(req) {
		rs.Schemas[requiredPolicy] = &fnv1.SchemaSelector{ApiVersion: policyAPIVersion, Kind: policyKind}
	}
	for name, o := range objects {
		apiVersion, k := o.Kind.ToAPIVersionAndKind()
		s := &fnv1.ResourceSelector{ApiVersion: apiVersion, Kind: k, Match: &fnv1.ResourceSelector_MatchName{MatchName: o.Name}}
		if o.Label != (compose.Label{}) {
			s.Match = &fnv1.ResourceSelector_MatchLabels{MatchLabels: &fnv1.MatchLabels{Labels: map[string]string{o.Label.Key: o.Label.Value}}}
		}
		if o.Namespace != "" {
			s.Namespace = &o.Namespace
		}
		rs.Resources[name] = s
	}
	return rs
}

// environmentConfig of a name.
func environmentConfig(name string) *fnv1.ResourceSelector {
	return &fnv1.ResourceSelector{
		ApiVersion: "apiextensions.crossplane.io/v1beta1",
		Kind:       "EnvironmentConfig",
		Match:      &fnv1.ResourceSelector_MatchName{MatchName: name},
	}
}

// reportedKinds are the kinds that the provider knows to be served or not, by their keys.
func reportedKinds(req *edge.Request) map[string]any {
	for _, item := range req.Required[requiredKinds] {
		return compose.Map(item.Map(), "data", "kinds")
	}
	return nil
}

// availability of optional kinds in the cluster, as the provider reports it. Where it does not, as in a preview, schemas show it: to
// find one, Crossplane parses the OpenAPI document of a whole API group on each pass. A Crossplane too old for the capability of
// required schemas never answers. For it a kind stays unknown, which is safe: what exists is kept, and nothing is composed that
// might not be served.
func availability(req *edge.Request, optional map[string]schema.GroupVersionKind) map[schema.GroupVersionKind]compose.Availability {
	ks, served := map[schema.GroupVersionKind]compose.Availability{}, reportedKinds(req)
	for name, gvk := range optional {
		found, known := req.Served[name]
		switch is, reported := served[optionalkinds.Key(gvk)]; {
		case reported && is == true:
			ks[gvk] = compose.Available
		case reported:
			ks[gvk] = compose.Unavailable
		case !known:
			ks[gvk] = compose.AvailabilityUnknown
		case !found:
			ks[gvk] = compose.Unavailable
		default:
			ks[gvk] = compose.Available
		}
	}
	return ks
}

// sought are the names of the required objects that Crossplane has sought. They need not exist.
func sought(req *edge.Request) map[string]bool {
	names := map[string]bool{}
	for name := range req.Required {
		names[name] = true
	}
	return names
}

// required objects that Crossplane has found, except the platform's settings and the kinds that are served.
func required(req *edge.Request) map[string]compose.Object {
	found := map[string]compose.Object{}
	for name, items := range req.Required {
		if name != requiredSettings && name != requiredKinds && len(items) > 0 {
			found[name] = items[0]
		}
	}
	return found
}
