// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"strings"
	"testing"
)

const trainingXRD = "apis/training/definition.yaml"

// trainingOf is a Training of a name with fields of its spec.
func trainingOf(id, fields string) map[string]any {
	object := smallest(name(id))
	object["kind"], object["spec"] = "Training", map[string]any{}
	spec(fields)(object)
	return object
}

// trainingsAccepted are Trainings.
func trainingsAccepted() map[string]map[string]any {
	return map[string]map[string]any{
		"TrainingSmallest":       trainingOf("fraud", `{image: x, args: [train]}`),
		"TrainingByCommand":      trainingOf("a", `{image: x, command: [python, train.py], args: []}`),
		"TrainingOfTheLimits":    trainingOf("a23456789-123456789-123456789-123456789-1234567", `{image: x, args: [a], workers: 512, spares: 64, processesPerWorker: 64}`),
		"TrainingWithTheirClaim": trainingOf("a", `{image: x, args: [a], checkpoint: {claimName: a.b, subPath: run/a}}`),
		"TrainingWithOwnClaim": trainingOf("a", `{image: x, args: [a], checkpoint: {claim: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}},
			path: /c, complete: step-*/DONE}}`),
		"TrainingWatched": trainingOf("a", `{image: x, args: [a], watch: {progress: "step (?P<step>\\d+)", nonFinite: Notify,
			phases: {setup: 15m, step: 1h30m, checkpoint: 24h, finish: 1s}, faults: [{pattern: x, class: User}]}}`),
		"TrainingWhole": trainingOf("a", `{image: x, args: [a], retry: {withoutProgress: 1, attempts: 1, runs: 0}, startWithin: 1m, deadline: 8760h,
			gracePeriod: 1h, suspend: true, rerun: {id: 2026-11-26.1}, keepFinishedFor: 0s, queue: {name: research, priority: high},
			onSuccess: {register: {model: fraud, source: "s3://models/{run}", alias: champion, config: ProviderConfig/mine}},
			pod: {nodeSelector: {a: b}, volumes: [{name: d, emptyDir: {}}], securityContext: {runAsUser: 1}}, volumeMounts: [{name: d, mountPath: /d}],
			secrets: [{name: s, rotate: Restartless}]}`),
	}
}

// trainingsRefused are Trainings with mistakes.
func trainingsRefused() map[string]refused {
	return map[string]refused{
		"TrainingName": {
			reason: "Host names begin with it.",
			object: trainingOf("a23456789-123456789-123456789-123456789-123456789", `{image: x, args: [a]}`),
			want: []string{"metadata.name: Invalid value: must be at most 48 lower case letters, digits and '-', start with a letter and end with a letter or digit, " +
				"because the host names of its pods begin with it"},
		},
		"TrainingOfNothing": {
			reason: "The entrypoint of an image is not known.",
			object: trainingOf("a", `{image: x}`),
			want:   []string{"spec.command: Invalid value: command or args must have the program: Kubernetes does not report the entrypoint of an image"},
		},
		"TrainingOfTwoClaims": {
			reason: "There is one volume.",
			object: trainingOf("a", `{image: x, args: [a], checkpoint: {claimName: a, claim: {resources: {requests: {storage: 1Gi}}}}}`),
			want:   []string{"spec.checkpoint: Invalid value: set exactly one of claimName, for a claim that exists, and claim, for one of this Training"},
		},
		"TrainingThatRotates": {
			reason: "It would have no effect.",
			object: trainingOf("a", `{image: x, args: [a], secrets: [{name: s, rotate: Rolling}]}`),
			want:   []string{"spec.secrets: Invalid value: rotate must be Restartless: no change of a Secret restarts a run"},
		},
		"TrainingOfAFile": {
			reason: "The registry cannot read it.",
			object: trainingOf("a", `{image: x, args: [a], onSuccess: {register: {model: m, source: "file:/checkpoints/x"}}}`),
			want: []string{`spec.onSuccess.register.source: Invalid value: "file:/checkpoints/x": must be the plain URI of files, for instance s3://models/fraud/{run}: ` +
				"file:, .., ?, #, %, spaces and backslashes are not allowed"},
		},
		"TrainingForEver": {
			reason: "A time has bounds.",
			object: trainingOf("a", `{image: x, args: [a], startWithin: 30s}`),
			want:   []string{`spec.startWithin: Invalid value: "30s": must be a time from 1m to 24h, for instance 30m`},
		},
	}
}

func TestTrainings(t *testing.T) {
	a := newAdmission(t, readXRD(t, trainingXRD))
	for name, object := range trainingsAccepted() {
		t.Run(name, func(t *testing.T) {
			if _, errs := a.create(t, object); len(errs) > 0 {
				t.Errorf("create(...): want no errors, got:\n%s", strings.Join(errs, "\n"))
			}
		})
	}
	a.refuses(t, trainingXRD, trainingsRefused())
}
