// SPDX-License-Identifier: Apache-2.0

package modelserver

import "fmt"

// Metrics of the provider about the runs of Trainings. They have a name of their own for the namespace, since the label namespace is the
// namespace of the pod that is scraped.
const (
	MetricTrainingPhase    = "capstan_training_phase"
	MetricTrainingMissing  = "capstan_training_missing_members"
	MetricTrainingSilent   = "capstan_training_silent"
	MetricTrainingBlocked  = "capstan_training_pods_blocked"
	MetricTrainingOverdue  = "capstan_training_checkpoint_overdue"
	LabelTrainingNamespace = "training_namespace"
	LabelTraining          = "training"
)

// Records of runs, by the label namespace.
const (
	RecordTrainingPhase   = "capstan:training_phase"
	RecordTrainingMissing = "capstan:training_missing_members"
	RecordTrainingSilent  = "capstan:training_silent"
	RecordTrainingBlocked = "capstan:training_pods_blocked"
	RecordTrainingOverdue = "capstan:training_checkpoint_overdue"
)

// trainingRules record where runs stand. The provider has several replicas, which expose the same.
func trainingRules() []Rule {
	record := func(as, metric, more string) Rule {
		return Rule{as, fmt.Sprintf(`max by (%s, %s%s) (label_replace(%s, %q, "$1", %q, "(.+)"))`,
			LabelNamespace, LabelTraining, more, metric, LabelNamespace, LabelTrainingNamespace)}
	}
	return []Rule{
		record(RecordTrainingPhase, MetricTrainingPhase, ", "+LabelPhase),
		record(RecordTrainingMissing, MetricTrainingMissing, ""),
		record(RecordTrainingSilent, MetricTrainingSilent, ""),
		record(RecordTrainingBlocked, MetricTrainingBlocked, ", "+LabelReason),
		record(RecordTrainingOverdue, MetricTrainingOverdue, ""),
	}
}

// trainingAlerts fire when a person has to look at a run. A fault that the crew recovers from is none.
func trainingAlerts() []Alert {
	const where = "kubectl -n {{ $labels.namespace }} describe training {{ $labels.training }} shows why, and what to do."
	return []Alert{
		{
			Alert: "TrainingFailed", Severity: "warning", For: "1m",
			Expr:        RecordTrainingPhase + `{` + LabelPhase + `="Failed"} == 1`,
			Summary:     "The run of Training {{ $labels.training }} of namespace {{ $labels.namespace }} ended without success.",
			Description: "Its checkpoints stay. " + where,
		},
		{
			// The two phases may alternate.
			Alert: "TrainingStalled", Severity: "warning", For: "15m",
			Expr:        fmt.Sprintf("max by (%s, %s) (%s{%s=~\"Gathering|Recovering\"}) == 1", LabelNamespace, LabelTraining, RecordTrainingPhase, LabelPhase),
			Summary:     "No rank of Training {{ $labels.training }} of namespace {{ $labels.namespace }} has run for 15 minutes.",
			Description: "Its pods hold their devices meanwhile. " + where,
		},
		{
			// What blocks a pod has an alert of its own, and so have a run without ranks and a coordinator whose last answer is old.
			Alert: "TrainingMemberMissing", Severity: "warning", For: "15m",
			Expr: fmt.Sprintf("%[3]s > 0 and on (%[1]s, %[2]s) %[4]s{%[7]s=\"Running\"} == 1 unless on (%[1]s, %[2]s) %[5]s == 1 unless on (%[1]s, %[2]s) %[6]s == 1",
				LabelNamespace, LabelTraining, RecordTrainingMissing, RecordTrainingPhase, RecordTrainingBlocked, RecordTrainingSilent, LabelPhase),
			Summary:     "Pods of Training {{ $labels.training }} of namespace {{ $labels.namespace }} have been missing for 15 minutes: {{ $value }}.",
			Description: "All ranks run, and spares are used up that the next loss needs. " + where,
		},
		{
			Alert: "TrainingPodsBlocked", Severity: "warning", For: "15m",
			Expr:        RecordTrainingBlocked + " == 1",
			Summary:     "Pods of Training {{ $labels.training }} of namespace {{ $labels.namespace }} have been blocked for 15 minutes: {{ $labels.reason }}.",
			Description: where,
		},
		{
			// The crew waits for three times as long as the spec says before it reports this.
			Alert: "TrainingCheckpointOverdue", Severity: "warning", For: "5m",
			Expr:        RecordTrainingOverdue + " == 1",
			Summary:     "No checkpoint of Training {{ $labels.training }} of namespace {{ $labels.namespace }} became complete for three times checkpoint.every.",
			Description: "A fault would repeat all steps since the last one. " + where,
		},
		{
			Alert: "TrainingSilent", Severity: "warning", For: "10m",
			Expr:        RecordTrainingSilent + " == 1",
			Summary:     "The coordinator of Training {{ $labels.training }} of namespace {{ $labels.namespace }} does not answer.",
			Description: "Its ranks may run well, but no status shows it. " + where,
		},
	}
}
