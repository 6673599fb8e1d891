// SPDX-License-Identifier: Apache-2.0

package modelserver

import "fmt"

// Metrics of the provider about the rollouts of Algorithms. They have a name of their own for the namespace, since the label
// namespace is the namespace of the pod that is scraped.
const (
	MetricRolloutPhase      = "capstan_algorithm_rollout_phase"
	MetricRolloutSince      = "capstan_algorithm_rollout_phase_start_time_seconds"
	LabelAlgorithmNamespace = "algorithm_namespace"
	LabelPhase              = "phase"
	LabelReason             = "reason"
)

// Records of rollouts: 1 for the phase that one is in, and for how many seconds it is.
const (
	RecordRolloutPhase   = "capstan:rollout_phase"
	RecordRolloutSeconds = "capstan:rollout_phase_seconds"
)

// holdsLong is how long a rollout may hold, or stay in a phase that should pass, before an alert fires, in seconds.
const holdsLong = 3600

// An Alert fires while an expression has a value.
type Alert struct {
	Alert, Expr, For, Severity, Summary, Description string
}

// rolloutRules record where rollouts stand, by the labels that all other records have. The provider has several replicas, which
// expose the same.
func rolloutRules() []Rule {
	relabelled := func(expr string) string {
		return fmt.Sprintf(`label_replace(%s, %q, "$1", %q, "(.+)")`, expr, LabelNamespace, LabelAlgorithmNamespace)
	}
	return []Rule{
		{RecordRolloutPhase, fmt.Sprintf("max by (%s, %s, %s, %s) (%s)",
			LabelNamespace, LabelAlgorithm, LabelPhase, LabelReason, relabelled(MetricRolloutPhase))},
		{RecordRolloutSeconds, fmt.Sprintf("time() - max by (%s, %s) (%s)", LabelNamespace, LabelAlgorithm, relabelled(MetricRolloutSince))},
	}
}

// rolloutAlerts fire when a person has to look at a rollout. One that waits for people or for a time of day by design is none.
func rolloutAlerts() []Alert {
	const where = "kubectl -n {{ $labels.namespace }} describe algorithm {{ $labels.algorithm }} shows why, and what to do."
	return []Alert{
		{
			Alert: "AlgorithmRolledBack", Severity: "warning", For: "1m",
			Expr:        RecordRolloutPhase + `{` + LabelPhase + `="RolledBack"} == 1`,
			Summary:     "The revision that Algorithm {{ $labels.algorithm }} of namespace {{ $labels.namespace }} asks for was rolled back.",
			Description: "All clients reach the revision before. " + where,
		},
		{
			Alert: "AlgorithmRolloutHolds", Severity: "warning", For: "1m",
			Expr: fmt.Sprintf("%s{%s=\"Holding\",%s!~\"AwaitingApproval|FreezeWindow|Paused\"} == 1\n  and on (%s, %s) %s > %d",
				RecordRolloutPhase, LabelPhase, LabelReason, LabelNamespace, LabelAlgorithm, RecordRolloutSeconds, holdsLong),
			Summary:     "The rollout of Algorithm {{ $labels.algorithm }} of namespace {{ $labels.namespace }} has been held for an hour: {{ $labels.reason }}.",
			Description: "The traffic to each revision stays as it is. " + where,
		},
		{
			// A step that soaks lasts as long as the spec says, and holds at its deadline.
			Alert: "AlgorithmRolloutStuck", Severity: "warning", For: "1m",
			Expr: fmt.Sprintf("%s{%s!~\"Stable|RolledBack|Baking|Holding\",%s!=\"Soaking\"} == 1\n  and on (%s, %s) %s > %d",
				RecordRolloutPhase, LabelPhase, LabelReason, LabelNamespace, LabelAlgorithm, RecordRolloutSeconds, holdsLong),
			Summary:     "The rollout of Algorithm {{ $labels.algorithm }} of namespace {{ $labels.namespace }} has been {{ $labels.phase }} for an hour.",
			Description: "The phase should have passed. " + where,
		},
	}
}
