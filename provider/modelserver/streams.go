// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"fmt"
	"strings"
)

// Metrics of the provider about streams with Flink, with the labels of the metrics about Pipelines. The companion of a JobManager serves the
// first one, too, without the label of the namespace.
const (
	MetricStreamRestarts   = "capstan_stream_restarts"
	MetricStreamPhase      = "capstan_stream_phase"
	MetricStreamSilent     = "capstan_stream_silent"
	MetricStreamBlocked    = "capstan_stream_pods_blocked"
	MetricStreamFailed     = "capstan_stream_checkpoint_failed"
	MetricStreamCheckpoint = "capstan_stream_last_checkpoint_timestamp_seconds"
	MetricStreamInterval   = "capstan_stream_checkpoint_interval_seconds"

	// metricStreamLag is one of the companion's, which is scraped only where a Pipeline has metrics.
	metricStreamLag = "capstan_stream_lag_records"
)

// Records of streams, by the label namespace.
const (
	RecordStreamRestarts   = "capstan:stream_restarts"
	RecordStreamPhase      = "capstan:stream_phase"
	RecordStreamSilent     = "capstan:stream_silent"
	RecordStreamBlocked    = "capstan:stream_pods_blocked"
	RecordStreamFailed     = "capstan:stream_checkpoint_failed"
	RecordStreamCheckpoint = "capstan:stream_last_checkpoint_timestamp_seconds"
	RecordStreamInterval   = "capstan:stream_checkpoint_interval_seconds"
	RecordStreamLag        = "capstan:stream_lag_records"
)

// streamRules record where streams stand. The provider has several replicas, which expose the same.
func streamRules() []Rule {
	record := func(as, metric string, more ...string) Rule {
		by := strings.Join(append([]string{LabelNamespace, LabelPipeline}, more...), ", ")
		return Rule{as, fmt.Sprintf(`max by (%s) (label_replace(%s{%s!=""}, %q, "$1", %q, "(.+)"))`,
			by, metric, LabelPipelineNamespace, LabelNamespace, LabelPipelineNamespace)}
	}
	return []Rule{
		record(RecordStreamPhase, MetricStreamPhase, LabelPhase),
		record(RecordStreamSilent, MetricStreamSilent),
		record(RecordStreamBlocked, MetricStreamBlocked, LabelReason),
		record(RecordStreamRestarts, MetricStreamRestarts),
		record(RecordStreamFailed, MetricStreamFailed),
		record(RecordStreamCheckpoint, MetricStreamCheckpoint),
		record(RecordStreamInterval, MetricStreamInterval),
		{RecordStreamLag, fmt.Sprintf("max by (%s, %s) (%s)", LabelNamespace, LabelPipeline, metricStreamLag)},
	}
}

// streamAlerts fire when a person has to look at a stream. A restart from the last checkpoint is none, and neither is a suspension.
func streamAlerts() []Alert {
	const where = "kubectl -n {{ $labels.namespace }} describe pipeline {{ $labels.pipeline }} shows why, and what to do."
	// in some phases, without the label of it.
	in := func(phases string) string {
		return fmt.Sprintf("max by (%s, %s) (%s{%s=~%q}) == 1", LabelNamespace, LabelPipeline, RecordStreamPhase, LabelPhase, phases)
	}
	runs := "\nand on (" + LabelNamespace + ", " + LabelPipeline + ") " + in("Running|Restarting")
	return []Alert{
		{
			Alert: "StreamBlocked", Severity: "warning", For: "1m",
			Expr:        in("Blocked"),
			Summary:     "The stream of Pipeline {{ $labels.pipeline }} of namespace {{ $labels.namespace }} is not started.",
			Description: "Most often the state folder cannot be used, or what was in it is gone. " + where,
		},
		{
			// The two phases may alternate.
			Alert: "StreamNotRunning", Severity: "warning", For: "15m",
			Expr:        in("Starting|Restarting"),
			Summary:     "The stream of Pipeline {{ $labels.pipeline }} of namespace {{ $labels.namespace }} has not run for 15 minutes.",
			Description: "It reads no input meanwhile. " + where,
		},
		{
			// Each revision begins at zero, as a counter does after a restart.
			Alert: "StreamRestartsOften", Severity: "warning", For: "1m",
			Expr:        fmt.Sprintf("increase(%s[1h]) > 5", RecordStreamRestarts),
			Summary:     "The stream of Pipeline {{ $labels.pipeline }} of namespace {{ $labels.namespace }} restarted more than five times in an hour.",
			Description: "Each restart repeats the work since the last checkpoint. " + where,
		},
		{
			Alert: "StreamCheckpointFails", Severity: "warning", For: "15m",
			Expr:        RecordStreamFailed + " == 1" + runs,
			Summary:     "No checkpoint of Pipeline {{ $labels.pipeline }} of namespace {{ $labels.namespace }} has succeeded for 15 minutes.",
			Description: "A restart would repeat the work since the last one. " + where,
		},
		{
			// The provider has the time of a checkpoint ten minutes and an interval late.
			Alert: "StreamCheckpointOld", Severity: "warning", For: "5m",
			Expr: fmt.Sprintf("time() - %s\n  > on (%s, %s) 1800 + 2 * %s", RecordStreamCheckpoint, LabelNamespace, LabelPipeline, RecordStreamInterval) +
				runs,
			Summary:     "The newest checkpoint of Pipeline {{ $labels.pipeline }} of namespace {{ $labels.namespace }} is too old.",
			Description: "It is older than half an hour and two intervals. A restart would repeat the work since then. " + where,
		},
		{
			// The least of now and the most of then: a stream that reads all of its input at times does not fall behind.
			Alert: "StreamFallsBehind", Severity: "warning", For: "15m",
			Expr:        fmt.Sprintf("min_over_time(%[1]s[15m]) > 1000\nand\nmin_over_time(%[1]s[15m]) > 2 * max_over_time(%[1]s[15m] offset 45m)", RecordStreamLag),
			Summary:     "The stream of Pipeline {{ $labels.pipeline }} of namespace {{ $labels.namespace }} falls behind its input.",
			Description: "{{ humanize $value }} records are not read yet, more than twice as many as 45 minutes ago. " + where,
		},
		{
			Alert: "StreamPodsBlocked", Severity: "warning", For: "15m",
			Expr:        RecordStreamBlocked + " == 1",
			Summary:     "Pods of the stream of Pipeline {{ $labels.pipeline }} of namespace {{ $labels.namespace }} have been blocked for 15 minutes: {{ $labels.reason }}.",
			Description: where,
		},
		{
			Alert: "StreamSilent", Severity: "warning", For: "10m",
			Expr:        RecordStreamSilent + " == 1",
			Summary:     "The JobManager of Pipeline {{ $labels.pipeline }} of namespace {{ $labels.namespace }} does not answer.",
			Description: "The stream may run well, but no status shows it. " + where,
		},
	}
}
