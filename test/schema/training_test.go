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
			path: /c, complete: step-*/DONE, every: 1h30m, keep: 2}}`),
		"TrainingWatched": trainingOf("a", `{image: x, args: [a], watch: {progress: "step (?P<step>\\d+)", nonFinite: Notify,
			phases: {setup: 15m, step: 1h30m, checkpoint: 24h, finish: 1s}, faults: [{pattern: x, class: User}]}}`),
		"TrainingWhole": trainingOf("a", `{image: x, args: [a], retry: {withoutProgress: 1, attempts: 1, runs: 0}, startWithin: 1m, deadline: 8760h,
			schedule: {cron: "0 3 * * 1", timeZone: Europe/Berlin, concurrency: Replace, begin: NewestCheckpoint, startingDeadline: 24h},
			gracePeriod: 1h, suspend: true, rerun: {id: 2026-11-26.1}, keepFinishedFor: 0s, queue: {name: research, priority: high},
			onSuccess: {register: {model: fraud, source: "s3://models/{run}", alias: champion, config: ProviderConfig/mine}},
			lineage: {inputs: [{namespace: "s3://lake", name: transactions}], outputs: [{namespace: bigquery, name: a.b.c}]},
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

// trainingMistakes are fields of Trainings, one mistake each, with what is said about them. Most have the same type in other kinds.
var trainingMistakes = []struct {
	fields string
	want   []string
}{
	{`resources: {gpuProducts: [A]}`, []string{"spec.resources.gpuProducts: Invalid value: gpuProducts needs gpu: name the resource of the GPU as nodes advertise it, for instance nvidia.com/gpu"}},
	{`resources: {gpuCount: 1}`, []string{"spec.resources.gpuCount: Invalid value: gpuCount needs gpu: set gpu to the resource of the GPU as nodes advertise it, for instance nvidia.com/gpu, or use deviceRequest, which has its own count"}},
	{`resources: {gpu: a/b, deviceRequest: {deviceClassName: a}}`, []string{"spec.resources.deviceRequest: Invalid value: deviceRequest and gpu exclude each other: remove gpu to claim devices of a DRA driver, or deviceRequest to request an extended resource"}},
	{`resources: {deviceRequest: {deviceClassName: A_}}`, []string{"spec.resources.deviceRequest.deviceClassName: Invalid value: \"A_\": must be the name of a DeviceClass, for instance gpu.nvidia.com"}},
	{`resources: {gpu: gpu}`, []string{"spec.resources.gpu: Invalid value: \"gpu\": must be a resource name of the form vendor/device, for instance nvidia.com/gpu"}},
	{`resources: {gpu: a/b, gpuProducts: ["a b"]}`, []string{"spec.resources.gpuProducts[0]: Invalid value: \"a b\": must be the value of a label: letters, digits, '-', '_' and '.', with a letter or digit at both ends"}},
	{`resources: {memory: 512m}`, []string{"spec.resources.memory: Invalid value: \"512m\": must be a quantity of at least 1Mi, for instance 512Mi"}},
	{`resources: {sharedMemory: 1k}`, []string{"spec.resources.sharedMemory: Invalid value: \"1k\": must be a quantity of at least 1Mi, for instance 512Mi"}},
	{`resources: {cpu: "0"}`, []string{"spec.resources.cpu: Invalid value: \"0\": must be a quantity of at least 1m, for instance 500m"}},
	{`watch: {phases: {step: 0s}}`, []string{"spec.watch.phases.step: Invalid value: \"0s\": must be a time from 1s to 24h, for instance 2m"}},
	{`watch: {phases: {checkpoint: 25h}}`, []string{"spec.watch.phases.checkpoint: Invalid value: \"25h\": must be a time from 1s to 24h, for instance 10m"}},
	{`watch: {phases: {finish: 1ms}}`, []string{"spec.watch.phases.finish: Invalid value: \"1ms\": must be a time from 1s to 24h, for instance 10m"}},
	{`watch: {phases: {setup: x}}`, []string{"spec.watch.phases.setup: Invalid value: \"x\": must be a time from 1s to 24h, for instance 15m"}},
	{`metrics: {path: /a}`, []string{"spec.metrics.path: Invalid value: path needs port: set the port on which your program serves its metrics, or remove path"}},
	{`metrics: {port: 1, path: a}`, []string{"spec.metrics.path: Invalid value: \"a\": must be an absolute path of a URL, without a query"}},
	{`config: {"a b": x}`, []string{"spec.config: Invalid value: names of files must be letters, digits, '-', '_' and '.', not start with '..', and have at most 253 characters"}},
	{`config: {a: x}, volumeMounts: [{name: config, mountPath: a}]`, []string{"spec.volumeMounts[0].mountPath: Invalid value: \"a\": must be an absolute path without ':', other than / and /dev/shm"}},
	{`env: [{name: A, value: a, valueFrom: {secretKeyRef: {name: a, key: a}}}]`, []string{"spec.env[0]: Invalid value: set either value or valueFrom, not both"}},
	{`env: [{name: 1a}]`, []string{"spec.env[0].name: Invalid value: \"1a\": must be letters, digits, '_', '-' or '.', and not start with a digit"}},
	{`env: [{name: a, valueFrom: {}}]`, []string{"spec.env[0].valueFrom: Invalid value: set exactly one of secretKeyRef and configMapKeyRef"}},
	{`checkpoint: {claimName: a, subPath: ../a}`, []string{"spec.checkpoint.subPath: Invalid value: \"../a\": must be a relative path without the segment .."}},
	{`checkpoint: {claim: {resources: {requests: {storage: 1k}}}}`, []string{"spec.checkpoint.claim.resources.requests.storage: Invalid value: \"1k\": must be a quantity of at least 1Mi, for instance 20Gi"}},
	{`checkpoint: {claim: {storageClassName: A, resources: {requests: {storage: 1Gi}}}}`, []string{"spec.checkpoint.claim.storageClassName: Invalid value: \"A\": must be the name of an object: lower case letters, digits, '-' and '.', with a letter or digit at both ends"}},
	{`checkpoint: {claimName: A}`, []string{"spec.checkpoint.claimName: Invalid value: \"A\": must be the name of an object: lower case letters, digits, '-' and '.', with a letter or digit at both ends"}},
	{`checkpoint: {claimName: a, complete: ../a}`, []string{"spec.checkpoint.complete: Invalid value: \"../a\": must be a relative path without the segment .."}},
	{`checkpoint: {claimName: a, every: 500ms}`, []string{"spec.checkpoint.every: Invalid value: \"500ms\": must be a time from 1s to 24h, for instance 10m"}},
	{`checkpoint: {claimName: a, every: 25h}`, []string{"spec.checkpoint.every: Invalid value: \"25h\": must be a time from 1s to 24h, for instance 10m"}},
	{`checkpoint: {claimName: a, keep: 1}`, []string{"spec.checkpoint.keep: Invalid value: 1: spec.checkpoint.keep in body should be greater than or equal to 2"}},
	{`checkpoint: {claimName: a, keep: 51}`, []string{"spec.checkpoint.keep: Invalid value: 51: spec.checkpoint.keep in body should be less than or equal to 50"}},
	{`checkpoint: {claimName: a, path: /dev/shm}`, []string{"spec.checkpoint.path: Invalid value: \"/dev/shm\": must be an absolute path without ':', other than / and /dev/shm"}},
	{`lineage: {inputs: [{namespace: a, name: b}, {namespace: a, name: b}]}`, []string{"spec.lineage.inputs[1]: Duplicate value: {\"name\":\"b\",\"namespace\":\"a\"}"}},
	{`lineage: {outputs: [{namespace: a}]}`, []string{"spec.lineage.outputs[0].name: Required value"}},
	{`lineage: {inputs: [{namespace: /etc, name: b}]}`, []string{"spec.lineage.inputs[0].namespace: Invalid value: \"/etc\": must be the name of a scheme, alone or with a place, for instance s3://lake or bigquery"}},
	{`lineage: {inputs: [{namespace: a, name: "b\nc"}]}`, []string{"spec.lineage.inputs[0].name: Invalid value: \"b\\nc\": must be one line of text"}},
	{`lineage: {outputs: [{namespace: /etc, name: b}]}`, []string{"spec.lineage.outputs[0].namespace: Invalid value: \"/etc\": must be the name of a scheme, alone or with a place, for instance s3://lake or bigquery"}},
	{`lineage: {outputs: [{namespace: a, name: "b\nc"}]}`, []string{"spec.lineage.outputs[0].name: Invalid value: \"b\\nc\": must be one line of text"}},
	{`deadline: 1s`, []string{"spec.deadline: Invalid value: \"1s\": must be a time from 1m to 8760h, for instance 72h"}},
	{`pod: {volumes: [{name: config, emptyDir: {}}]}`, []string{"spec.pod.volumes[0].name: Invalid value: \"config\": must be lower case letters, digits and '-', with a letter or digit at both ends, and not config, shared-memory, model, model-credentials, warm-up or secret-…, which Capstan uses"}},
	{`pod: {imagePullSecrets: [{name: A}]}`, []string{"spec.pod.imagePullSecrets[0].name: Invalid value: \"A\": must be the name of an object: lower case letters, digits, '-' and '.', with a letter or digit at both ends"}},
	{`pod: {nodeSelector: {"a b": c}}`, []string{"spec.pod.nodeSelector: Invalid value: keys must be label keys, for instance nvidia.com/gpu.product"}},
	{`pod: {nodeSelector: {a: "b c"}}`, []string{"spec.pod.nodeSelector[a]: Invalid value: \"b c\": must be the value of a label: letters, digits, '-', '_' and '.', with a letter or digit at both ends"}},
	{`pod: {priorityClassName: A}`, []string{"spec.pod.priorityClassName: Invalid value: \"A\": must be the name of an object: lower case letters, digits, '-' and '.', with a letter or digit at both ends"}},
	{`pod: {runtimeClassName: A}`, []string{"spec.pod.runtimeClassName: Invalid value: \"A\": must be the name of an object: lower case letters, digits, '-' and '.', with a letter or digit at both ends"}},
	{`pod: {serviceAccountName: A}`, []string{"spec.pod.serviceAccountName: Invalid value: \"A\": must be the name of an object: lower case letters, digits, '-' and '.', with a letter or digit at both ends"}},
	{`pod: {tolerations: [{key: a, operator: Like}]}`, []string{"spec.pod.tolerations[0]: Invalid value: operator must be Equal or Exists, or Lt or Gt where the cluster supports them"}},
	{`pod: {tolerations: [{key: a, effect: Never}]}`, []string{"spec.pod.tolerations[0]: Invalid value: effect must be NoSchedule, PreferNoSchedule or NoExecute, or absent for all of them"}},
	{`pod: {tolerations: [{value: a}]}`, []string{"spec.pod.tolerations[0]: Invalid value: a toleration without key needs operator Exists, which then tolerates every taint"}},
	{`pod: {tolerations: [{key: a, operator: Exists, value: a}]}`, []string{"spec.pod.tolerations[0]: Invalid value: a toleration with operator Exists must not have a value"}},
	{`pod: {tolerations: [{key: a, tolerationSeconds: 1}]}`, []string{"spec.pod.tolerations[0]: Invalid value: tolerationSeconds needs effect NoExecute"}},
	{`queue: {name: A}`, []string{"spec.queue.name: Invalid value: \"A\": must be the name of a LocalQueue: lower case letters, digits and '-', with a letter or digit at both ends"}},
	{`queue: {name: a, priority: A}`, []string{"spec.queue.priority: Invalid value: \"A\": must be the name of a WorkloadPriorityClass: lower case letters, digits, '-' and '.', with a letter or digit at both ends"}},
	{`volumeMounts: [{name: d, mountPath: a}]`, []string{"spec.volumeMounts[0].mountPath: Invalid value: \"a\": must be an absolute path without ':', other than / and /dev/shm"}},
	{`volumeMounts: [{name: d, mountPath: /a, subPath: ../a}]`, []string{"spec.volumeMounts[0].subPath: Invalid value: \"../a\": must be a relative path without the segment .."}},
	{`onSuccess: {register: {model: m, source: "s3://a", alias: v1}}`, []string{"spec.onSuccess.register.alias: Invalid value: must be letters, digits, '_' and '-', and not be latest or v with digits, which the registry reserves"}},
	{`onSuccess: {register: {model: m, source: "s3://a", config: mlflow}}`, []string{"spec.onSuccess.register.config: Invalid value: \"mlflow\": must be ProviderConfig/NAME or ClusterProviderConfig/NAME, with at most 63 lower case letters, digits, - and . in NAME"}},
	{`schedule: {cron: "0 3 * * 1", timeZone: "+2"}`, []string{"spec.schedule.timeZone: Invalid value: \"+2\": must be the name of a time zone, for instance Europe/Berlin"}},
	{`schedule: {cron: "0 3 * * 1", startingDeadline: 25h}`, []string{"spec.schedule.startingDeadline: Invalid value: \"25h\": must be a time from 1m to 24h, for instance 1h"}},
	{`gracePeriod: 2h`, []string{"spec.gracePeriod: Invalid value: \"2h\": must be a time from 1s to 1h, for instance 2m"}},
	{`image: "a b"`, []string{"spec.image: Invalid value: \"a b\": must be an image reference: letters, digits and any of . _ - / : @ +"}},
	{`podMetadata: {annotations: {"a b": c}}`, []string{"spec.podMetadata.annotations: Invalid value: keys must be annotation keys, for instance example.org/contact"}},
	{`podMetadata: {annotations: {capstan.dev/x: c}}`, []string{"spec.podMetadata.annotations: Invalid value: keys must not begin with capstan.dev/: Capstan sets those"}},
	{`podMetadata: {labels: {"a b": c}}`, []string{"spec.podMetadata.labels: Invalid value: keys must be label keys, for instance example.org/team"}},
	{`podMetadata: {labels: {capstan.dev/x: c}}`, []string{"spec.podMetadata.labels: Invalid value: keys must not begin with capstan.dev/ or be app.kubernetes.io/name, app.kubernetes.io/managed-by or pod-template-hash: Capstan and Kubernetes select pods by them"}},
	{`podMetadata: {labels: {a: "b c"}}`, []string{"spec.podMetadata.labels[a]: Invalid value: \"b c\": must be the value of a label: letters, digits, '-', '_' and '.', with a letter or digit at both ends"}},
	{`keepFinishedFor: 9000h`, []string{"spec.keepFinishedFor: Invalid value: \"9000h\": must be a time from 0s to 8760h, for instance 168h for a week"}},
	{`secrets: [{name: A}]`, []string{"spec.secrets[0].name: Invalid value: \"A\": must be the name of an object: lower case letters, digits, '-' and '.', with a letter or digit at both ends"}},
	{`secrets: [{name: a}], volumeMounts: [{name: secret-a, mountPath: a}]`, []string{"spec.volumeMounts[0].mountPath: Invalid value: \"a\": must be an absolute path without ':', other than / and /dev/shm"}},
	{`env: [{name: a, valueFrom: {secretKeyRef: {name: A, key: a}}}]`, []string{"spec.env[0].valueFrom.secretKeyRef.name: Invalid value: \"A\": must be the name of an object: lower case letters, digits, '-' and '.', with a letter or digit at both ends"}},
	{`env: [{name: a, valueFrom: {secretKeyRef: {name: a, key: "a b"}}}]`, []string{"spec.env[0].valueFrom.secretKeyRef.key: Invalid value: \"a b\": must be letters, digits, '-', '_' and '.', and not start with '..'"}},
	{`rerun: {id: "a b"}`, []string{"spec.rerun.id: Invalid value: \"a b\": must be letters, digits, '-', '_' and '.', with a letter or digit at both ends, for instance a date"}},
	{`env: [{name: a, valueFrom: {configMapKeyRef: {name: A, key: a}}}]`, []string{"spec.env[0].valueFrom.configMapKeyRef.name: Invalid value: \"A\": must be the name of an object: lower case letters, digits, '-' and '.', with a letter or digit at both ends"}},
	{`env: [{name: a, valueFrom: {configMapKeyRef: {name: a, key: "a b"}}}]`, []string{"spec.env[0].valueFrom.configMapKeyRef.key: Invalid value: \"a b\": must be letters, digits, '-', '_' and '.', and not start with '..'"}},
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
	all := trainingsRefused()
	for _, m := range trainingMistakes {
		image := "image: x, "
		if strings.HasPrefix(m.fields, "image:") {
			image = ""
		}
		all[m.fields] = refused{
			reason: "What cannot work is refused at once.", object: trainingOf("a", "{"+image+"args: [a], "+m.fields+"}"), want: m.want,
		}
	}
	large := trainingOf("a", `{image: x, args: [a]}`)
	config(700000, 100000)(large)
	all["TrainingOfLargeFiles"] = refused{
		reason: "A ConfigMap has a limit.", object: large,
		want: []string{"spec.config: Invalid value: must hold at most 786432 bytes in total: move larger files into the image or a volume"},
	}
	a.refuses(t, trainingXRD, all)
}
