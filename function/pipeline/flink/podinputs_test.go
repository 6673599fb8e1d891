// SPDX-License-Identifier: Apache-2.0

package flink

import (
	"testing"

	"github.com/capstan-dev/capstan/function/compose/composetest"
)

// podInputs are fields whose other value makes another revision, which starts pods again.
var podInputs = []string{
	"args[]", "command[]", "config{}", "engine", "image",
	"env[].name", "env[].value", "env[].valueFrom.configMapKeyRef.key", "env[].valueFrom.configMapKeyRef.name",
	"env[].valueFrom.secretKeyRef.key", "env[].valueFrom.secretKeyRef.name",
	"flink.checkpointEvery", "flink.conf{}", "flink.home", "flink.mainClass", "flink.savepointWithin", "flink.slots", "flink.state.claimName",
	"flink.taskManagerResources.cpu", "flink.taskManagerResources.deviceRequest.count",
	"flink.taskManagerResources.deviceRequest.deviceClassName", "flink.taskManagerResources.deviceRequest.selectors[].cel.expression",
	"flink.taskManagerResources.gpu", "flink.taskManagerResources.gpuCount", "flink.taskManagerResources.gpuProducts[]",
	"flink.taskManagerResources.memory", "flink.taskManagerResources.sharedMemory",
	"pod.imagePullSecrets[].name", "pod.nodeSelector{}", "pod.priorityClassName", "pod.runtimeClassName", "pod.securityContext.runAsUser",
	"pod.serviceAccountName", "pod.tolerations[].effect", "pod.tolerations[].key", "pod.tolerations[].operator",
	"pod.tolerations[].tolerationSeconds", "pod.tolerations[].value", "pod.volumes[].name",
	"podMetadata.annotations{}", "podMetadata.labels{}",
	"resources.cpu", "resources.deviceRequest.count", "resources.deviceRequest.deviceClassName",
	"resources.deviceRequest.selectors[].cel.expression", "resources.gpu", "resources.gpuCount", "resources.gpuProducts[]",
	"resources.memory", "resources.sharedMemory",
	"secrets[].name", "secrets[].rotate",
	"spark.conf{}", "spark.executors", "spark.home", "spark.mainClass",
	"volumeMounts[].mountPath", "volumeMounts[].name", "volumeMounts[].readOnly", "volumeMounts[].subPath",
}

func TestEveryFieldIsClassified(t *testing.T) {
	// Of the claim only that there is one reaches pods.
	composetest.Classified(t, theDefinition().Fields(), append([]string{"flink.state.claim"}, managed...), podInputs)
}
