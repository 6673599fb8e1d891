// SPDX-License-Identifier: Apache-2.0

package modelserver

import "fmt"

// Metrics of the provider about the runs of Pipelines. They have a name of their own for the namespace, since the label namespace is the
// namespace of the pod that is scraped.
const (
	MetricPipelinePhase    = "capstan_pipeline_phase"
	MetricPipelineBlocked  = "capstan_pipeline_pods_blocked"
	LabelPipelineNamespace = "pipeline_namespace"
	LabelPipeline          = "pipeline"
)

// Records of runs, by the label namespace.
const (
	RecordPipelinePhase   = "capstan:pipeline_phase"
	RecordPipelineBlocked = "capstan:pipeline_pods_blocked"
)

// pipelineRules record where runs stand. The provider has several replicas, which expose the same.
func pipelineRules() []Rule {
	record := func(as, metric, more string) Rule {
		return Rule{as, fmt.Sprintf(`max by (%s, %s, %s) (label_replace(%s, %q, "$1", %q, "(.+)"))`,
			LabelNamespace, LabelPipeline, more, metric, LabelNamespace, LabelPipelineNamespace)}
	}
	return []Rule{
		record(RecordPipelinePhase, MetricPipelinePhase, LabelPhase),
		record(RecordPipelineBlocked, MetricPipelineBlocked, LabelReason),
	}
}

// pipelineAlerts fire when a person has to look at a run. A failure that is tried again with success is none.
func pipelineAlerts() []Alert {
	const where = "kubectl -n {{ $labels.namespace }} describe pipeline {{ $labels.pipeline }} shows why, and what to do."
	return []Alert{
		{
			Alert: "PipelineFailed", Severity: "warning", For: "1m",
			Expr:        RecordPipelinePhase + `{` + LabelPhase + `="Failed"} == 1`,
			Summary:     "The newest run of Pipeline {{ $labels.pipeline }} of namespace {{ $labels.namespace }} failed.",
			Description: "No attempt follows in this run. " + where,
		},
		{
			Alert: "PipelineRecovering", Severity: "warning", For: "30m",
			Expr:        RecordPipelinePhase + `{` + LabelPhase + `="Recovering"} == 1`,
			Summary:     "The program of Pipeline {{ $labels.pipeline }} of namespace {{ $labels.namespace }} has failed for 30 minutes.",
			Description: "It is tried again by spec.retry. " + where,
		},
		{
			Alert: "PipelinePodsBlocked", Severity: "warning", For: "15m",
			Expr:        RecordPipelineBlocked + " == 1",
			Summary:     "Pods of Pipeline {{ $labels.pipeline }} of namespace {{ $labels.namespace }} have been blocked for 15 minutes: {{ $labels.reason }}.",
			Description: where,
		},
	}
}
