// SPDX-License-Identifier: Apache-2.0

package training

import (
	"testing"

	"github.com/capstan-dev/capstan/function/compose/composetest"
)

// podInputs are fields whose other value makes another revision, which starts pods again.
var podInputs = []string{
	"args[]", "command[]", "config{}", "deadline", "gracePeriod", "image", "processesPerWorker", "spares", "workers",
	"checkpoint.claimName", "checkpoint.complete", "checkpoint.every", "checkpoint.keep", "checkpoint.path", "checkpoint.subPath",
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
	"retry.attempts", "retry.withoutProgress",
	"secrets[].name", "secrets[].rotate",
	"volumeMounts[].mountPath", "volumeMounts[].name", "volumeMounts[].readOnly", "volumeMounts[].subPath",
	"watch.faults[].class", "watch.faults[].pattern", "watch.nonFinite", "watch.phases.checkpoint", "watch.phases.finish",
	"watch.phases.setup", "watch.phases.step", "watch.progress",
}

func TestEveryFieldIsClassified(t *testing.T) {
	// Of the claim only that there is one reaches pods.
	composetest.Classified(t, theDefinition().Fields(), append([]string{"checkpoint.claim"}, managed...), podInputs)
}
