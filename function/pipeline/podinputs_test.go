// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"testing"

	"github.com/capstan-dev/capstan/function/compose/composetest"
)

// podInputs are fields whose other value makes another revision, which starts pods again.
var podInputs = []string{
	"args[]", "command[]", "config{}", "deadline", "engine", "gracePeriod", "image",
	"env[].name", "env[].value", "env[].valueFrom.configMapKeyRef.key", "env[].valueFrom.configMapKeyRef.name",
	"env[].valueFrom.secretKeyRef.key", "env[].valueFrom.secretKeyRef.name",
	"pod.imagePullSecrets[].name", "pod.nodeSelector{}", "pod.priorityClassName", "pod.runtimeClassName", "pod.securityContext.runAsUser",
	"pod.serviceAccountName", "pod.tolerations[].effect", "pod.tolerations[].key", "pod.tolerations[].operator",
	"pod.tolerations[].tolerationSeconds", "pod.tolerations[].value", "pod.volumes[].name",
	"podMetadata.annotations{}", "podMetadata.labels{}",
	"queue.name", "queue.priority",
	"resources.cpu", "resources.deviceRequest.count", "resources.deviceRequest.deviceClassName",
	"resources.deviceRequest.selectors[].cel.expression", "resources.gpu", "resources.gpuCount", "resources.gpuProducts[]",
	"resources.memory", "resources.sharedMemory",
	"retry.attempts", "retry.backoff.factor", "retry.backoff.from", "retry.backoff.jitterPercent", "retry.backoff.to", "retry.resetAfter",
	"retry.rules[].attempts", "retry.rules[].backoff.factor", "retry.rules[].backoff.from", "retry.rules[].backoff.jitterPercent",
	"retry.rules[].backoff.to", "retry.rules[].do", "retry.rules[].factor", "retry.rules[].max", "retry.rules[].when.class",
	"retry.rules[].when.exitCodes[]", "retry.rules[].when.pattern",
	"secrets[].name", "secrets[].rotate",
	"spark.conf{}", "spark.executors", "spark.home", "spark.mainClass",
	"volumeMounts[].mountPath", "volumeMounts[].name", "volumeMounts[].readOnly", "volumeMounts[].subPath",
}

func TestEveryFieldIsClassified(t *testing.T) {
	// Package flink decides about its own block.
	composetest.Classified(t, theDefinition().Fields(), append([]string{"flink"}, managed...), podInputs)
}
