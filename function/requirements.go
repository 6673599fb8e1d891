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
)

// Names of what the function requires. The Compositions bootstrap the same
// under the same names, so that Crossplane need not call twice.
const (
	requiredSettings = "settings"
	requiredAnalysis = "analysis"
	requiredVersion  = "modelversion"
	requiredAlias    = "modelalias"
	requiredRoute    = "httproute"
	requiredMonitor  = "servicemonitor"
	requiredRules    = "prometheusrule"

	requiredCertificate = "certificate"
	requiredIssuer      = "issuer"
)

// settingsName is the name of the EnvironmentConfig with the platform's
// settings.
const settingsName = "capstan"

// requirements of every call for a kind: Crossplane forgets those that are not
// repeated. It calls again with what it found until nothing new is asked for, so
// that an answer without them is never the one that counts.
func requirements(kind schema.GroupKind) *fnv1.Requirements {
	schemas := map[string]*fnv1.SchemaSelector{}
	for name, gvk := range optional(kind) {
		apiVersion, kind := gvk.ToAPIVersionAndKind()
		schemas[name] = &fnv1.SchemaSelector{ApiVersion: apiVersion, Kind: kind}
	}

	return &fnv1.Requirements{
		Resources: map[string]*fnv1.ResourceSelector{
			requiredSettings: {
				ApiVersion: "apiextensions.crossplane.io/v1beta1",
				Kind:       "EnvironmentConfig",
				Match:      &fnv1.ResourceSelector_MatchName{MatchName: settingsName},
			},
		},
		Schemas: schemas,
	}
}

// optional kinds that a planner asks about, by the names their schemas are
// required under. To compose a kind that the cluster does not serve would end
// Crossplane's whole pass.
func optional(kind schema.GroupKind) map[string]schema.GroupVersionKind {
	if kind == apisv1alpha1.DatabaseGroupVersionKind.GroupKind() {
		return map[string]schema.GroupVersionKind{
			requiredCertificate: database.CertificateGVK,
			requiredIssuer:      database.IssuerGVK,
			requiredMonitor:     database.ServiceMonitorGVK,
			requiredRules:       database.PrometheusRuleGVK,
		}
	}

	return map[string]schema.GroupVersionKind{
		requiredAnalysis: observev1alpha1.AnalysisGroupVersionKind,
		requiredVersion:  registryv1alpha1.ModelVersionGroupVersionKind,
		requiredAlias:    registryv1alpha1.ModelAliasGroupVersionKind,
		requiredRoute:    algorithm.RouteGVK,
		requiredMonitor:  algorithm.ServiceMonitorGVK,
		requiredRules:    algorithm.PrometheusRuleGVK,
	}
}

// availability tells which optional kinds the cluster serves. A Crossplane too old for
// the capability of required schemas never tells. For it a kind stays unknown,
// which is safe: what exists is kept and nothing is asked for that might not be
// served.
func availability(kind schema.GroupKind, req *fnv1.RunFunctionRequest) map[schema.GroupVersionKind]compose.Availability {
	ks := map[schema.GroupVersionKind]compose.Availability{}

	for name, gvk := range optional(kind) {
		s, told := req.GetRequiredSchemas()[name]

		switch {
		case !told:
			ks[gvk] = compose.AvailabilityUnknown
		case len(s.GetOpenapiV3().GetFields()) == 0:
			ks[gvk] = compose.Unavailable
		default:
			ks[gvk] = compose.Available
		}
	}

	return ks
}

// requiring asks for objects that a plan looks at.
func requiring(objects map[string]compose.Requirement) *fnv1.Requirements {
	selectors := map[string]*fnv1.ResourceSelector{}

	for name, o := range objects {
		apiVersion, kind := o.Kind.ToAPIVersionAndKind()
		s := &fnv1.ResourceSelector{ApiVersion: apiVersion, Kind: kind, Match: &fnv1.ResourceSelector_MatchName{MatchName: o.Name}}

		if o.Namespace != "" {
			s.Namespace = &o.Namespace
		}

		selectors[name] = s
	}

	return &fnv1.Requirements{Resources: selectors}
}

// required objects that Crossplane has found, but for the platform's settings.
func required(req *fnv1.RunFunctionRequest) map[string]compose.Object {
	found := map[string]compose.Object{}

	for name, r := range req.GetRequiredResources() {
		if items := r.GetItems(); name != requiredSettings && len(items) > 0 {
			found[name] = &object{resource: items[0].GetResource()}
		}
	}

	return found
}
