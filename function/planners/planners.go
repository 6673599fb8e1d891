// SPDX-License-Identifier: Apache-2.0

// Package planners is the table of Capstan's planners by the kinds that they compose for: the function serves them, and previews use them as
// a library.
package planners

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	observev1alpha1 "github.com/capstan-dev/capstan/apis/observe/v1alpha1"
	registryv1alpha1 "github.com/capstan-dev/capstan/apis/registry/v1alpha1"
	apisv1alpha1 "github.com/capstan-dev/capstan/apis/v1alpha1"
	"github.com/capstan-dev/capstan/function/algorithm"
	algorithmnames "github.com/capstan-dev/capstan/function/algorithm/names"
	"github.com/capstan-dev/capstan/function/compose"
	"github.com/capstan-dev/capstan/function/database"
	"github.com/capstan-dev/capstan/function/database/names"
	"github.com/capstan-dev/capstan/function/experiment"
	"github.com/capstan-dev/capstan/function/jobpod"
	"github.com/capstan-dev/capstan/function/pipeline"
	pipelinenames "github.com/capstan-dev/capstan/function/pipeline/names"
	"github.com/capstan-dev/capstan/function/podspec"
	"github.com/capstan-dev/capstan/function/preview"
	"github.com/capstan-dev/capstan/function/release"
	"github.com/capstan-dev/capstan/function/scrape"
	"github.com/capstan-dev/capstan/function/training"
	trainingnames "github.com/capstan-dev/capstan/function/training/names"
)

// A Planner of one kind.
type Planner struct {
	Plan compose.Planner

	// Optional kinds of objects that are composed or required, by the names their schemas are required under. A kind that the cluster
	// does not serve would end Crossplane's whole pass.
	Optional map[string]schema.GroupVersionKind

	// Remembers is the name of the composed object with the note of the settings that there were (see compose.NoteSettings). A kind
	// without objects has none.
	Remembers string
}

// Of every kind of composite resource that Capstan composes for, in a release.
func Of(r release.Release) map[schema.GroupKind]Planner {
	return map[schema.GroupKind]Planner{
		apisv1alpha1.AlgorithmGroupVersionKind.GroupKind(): {Plan: algorithm.Plan, Remembers: algorithmnames.Service, Optional: map[string]schema.GroupVersionKind{
			"analysis":       observev1alpha1.AnalysisGroupVersionKind,
			"autoscaler":     observev1alpha1.AutoscalerGroupVersionKind,
			"hook":           observev1alpha1.HookGroupVersionKind,
			"modelversion":   registryv1alpha1.ModelVersionGroupVersionKind,
			"modelalias":     registryv1alpha1.ModelAliasGroupVersionKind,
			"httproute":      algorithm.RouteGVK,
			"grpcroute":      algorithm.GRPCRouteGVK,
			"claimtemplate":  podspec.ClaimTemplateGVK,
			"servicemonitor": algorithm.ServiceMonitorGVK,
			"prometheusrule": algorithm.PrometheusRuleGVK,
		}},
		apisv1alpha1.DatabaseGroupVersionKind.GroupKind(): {Plan: database.Planner(r), Remembers: names.AccessCredential, Optional: map[string]schema.GroupVersionKind{
			"certificate":    names.CertificateGVK,
			"issuer":         names.IssuerGVK,
			"servicemonitor": names.ServiceMonitorGVK,
			"prometheusrule": names.PrometheusRuleGVK,
		}},
		apisv1alpha1.ExperimentGroupVersionKind.GroupKind(): {Plan: experiment.Plan},
		apisv1alpha1.PreviewGroupVersionKind.GroupKind():    {Plan: preview.Plan, Remembers: preview.Algorithm},
		apisv1alpha1.TrainingGroupVersionKind.GroupKind(): {Plan: training.Plan, Remembers: trainingnames.Service, Optional: map[string]schema.GroupVersionKind{
			"run":           observev1alpha1.RunGroupVersionKind,
			"lineage":       observev1alpha1.LineageGroupVersionKind,
			"podmonitor":    scrape.PodMonitorGVK,
			"modelversion":  registryv1alpha1.ModelVersionGroupVersionKind,
			"modelalias":    registryv1alpha1.ModelAliasGroupVersionKind,
			"claimtemplate": podspec.ClaimTemplateGVK,
			"workload":      jobpod.WorkloadGVK,
		}},
		apisv1alpha1.PipelineGroupVersionKind.GroupKind(): {Plan: pipeline.Plan, Remembers: pipelinenames.Service, Optional: map[string]schema.GroupVersionKind{
			"flinkjob":      observev1alpha1.FlinkJobGroupVersionKind,
			"jobhistory":    observev1alpha1.JobHistoryGroupVersionKind,
			"lineage":       observev1alpha1.LineageGroupVersionKind,
			"podmonitor":    scrape.PodMonitorGVK,
			"claimtemplate": podspec.ClaimTemplateGVK,
		}},
	}
}
