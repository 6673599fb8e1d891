// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"slices"
	"strings"
	"testing"
)

const pipelineXRD = "apis/pipeline/definition.yaml"

// pipelineOf is a Pipeline of a name with fields of its spec.
func pipelineOf(id, fields string) map[string]any {
	object := smallest(name(id))
	object["kind"], object["spec"] = "Pipeline", map[string]any{}
	spec(fields)(object)
	return object
}

// pipelinesAccepted are Pipelines.
func pipelinesAccepted() map[string]map[string]any {
	return map[string]map[string]any{
		"PipelineStream":      pipelineOf("clicks", `{image: x, args: [clicks]}`),
		"PipelineByID":        pipelineOf("a", `{image: x, command: [python, a.py], run: {id: 2026-11-20t03, args: [--day]}}`),
		"PipelineOfTheLimits": pipelineOf("a23456789-123456789-123456789-123456789", `{image: x, args: [a], schedule: {cron: "*/5 0-3 1,15 * MON-FRI", timeZone: America/Argentina/Buenos_Aires, startWithin: 168h}, history: 20}`),
		"PipelineSpark":       pipelineOf("a", `{engine: Spark, image: x, args: [a.jar], run: {id: a}, spark: {home: /usr/lib/spark, mainClass: org.example.A$B, executors: 512, conf: {spark.a.b-c: d}}}`),
		"PipelineFlink":       pipelineOf("a", `{engine: Flink, image: x, flink: {mainClass: org.example.A, state: {claimName: state}}}`),
		"PipelineWhole": pipelineOf("a", `{image: x, args: [a], run: {id: a}, concurrency: Allow, retry: {attempts: 1, resetAfter: 1s, backoff: {from: 0s, to: 24h, factor: 1, jitterPercent: 100},
			rules: [{when: {exitCodes: [1, 255]}, do: Fail}, {when: {class: OutOfMemory, pattern: x}, do: RetryWithMemory, factor: 1.1, max: 1Mi, attempts: 1}]},
			deadline: 8760h, gracePeriod: 1h, suspend: true, keepFinishedFor: 0s, queue: {name: research, priority: high},
			pod: {nodeSelector: {a: b}, volumes: [{name: d, emptyDir: {}}]}, volumeMounts: [{name: d, mountPath: /d}], secrets: [{name: s, rotate: Restartless}]}`),
	}
}

// shared fields of the pods of Trainings and Pipelines.
var shared = []string{"config", "env", "pod", "podMetadata", "queue", "resources", "secrets", "volumeMounts"}

// A mistake is fields that are refused, and what is said.
type mistake = struct {
	fields string
	want   []string
}

// flinkMistakes are mistakes in the block of Flink.
func flinkMistakes() []mistake {
	of := func(fields, want string) mistake {
		return mistake{"engine: Flink, flink: {mainClass: a, state: {claimName: a}, " + fields + "}", []string{"spec.flink." + want}}
	}
	state := func(fields, want string) mistake {
		return mistake{"engine: Flink, flink: {mainClass: a, state: " + fields + "}", []string{"spec.flink.state" + want}}
	}
	all := []mistake{
		state(`{}`, ": Invalid value: set exactly one of claimName, for a claim that exists, and claim, for one of this Pipeline"),
		state(`{claimName: A}`, ".claimName: Invalid value: \"A\": must be the name of an object: lower case letters, digits, '-' and '.', with a letter or digit at both ends"),
		state(`{claim: {storageClassName: A, resources: {requests: {storage: 1Gi}}}}`, ".claim.storageClassName: Invalid value: \"A\": must be the name of an object: lower case letters, digits, '-' and '.', with a letter or digit at both ends"),
		state(`{claim: {resources: {requests: {storage: 1}}}}`, ".claim.resources.requests.storage: Invalid value: 1: must be a quantity of at least 1Mi, for instance 20Gi"),
		of(`checkpointEvery: 25h`, "checkpointEvery: Invalid value: \"25h\": must be a time from 1s to 24h, for instance 1m"),
		of(`savepointWithin: 1s`, "savepointWithin: Invalid value: \"1s\": must be a time from 10s to 1h, for instance 5m"),
		of(`stableWithin: 1s`, "stableWithin: Invalid value: \"1s\": must be a time from 1m to 24h, for instance 10m"),
		of(`conf: {A: b}`, "conf: Invalid value: each name must be a setting of Flink, for instance state.backend.type"),
		of(`home: opt`, "home: Invalid value: \"opt\": must be an absolute path of letters, digits, '_', '.' and '-', without '..'"),
		{`engine: Flink, flink: {mainClass: "a b", state: {claimName: a}}`, []string{"spec.flink.mainClass: Invalid value: \"a b\": must be the name of a class, for instance org.example.Clicks"}},
	}
	for _, m := range trainingMistakes {
		if rest, ok := strings.CutPrefix(m.fields, "resources:"); ok && len(m.want) == 1 {
			all = append(all, of("taskManagerResources:"+rest, strings.Replace(strings.TrimPrefix(m.want[0], "spec."), "resources", "taskManagerResources", 1)))
		}
	}
	return all
}

