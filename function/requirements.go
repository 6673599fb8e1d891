// SPDX-License-Identifier: Apache-2.0

package main

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	registryv1alpha1 "github.com/capstan-dev/capstan/apis/registry/v1alpha1"
	apisv1alpha1 "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database"
	"github.com/capstan-dev/capstan/function/database/names"
)

// Names of what the function requires. The Compositions bootstrap the same under the same names, so that Crossplane need not call
// twice.
const (
	requiredSettings = "settings"
	requiredAnalysis = "analysis"
	requiredMonitor  = "servicemonitor"
	requiredRules    = "prometheusrule"
)

// settingsName is the name of the EnvironmentConfig with the platform's settings.
const settingsName = "capstan"

// A kind of composite resource that the function composes for.
type kind struct {
	plan compose.Planner

	// optional kinds of composed objects, by the names their schemas are required under. To compose a kind that the cluster does
	// not serve would end Crossplane's whole pass.
	optional map[string]schema.GroupVersionKind
}

// kinds that the function composes for.
func kinds() map[schema.GroupKind]kind {
	return map[schema.GroupKind]kind{
		apisv1alpha1.AlgorithmGroupVersionKind.GroupKind(): {algorithm.Plan, map[string]schema.GroupVersionKind{
			requiredAnalysis: observev1alpha1.AnalysisGroupVersionKind,
			"autoscaler":     observev1alpha1.AutoscalerGroupVersionKind,
			"modelversion":   registryv1alpha1.ModelVersionGroupVersionKind,
			"modelalias":     registryv1alpha1.ModelAliasGroupVersionKind,
			"httproute":      algorithm.RouteGVK,
			"grpcroute":      algorithm.GRPCRouteGVK,
			requiredMonitor:  algorithm.ServiceMonitorGVK,
			requiredRules:    algorithm.PrometheusRuleGVK,
		}},
		apisv1alpha1.DatabaseGroupVersionKind.GroupKind(): {database.Planner(version), map[string]schema.GroupVersionKind{
			"certificate":   names.CertificateGVK,
			"issuer":        names.IssuerGVK,
			requiredMonitor: names.ServiceMonitorGVK,
			requiredRules:   names.PrometheusRuleGVK,
		}},
	}
}

// requirements of every call, and the objects that a plan requires. Crossplane forgets those that are not repeated. It calls
// again with what it found until nothing new is required, so that an answer without them is never the one that counts.
func requirements(req *fnv1.RunFunctionRequest, optional map[string]schema.GroupVersionKind, objects map[string]compose.Requirement) *fnv1.Requirements {
	rs := &fnv1.Requirements{Schemas: map[string]*fnv1.SchemaSelector{}, Resources: map[string]*fnv1.ResourceSelector{
		requiredSettings: {
			ApiVersion: "apiextensions.crossplane.io/v1beta1",
			Kind:       "EnvironmentConfig",
			Match:      &fnv1.ResourceSelector_MatchName{MatchName: settingsName},
		},
	}}
	for name, gvk := range optional {
		apiVersion, k := gvk.ToAPIVersionAndKind()
		rs.Schemas[name] = &fnv1.SchemaSelector{ApiVersion: apiVersion, Kind: k}
	}
	if unproven(req) {
		rs.Schemas[requiredPolicy] = &fnv1.SchemaSelector{ApiVersion: policyAPIVersion, Kind: policyKind}
	}
	for name, o := range objects {
		apiVersion, k := o.Kind.ToAPIVersionAndKind()
		s := &fnv1.ResourceSelector{ApiVersion: apiVersion, Kind: k, Match: &fnv1.ResourceSelector_MatchName{MatchName: o.Name}}
		if o.Namespace != "" {
			s.Namespace = &o.Namespace
		}
		rs.Resources[name] = s
	}
	return rs
}

// availability of optional kinds in the cluster. A Crossplane too old for the capability of required schemas never reports it.
// For it a kind stays unknown, which is safe: what exists is kept, and nothing is composed that might not be served.
func availability(req *fnv1.RunFunctionRequest, optional map[string]schema.GroupVersionKind) map[schema.GroupVersionKind]compose.Availability {
	ks := map[schema.GroupVersionKind]compose.Availability{}
	for name, gvk := range optional {
		switch s, known := req.GetRequiredSchemas()[name]; {
		case !known:
			ks[gvk] = compose.AvailabilityUnknown
		case len(s.GetOpenapiV3().GetFields()) == 0:
			ks[gvk] = compose.Unavailable
		default:
			ks[gvk] = compose.Available
		}
	}
	return ks
}

// required objects that Crossplane has found, except the platform's settings.
func required(req *fnv1.RunFunctionRequest) map[string]compose.Object {
	found := map[string]compose.Object{}
	for name, r := range req.GetRequiredResources() {
		if items := r.GetItems(); name != requiredSettings && len(items) > 0 {
			found[name] = &object{resource: items[0].GetResource()}
		}
	}
	return found
}
