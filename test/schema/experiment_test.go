// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const experimentXRD = "apis/experiment/definition.yaml"

// experimentOf is an Experiment: the fields that each needs, and others.
func experimentOf(id, armB, assignment, metric, more string) map[string]any {
	object := smallest(name(id))
	object["kind"], object["spec"] = "Experiment", map[string]any{"algorithm": "reco"}
	spec(`{armB: ` + armB + `, assignment: ` + assignment + `, metric: ` + metric + more + `}`)(object)
	return object
}

// experimentsAccepted are Experiments.
func experimentsAccepted() map[string]map[string]any {
	const half, success = `{percent: 50}`, `{kind: SuccessRatio}`

	return map[string]map[string]any{
		"ExperimentSmallest": experimentOf("a", `{image: x}`, half, success, ""),
		"ExperimentOfEnv":    experimentOf("ranking-1", `{env: [{name: MODE, value: b}]}`, half, success, ""),
		"ExperimentOfModel":  experimentOf("a", `{modelVersion: "12"}`, half, success, ""),
		"ExperimentByCaller": experimentOf("a", `{image: x}`, `{percent: 1, match: [header X-Arm=b, cookie arm=b]}`, success, ""),
		"ExperimentLatency":  experimentOf("a", `{image: x}`, half, `{kind: Latency, withinMs: 50}`, ""),
		"ExperimentShare":    experimentOf("a", `{image: x}`, half, `{kind: Share, query: "sum(increase(n[$window]))", direction: Lower, minEffect: 0.0001}`, ""),
		"ExperimentWhole": experimentOf("a", `{image: x}`, half, `{kind: Share, query: "sum(increase(n[$window]))", of: "sum(increase(m[$window]))"}`,
			`, guardrails: {successThreshold: 0, latency: {maxMs: 50}}, stop: {duration: 336h, minSamples: 100, confidence: 99.9}`),
	}
}