// pipelineMistakes are mistakes of Pipelines alone.
var pipelineMistakes = []mistake{
	{`run: {id: a}, engine: Flink, flink: {mainClass: a, state: {claimName: a}}`, []string{"spec.engine: Invalid value: Flink runs streams only: remove schedule and run"}},
	{`engine: Flink`, []string{"spec.flink: Invalid value: is required with engine: Flink, and needs it"}},
	{`spark: {executors: 1}`, []string{"spec.spark: Invalid value: needs engine: Spark"}},
	{`engine: Spark, command: [a]`, []string{"spec.command: Invalid value: needs engine: Container: the engine is the program, and args are its arguments"}},
	{`deadline: 1h`, []string{"spec.deadline: Invalid value: needs schedule or run: a stream has no end"}},
	{`engine: Flink, flink: {mainClass: a, state: {claimName: a}}, retry: {attempts: 2}`, []string{"spec.retry: Invalid value: has no effect with engine: Flink, which starts tasks again itself: remove it"}},
	{`engine: Flink, flink: {mainClass: a, state: {claimName: a}}, queue: {name: a}`, []string{"spec.queue: Invalid value: has no effect with engine: Flink, whose pods are of no Job: remove it"}},
	{`engine: Flink, flink: {mainClass: a, state: {claimName: a}}, gracePeriod: 2m`, []string{"spec.gracePeriod: Invalid value: has no effect with engine: Flink, whose pods have flink.savepointWithin to end: remove it"}},
	{`engine: Flink, flink: {mainClass: a, state: {claimName: a}}, keepFinishedFor: 1h`, []string{"spec.keepFinishedFor: Invalid value: has no effect with engine: Flink, which has no runs: remove it"}},
	{`engine: Flink, flink: {mainClass: a, state: {claimName: a}}, history: 20`, []string{"spec.history: Invalid value: has no effect with engine: Flink, which has no runs: remove it"}},
	{`engine: Flink, flink: {mainClass: a, state: {claimName: a}}, deadline: 1h`, []string{"spec.deadline: Invalid value: needs schedule or run: a stream has no end"}},
	{`concurrency: Replace`, []string{"spec.concurrency: Invalid value: needs schedule or run: a stream is one run"}},
	{`secrets: [{name: s, rotate: Rolling}]`, []string{"spec.secrets: Invalid value: rotate must be Restartless: no change of a Secret restarts a run"}},
	{`schedule: {cron: "@daily"}`, []string{"spec.schedule.cron: Invalid value: \"@daily\": must have five fields with a space between: minute, hour, day, month, weekday, for instance 0 3 * * *"}},
	{`schedule: {cron: "0 3 * * *", timeZone: Local}`, []string{"spec.schedule.timeZone: Invalid value: \"Local\": must be a name of the IANA time zone database, for instance Europe/Berlin"}},
	{`schedule: {cron: "0 3 * * *", startWithin: 1s}`, []string{"spec.schedule.startWithin: Invalid value: \"1s\": must be a time from 1m to 168h, for instance 1h"}},
	{`run: {id: A}`, []string{"spec.run.id: Invalid value: \"A\": must be lower case letters, digits and '-', with a letter or digit at both ends, for instance a date"}},
	{`retry: {rules: [{when: {}, do: Fail}]}`, []string{"spec.retry.rules[0].when: Invalid value: set exitCodes, pattern or class"}},
	{`retry: {rules: [{when: {exitCodes: [3]}, do: Retry, factor: 2}]}`, []string{"spec.retry.rules[0]: Invalid value: factor and max need do: RetryWithMemory"}},
	{`retry: {rules: [{when: {exitCodes: [3]}, do: Fail, attempts: 2}]}`, []string{"spec.retry.rules[0]: Invalid value: attempts and backoff have no effect with do: Fail: remove them"}},
	{`retry: {rules: [{when: {exitCodes: [3]}, do: RetryWithMemory, backoff: {from: 1s}}]}`, []string{"spec.retry.rules[0].backoff: Invalid value: has no effect with do: RetryWithMemory, which begins at once: remove it"}},
	{`retry: {resetAfter: 200h}`, []string{"spec.retry.resetAfter: Invalid value: \"200h\": must be a time from 1s to 168h, for instance 1h"}},
	{`retry: {backoff: {from: 25h}}`, []string{"spec.retry.backoff.from: Invalid value: \"25h\": must be a time from 0s to 24h, for instance 10s"}},
	{`retry: {backoff: {to: 25h}}`, []string{"spec.retry.backoff.to: Invalid value: \"25h\": must be a time from 0s to 24h, for instance 10m"}},
	{`retry: {rules: [{when: {exitCodes: [3]}, do: Retry, backoff: {from: 25h}}]}`, []string{"spec.retry.rules[0].backoff.from: Invalid value: \"25h\": must be a time from 0s to 24h, for instance 10s"}},
	{`retry: {rules: [{when: {exitCodes: [3]}, do: Retry, backoff: {to: 25h}}]}`, []string{"spec.retry.rules[0].backoff.to: Invalid value: \"25h\": must be a time from 0s to 24h, for instance 10m"}},
	{`lineage: {inputs: [{namespace: a, name: b}, {namespace: a, name: b}]}`, []string{"spec.lineage.inputs[1]: Duplicate value: {\"name\":\"b\",\"namespace\":\"a\"}"}},
	{`lineage: {outputs: [{namespace: a}]}`, []string{"spec.lineage.outputs[0].name: Required value"}},
	{`lineage: {inputs: [{namespace: /etc, name: b}]}`, []string{"spec.lineage.inputs[0].namespace: Invalid value: \"/etc\": must be the name of a scheme, alone or with a place, for instance s3://lake or bigquery"}},
	{`lineage: {inputs: [{namespace: a, name: "b\nc"}]}`, []string{"spec.lineage.inputs[0].name: Invalid value: \"b\\nc\": must be one line of text"}},
	{`lineage: {outputs: [{namespace: /etc, name: b}]}`, []string{"spec.lineage.outputs[0].namespace: Invalid value: \"/etc\": must be the name of a scheme, alone or with a place, for instance s3://lake or bigquery"}},
	{`lineage: {outputs: [{namespace: a, name: "b\nc"}]}`, []string{"spec.lineage.outputs[0].name: Invalid value: \"b\\nc\": must be one line of text"}},
	{`metrics: {}`, []string{"spec.metrics: Invalid value: needs port: with the engines Container and Spark only your program has metrics"}},
	{`engine: Flink, flink: {mainClass: a, state: {claimName: a}}, metrics: {path: /a}`, []string{"spec.metrics.path: Invalid value: path needs port: set the port on which your program serves its metrics, or remove path"}},
	{`metrics: {port: 9090, path: "/a?b"}`, []string{"spec.metrics.path: Invalid value: \"/a?b\": must be an absolute path of a URL, without a query"}},
	{`metrics: {port: 0}`, []string{"spec.metrics.port: Invalid value: 0: spec.metrics.port in body should be greater than or equal to 1"}},
	{`gracePeriod: 2h`, []string{"spec.gracePeriod: Invalid value: \"2h\": must be a time from 1s to 1h, for instance 2m"}},
	{`keepFinishedFor: 9000h`, []string{"spec.keepFinishedFor: Invalid value: \"9000h\": must be a time from 0s to 8760h, for instance 168h"}},
	{`run: {id: a}, deadline: 1s`, []string{"spec.deadline: Invalid value: \"1s\": must be a time from 1m to 8760h, for instance 6h"}},
	{`engine: Spark, spark: {home: opt}`, []string{"spec.spark.home: Invalid value: \"opt\": must be an absolute path of letters, digits, '_', '.' and '-', without '..'"}},
	{`engine: Spark, spark: {mainClass: "a b"}`, []string{"spec.spark.mainClass: Invalid value: \"a b\": must be the name of a class, for instance org.example.Features"}},
	{`engine: Spark, spark: {conf: {a: b}}`, []string{"spec.spark.conf: Invalid value: each name must begin with spark."}},
	{`image: "a b"`, []string{"spec.image: Invalid value: \"a b\": must be an image reference: letters, digits and any of . _ - / : @ +"}},
}

func TestPipelines(t *testing.T) {
	a := newAdmission(t, readXRD(t, pipelineXRD))
	for name, object := range pipelinesAccepted() {
		t.Run(name, func(t *testing.T) {
			if _, errs := a.create(t, object); len(errs) > 0 {
				t.Errorf("create(...): want no errors, got:\n%s", strings.Join(errs, "\n"))
			}
		})
	}
	all := map[string]refused{
		"PipelineName": {
			reason: "Names of runs begin with it.",
			object: pipelineOf("a23456789-123456789-123456789-123456789-1", `{image: x, args: [a]}`),
			want: []string{"metadata.name: Invalid value: must be at most 40 lower case letters, digits and '-', start with a letter and end with a letter or digit, " +
				"because the names of its runs begin with it"},
		},
		"PipelineOfNothing": {
			reason: "The entrypoint of an image is not known.",
			object: pipelineOf("a", `{image: x}`),
			want:   []string{"spec.command: Invalid value: command or args must have the program: Kubernetes does not report the entrypoint of an image"},
		},
	}
	mistakes := slices.Concat(pipelineMistakes, flinkMistakes())
	for _, m := range trainingMistakes {
		if field, _, _ := strings.Cut(m.fields, ":"); slices.Contains(shared, field) {
			mistakes = append(mistakes, m)
		}
	}
	for _, m := range mistakes {
		image := "image: x, "
		if strings.HasPrefix(m.fields, "image:") {
			image = ""
		}
		all[m.fields] = refused{
			reason: "What cannot work is refused at once.", object: pipelineOf("a", "{"+image+"args: [a], "+m.fields+"}"), want: m.want,
		}
	}
	large := pipelineOf("a", `{image: x, args: [a]}`)
	config(700000, 100000)(large)
	all["PipelineOfLargeFiles"] = refused{
		reason: "A ConfigMap has a limit.", object: large,
		want: []string{"spec.config: Invalid value: must hold at most 786432 bytes in total: move larger files into the image or a volume"},
	}
	a.refuses(t, pipelineXRD, all)
}