// experimentsRefused are Experiments with mistakes.
func experimentsRefused() map[string]refused {
	const half, success, at = `{percent: 50}`, `{kind: SuccessRatio}`, "spec."
	const match = "must be header or cookie, its name, = and its value, for instance header X-User-Group=beta: names are letters, digits, '-' and '_', values also '.' and '~'"

	return map[string]refused{
		"ExperimentName": {
			reason: "Labels and messages have it.",
			object: experimentOf("a.b", `{image: x}`, half, success, ""),
			want:   []string{"metadata.name: Invalid value: must be at most 63 lower case letters, digits and '-', with a letter or digit at both ends"},
		},
		"ExperimentOfNothing": {
			reason: "Both arms would be the same.",
			object: experimentOf("a", `{}`, half, success, ""),
			want:   []string{at + "armB: Invalid value: image, env, modelVersion: set at least one, otherwise both arms are the same"},
		},
		"ExperimentOfNoVersion": {
			reason: "An alias moves.",
			object: experimentOf("a", `{modelVersion: champion}`, half, success, ""),
			want:   []string{at + "armB.modelVersion: Invalid value: \"champion\": must be the number of a version, for instance 12"},
		},
		"ExperimentForMost": {
			reason: "Most callers reach what the spec asks for.",
			object: experimentOf("a", `{image: x}`, `{percent: 51}`, success, ""),
			want:   []string{at + "assignment.percent: Invalid value: 51: spec.assignment.percent in body should be less than or equal to 50"},
		},
		"ExperimentWithoutQuery": {
			reason: "A share of what?",
			object: experimentOf("a", `{image: x}`, half, `{kind: Share}`, ""),
			want:   []string{at + "metric.query: Invalid value: query is required for kind Share, and only for it"},
		},
		"ExperimentOfNoWindow": {
			reason: "It would count since ever.",
			object: experimentOf("a", `{image: x}`, half, `{kind: Share, query: "sum(n)"}`, ""),
			want: []string{
				at + "metric.query: Invalid value: \"sum(n)\": must contain $window, which stands for the time since the experiment began",
			},
		},
		"ExperimentOfAllWithoutWindow": {
			reason: "It would compare the events of a time with all since ever.",
			object: experimentOf("a", `{image: x}`, half, `{kind: Share, query: "sum(n[$window])", of: "sum(m)"}`, ""),
			want: []string{
				at + "metric.of: Invalid value: \"sum(m)\": must contain $window, which stands for the time since the experiment began",
			},
		},
		"ExperimentOfNobody": {
			reason: "No Algorithm has such a name.",
			object: experimentOf("a", `{image: x}`, half, success, `, algorithm: "1.a"`),
			want: []string{
				at + "algorithm: Invalid value: \"1.a\": must be the name of an Algorithm: lower case letters, digits and '-', with a letter first and no '-' at the end",
			},
		},
		"ExperimentOfTwoKinds": {
			reason: "A field without effect is a mistake.",
			object: experimentOf("a", `{image: x}`, half, `{kind: SuccessRatio, withinMs: 5}`, ""),
			want:   []string{at + "metric.withinMs: Invalid value: withinMs is required for kind Latency, and only for it"},
		},
		"ExperimentForFailure": {
			reason: "Nobody wants more failures.",
			object: experimentOf("a", `{image: x}`, half, `{kind: SuccessRatio, direction: Lower}`, ""),
			want:   []string{at + "metric.direction: Invalid value: direction must be Higher, except for kind Share"},
		},
		"ExperimentTooLong": {
			reason: "Prometheus does not keep so much.",
			object: experimentOf("a", `{image: x}`, half, success, `, stop: {duration: 337h}`),
			want:   []string{at + "stop.duration: Invalid value: \"337h\": must be a time from 1m to 336h, for instance 168h for a week"},
		},
		"ExperimentCertain": {
			reason: "Nothing is certain.",
			object: experimentOf("a", `{image: x}`, half, success, `, stop: {confidence: 100}`),
			want:   []string{at + "stop.confidence: Invalid value: 100: must be from 80 to 99.99, for instance 95"},
		},
		"ExperimentTwoValues": {
			reason: "Which of them?",
			object: experimentOf("a", `{env: [{name: A, value: b, valueFrom: {secretKeyRef: {name: s, key: k}}}]}`, half, success, ""),
			want:   []string{at + "armB.env[0]: Invalid value: set either value or valueFrom, not both"},
		},
		"ExperimentEnvName": {
			reason: "The API server would refuse the pods.",
			object: experimentOf("a", `{env: [{name: "1 A", value: b}]}`, half, success, ""),
			want:   []string{at + "armB.env[0].name: Invalid value: \"1 A\": must be letters, digits, '_', '-' or '.', and not start with a digit"},
		},
		"ExperimentEnvFromNothing": {
			reason: "Where is it?",
			object: experimentOf("a", `{env: [{name: A, valueFrom: {}}]}`, half, success, ""),
			want:   []string{at + "armB.env[0].valueFrom: Invalid value: set exactly one of secretKeyRef and configMapKeyRef"},
		},
		"ExperimentImage": {
			reason: "No registry has it.",
			object: experimentOf("a", `{image: "a b"}`, half, success, ""),
			want:   []string{at + "armB.image: Invalid value: \"a b\": must be an image reference: letters, digits and any of . _ - / : @ +"},
		},
		"ExperimentBothCallers": {
			reason: "A rule matches one thing.",
			object: experimentOf("a", `{image: x}`, `{percent: 5, match: ["X-Arm=b"]}`, success, ""),
			want:   []string{at + `assignment.match[0]: Invalid value: "X-Arm=b": ` + match},
		},
		"ExperimentCookie": {
			reason: "No cookie has such a name.",
			object: experimentOf("a", `{image: x}`, `{percent: 5, match: ["cookie a b=c"]}`, success, ""),
			want:   []string{at + `assignment.match[0]: Invalid value: "cookie a b=c": ` + match},
		},
		"ExperimentHeader": {
			reason: "No header has such a name.",
			object: experimentOf("a", `{image: x}`, `{percent: 5, match: ["header a b=c"]}`, success, ""),
			want:   []string{at + `assignment.match[0]: Invalid value: "header a b=c": ` + match},
		},
		"ExperimentValue": {
			reason: "It would have to be quoted.",
			object: experimentOf("a", `{image: x}`, `{percent: 5, match: ["header a=b;c"]}`, success, ""),
			want:   []string{at + `assignment.match[0]: Invalid value: "header a=b;c": ` + match},
		},
		"ExperimentOf": {
			reason: "Of what it is a share only matters for one.",
			object: experimentOf("a", `{image: x}`, half, `{kind: SuccessRatio, of: a$window}`, ""),
			want:   []string{at + "metric.of: Invalid value: of is only for kind Share: remove it"},
		},
		"ExperimentSecretName": {
			reason: "No object has it.",
			object: experimentOf("a", `{env: [{name: A, valueFrom: {secretKeyRef: {name: "A b", key: k}}}]}`, half, success, ""),
			want:   []string{at + "armB.env[0].valueFrom.secretKeyRef.name: Invalid value: \"A b\": must be the name of an object: lower case letters, digits, '-' and '.', with a letter or digit at both ends"},
		},
		"ExperimentConfigMapName": {
			reason: "No object has it.",
			object: experimentOf("a", `{env: [{name: A, valueFrom: {configMapKeyRef: {name: "A b", key: k}}}]}`, half, success, ""),
			want:   []string{at + "armB.env[0].valueFrom.configMapKeyRef.name: Invalid value: \"A b\": must be the name of an object: lower case letters, digits, '-' and '.', with a letter or digit at both ends"},
		},
		"ExperimentSecretKey": {
			reason: "No object has it.",
			object: experimentOf("a", `{env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: "a b"}}}]}`, half, success, ""),
			want:   []string{at + "armB.env[0].valueFrom.secretKeyRef.key: Invalid value: \"a b\": must be letters, digits, '-', '_' and '.', and not start with '..'"},
		},
		"ExperimentConfigMapKey": {
			reason: "No object has it.",
			object: experimentOf("a", `{env: [{name: A, valueFrom: {configMapKeyRef: {name: s, key: "a b"}}}]}`, half, success, ""),
			want:   []string{at + "armB.env[0].valueFrom.configMapKeyRef.key: Invalid value: \"a b\": must be letters, digits, '-', '_' and '.', and not start with '..'"},
		},
		"ExperimentLatencyOfNothing": {
			reason: "Nothing would be asked.",
			object: experimentOf("a", `{image: x}`, half, success, `, guardrails: {latency: {percentile: 95}}`),
			want:   []string{at + "guardrails.latency: Invalid value: maxMs, maxRegressionPercent: set at least one, otherwise nothing is checked"},
		},
	}
}

func TestExperiment(t *testing.T) {
	a := newAdmission(t, readXRD(t, experimentXRD))
	for name, object := range experimentsAccepted() {
		t.Run(name, func(t *testing.T) {
			if _, errs := a.create(t, object); len(errs) > 0 {
				t.Errorf("create(...): want no errors, got:\n%s", strings.Join(errs, "\n"))
			}
		})
	}
	a.refuses(t, experimentXRD, experimentsRefused())
}

// TestExperimentStays with its Algorithm: another one is another experiment.
func TestExperimentStays(t *testing.T) {
	a := newAdmission(t, readXRD(t, experimentXRD))
	before, errs := a.create(t, experimentOf("a", `{image: x}`, `{percent: 50}`, `{kind: SuccessRatio}`, ""))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	got := a.update(t, before, experimentOf("a", `{image: x}`, `{percent: 50}`, `{kind: SuccessRatio}`, `, algorithm: other`))
	want := []string{`spec.algorithm: Invalid value: "other": cannot be changed: make another Experiment`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want errors, +got:\n%s", diff)
	}
}
